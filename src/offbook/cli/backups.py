"""`offbook backup`, `restore`: everything in one file, while it runs, and back in place."""

from __future__ import annotations

import asyncio
import signal
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from offbook.cli.options import Invocation, moment_or_end_of_day, offline_options, pass_invocation
from offbook.cli.output import counted, local_time, print_json, printable, progress, spoken_size, table, warn

if TYPE_CHECKING:
    from offbook.log.sqlite.point_in_time import Cut
    from offbook.model.home import Home
    from offbook.transfer.backup import Manifest, Restored


# ── offbook backup ────────────────────────────────────────────────────────────────────────────────

EXIT_TERMINATED = 143
"""What a shell reports of a program that SIGTERM ended."""

BACKUP_EPILOG = """\b
Examples:
  offbook backup
  offbook backup /backups/                       a dated file in that folder
  offbook backup before-upgrade.tar.gz
  offbook backup --rotate                        into the data folder; old ones go
  offbook backup --list

\b
Works while messages arrive, with a provider or without one. The file holds
conversations: it is readable by you only, and so should be wherever it goes.
Tokens are not in it. `offbook restore` puts it back.
"""


@click.command("backup", epilog=BACKUP_EPILOG)
@click.argument("file", type=click.Path(path_type=str), required=False)
@click.option("--rotate", is_flag=True, help="Into backups in the data folder; of those the newest backup.keep stay.")
@click.option("--list", "is_list", is_flag=True, help="Show the backups that are known, and make none.")
@offline_options
@pass_invocation
def backup_command(invocation: Invocation, file: str | None, rotate: bool, is_list: bool) -> None:
    """Write everything to one file, and check what was written.

    FILE is offbook-DATE-TIME.tar.gz in this folder where it is left out.
    """
    if (file is not None) + rotate + is_list > 1:
        raise click.UsageError("either FILE, --rotate or --list")
    if is_list:
        _list_backups(invocation)
        return
    _refuse_database(invocation)
    removed: list[str] = []
    try:
        if rotate:
            destination, manifest, removed = asyncio.run(_rotate_backups(invocation))
        else:
            destination = _destination(file)
            manifest = asyncio.run(_write_backup(invocation, destination))
    except asyncio.CancelledError:
        raise click.exceptions.Exit(EXIT_TERMINATED) from None
    _tell_backup(invocation, destination, manifest, removed)


def _tell_backup(invocation: Invocation, destination: Path, manifest: Manifest, removed: list[str]) -> None:
    size = destination.stat().st_size
    parts = len(manifest.files) - 1
    if invocation.is_json:
        print_json(
            {
                "file": str(destination),
                "bytes": size,
                "createdAt": manifest.created_at,
                "agents": manifest.agents,
                "messages": manifest.messages,
                "largeParts": parts,
                "missing": manifest.missing,
                "removed": removed,
            }
        )
    else:
        click.echo(
            f"{destination}\n{counted(manifest.messages, 'message')} of {counted(len(manifest.agents), 'agent')}, "
            f"{counted(parts, 'large part')}, {spoken_size(size)}; written and read back"
        )
        for name in removed:
            click.echo(f"removed: {name}")
    if manifest.missing:
        warn(
            f"{counted(len(manifest.missing), 'large part')} could not be backed up, gone or damaged in the data "
            f"folder already (the first: {manifest.missing[0]}): restore it from an older backup"
        )
        raise click.exceptions.Exit(1)


def _destination(file: str | None) -> Path:
    from offbook.transfer.backup import default_name

    path = Path(file or ".").absolute()
    if path.is_dir() or (file or "").endswith("/"):  # a folder is meant, also where there is none
        path /= default_name(datetime.now().astimezone())
    return path


async def _write_backup(invocation: Invocation, destination: Path) -> Manifest:
    from offbook.transfer.backup import note_backup, write_backup

    _end_by_signal()
    manifest = await write_backup(invocation.home, destination, progress=progress)
    note_backup(invocation.home, destination, manifest)
    return manifest


async def _rotate_backups(invocation: Invocation) -> tuple[Path, Manifest, list[str]]:
    from offbook.model.settings import load
    from offbook.transfer.backup import rotate

    _end_by_signal()
    keep = load(invocation.home.folder, environ=invocation.environ).settings.backup.keep
    rotated = await rotate(invocation.home, keep, progress=progress)
    return Path(rotated.file), rotated.manifest, rotated.removed


def _refuse_database(invocation: Invocation) -> None:
    from offbook.log.opening import refuse_database
    from offbook.model.settings import load

    store = load(invocation.home.folder, environ=invocation.environ).settings.store
    refuse_database(store, "back it up and restore it with the database's own tools (pg_dump), or `offbook export` it")


def _end_by_signal() -> None:
    """SIGTERM ends it as Ctrl-C does, without leaving half a copy behind."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


def _list_backups(invocation: Invocation) -> None:
    from offbook.transfer.backup import known_backups, listed

    here = listed(invocation.home)
    elsewhere = [one for one in known_backups(invocation.home) if one.path not in {each.file for each in here}]
    if invocation.is_json:
        print_json({"folder": str(invocation.home.backups), "backups": here, "elsewhere": elsewhere})
        return
    if not here and not elsewhere:
        click.echo("no backups are known: `offbook backup --rotate` makes one in the data folder")
        return
    table(
        ["made", "messages", "size", "file"],
        [
            *([local_time(one.made_at), f"{one.messages:,}", spoken_size(one.bytes), one.file] for one in here),
            *([local_time(one.made_at), "", "" if one.is_there else "not there", one.path] for one in elsewhere),
        ],
        right=["messages", "size"],
    )
    for one in here:
        if one.trouble is not None:
            warn(printable(one.trouble))


# ── offbook restore ───────────────────────────────────────────────────────────────────────────────

RESTORE_EPILOG = """\b
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


@click.command("restore", epilog=RESTORE_EPILOG)
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
def restore_command(
    invocation: Invocation, file: Path | None, force: bool, at: datetime | None, is_resuming: bool
) -> None:
    """Put a backup back in place, and verify it."""
    from offbook.model.errors import StoreError
    from offbook.transfer.backup import restore, resume

    home = invocation.home
    _refuse_database(invocation)
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
        _show_restored(home, restored)
    if restored.faults:
        raise click.exceptions.Exit(1)


def _show_restored(home: Home, restored: Restored) -> None:
    from offbook.cli.audit import described

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
