"""`offbook connect`, `agents-md`: Offbook in the files of other agents, shown, agreed to, written, or taken away."""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import click

from offbook.cli.options import UTF8, Invocation, agent_option, home_option, json_option, pass_invocation, url_option
from offbook.cli.output import print_json, printable
from offbook.model.errors import OffbookError

if TYPE_CHECKING:
    from offbook.context.agents_md import Found
    from offbook.contrib.mcp_clients.clients import Client, Platform, Server
    from offbook.contrib.mcp_clients.plan import Plan

    State = Found | Literal["missing"]


# ── how others call this program ──────────────────────────────────────────────────────────────────


def own_command() -> str:
    """As it was called now, in full: a gateway, or a program with windows, has another PATH than a terminal."""
    called = Path(sys.argv[0]).absolute()
    if called.name == "offbook" and called.is_file():
        return str(called)
    return shutil.which("offbook") or "offbook"


# ── offbook connect ───────────────────────────────────────────────────────────────────────────────

NAMES = ("claude-code", "claude-desktop", "codex", "cursor", "vscode", "windsurf", "gemini")
DIFF_COLOURS = {"+": "green", "-": "red", "@": "cyan"}

CONNECT_EPILOG = """\b
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


@click.command("connect", epilog=CONNECT_EPILOG)
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
def connect_command(
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
    from offbook.contrib.mcp_clients.plan import connected, disconnected, write
    from offbook.model.types import now

    known = CLIENTS[client]
    if capture and not known.events:
        raise click.UsageError(f"--capture: {known.title} has no hooks that Offbook knows; its tools work without")
    config, hooks = _places(invocation, client, known, config_given)
    if remove:
        plan = disconnected(client, known, config, hooks)
    else:
        plan = connected(
            client, known, config, hooks, _server_meant(invocation, command_given), capture=capture is not False
        )
    if not invocation.is_json:
        _show_plan(plan)
    can_ask = not invocation.is_json and sys.stdin.isatty()
    is_possible = bool(plan.changed) and not dry_run
    is_agreed = is_possible and (yes or (can_ask and click.confirm("Write this?", err=True)))
    backups = {str(file.path): write(file, now()) for file in plan.changed} if is_agreed else None
    unasked = is_possible and not yes and not can_ask
    then = known.then + known.and_hooks * (capture is not False)
    _tell_connected(invocation, plan, backups, unasked=unasked, then=None if remove else then)
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


def _server_meant(invocation: Invocation, given: str | None) -> Server:
    """With what was named, as the client starts it elsewhere, with another environment. What was not named may be in
    the client's configuration already."""
    from offbook.client.endpoint import Endpoint
    from offbook.contrib.mcp_clients.clients import Server

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
    from offbook.ingest.secret_scan import redact_text

    return redact_text(line)[0]


def _show_plan(plan: Plan) -> None:
    for file in plan.changed:
        click.echo(str(file.path) + (" (new)" if file.before is None else " (goes)" if file.after is None else ""))
        for line in file.diff(_redacted):
            click.secho(printable(line), fg=DIFF_COLOURS.get(line[:1]))
    for note in plan.notes:
        click.secho(f"! {note}", fg="yellow")


