"""`offbook backup`: everything in one file, while it runs."""

from __future__ import annotations

import asyncio
import signal
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from offbook.cli.options import Invocation, offline_options, pass_invocation

if TYPE_CHECKING:
    from offbook.transfer.backup import Manifest

EXIT_TERMINATED = 143
"""What a shell reports of a program that SIGTERM ended."""

EPILOG = """\b
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


@click.command("backup", epilog=EPILOG)
@click.argument("file", type=click.Path(path_type=str), required=False)
@click.option("--rotate", is_flag=True, help="Into backups in the data folder; of those the newest backup.keep stay.")
@click.option("--list", "is_list", is_flag=True, help="Show the backups that are known, and make none.")
@offline_options
@pass_invocation
def command(invocation: Invocation, file: str | None, rotate: bool, is_list: bool) -> None:
    """Write everything to one file, and check what was written.

    FILE is offbook-DATE-TIME.tar.gz in this folder where it is left out.
    """
    if (file is not None) + rotate + is_list > 1:
        raise click.UsageError("either FILE, --rotate or --list")
    if is_list:
        _list(invocation)
        return
    removed: list[str] = []
    try:
        if rotate:
            destination, manifest, removed = asyncio.run(_rotate(invocation))
        else:
            destination = _destination(file)
            manifest = asyncio.run(_write(invocation, destination))
    except asyncio.CancelledError:
        raise click.exceptions.Exit(EXIT_TERMINATED) from None
    _tell(invocation, destination, manifest, removed)


def _tell(invocation: Invocation, destination: Path, manifest: Manifest, removed: list[str]) -> None:
    from offbook.cli.output import counted, print_json, spoken_size, warn

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


async def _write(invocation: Invocation, destination: Path) -> Manifest:
    from offbook.cli.output import progress
    from offbook.transfer.backup import note_backup, write_backup

    _end_by_signal()
    manifest = await write_backup(invocation.home, destination, progress=progress)
    note_backup(invocation.home, destination, manifest)
    return manifest


async def _rotate(invocation: Invocation) -> tuple[Path, Manifest, list[str]]:
    from offbook.cli.output import progress
    from offbook.model.settings import load
    from offbook.transfer.backup import rotate

    _end_by_signal()
    keep = load(invocation.home.folder, environ=invocation.environ).settings.backup.keep
    rotated = await rotate(invocation.home, keep, progress=progress)
    return Path(rotated.file), rotated.manifest, rotated.removed


def _end_by_signal() -> None:
    """SIGTERM ends it as Ctrl-C does, without leaving half a copy behind."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


def _list(invocation: Invocation) -> None:
    from offbook.cli.output import local_time, print_json, printable, spoken_size, table, warn
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
