"""`offbook serve`: the provider in the foreground."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from offbook.cli.options import UTF8, Invocation, home_option, pass_invocation

if TYPE_CHECKING:
    from offbook.api.daemon import Address

EPILOG = """\b
Examples:
  offbook serve
  offbook serve --port 0                             the socket only
  offbook serve --set log.level=debug --set minScore=0.5
  offbook serve --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem

\b
It is ready when `offbook ping` answers. SIGTERM and Ctrl-C end it cleanly.
Settings also come from config.toml in the data folder and from OFFBOOK_…
variables; `offbook config` shows them all.
"""


@click.command("serve", epilog=EPILOG)
@home_option
@click.option("--port", type=int, help="TCP port; 0 is the socket only.  [default: 8770]")
@click.option("--host", type=UTF8, help="Address to listen on.  [default: 127.0.0.1]")
@click.option("--tls-cert", type=UTF8, metavar="FILE", help="Certificate, for TLS.")
@click.option("--tls-key", type=UTF8, metavar="FILE", help="Key of that certificate.")
@click.option("--set", "assignments", type=UTF8, multiple=True, metavar="NAME=VALUE", help="Any setting; repeatable.")
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), help="Least severity logged.")
@click.option("--log-format", type=click.Choice(["auto", "json", "console"]), help="How the log on stderr looks.")
@pass_invocation
def command(
    invocation: Invocation,
    port: int | None,
    host: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    assignments: tuple[str, ...],
    log_level: str | None,
    log_format: str | None,
) -> None:
    """Run the provider in the foreground."""
    from offbook.api import daemon
    from offbook.model.logs import configure_logs
    from offbook.model.settings import load
    from offbook.model.tls import check_pair

    home = invocation.home
    flags: dict[str, object] = {
        "port": port,
        "server.host": host,
        "server.tlsCert": tls_cert,
        "server.tlsKey": tls_key,
        "log.level": log_level,
        "log.format": log_format,
    }
    given = {name: value for name, value in flags.items() if value is not None}
    settings = load(home.folder, environ=invocation.environ, flags=given | _assigned(assignments)).settings
    if settings.server.port and settings.server.tls_cert and settings.server.tls_key:
        check_pair(Path(settings.server.tls_cert), Path(settings.server.tls_key))
    configure_logs(settings.log.level, settings.log.format)
    _run(daemon.serve(home, settings, on_ready=_announce))


def _assigned(assignments: tuple[str, ...]) -> dict[str, str]:
    named = {}
    for assignment in assignments:
        name, separator, value = assignment.partition("=")
        if not separator or not name.strip():
            raise click.BadParameter(f"{assignment!r} is not NAME=VALUE", param_hint="--set")
        named[name.strip()] = value
    return named


def _run(coroutine: Coroutine[Any, Any, None]) -> None:
    try:
        import uvloop
    except ImportError:  # not on every platform
        asyncio.run(coroutine)
    else:
        uvloop.run(coroutine)


def _announce(address: Address) -> None:
    try:
        is_default = Path(address.home) == Path("~/.offbook").expanduser()
        click.echo(banner(address, is_default_home=is_default, program=own_name()))
        sys.stdout.flush()
    except OSError:
        # Nobody reads our output. The provider is up all the same, and its log says so.
        return


def own_name() -> str:
    """What to type for this program: a shell need not find it, as after `make run`."""
    own, found = Path(sys.executable).absolute().with_name("offbook"), shutil.which("offbook")
    if not own.exists() or (found is not None and Path(found).resolve() == own.resolve()):
        return "offbook"
    relative = os.path.relpath(own)
    shortest = min(str(own), relative if os.sep in relative else f"./{relative}", key=len)
    return shlex.quote(shortest)


def banner(address: Address, *, is_default_home: bool, program: str = "offbook") -> str:
    from offbook.model.version import VERSION

    folder = shlex.quote(address.home)
    lines = [f"Offbook {VERSION} is ready.", "", f"  socket  {address.socket}"]
    if address.url is not None:
        lines.append(f"  url     {address.url}  (token: {Path(address.home) / 'token'})")
    lines += [f"  data    {address.home}", "", "Try it in another terminal:", ""]
    if not is_default_home:
        lines.append(f"  export OFFBOOK_HOME={folder}")
    lines += [
        f'  {program} record chat "My cat is called Ada."',
        f"  {program} log chat --follow",
        f"  {program} recall what is my cat called",
        f"  curl --unix-socket {shlex.quote(address.socket)} http://localhost/v1/ping",
        "",
        "Ctrl-C stops it.",
    ]
    return "\n".join(lines)
