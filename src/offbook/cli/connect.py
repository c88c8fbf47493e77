"""`offbook connect`: Offbook in the configuration of an MCP client, shown, agreed to, written, or taken away."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from offbook.cli.calling import own_command
from offbook.cli.options import UTF8, Invocation, agent_option, home_option, json_option, pass_invocation, url_option

if TYPE_CHECKING:
    from offbook.contrib.mcp_clients.clients import Client, Platform
    from offbook.contrib.mcp_clients.plan import Plan
    from offbook.contrib.mcp_clients.server import Server

NAMES = ("claude-code", "claude-desktop", "codex", "cursor", "vscode", "windsurf", "gemini")
DIFF_COLOURS = {"+": "green", "-": "red", "@": "cyan"}

EPILOG = """\b
Examples:
  offbook connect claude-code                 its tools, and every session captured
  offbook connect codex --no-capture          its tools only
  offbook connect cursor --dry-run
  offbook connect claude-code --config .mcp.json     for this project only
  offbook connect vscode --remove --yes

\b
Clients: claude-code, claude-desktop, codex, cursor, vscode, windsurf, gemini.
Any other takes the command `offbook` with the argument `mcp`.

\b
The files are shown as they would be and nothing is written before you agree.
A backup is made beside each, but for what only we had written. Run it again:
nothing changes.
"""


@click.command("connect", epilog=EPILOG)
@click.argument("client", type=click.Choice(NAMES), metavar="CLIENT")
@click.option(
    "--capture/--no-capture", default=None, help="Record its sessions by its hooks (claude-code, codex; usually on)."
)
@click.option("--remove", is_flag=True, help="Take away what was added.")
@click.option("--yes", is_flag=True, help="Write without asking.")
@click.option("--dry-run", is_flag=True, help="Show what would change, and write nothing.")
@click.option("--config", "config_given", type=UTF8, metavar="FILE", help="The client's file (else where it has it).")
@click.option("--command", "command_given", type=UTF8, help="How `offbook` is called (else in full, as it was now).")
@home_option
@url_option
@agent_option
@json_option
@pass_invocation
def command(
    invocation: Invocation,
    client: str,
    capture: bool | None,
    remove: bool,
    yes: bool,
    dry_run: bool,
    config_given: str | None,
    command_given: str | None,
) -> None:
    """Put Offbook into CLIENT: its tools over MCP and, where the client has hooks, its memory."""
    from offbook.contrib.mcp_clients.clients import CLIENTS
    from offbook.contrib.mcp_clients.plan import connected, disconnected
    from offbook.contrib.mcp_clients.writing import write
    from offbook.model.types import now

    known = CLIENTS[client]
    if capture and not known.events:
        raise click.UsageError(f"--capture: {known.title} has no hooks that Offbook knows; its tools work without")
    config, hooks = _places(invocation, client, known, config_given)
    if remove:
        plan = disconnected(client, known, config, hooks)
    else:
        plan = connected(client, known, config, hooks, _server(invocation, command_given), capture=capture is not False)
    if not invocation.is_json:
        _show(plan)
    can_ask = not invocation.is_json and sys.stdin.isatty()
    is_possible = bool(plan.changed) and not dry_run
    is_agreed = is_possible and (yes or (can_ask and click.confirm("Write this?", err=True)))
    backups = {str(file.path): write(file, now()) for file in plan.changed} if is_agreed else None
    unasked = is_possible and not yes and not can_ask
    then = known.then + known.and_hooks * (capture is not False)
    _tell(invocation, plan, backups, unasked=unasked, then=None if remove else then)
    if is_possible and backups is None:
        raise click.exceptions.Exit(1)


def _places(invocation: Invocation, name: str, known: Client, given: str | None) -> tuple[Path, Path | None]:
    from offbook.contrib.mcp_clients.clients import config_path, hooks_path

    platform = sys.platform if sys.platform in ("darwin", "win32") else "linux"
    user = Path("~").expanduser()
    environ = invocation.environ
    config = (
        config_path(known, cast("Platform", platform), environ, user) if given is None else Path(given).expanduser()
    ).absolute()
    return config, hooks_path(name, config, environ) if known.events else None


def _server(invocation: Invocation, given: str | None) -> Server:
    """With what was named, as the client starts it elsewhere, with another environment. What was not named may be in
    the client's configuration already."""
    from offbook.client.endpoint import Endpoint
    from offbook.contrib.mcp_clients.server import Server

    environ = invocation.environ
    url = environ.get("OFFBOOK_URL") or None
    if url is not None:
        Endpoint.parse(url)  # raises: the client would find out much later, and say it where nobody looks
    return Server(
        command=given or own_command(),
        home=str(invocation.home.folder.absolute()) if environ.get("OFFBOOK_HOME") else None,
        url=url,
        agent=invocation.agent,
    )


def _redacted(line: str) -> str:
    from offbook.ingest.redaction import redact_text

    return redact_text(line)[0]


def _show(plan: Plan) -> None:
    from offbook.cli.output import printable

    for file in plan.changed:
        click.echo(str(file.path) + (" (new)" if file.before is None else " (goes)" if file.after is None else ""))
        for line in file.diff(_redacted):
            click.secho(printable(line), fg=DIFF_COLOURS.get(line[:1]))
    for note in plan.notes:
        click.secho(f"! {note}", fg="yellow")


def _tell(
    invocation: Invocation,
    plan: Plan,
    backups: dict[str, Path | None] | None,
    *,
    unasked: bool,
    then: str | None,
) -> None:
    """`then`: what is to be done next, None where ours was taken away."""
    from offbook.cli.output import print_json

    steps = [then] if backups and then is not None else []
    if invocation.is_json:
        files: list[dict[str, Any]] = [
            {
                "path": str(file.path),
                "changed": file.is_changed,
                "diff": file.diff(_redacted, context=0),
                "backup": _text((backups or {}).get(str(file.path))),
            }
            for file in plan.files
        ]
        print_json({"files": files, "written": backups is not None, "notes": plan.notes, "next": steps})
        return
    if not plan.changed:
        click.echo("nothing to change: " + ("it is not there" if then is None else "it is set up like that"))
    elif backups is None:
        click.echo("nothing is written" + "; --yes writes it without asking" * unasked, err=True)
    else:
        for file in plan.changed:
            backup = backups[str(file.path)]
            done = "removed" if file.after is None else "written"
            click.echo(f"{done}: {file.path}" + (f"; what was there is in {backup}" if backup else ""))
        for step in steps:
            click.echo(f"  {step}")


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
