"""`offbook serve`, `ping`, `token`, `tls-cert`: the provider in the foreground, and who may come in."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from offbook.cli.options import UTF8, Invocation, home_option, json_option, offline_options, pass_invocation, url_option
from offbook.cli.output import local_time, print_json, printable, table

if TYPE_CHECKING:
    from offbook.api.daemon import Address


# ── offbook serve ─────────────────────────────────────────────────────────────────────────────────

SERVE_EPILOG = """\b
Examples:
  offbook serve
  offbook serve --port 0                             the socket only
  offbook serve --set log.level=debug --set minScore=0.5
  offbook serve --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem
  offbook serve --store postgresql://offbook@localhost/offbook

\b
It is ready when `offbook ping` answers. SIGTERM and Ctrl-C end it cleanly.
Settings also come from config.toml in the data folder and from OFFBOOK_…
variables; `offbook config` shows them all.
"""


@click.command("serve", epilog=SERVE_EPILOG)
@home_option
@click.option("--port", type=int, help="TCP port; 0 is the socket only.  [default: 8770]")
@click.option("--host", type=UTF8, help="Address to listen on.  [default: 127.0.0.1]")
@click.option("--store", "store_url", type=UTF8, metavar="URL", help="A PostgreSQL database in place of a file.")
@click.option("--node-url", type=UTF8, metavar="URL", help="One of several nodes: where the others reach it.")
@click.option("--tls-cert", type=UTF8, metavar="FILE", help="Certificate, for TLS.")
@click.option("--tls-key", type=UTF8, metavar="FILE", help="Key of that certificate.")
@click.option("--set", "assignments", type=UTF8, multiple=True, metavar="NAME=VALUE", help="Any setting; repeatable.")
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), help="Least severity logged.")
@click.option("--log-format", type=click.Choice(["auto", "json", "console"]), help="How the log on stderr looks.")
@pass_invocation
def serve_command(
    invocation: Invocation,
    port: int | None,
    host: str | None,
    store_url: str | None,
    node_url: str | None,
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
        "store.url": store_url,
        "store.nodeUrl": node_url,
        "server.tlsCert": tls_cert,
        "server.tlsKey": tls_key,
        "log.level": log_level,
        "log.format": log_format,
    }
    given = {name: value for name, value in flags.items() if value is not None}
    loaded = load(home.folder, environ=invocation.environ, flags=given | _assigned(assignments))
    settings = loaded.settings
    if settings.server.port and settings.server.tls_cert and settings.server.tls_key:
        check_pair(Path(settings.server.tls_cert), Path(settings.server.tls_key))
    configure_logs(settings.log.level, settings.log.format)
    run_loop(daemon.serve(home, settings, origins=loaded.origins, on_ready=_announce))


def _assigned(assignments: tuple[str, ...]) -> dict[str, str]:
    named = {}
    for assignment in assignments:
        name, separator, value = assignment.partition("=")
        if not separator or not name.strip():
            raise click.BadParameter(f"{assignment!r} is not NAME=VALUE", param_hint="--set")
        named[name.strip()] = value
    return named


def run_loop(coroutine: Coroutine[Any, Any, None]) -> None:
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
        *([f"  {program} ui                    all of it in the browser"] if address.url is not None else []),
        f"  curl --unix-socket {shlex.quote(address.socket)} http://localhost/v1/ping",
        "",
        "Ctrl-C stops it.",
    ]
    return "\n".join(lines)


# ── offbook ping ──────────────────────────────────────────────────────────────────────────────────

PING_EPILOG = """\b
Examples:
  offbook ping
  offbook ping --url http://127.0.0.1:8770
  until offbook ping >/dev/null 2>&1; do sleep 0.1; done
"""


@click.command("ping", epilog=PING_EPILOG)
@home_option
@url_option
@json_option
@pass_invocation
def ping_command(invocation: Invocation) -> None:
    """Ask whether the provider answers. Exit status 3 where it does not."""
    with invocation.client() as client:
        started = time.perf_counter()
        health = client.ping()
        milliseconds = (time.perf_counter() - started) * 1_000
        endpoint = client.endpoint
    if invocation.is_json:
        print_json(health)
        return
    facts = [
        f"Offbook {health.get('version')} answers at {endpoint}",
        f"{milliseconds:.1f} ms",
        f"store {health.get('store')}",
        f"model {health.get('model') or 'none'}",
        f"backlog {health.get('backlog')}",
    ]
    click.echo(printable(" · ".join(facts)))


# ── offbook token ─────────────────────────────────────────────────────────────────────────────────

TOKENS_EPILOG = """\b
Examples:
  offbook token create laptop --agents main,researcher
  offbook token list
  offbook token revoke laptop
  curl -H "Authorization: Bearer $(offbook token show --reveal)" http://127.0.0.1:8770/v1/ping
