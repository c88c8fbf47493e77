"""`offbook import`: conversations that other programs kept, into the log."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING

import click

from offbook.cli.options import UTF8, Invocation, home_option, json_option, moment, pass_invocation, url_option

if TYPE_CHECKING:
    from pathlib import Path

    from offbook.client.clients import Client
    from offbook.portability.openclaw.catalogue import Catalogue, Session
    from offbook.portability.openclaw.report import ImportReport

TIMEOUT_SECONDS = 60.0
"""A batch on a slow disk; a person may wait that long for a bulk load."""
PROBLEMS_SHOWN = 20

EPILOG = """\b
Examples:
  offbook import openclaw --dry-run
  offbook import openclaw
"""

OPENCLAW_EPILOG = """\b
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


@click.group("import", epilog=EPILOG)
def command() -> None:
    """Store the conversations that another program kept."""


@command.command("openclaw", epilog=OPENCLAW_EPILOG)
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
def openclaw(
    invocation: Invocation,
    state: str | None,
    agents: Sequence[str],
    sessions: Sequence[str],
    since: datetime | None,
    dry_run: bool,
) -> None:
    """Store every message of every OpenClaw transcript, each once."""
    from offbook.cli.output import print_json
    from offbook.portability.openclaw.places import folder_with_agents

    folder = folder_with_agents(state, os.environ)
    chosen = agents or ([invocation.agent_given] if invocation.agent_given else [])
    with ExitStack() as stack:
        catalogues, found = _found(stack, folder, chosen, sessions)
        client = _provider(invocation, stack, dry_run)
        report = _told(client, folder, catalogues, found, since, dry_run)
    if invocation.is_json:
        print_json(report)
    else:
        _show(report)
    if report.unreadable:
        sys.exit(1)


def _found(
    stack: ExitStack, folder: Path, chosen: Sequence[str], keys: Sequence[str]
) -> tuple[list[Catalogue], list[Session]]:
    from offbook.portability.openclaw.catalogue import Catalogue
    from offbook.portability.openclaw.places import agents

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


def _provider(invocation: Invocation, stack: ExitStack, dry_run: bool) -> Client | None:
    """Asked before anything is read: a person should not wait to hear that it is away."""
    from offbook.cli.output import warn
    from offbook.errors import ProviderUnavailable

    client = stack.enter_context(invocation.client(timeout_seconds=TIMEOUT_SECONDS))
    try:
        client.ping()
    except ProviderUnavailable as error:
        if not dry_run:
            raise
        warn(f"{error.detail}\n! so this cannot tell what is stored already")
        return None
    return client


def _told(
    client: Client | None,
    folder: Path,
    catalogues: Sequence[Catalogue],
    sessions: Sequence[Session],
    since: datetime | None,
    dry_run: bool,
) -> ImportReport:
    from offbook.cli.output import progress
    from offbook.errors import ProviderRefused, ProviderUnavailable
    from offbook.portability.openclaw.importing import Importing
    from offbook.portability.openclaw.report import AgentReport, ImportReport

    report = ImportReport(state=str(folder), is_dry_run=dry_run)
    by_agent = {
        each.agent.agent_id: AgentReport(
            agent_id=each.agent.agent_id, forgotten=each.forgotten, incognito=each.incognito
        )
        for each in catalogues
    }
    report.agents = list(by_agent.values())
    for damage in (damage for catalogue in catalogues for damage in catalogue.damages):
        report.unreadable += 1
        report.problem(damage.where, damage.reason)
    started = time.monotonic()
    try:
        with progress("reading" if dry_run else "storing", sum(each.size_bytes for each in sessions)) as advance:
            importing = Importing(client, report, since, advance)
            for session in sessions:
                importing.session(session, by_agent[session.agent_id])
    except ProviderUnavailable as error:
        raise ProviderUnavailable(f"{error.detail}\n{_broken_off(report)}") from None
    except ProviderRefused as error:
        detail = f"{error.document.get('detail', '')}\n{_broken_off(report)}"
        raise ProviderRefused({**error.document, "detail": detail}) from None
    except KeyboardInterrupt:
        click.echo(f"offbook: interrupted\noffbook: {_broken_off(report)}", err=True)
        raise
    report.changed_while_read = [each.agent.agent_id for each in catalogues if each.was_changed()]
    report.seconds = round(time.monotonic() - started, 3)
    return report


def _broken_off(report: ImportReport) -> str:
    from offbook.cli.output import counted

    stored = counted(report.total("new"), "message")
    return f"{stored} stored until then. Run this again: nothing is stored twice, and it goes on where it was"


def _show(report: ImportReport) -> None:
    from offbook.cli.output import counted, table, warn

    new = "would store" if report.is_dry_run else "stored"
    columns = {
        "agent": "agent_id",
        "sessions": "sessions",
        "messages": "messages",
        new: "new",
        "already there": "already_there",
        "not known": "unknown",
        "before --since": "before_since",
        "skipped": "skipped",
        "forgotten sessions": "forgotten",
        "incognito sessions": "incognito",
    }
    always = {"agent", "sessions", "messages", new, "already there"}
    shown = {name: each for name, each in columns.items() if name in always or report.total(each)}
    rows = [[_cell(getattr(agent, each)) for each in shown.values()] for agent in report.agents]
    table(list(shown), rows, right=list(shown)[1:])
    click.echo(
        f"{counted(report.total('messages'), 'message')}: {report.total('new'):,} "
        f"{'would be ' if report.is_dry_run else ''}stored, {report.total('already_there'):,} already there"
    )
    for agent_id in report.changed_while_read:
        warn(f"OpenClaw wrote while agent {agent_id} was read: run this again to be sure that all is there")
    _show_late(report)
    _show_problems(report)


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _show_late(report: ImportReport) -> None:
    from offbook.cli.output import counted, printable, warn

    if not report.came_after_newer:
        return
    many = counted(len(report.came_after_newer), "session")
    come = "would come" if report.is_dry_run else "came"
    warn(f"in {many} messages {come} after newer ones: the log keeps the order in which they arrive")
    for late in report.came_after_newer[:PROBLEMS_SHOWN]:
        click.echo(
            printable(f"  {late.session_id}: {counted(late.messages, 'message')} {come} after newer ones"), err=True
        )
    _and_more(len(report.came_after_newer))


def _show_problems(report: ImportReport) -> None:
    from offbook.cli.output import printable, warn

    if not report.problems:
        return
    counts = {
        "skipped": report.total("skipped"),
        "with other content than what is stored, which stays": report.total("conflicts"),
        "files or databases not read to the end": report.unreadable,
    }
    warn("; ".join(f"{count:,} {what}" for what, count in counts.items() if count))
    for problem in report.problems[:PROBLEMS_SHOWN]:
        click.echo(printable(f"  {problem.where}: {problem.reason}"), err=True)
    _and_more(len(report.problems))


def _and_more(count: int) -> None:
    if count > PROBLEMS_SHOWN:
        click.echo(f"  and {count - PROBLEMS_SHOWN:,} more: --json names them", err=True)
