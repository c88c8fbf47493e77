"""`offbook restore`: a backup back in place."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from offbook.cli.options import Invocation, offline_options, pass_invocation

if TYPE_CHECKING:
    from offbook.backup import Restored
    from offbook.home import Home

EPILOG = """\b
Examples:
  offbook restore offbook-20260131-120000.tar.gz
  offbook restore backup.tar.gz --home /tmp/look-at-it
  offbook restore backup.tar.gz --force
  offbook restore --resume                      finish one that broke off

\b
Stop the provider first. Every file is checked before anything is touched.
With --force the data that is there moves to before-restore-… in the data
folder; nothing is deleted. One that was cut off while the files moved is
finished by --resume, or undone where that is not possible; until then no
provider starts.
"""


@click.command("restore", epilog=EPILOG)
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False), required=False)
@click.option("--force", is_flag=True, help="Move the data that is there aside.")
@click.option("--resume", "is_resuming", is_flag=True, help="Finish a restore that broke off.")
@offline_options
@pass_invocation
def command(invocation: Invocation, file: Path | None, force: bool, is_resuming: bool) -> None:
    """Put a backup back in place, and verify it."""
    from offbook.backup import restore, resume
    from offbook.cli.output import print_json, progress
    from offbook.errors import StoreError

    home = invocation.home
    if is_resuming:
        if file is not None or force:
            raise click.UsageError("--resume finishes what was begun: leave out FILE and --force")
        restored = asyncio.run(resume(home, progress=progress))
        if restored is None:
            raise StoreError("what the restore had unpacked is gone: it is undone, restore the backup again")
    elif file is None:
        raise click.UsageError("name the FILE to restore")
    else:
        restored = asyncio.run(restore(file, home, force=force, progress=progress))
    if invocation.is_json:
        print_json(
            {
                "home": str(home.folder),
                "createdAt": restored.manifest.created_at,
                "agents": restored.manifest.agents,
                "messages": restored.manifest.messages,
                "movedTo": restored.moved_to,
                "faults": restored.faults,
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
    click.echo(f"{home.folder} is as it was on {local_time(manifest.created_at)} (Offbook {manifest.offbook_version})")
    table(
        ["agent", "messages", "sessions", "audit head"],
        [[agent.agent_id, f"{agent.messages:,}", f"{agent.sessions:,}", agent.head.hash] for agent in manifest.agents],
        right=["messages", "sessions"],
    )
    if restored.moved_to:
        click.echo(f"what was there before: {restored.moved_to}")
    if manifest.missing:
        warn(f"{counted(len(manifest.missing), 'large part')} were gone already when the backup was made")
    for fault in restored.faults:
        click.secho(printable(f"fault: {described(fault)}"), fg="red")
    if not restored.faults:
        click.secho("everything is as it was written", fg="green")
