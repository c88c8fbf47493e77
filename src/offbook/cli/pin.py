"""`offbook pin`: keep what was said hot for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from offbook.cli.verb_command import Fields, verb_command

if TYPE_CHECKING:
    from offbook.cli.options import Invocation
    from offbook.model.memory_entry import Pinned

EPILOG = """\b
Examples:
  offbook pin m100000001 m100000004      by the ids that `offbook recall` shows
  offbook pin --keyword "wifi password"  all that hold these words
  offbook pin --session house-rules      all of a session
  offbook pin --keyword wifi --session chat

Pinned entries stay hot and weigh more in recall. `offbook unpin` lets them age again.
"""


def selecting(_invocation: Invocation, fields: Fields) -> Fields:
    """Entries by their ids, or all that hold a keyword, or all of a session."""
    others = (fields["keyword"], fields["session_id"])
    if not fields["entry_ids"] and others == (None, None):
        raise click.UsageError("say what is meant: ENTRY (an id that `offbook recall` shows), --keyword or --session")
    if fields["entry_ids"] and others != (None, None):
        raise click.UsageError("an ENTRY says exactly which one is meant: leave out --keyword and --session")
    return fields


@verb_command("pin", epilog=EPILOG, positional=["entry_ids"], asking=selecting)
def command(changed: Pinned, **_: Any) -> None:
    """Keep entries hot for ever: those named, those that hold a keyword, those of a session."""
    tell(changed, "pinned")


def tell(changed: Pinned, now_are: str) -> None:
    from offbook.cli.output import counted

    if changed.changed:
        click.echo(f"{counted(changed.changed, 'entry', 'entries')} {now_are}: {' '.join(changed.entry_ids)}")
    else:
        click.echo("nothing changed: there is no such entry of this agent, or it was so already")