def _tell_connected(
    invocation: Invocation,
    plan: Plan,
    backups: dict[str, Path | None] | None,
    *,
    unasked: bool,
    then: str | None,
) -> None:
    """`then`: what is to be done next, None where ours was taken away."""
    steps = [then] if backups and then is not None else []
    if invocation.is_json:
        files: list[dict[str, Any]] = [
            {
                "path": str(file.path),
                "changed": file.is_changed,
                "diff": file.diff(_redacted, context=0),
                "backup": _path_text((backups or {}).get(str(file.path))),
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


def _path_text(path: Path | None) -> str | None:
    return None if path is None else str(path)


# ── offbook agents-md ─────────────────────────────────────────────────────────────────────────────

AGENTS_FILE = "AGENTS.md"
NEVER_WRITTEN = "memory.md"
"""It is the agent's own: what it wants to keep it writes there itself."""
SECTION_TOLD: dict[State, str] = {
    "present": "has it",
    "changed": "has it, changed by hand",
    "old": "has it under the old name (### Recalled Memories (Continuity Plugin))",
    "absent": "does not have it",
    "missing": "there is no {name}",
}
NOT_WRITTEN: dict[State, str] = {
    "present": "nothing to do",
    "changed": "it is left as it is; to have ours instead, remove it and run this again",
    "old": "it is left as it is; to have ours instead, remove it and run this again",
}

AGENTS_MD_EPILOG = """\b
Examples:
  offbook agents-md                           print it; does this folder have it?
  offbook agents-md ~/workspace --write       add it at the end of its AGENTS.md
  offbook agents-md ~/workspace --check && echo there
  offbook agents-md --json | jq -r .section

\b
No provider is needed. A section that is there is never changed, also one that
was changed by hand. MEMORY.md belongs to the agent and is never touched.
"""


@click.command("agents-md", epilog=AGENTS_MD_EPILOG)
@click.argument("path", type=UTF8, default=".", metavar="[PATH]")
@click.option("--write", is_flag=True, help="Add it at the end of the file, unless it is there.")
@click.option("--check", is_flag=True, help="Only say whether it is there: exit status 0 if so, else 1.")
@json_option
@pass_invocation
def agents_md_command(invocation: Invocation, path: str, write: bool, check: bool) -> None:
    """Print the section of AGENTS.md that teaches an agent that what it recalls is its own memory.

    PATH is the agent's workspace or a file in it; this folder where it is left out.
    """
    from offbook.context.agents_md import SECTION

    if write and check:
        raise click.UsageError("--check changes nothing: leave out --check or --write")
    file = _meant_file(path)
    state, text = _read_section(file)
    is_written = write and state in ("absent", "missing")
    if is_written:
        _write_section(file, text)
    if invocation.is_json:
        print_json({"path": str(file), "found": state, "written": is_written, "section": SECTION})
    elif write:
        done = "added at the end" if state == "absent" else "made, with it"
        click.echo(
            printable(f"{file}: {done}" if is_written else f"{_told_section(file, state)}: {NOT_WRITTEN[state]}")
        )
    elif check:
        click.echo(printable(_told_section(file, state)))
    else:
        click.echo(SECTION, nl=False)
        way = f": `offbook agents-md {shlex.quote(path)} --write` adds it" if state in ("absent", "missing") else ""
        click.echo(printable(_told_section(file, state) + way), err=True)
    if check and state in ("absent", "missing"):
        raise click.exceptions.Exit(1)


def _told_section(file: Path, state: State) -> str:
    return f"{file}: {SECTION_TOLD[state].format(name=file.name)}"


def _meant_file(path: str) -> Path:
    """The file that is meant, whether it is there or not."""
    given = Path(path)
    file = given / AGENTS_FILE if given.is_dir() else given
    folder = _real_file(file).parent
    if NEVER_WRITTEN in (file.name.casefold(), _real_file(file).name.casefold()):
        raise click.BadParameter(
            f"{file} is the agent's own memory, which it alone writes: the section belongs in {AGENTS_FILE} beside it",
            param_hint="PATH",
        )
    if file.suffix.casefold() != ".md" or (path.endswith("/") and not given.is_dir()):
        is_there = "is neither a folder nor a Markdown file" if file.exists() else "is no folder"
        raise click.BadParameter(
            f"{given} {is_there}: name the agent's workspace, or its {AGENTS_FILE}", param_hint="PATH"
        )
    if not folder.is_dir():
        raise click.BadParameter(
            f"there is no folder {folder}: name the agent's workspace, or its {AGENTS_FILE}", param_hint="PATH"
        )
    return file


def _real_file(file: Path) -> Path:
    """Where it really is: a link is followed, and stays a link. Unlike `resolve`, this takes a link to itself, too."""
    return Path(os.path.realpath(file))


def _read_section(file: Path) -> tuple[State, str]:
    """How it stands with the section, and the text, from which the bytes can be made again."""
    from offbook.context.agents_md import found_in

    if file.exists() and not file.is_file():
        raise OffbookError(f"{file} is no file: name the agent's workspace, or its {AGENTS_FILE}")
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return "missing", ""
    if b"\0" in content:
        raise OffbookError(f"{file} is not text in UTF-8: save it as UTF-8, then run this again")
    text = content.decode("utf-8", "surrogateescape")
    return found_in(text), text


def _write_section(file: Path, text: str) -> None:
    """The file with the section, all at once, where it really is and with the permissions it has."""
    from offbook.context.agents_md import with_section

    target = _real_file(file)
    content = with_section(text).encode("utf-8", "surrogateescape")
    unfinished = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        if target.exists() and not os.access(target, os.W_OK):
            # A rename asks the folder only: a file that is closed to us would be replaced.
            raise PermissionError("no permission to write")
        _fill_file(unfinished, content, like=target)
        if _read_section(file)[1] != text:
            raise OffbookError(f"{file} was changed just now by somebody else: run this again")
        unfinished.replace(target)
    except OSError as error:
        raise OffbookError(
            f"{file} cannot be written ({error.strerror or error}): mend its permissions or make room, "
            "or add by hand what `offbook agents-md` prints"
        ) from None
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def _fill_file(unfinished: Path, content: bytes, *, like: Path) -> None:
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    with os.fdopen(descriptor, "wb") as writing:
        if like.exists():
            status = like.stat()
            with suppress(PermissionError):  # whoever is not root owns it already, or may not give it away
                os.fchown(descriptor, status.st_uid, status.st_gid)
            os.fchmod(descriptor, status.st_mode & 0o7777)
        writing.write(content)
        writing.flush()
        os.fsync(descriptor)
