"""`offbook import`: what other programs kept, into the log. One module a format."""

from __future__ import annotations

import click

from offbook.cli import import_files, import_offbook, import_openclaw

EPILOG = """\b
Examples:
  offbook import openclaw --dry-run
  offbook import openclaw
  offbook import chatgpt chatgpt-export.zip
  offbook import claude-code ~/.claude/projects --dry-run
  offbook import markdown MEMORY.md
  offbook import offbook offbook-export-2026-05-10
"""


@click.group("import", epilog=EPILOG)
def command() -> None:
    """Store the conversations that another program kept."""


command.add_command(import_openclaw.command)
command.add_command(import_offbook.command)
for each in import_files.commands():
    command.add_command(each)
