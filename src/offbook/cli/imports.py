"""`offbook import`: what other programs kept, into the log."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import click

from offbook.cli.import_reports import importing_client, show_import, tell_conversations, with_progress_so_far
from offbook.cli.options import (
    UTF8,
    Invocation,
    common_options,
    home_option,
    json_option,
    moment,
    pass_invocation,
    url_option,
)
from offbook.cli.output import counted, print_json, printable, progress, table, warn
from offbook.client.history.formats import FORMATS, Format

if TYPE_CHECKING:
    from pathlib import Path

    from offbook.client.history.conversations import Conversation, ImportReport
    from offbook.client.history.formats import Owner
    from offbook.openclaw.catalogue import Catalogue, Session
    from offbook.transfer.record_files import Source
    from offbook.transfer.record_import import RecordsReport


# ── offbook import openclaw ───────────────────────────────────────────────────────────────────────

IMPORT_OPENCLAW_EPILOG = """\b
Examples:
  offbook import openclaw --dry-run          what is there, and what is new
  offbook import openclaw                    all of it
  offbook import openclaw --agent main --since 2026-01-01
  offbook import openclaw --session agent:main:main
  offbook import openclaw --state /backup/openclaw --json

\b
Reads the database, older JSONL transcripts, and archives of deleted, reset and
inactive sessions, but no incognito session and none that `openclaw memory forget`
named. The host may be running. Each message is stored once, under the id it has
in the host: run this again at any time, also after it broke off.
"""


@click.command("openclaw", epilog=IMPORT_OPENCLAW_EPILOG)
@click.option("--state", type=UTF8, metavar="DIR", help="OpenClaw's state folder (else where OpenClaw has it).")
@click.option("--agent", "agents", type=UTF8, multiple=True, metavar="NAME", help="Only this agent. May be repeated.")
@click.option(
    "--session", "sessions", type=UTF8, multiple=True, metavar="KEY", help="Only this session. May be repeated."
)
@click.option("--since", type=moment, metavar="TIME", help="Only messages from then on: a day, or an ISO 8601 time.")
@click.option("--dry-run", is_flag=True, help="Read everything, store nothing, and tell what would be stored.")
@home_option
@url_option
@json_option
@pass_invocation
def import_openclaw_command(
    invocation: Invocation,
    state: str | None,
    agents: Sequence[str],
    sessions: Sequence[str],
    since: datetime | None,
    dry_run: bool,
) -> None:
    """Store every message of every OpenClaw transcript, each once."""
    from offbook.openclaw.catalogue import conversation_of
    from offbook.openclaw.places import folder_with_agents

    folder = folder_with_agents(state, os.environ)
    chosen = agents or ([invocation.agent_given] if invocation.agent_given else [])
    with ExitStack() as stack:
        catalogues, found = _openclaw_sessions(stack, folder, chosen, sessions)
        client = importing_client(invocation, stack, dry_run)
        report = _openclaw_report(folder, catalogues, dry_run)
        tell_conversations(client, report, [conversation_of(session) for session in found], since)
        report.changed_while_read = [each.agent.agent_id for each in catalogues if each.was_changed()]
    if invocation.is_json:
        print_json(report)
    else:
        show_import(report)
    if report.unreadable:
        sys.exit(1)


def _openclaw_sessions(
    stack: ExitStack, folder: Path, chosen: Sequence[str], keys: Sequence[str]
) -> tuple[list[Catalogue], list[Session]]:
    from offbook.openclaw.catalogue import Catalogue
    from offbook.openclaw.places import agents

    there = agents(folder)
    unknown = sorted(set(chosen) - {agent.agent_id for agent in there})
    if unknown:
        names = ", ".join(agent.agent_id for agent in there) or "none"
        raise click.BadParameter(f"{folder} has no agent {unknown[0]!r}; there is: {names}", param_hint="--agent")
    catalogues = [Catalogue(folder, agent) for agent in there if not chosen or agent.agent_id in chosen]
    for catalogue in catalogues:
        stack.callback(catalogue.close)
    found = [session for catalogue in catalogues for session in catalogue.sessions()]
    if keys:
        missing = sorted(set(keys) - {session.key for session in found})
        if missing:
            near = get_close_matches(missing[0], [session.key for session in found], 3)
            told = f"; near it: {', '.join(near)}" if near else f" among the {len(found):,} there are"
            raise click.BadParameter(f"there is no session {missing[0]!r}{told}", param_hint="--session")
        found = [session for session in found if session.key in keys]
    return catalogues, found


def _openclaw_report(folder: Path, catalogues: Sequence[Catalogue], dry_run: bool) -> ImportReport:
    from offbook.client.history.conversations import AgentReport, ImportReport

    report = ImportReport(state=str(folder), is_dry_run=dry_run)
    report.agents = [
        AgentReport(agent_id=each.agent.agent_id, forgotten=each.forgotten, incognito=each.incognito)
        for each in catalogues
    ]
    for damage in (damage for catalogue in catalogues for damage in catalogue.damages):
        report.cannot_read(damage.where, damage.reason)
    return report


# ── offbook import offbook ────────────────────────────────────────────────────────────────────────

PROBLEMS_SHOWN = 20
IMPORT_OFFBOOK_EPILOG = """\b
Examples:
  offbook import offbook offbook-export-2026-05-10 --dry-run
  offbook import offbook offbook-export-2026-05-10
  offbook import offbook export/agents/main/memory.jsonl --agent main-before --json
  offbook import offbook memory.sealed       of `offbook export --encrypt`

