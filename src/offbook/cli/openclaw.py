"""`offbook openclaw`: put Offbook into OpenClaw, and prove that it is there."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from offbook.cli.connect import own_command
from offbook.cli.options import (
    UTF8,
    Invocation,
    home_option,
    json_option,
    offline_options,
    pass_invocation,
    provider_url,
)
from offbook.cli.output import ago, print_json, printable, table

if TYPE_CHECKING:
    from offbook.client.config_files.editing import Missing
    from offbook.openclaw.changes import Wishes
    from offbook.openclaw.examination import Compared, Examination
    from offbook.openclaw.setup import Prepared


# ── offbook openclaw setup ────────────────────────────────────────────────────────────────────────

SETUP_EPILOG = """\b
Levels:
  capture   every message is recorded; the agent is as before
  recall    and before each turn it remembers what belongs to it
  hot-swap  and Offbook keeps the context: no turn waits for a compaction
  off       undo all of it

\b
Examples:
  offbook openclaw setup --level capture
  offbook openclaw setup --level hot-swap --start-daemon
  offbook openclaw setup --level recall --writer host --yes
  offbook openclaw setup --level recall --writer http://127.0.0.1:11434/v1 --writer-model qwen3:4b
  offbook openclaw setup --level recall --dry-run
  offbook openclaw setup --level off --yes

\b
Who writes the memory is asked once, with what it costs. --writer answers it,
or changes the answer later: both the plugin and Offbook follow it.

