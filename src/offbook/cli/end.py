"""`offbook end`: a session is over."""

from __future__ import annotations

from typing import Any

import click

from offbook.cli.verb_command import verb_command

EPILOG = """\b
Examples:
  offbook end chat
  offbook end chat --reason reset
"""


@verb_command("end", verb="hooks/session-end", epilog=EPILOG, positional=["session_id"])
def command(_answer: None, *, session_id: str, reason: str | None, **_: Any) -> None:
    """Say that a session is over. The next message to it opens it again."""
    from offbook.cli.output import printable

    click.echo(printable(f"session {session_id} is over" + (f" ({reason})" if reason else "")))