\b
Takes sessions with their messages, marks and pins, summaries and lessons, each to
the place it had. What is there already stays; what does not fit is refused, and the
report says why. Everything is read and checked before anything is stored. Each
record is stored once: run this again at any time, also after it broke off (soon, so
that Offbook makes no summaries of half a session: it waits for ten minutes).
"""


@click.command("offbook", epilog=IMPORT_OFFBOOK_EPILOG)
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--agent", type=UTF8, metavar="NAME", help="Under this name, where the export holds one agent.")
@click.option("--dry-run", is_flag=True, help="Read and check everything, store nothing, and tell what is new.")
@home_option
@url_option
@json_option
@pass_invocation
def import_offbook_command(invocation: Invocation, path: Path, agent: str | None, dry_run: bool) -> None:
    """Store what `offbook export` wrote."""
    from offbook.transfer.record_files import sources
    from offbook.transfer.sealed_export import unsealed_folder

    with unsealed_folder(path) as folder:
        found = sources(folder)
        name = agent or invocation.agent_given
        if name is not None and len(found) != 1:
            raise click.BadParameter(
                f"{path} holds {len(found)} agents: name the memory.jsonl of the one that is meant",
                param_hint="--agent",
            )
        report = _import_records(invocation, found, name, path, dry_run)
    if invocation.is_json:
        print_json(report)
    else:
        _show_records(report)
    if report.refused:
        sys.exit(1)


def _import_records(
    invocation: Invocation, found: Sequence[Source], name: str | None, path: Path, dry_run: bool
) -> RecordsReport:
    from offbook.transfer.record_import import AgentRecords, RecordImport, RecordsReport, examined

    started = time.monotonic()
    report = RecordsReport(path=str(path), is_dry_run=dry_run)
    report.agents = [AgentRecords(agent_id=name or each.agent_id, exported_as=each.agent_id) for each in found]
    total = sum(each.size_bytes for each in found)
    with ExitStack() as stack:
        client = importing_client(invocation, stack, dry_run)
        with progress("checking", total) as advance:
            for each, agent in zip(found, report.agents, strict=True):
                examined(each, agent, advance)
        if client is not None:
            known = set(client.status()["agents"]) if dry_run else set()
            with (
                progress("comparing" if dry_run else "storing", total) as advance,
                with_progress_so_far(lambda: _records_broken_off(report)),
            ):
                importing = RecordImport(client, report, advance)
                for each, agent in zip(found, report.agents, strict=True):
                    if dry_run:
                        importing.foresee(each, agent, is_known=agent.agent_id in known)
                    else:
                        importing.take(each, agent)
    report.seconds = round(time.monotonic() - started, 3)
    return report


def _records_broken_off(report: RecordsReport) -> str:
    if report.is_dry_run:
        return "Nothing was stored. Run this again to be told what would be"
    stored = counted(sum(agent.taken for agent in report.agents), "record")
    return f"{stored} stored until then. Run this again soon: nothing is stored twice, and it goes on where it was"


def _show_records(report: RecordsReport) -> None:
    new = "would store" if report.is_dry_run else "stored"
    kinds = {"session": "sessions", "message": "messages", "summary": "summaries", "lesson": "lessons"}
    columns = ["agent", *kinds.values(), new, "already there", "refused"]
    rows = [
        [
            agent.agent_id,
            *(f"{agent.counts.get(kind, 0):,}" for kind in kinds),
            *(f"{count:,}" for count in (agent.taken, agent.already_there, agent.refused)),
        ]
        for agent in report.agents
    ]
    table(columns, rows, right=columns[1:])
    taken, there = (sum(getattr(agent, name) for agent in report.agents) for name in ("taken", "already_there"))
    if report.is_dry_run:
        click.echo(f"the export is whole; {counted(taken, 'record')} would be stored, {there:,} already there")
    else:
        click.echo(f"{counted(taken, 'record')} stored, {there:,} already there")
    if not report.refused:
        return
    warn(f"{counted(report.refused, 'record')} refused")
    for problem in report.problems[:PROBLEMS_SHOWN]:
        click.echo(printable(f"  {problem.where}: {problem.reason}"), err=True)
    if len(report.problems) > PROBLEMS_SHOWN:
        click.echo(f"  and {len(report.problems) - PROBLEMS_SHOWN:,} more: --json names them", err=True)


# ── offbook import NAME PATH: one command for each format in the table, all alike ─────────────────

AGAIN = "Each message is stored once: run this again at any time, also after it broke off."


def format_commands() -> list[click.Command]:
    return [format_command(name, each) for name, each in FORMATS.items()]


def format_command(name: str, form: Format) -> click.Command:
    @click.command(name, help=form.line, epilog=_format_epilog(name, form))
    @click.argument("path", type=click.Path(exists=True, path_type=Path))
    @click.option("--dry-run", is_flag=True, help="Read everything, store nothing, and tell what would be stored.")
    @common_options
    @pass_invocation
    def command(invocation: Invocation, path: Path, dry_run: bool) -> None:
        _import_files(invocation, name, path, dry_run)

    return command


def _format_epilog(name: str, form: Format) -> str:
    examples = "\n".join(f"  offbook import {name} {each}" for each in form.examples)
    return f"\b\nExamples:\n{examples}\n\n\b\n{form.note}\n{AGAIN}\n"


def _import_files(invocation: Invocation, name: str, path: Path, dry_run: bool) -> None:
    import msgspec

    from offbook.client.history.conversations import ImportReport
    from offbook.client.recorder import encoded

    form = FORMATS[name]
    with ExitStack() as stack:
        client = importing_client(invocation, stack, dry_run)
        report = ImportReport(state=str(path), is_dry_run=dry_run)
        tell_conversations(client, report, _conversations(invocation, name, path, report))
    is_empty = not report.total("messages")
    if is_empty and not report.unreadable:
        # Before the lines that could not be read: of those only the first are shown.
        report.problem(str(path), f"nothing in it is a message: {form.give}", is_first=True)
    if invocation.is_json:
        print_json(msgspec.json.decode(encoded(report)))  # the names of files need not be UTF-8
    else:
        show_import(report)
    if report.unreadable or is_empty:
        sys.exit(1)


def _conversations(invocation: Invocation, name: str, path: Path, report: ImportReport) -> list[Conversation]:
    """Those of a path, or of each agent's folder in it, where `offbook export` wrote them."""
    from offbook.transfer.agent_folders import read_folders

    read = FORMATS[name].load()
    folders = read_folders(path, name)
    if folders is None:
        return read(path, report, _owner(invocation))
    if invocation.agent_given and len(folders) > 1:
        raise click.BadParameter(
            f"{path} holds {len(folders)} agents: give the folder of the one that is meant", param_hint="'--agent'"
        )
    return [
        each
        for agent_id, folder in folders
        for each in read(folder, report, _always(invocation.agent_given or agent_id))
    ]