The file is shown as it would be and nothing is written before you agree. A backup is made beside it.
"""

DIFF_COLOURS = {"+": "green", "-": "red", "@": "cyan"}

config_option = click.option(
    "--config", "config_given", type=UTF8, metavar="FILE", help="OpenClaw's openclaw.json (else where OpenClaw has it)."
)
state_option = click.option(
    "--state", "state_given", type=UTF8, metavar="DIR", help="OpenClaw's state folder (else where OpenClaw has it)."
)


@click.command("setup", epilog=SETUP_EPILOG)
@click.option(
    "--level", type=click.Choice(["capture", "recall", "hot-swap", "off"]), required=True, help="How much Offbook does."
)
@click.option("--plugin", type=UTF8, metavar="DIR", help="Folder of the plugin (else the one that comes with Offbook).")
@click.option(
    "--memory-slot/--no-memory-slot", default=None, help="Answer the host's memory_search and memory_get, too."
)
@click.option("--mcp", is_flag=True, help="Add Offbook's tools as an MCP server.")
@click.option(
    "--writer",
    type=UTF8,
    metavar="host|none|URL",
    help="Who writes the memory: the agent's own model, nobody, or an endpoint.",
)
@click.option("--writer-model", type=UTF8, metavar="MODEL", help="The model to ask for at the endpoint.")
@click.option("--start-daemon/--no-start-daemon", default=None, help="Let the plugin start `offbook serve`.")
@click.option("--take-slot", is_flag=True, help="Take a slot that another plugin has.")
@click.option("--yes", is_flag=True, help="Write without asking.")
@click.option("--dry-run", is_flag=True, help="Show what would change, and write nothing.")
@config_option
@state_option
@click.option(
    "--url",
    "endpoint",
    type=provider_url,
    metavar="URL",
    help="Provider the plugin asks, where it is not the one of the data folder.",
)
@home_option
@json_option
@pass_invocation
def setup_command(
    invocation: Invocation,
    /,
    plugin: str | None,
    memory_slot: bool | None,
    mcp: bool,
    writer: str | None,
    writer_model: str | None,
    yes: bool,
    dry_run: bool,
    config_given: str | None,
    state_given: str | None,
    **wished: Any,
) -> None:
    """Write what OpenClaw needs to run with Offbook, at a level, or take it away."""
    from offbook.cli.openclaw_writer import ask_writer, given_writer
    from offbook.model.types import now
    from offbook.openclaw.setup import prepare, write

    path, state = places(invocation, config_given, state_given)
    wishes = _wishes(invocation, is_mcp=mcp, **wished)
    chosen = given_writer(writer, writer_model, wishes.level)
    environ = invocation.environ
    can_ask = not invocation.is_json and sys.stdin.isatty()
    prepared = prepare(path, state, wishes, environ, plugin=plugin, memory_slot=memory_slot, writer=chosen)
    is_unanswered = chosen is None and prepared.present is not None and not prepared.present.is_chosen
    if is_unanswered and can_ask and not yes and not prepared.plan.obstacles:
        chosen = ask_writer(prepared, environ)
        prepared = prepare(path, state, wishes, environ, plugin=plugin, memory_slot=memory_slot, writer=chosen)
    if not invocation.is_json:
        _show_plan(prepared)
    is_possible = prepared.is_changed and not prepared.plan.obstacles and not dry_run
    backups = None
    if is_possible and (yes or (can_ask and click.confirm("Write this?", err=True))):
        backups = write(prepared, now())
    unasked = is_possible and not yes and not can_ask
    _tell_setup(invocation, prepared, backups, _doctor(config_given, state_given), unasked=unasked)
    if prepared.plan.obstacles or (prepared.is_changed and backups is None and not dry_run):
        raise click.exceptions.Exit(1)


def places(invocation: Invocation, config_given: str | None, state_given: str | None) -> tuple[Path, Path]:
    """Whoever names a file means the host that it belongs to: its state is beside it unless somebody says otherwise."""
    from offbook.openclaw.places import STATE_VARIABLE, named_path, state_folder
    from offbook.openclaw.setup import CONFIG_VARIABLE, config_path

    environ = invocation.environ
    if state_given is not None:
        environ[STATE_VARIABLE] = state_given
    if config_given is not None:
        environ[CONFIG_VARIABLE] = config_given
    path = config_path(environ)
    if config_given is not None and named_path(environ, STATE_VARIABLE) is None:
        return path, path.parent
    return path, state_folder(environ)


def _doctor(config_given: str | None, state_given: str | None) -> str:
    named = [("--config", config_given), ("--state", state_given)]
    options = [text for name, value in named if value is not None for text in (name, value)]
    return shlex.join(["offbook", "openclaw", "doctor", *options])


def _wishes(
    invocation: Invocation,
    *,
    level: Any,
    is_mcp: bool,
    start_daemon: bool | None,
    take_slot: bool,
    endpoint: str | None,
) -> Wishes:
    from importlib.util import find_spec

    from offbook.api.mcp.asking import INSTALL_HINT
    from offbook.openclaw.changes import Wishes

    if is_mcp and find_spec("mcp") is None:
        raise click.UsageError(f"--mcp: {INSTALL_HINT}, or set up without it")
    named = own_command()
    home, asked = _provider(invocation, endpoint)
    return Wishes(
        level=level,
        home=home,
        endpoint=asked,
        command=named if start_daemon else None,
        start_daemon=start_daemon,
        mcp_command=named if is_mcp else None,
        take_slot=take_slot,
    )


def _provider(invocation: Invocation, endpoint: str | None) -> tuple[str | Missing | None, str | Missing | None]:
    """Data folder and endpoint to write. Whoever names a folder means its provider, and the usual one needs no line."""
    from offbook.client.config_files.editing import MISSING
    from offbook.client.endpoint import Endpoint
    from offbook.openclaw.setup import socket_of, usual_home

    folder = invocation.home.folder.absolute()
    is_named = invocation.home_given is not None
    home = str(folder) if folder != usual_home() else MISSING if is_named else None
    if endpoint is None:
        return home, MISSING if is_named else None
    asked = Endpoint.parse(endpoint)
    return (home or MISSING, MISSING) if asked == socket_of(folder) else (home, str(asked))


def _show_plan(prepared: Prepared) -> None:
    from offbook.cli.openclaw_writer import show_provider_file
    from offbook.client.config_files.editing import MISSING, written
    from offbook.client.config_files.file import masked

    plan = prepared.plan
    click.echo(str(prepared.file.path))
    for line in prepared.diff():
        click.secho(printable(line), fg=DIFF_COLOURS.get(line[:1]))
    if plan.obstacles:
        click.echo("would change:")
        for change in plan.changes:
            value = "is taken away" if change.after is MISSING else f"= {written(masked(change.after, *change.path))}"
            click.echo(f"  {printable(change.name)} {printable(value)}")
    show_provider_file(prepared, DIFF_COLOURS)
    for note in plan.notes:
        click.secho(f"! {printable(note)}", fg="yellow")


def _tell_setup(
    invocation: Invocation, prepared: Prepared, backups: list[Path] | None, doctor: str, *, unasked: bool
) -> None:
    from offbook.cli.openclaw_writer import show_present, writer_document
    from offbook.client.config_files.editing import MISSING
    from offbook.client.config_files.file import masked
    from offbook.openclaw.setup import next_steps

    plan = prepared.plan
    steps = next_steps(prepared, doctor) if backups is not None else []
    if invocation.is_json:
        changes = [
            {"path": change.name, "why": change.why}
            | {
                name: masked(value, *change.path)
                for name, value in (("before", change.before), ("after", change.after))
                if value is not MISSING
            }
            for change in plan.changes
        ]
        document: dict[str, Any] = {
            "config": str(prepared.file.path),
            "changes": changes,
            "notes": plan.notes,
            "obstacles": plan.obstacles,
            "diff": prepared.diff(context=0),
            "written": backups is not None,
            "backup": str(backups[0]) if backups else None,
            "next": steps,
            **writer_document(prepared),
        }
        print_json(document)
        return
    show_present(prepared)
    for obstacle in plan.obstacles:
        click.echo(f"offbook: {obstacle}", err=True)
    if not prepared.is_changed:
        click.echo("nothing to change: it is set up like that")
    elif backups is None:
        click.echo("nothing is written" + "; --yes writes it without asking" * unasked, err=True)
    else:
        kept = " and ".join(str(backup) for backup in backups)
        click.echo("written" + (f"; what was there is in {kept}" if kept else ""))
        for step in steps:
            click.echo(f"  {step}")


# ── offbook openclaw, and its doctor ──────────────────────────────────────────────────────────────

OPENCLAW_EPILOG = """\b
Examples:
  offbook openclaw setup --level capture
  offbook openclaw setup --level hot-swap --start-daemon
  offbook openclaw setup --level off
  offbook openclaw doctor
