"""`offbook import offbook`: what `offbook export` wrote, back into a provider."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from offbook.cli.options import UTF8, Invocation, home_option, json_option, pass_invocation, url_option

if TYPE_CHECKING:
    from offbook.transfer.record_files import Source
    from offbook.transfer.record_import import RecordsReport

PROBLEMS_SHOWN = 20
EPILOG = """\b
Examples:
  offbook import offbook offbook-export-2026-05-10 --dry-run
  offbook import offbook offbook-export-2026-05-10
  offbook import offbook export/agents/main/memory.jsonl --agent main-before --json

\b
Takes sessions with their messages, marks and pins, summaries and lessons, each to
the place it had. What is there already stays; what does not fit is refused, and the
report says why. Everything is read and checked before anything is stored. Each
record is stored once: run this again at any time, also after it broke off (soon, so
that Offbook makes no summaries of half a session: it waits for ten minutes).
"""


@click.command("offbook", epilog=EPILOG)
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--agent", type=UTF8, metavar="NAME", help="Under this name, where the export holds one agent.")
@click.option("--dry-run", is_flag=True, help="Read and check everything, store nothing, and tell what is new.")
@home_option
@url_option
@json_option
@pass_invocation
def command(invocation: Invocation, path: Path, agent: str | None, dry_run: bool) -> None:
    """Store what `offbook export` wrote."""
    from offbook.cli.output import print_json
    from offbook.transfer.record_files import sources

    found = sources(path)
    name = agent or invocation.agent_given
    if name is not None and len(found) != 1:
        raise click.BadParameter(
            f"{path} holds {len(found)} agents: name the memory.jsonl of the one that is meant", param_hint="--agent"
        )
    report = _run(invocation, found, name, path, dry_run)
    if invocation.is_json:
        print_json(report)
    else:
        _show(report)
    if report.refused:
        sys.exit(1)


def _run(invocation: Invocation, found: Sequence[Source], name: str | None, path: Path, dry_run: bool) -> RecordsReport:
    from offbook.cli.import_telling import provider, told_of_breaking_off
    from offbook.cli.output import progress
    from offbook.transfer.record_import import AgentRecords, RecordImport, RecordsReport, examined

    started = time.monotonic()
    report = RecordsReport(path=str(path), is_dry_run=dry_run)
    report.agents = [AgentRecords(agent_id=name or each.agent_id, exported_as=each.agent_id) for each in found]
    total = sum(each.size_bytes for each in found)
    with ExitStack() as stack:
        client = provider(invocation, stack, dry_run)
        with progress("checking", total) as advance:
            for each, agent in zip(found, report.agents, strict=True):
                examined(each, agent, advance)
        if client is not None:
            known = set(client.status()["agents"]) if dry_run else set()
            with (
                progress("comparing" if dry_run else "storing", total) as advance,
                told_of_breaking_off(lambda: _broken_off(report)),
            ):
                importing = RecordImport(client, report, advance)
                for each, agent in zip(found, report.agents, strict=True):
                    if dry_run:
                        importing.foresee(each, agent, is_known=agent.agent_id in known)
                    else:
                        importing.take(each, agent)
    report.seconds = round(time.monotonic() - started, 3)
    return report


def _broken_off(report: RecordsReport) -> str:
    from offbook.cli.output import counted

    if report.is_dry_run:
        return "Nothing was stored. Run this again to be told what would be"
    stored = counted(sum(agent.taken for agent in report.agents), "record")
    return f"{stored} stored until then. Run this again soon: nothing is stored twice, and it goes on where it was"


def _show(report: RecordsReport) -> None:
    from offbook.cli.output import counted, printable, table, warn

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
