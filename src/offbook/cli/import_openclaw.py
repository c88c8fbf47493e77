"""`offbook import openclaw`: the transcripts of the host, into the log."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING

import click

from offbook.cli.options import UTF8, Invocation, home_option, json_option, moment, pass_invocation, url_option

if TYPE_CHECKING:
    from pathlib import Path

    from offbook.client.history.conversations import ImportReport
    from offbook.openclaw.history.catalogue import Catalogue, Session

EPILOG = """\b
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


@click.command("openclaw", epilog=EPILOG)
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
def command(
    invocation: Invocation,
    state: str | None,
    agents: Sequence[str],
    sessions: Sequence[str],
    since: datetime | None,
    dry_run: bool,
) -> None:
    """Store every message of every OpenClaw transcript, each once."""
    from offbook.cli.import_telling import provider, show, tell
    from offbook.cli.output import print_json
    from offbook.openclaw.history.catalogue import conversation_of
    from offbook.openclaw.history.places import folder_with_agents

    folder = folder_with_agents(state, os.environ)
    chosen = agents or ([invocation.agent_given] if invocation.agent_given else [])
    with ExitStack() as stack:
        catalogues, found = _found(stack, folder, chosen, sessions)
        client = provider(invocation, stack, dry_run)
        report = _begun(folder, catalogues, dry_run)
        tell(client, report, [conversation_of(session) for session in found], since)
        report.changed_while_read = [each.agent.agent_id for each in catalogues if each.was_changed()]
    if invocation.is_json:
        print_json(report)
    else:
        show(report)
    if report.unreadable:
        sys.exit(1)


def _found(
    stack: ExitStack, folder: Path, chosen: Sequence[str], keys: Sequence[str]
) -> tuple[list[Catalogue], list[Session]]:
    from offbook.openclaw.history.catalogue import Catalogue
    from offbook.openclaw.history.places import agents

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


def _begun(folder: Path, catalogues: Sequence[Catalogue], dry_run: bool) -> ImportReport:
    from offbook.client.history.conversations import AgentReport, ImportReport

    report = ImportReport(state=str(folder), is_dry_run=dry_run)
    report.agents = [
        AgentReport(agent_id=each.agent.agent_id, forgotten=each.forgotten, incognito=each.incognito)
        for each in catalogues
    ]
    for damage in (damage for catalogue in catalogues for damage in catalogue.damages):
        report.unreadable += 1
        report.problem(damage.where, damage.reason)
    return report