def _always(agent_id: str) -> Owner:
    """Whatever the keys say: they were this agent's when they were written."""
    return lambda session_key: agent_id


def _owner(invocation: Invocation) -> Owner:
    from offbook.ingest.scope import resolve_agent
    from offbook.model.errors import WrongShape
    from offbook.model.settings import load

    default = load(invocation.home.folder, environ=invocation.environ).settings.default_agent

    def owner(session_key: str) -> str:
        try:
            return resolve_agent(session_key, invocation.agent, default)
        except WrongShape as error:
            hint = "" if invocation.agent else f"; say whose {session_key[:60]!r} is with --agent"
            raise WrongShape(f"{error.detail}{hint}") from None

    return owner


# ── offbook import ────────────────────────────────────────────────────────────────────────────────

IMPORT_EPILOG = """\b
Examples:
  offbook import openclaw --dry-run
  offbook import openclaw
  offbook import chatgpt chatgpt-export.zip
  offbook import claude-code ~/.claude/projects --dry-run
  offbook import markdown MEMORY.md
  offbook import offbook offbook-export-2026-05-10
"""


@click.group("import", epilog=IMPORT_EPILOG)
def import_command() -> None:
    """Store the conversations that another program kept."""


import_command.add_command(import_openclaw_command)
import_command.add_command(import_offbook_command)
for each in format_commands():
    import_command.add_command(each)