"""

DOCTOR_EPILOG = """\b
Examples:
  offbook openclaw doctor
  offbook openclaw doctor --state ~/.openclaw-work
  offbook openclaw doctor --json | jq '.findings[] | select(.level != "ok")'

\b
Exit status:
  0  all is well; there may be warnings
  1  something is wrong, and it says what to do
  3  no provider answers
"""


@click.group("openclaw", epilog=OPENCLAW_EPILOG)
def openclaw_command() -> None:
    """Put Offbook into OpenClaw, and prove that it is there."""


openclaw_command.add_command(setup_command)


@openclaw_command.command("doctor", epilog=DOCTOR_EPILOG)
@config_option
@state_option
@offline_options
@pass_invocation
def openclaw_doctor_command(invocation: Invocation, config_given: str | None, state_given: str | None) -> None:
    """Prove that the last turn went through Offbook, or say what is missing."""
    from offbook.cli.root import EXIT_FAILED, EXIT_UNREACHABLE
    from offbook.cli.upkeep import show_findings
    from offbook.model.types import now
    from offbook.openclaw.examination import examine

    seen = examine(*places(invocation, config_given, state_given), invocation.environ, now())
    if invocation.is_json:
        print_json({"findings": seen.findings, "sessions": [_told_session(each) for each in seen.sessions]})
    else:
        _show_openclaw_sessions(seen)
        show_findings([], seen.findings)
    if seen.is_provider_away:
        raise click.exceptions.Exit(EXIT_UNREACHABLE)
    if any(finding.level == "fail" for finding in seen.findings):
        raise click.exceptions.Exit(EXIT_FAILED)


def _told_session(compared: Compared) -> dict[str, Any]:
    session = compared.session
    return {
        "agentId": session.agent_id,
        "sessionId": session.session_key,
        "hostSessionId": session.session_id,
        "host": len(session.entries),
        "stored": compared.stored,
        "missing": [entry.entry_id for entry in session.entries if entry.entry_id in compared.missing],
        "lastAt": session.last_at,
    }


def _show_openclaw_sessions(seen: Examination) -> None:
    if not seen.sessions:
        return
    rows = [
        [
            each.session.agent_id,
            each.session.session_key,
            f"{len(each.session.entries):,}",
            f"{each.stored:,}",
            f"{len(each.missing):,}",
            ago(each.session.last_at) if each.session.last_at else "",
        ]
        for each in seen.sessions
    ]
    table(["agent", "session", "host", "stored", "missing", "last"], rows, right=["host", "stored", "missing"])
    click.echo()
