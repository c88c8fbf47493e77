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
    from offbook.backup import Manifest

EXIT_TERMINATED = 143
"""What a shell reports of a program that SIGTERM ended."""

EPILOG = """\b
Examples:
  offbook backup
  offbook backup /backups/                       a dated file in that folder
  offbook backup before-upgrade.tar.gz

\b
Works while messages arrive, with a provider or without one. The file holds
conversations: it is readable by you only, and so should be wherever it goes.
Tokens are not in it. `offbook restore` puts it back.
"""


@click.command("backup", epilog=EPILOG)
@click.argument("file", type=click.Path(path_type=str), required=False)
@offline_options
@pass_invocation
def command(invocation: Invocation, file: str | None) -> None:
    """Write everything to one file, and check what was written.

    FILE is offbook-DATE-TIME.tar.gz in this folder where it is left out.
    """
    from offbook.cli.output import counted, print_json, spoken_size, warn

    destination = _destination(file)
    try:
        manifest = asyncio.run(_write(invocation, destination))
    except asyncio.CancelledError:
        raise click.exceptions.Exit(EXIT_TERMINATED) from None
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
            }
        )
    else:
        click.echo(
            f"{destination}\n{counted(manifest.messages, 'message')} of {counted(len(manifest.agents), 'agent')}, "
            f"{counted(parts, 'large part')}, {spoken_size(size)}; written and read back"
        )
    if manifest.missing:
        warn(
            f"{counted(len(manifest.missing), 'large part')} could not be backed up, gone or damaged in the data "
            f"folder already (the first: {manifest.missing[0]}): restore it from an older backup"
        )
        raise click.exceptions.Exit(1)


def _destination(file: str | None) -> Path:
    from offbook.backup import default_name

    path = Path(file or ".").absolute()
    if path.is_dir() or (file or "").endswith("/"):  # a folder is meant, also where there is none
        path /= default_name(datetime.now().astimezone())
    return path


async def _write(invocation: Invocation, destination: Path) -> Manifest:
    """SIGTERM ends it as Ctrl-C does, without leaving half a copy behind."""
    from offbook.backup import write_backup
    from offbook.cli.output import progress

    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await write_backup(invocation.home, destination, progress=progress)
