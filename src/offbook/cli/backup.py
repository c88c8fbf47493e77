"""`offbook backup`: everything in one file, while it runs."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path

import click

from offbook.cli.options import Invocation, offline_options, pass_invocation

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
@click.argument("file", type=click.Path(path_type=Path), required=False)
@offline_options
@pass_invocation
def command(invocation: Invocation, file: Path | None) -> None:
    """Write everything to one file, and check what was written.

    FILE is offbook-DATE-TIME.tar.gz in this folder where it is left out.
    """
    from offbook.backup import default_name, write_backup
    from offbook.cli.output import counted, print_json, progress, spoken_size, warn

    destination = Path.cwd() if file is None else file.absolute()
    if destination.is_dir():
        destination /= default_name(datetime.now().astimezone())
    manifest = asyncio.run(write_backup(invocation.home, destination, progress=progress))
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
