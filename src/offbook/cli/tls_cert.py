"""`offbook tls-cert`: a certificate to develop with."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from offbook.cli.options import UTF8, Invocation, json_option, pass_invocation

EPILOG = """\b
Examples:
  offbook tls-cert
  offbook tls-cert --host memory.local --host 192.168.1.20 --out certs

For anything but development, use a certificate of a certificate authority.
"""


@click.command("tls-cert", epilog=EPILOG)
@click.option("--host", "hosts", type=UTF8, multiple=True, help="Name or address it is for, besides loopback.")
@click.option(
    "--out",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=".",
    show_default="this folder",
    help="Where cert.pem and key.pem go.",
)
@click.option("--force", is_flag=True, help="Replace files that are there.")
@json_option
@pass_invocation
def command(invocation: Invocation, hosts: tuple[str, ...], folder: Path, force: bool) -> None:
    """Make a self-signed certificate and its key, for development."""
    from offbook.cli.output import print_json
    from offbook.model.tls import VALID_DAYS, write_pair

    certificate, key = (path.absolute() for path in write_pair(folder, hosts, force=force))
    if invocation.is_json:
        print_json({"certificate": str(certificate), "key": str(key)})
        return
    files = f"--tls-cert {shlex.quote(str(certificate))} --tls-key {shlex.quote(str(key))}"
    listen, name = ("0.0.0.0", hosts[0]) if hosts else ("127.0.0.1", "localhost")  # noqa: S104 - what was asked for
    click.echo(
        f"{certificate}  certificate, valid for {VALID_DAYS} days\n"
        f"{key}  key, readable by you only\n"
        "\nServe with it:\n"
        f"  offbook serve --host {listen} {files}\n"
        "\nAsk it, trusting this certificate:\n"
        f"  SSL_CERT_FILE={shlex.quote(str(certificate))} offbook ping --url https://{name}:8770"
    )