"""


@click.group("token", epilog=TOKENS_EPILOG)
def token_command() -> None:
    """Make, list and revoke access tokens.

    The owner's token, in the data folder, opens everything. A token made here opens what belongs to the
    agents it names. Changes hold at once, also for a provider that runs.
    """


@token_command.command("create", epilog="\b\nExample:\n  offbook token create laptop --agents main,researcher")
@click.argument("name", type=UTF8)
@click.option("--agents", type=UTF8, required=True, metavar="A,B", help="Agents it is for, separated by commas.")
@offline_options
@pass_invocation
def create_token(invocation: Invocation, name: str, agents: str) -> None:
    """Make a token for some agents and show it, once."""
    import secrets

    from offbook.ingest.scope import checked_key
    from offbook.model.errors import InvalidInput
    from offbook.model.home import TOKEN_PREFIX, BoundToken, token_digest
    from offbook.model.types import MAX_AGENT_BYTES, now

    home = invocation.home
    named = list(dict.fromkeys(agent.strip() for agent in agents.split(",") if agent.strip()))
    if not named:
        raise click.BadParameter("name at least one agent", param_hint="--agents")
    for agent in named:
        checked_key(agent, "--agents", MAX_AGENT_BYTES)
    if not name.strip() or not name.isprintable():
        raise click.BadParameter("a name has letters in it, and no control characters", param_hint="NAME")
    tokens = home.read_bound_tokens()
    if any(token.name == name for token in tokens):
        raise InvalidInput(f"there is a token {name!r} already: revoke it first (`offbook token revoke {name}`)")
    secret = TOKEN_PREFIX + secrets.token_urlsafe(32)
    made = BoundToken(name=name, digest=token_digest(secret), agents=named, created_at=now().isoformat())
    home.prepare()
    home.write_bound_tokens([*tokens, made])
    if invocation.is_json:
        print_json({"name": name, "agents": named, "token": secret})
        return
    click.echo(secret)
    click.echo(
        printable(f"token {name!r} for {', '.join(named)}: keep it now, it is stored nowhere and shown once"), err=True
    )


@token_command.command("list", epilog="\b\nExample:\n  offbook token list --json")
@offline_options
@pass_invocation
def list_tokens(invocation: Invocation) -> None:
    """List the tokens there are, without the tokens themselves."""
    from datetime import datetime

    tokens = invocation.home.read_bound_tokens()
    if invocation.is_json:
        print_json([{"name": each.name, "agents": each.agents, "createdAt": each.created_at} for each in tokens])
        return
    if not tokens:
        click.echo("no tokens but the owner's (`offbook token show`)")
        return
    table(
        ["name", "agents", "made"],
        [[each.name, ", ".join(each.agents), local_time(datetime.fromisoformat(each.created_at))] for each in tokens],
    )


@token_command.command("revoke", epilog="\b\nExample:\n  offbook token revoke laptop")
@click.argument("name", type=UTF8)
@offline_options
@pass_invocation
def revoke_token(invocation: Invocation, name: str) -> None:
    """Make a token worthless, at once."""
    from offbook.model.errors import InvalidInput

    home = invocation.home
    tokens = home.read_bound_tokens()
    left = [token for token in tokens if token.name != name]
    if len(left) == len(tokens):
        raise InvalidInput(f"there is no token {name!r}: `offbook token list` shows those there are")
    home.write_bound_tokens(left)
    if invocation.is_json:
        print_json({"revoked": name})
        return
    click.echo(printable(f"token {name!r} is revoked"))


@token_command.command("show", epilog="\b\nExamples:\n  offbook token show\n  offbook token show --reveal")
@click.option("--reveal", is_flag=True, help="Print the token itself.")
@home_option
@json_option
@pass_invocation
def show_token(invocation: Invocation, reveal: bool) -> None:
    """Show where the owner's token is."""
    from offbook.model.errors import InvalidInput

    path = invocation.home.token
    if not path.exists():
        raise InvalidInput(f"there is no token at {path} yet: the first `offbook serve` makes it")
    token = path.read_text().strip() if reveal else None
    if invocation.is_json:
        print_json({"path": str(path)} | ({"token": token} if token else {}))
        return
    click.echo(token or path)


# ── offbook tls-cert ──────────────────────────────────────────────────────────────────────────────

TLS_CERT_EPILOG = """\b
Examples:
  offbook tls-cert
  offbook tls-cert --host memory.local --host 192.168.1.20 --out certs

For anything but development, use a certificate of a certificate authority.
"""


@click.command("tls-cert", epilog=TLS_CERT_EPILOG)
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
def tls_cert_command(invocation: Invocation, hosts: tuple[str, ...], folder: Path, force: bool) -> None:
    """Make a self-signed certificate and its key, for development."""
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
