"""`offbook restore`: a backup back in place."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from offbook.cli.options import Invocation, moment_or_end_of_day, offline_options, pass_invocation

if TYPE_CHECKING:
    from offbook.log.sqlite.point_in_time import Cut
    from offbook.model.home import Home
    from offbook.transfer.backup import Restored

EPILOG = """\b
Examples:
  offbook restore offbook-20260131-120000.tar.gz
  offbook restore backup.tar.gz --home /tmp/look-at-it
  offbook restore backup.tar.gz --force
  offbook restore backup.tar.gz --at 2026-01-30T17:45 --home /tmp/then
  offbook restore --resume                      finish one that broke off

\b
Stop the provider first. Every file is checked before anything is touched.
With --force the data that is there moves to before-restore-… in the data
folder; nothing is deleted. One that was cut off while the files moved is
finished by --resume, or undone where that is not possible; until then no
provider starts.

\b
With --at the memory is as it was at that moment: whatever came later is cut
out of the copy. What was forgotten since stays forgotten. A time before
everything is refused, with the oldest moment there is.
"""


@click.command("restore", epilog=EPILOG)
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False), required=False)
@click.option("--force", is_flag=True, help="Move the data that is there aside.")
@click.option(
    "--at",
    type=moment_or_end_of_day,
    metavar="TIME",
    help="As it was then: a day such as 2026-01-30 (its end), or an ISO 8601 time.",
)
@click.option("--resume", "is_resuming", is_flag=True, help="Finish a restore that broke off.")
@offline_options
@pass_invocation
def command(invocation: Invocation, file: Path | None, force: bool, at: datetime | None, is_resuming: bool) -> None:
    """Put a backup back in place, and verify it."""
    from offbook.cli.output import print_json, progress
    from offbook.model.errors import StoreError
    from offbook.transfer.backup import restore, resume

    home = invocation.home
    if is_resuming:
        if file is not None or force or at is not None:
            raise click.UsageError("--resume finishes what was begun: leave out FILE, --force and --at")
        restored = asyncio.run(resume(home, progress=progress))
        if restored is None:
            raise StoreError("what the restore had unpacked is gone: it is undone, restore the backup again")
    elif file is None:
        raise click.UsageError("name the FILE to restore")
    else:
        restored = asyncio.run(restore(file, home, force=force, at=at, progress=progress))
    if invocation.is_json:
        print_json(
            {
                "home": str(home.folder),
                "createdAt": restored.manifest.created_at,
                "agents": restored.manifest.agents,
                "messages": restored.manifest.messages,
                "movedTo": restored.moved_to,
                "faults": restored.faults,
                "cut": restored.cut,
            }
        )
    else:
        _show(home, restored)
    if restored.faults:
        raise click.exceptions.Exit(1)


def _show(home: Home, restored: Restored) -> None:
    from offbook.cli.audit import described
    from offbook.cli.output import counted, local_time, printable, table, warn

    manifest = restored.manifest
    cut = restored.cut
    when = manifest.created_at if cut is None else min(cut.at, manifest.created_at)
    click.echo(f"{home.folder} is as it was on {local_time(when)} (Offbook {manifest.offbook_version})")
    table(
        ["agent", "messages", "sessions", "audit head"],
        [[agent.agent_id, f"{agent.messages:,}", f"{agent.sessions:,}", agent.head.hash] for agent in manifest.agents],
        right=["messages", "sessions"],
    )
    if cut is not None:
        _show_cut(cut)
    if restored.moved_to:
        click.echo(f"what was there before: {restored.moved_to}")
    if manifest.missing:
        warn(f"{counted(len(manifest.missing), 'large part')} were gone already when the backup was made")
    for fault in restored.faults:
        click.secho(printable(f"fault: {described(fault)}"), fg="red")
    if not restored.faults:
        click.secho("everything is as it was written", fg="green")


def _show_cut(cut: Cut) -> None:
    from offbook.cli.output import counted, printable, warn

    if not cut.agents:
        click.echo("nothing came later: nothing was cut")
    for agent in cut.agents:
        went = {
            "message": agent.messages,
            "session": agent.sessions,
            "summary": agent.summaries,
            "context": agent.contexts,
            "lesson": agent.lessons,
            "pin": agent.pins,
            "audit event": agent.events,
        }
        told = ", ".join(
            counted(number, name, "summaries") if name == "summary" else counted(number, name)
            for name, number in went.items()
            if number
        )
        click.echo(printable(f"cut of agent {agent.agent_id}{' (all of it)' if agent.is_gone else ''}: {told}"))
    for unknown in cut.unknown:
        warn(printable(f"not known again, so as in the backup: {unknown}"))
