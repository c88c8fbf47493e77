"""`offbook pin`: keep what was said hot for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from offbook.cli.options import UTF8, Decorated, Invocation, common_options, pass_invocation

if TYPE_CHECKING:
    from offbook.model.memory_entry import Pinned

EPILOG = """\b
Examples:
  offbook pin m100000001 m100000004      by the ids that `offbook recall` shows
  offbook pin --keyword "wifi password"  all that hold these words
  offbook pin --session house-rules      all of a session
  offbook pin --keyword wifi --session chat

Pinned entries stay hot and weigh more in recall. `offbook unpin` lets them age again.
"""


def selecting_options(function: Decorated) -> Decorated:
    """What is meant: entries by their ids, or all that hold a keyword, or all of a session."""
    entries = click.argument("entries", type=UTF8, nargs=-1, metavar="[ENTRY]…")
    keyword = click.option("--keyword", type=UTF8, metavar="W", help="Those that hold these words, as they stand.")
    session = click.option("--session", type=UTF8, metavar="S", help="Those of this session.")
    return entries(keyword(session(common_options(function))))


@click.command("pin", epilog=EPILOG)
@selecting_options
@pass_invocation
def command(invocation: Invocation, entries: tuple[str, ...], keyword: str | None, session: str | None) -> None:
    """Keep entries hot for ever: those named, those that hold a keyword, those of a session."""
    with invocation.client() as client:
        tell(invocation, client.pin(**selected(entries, keyword, session)), "pinned")


def selected(entries: tuple[str, ...], keyword: str | None, session: str | None) -> dict[str, Any]:
    if not entries and keyword is None and session is None:
        raise click.UsageError("say what is meant: ENTRY (an id that `offbook recall` shows), --keyword or --session")
    if entries and (keyword is not None or session is not None):
        raise click.UsageError("an ENTRY says exactly which one is meant: leave out --keyword and --session")
    return {"entry_ids": list(entries) or None, "keyword": keyword, "session_id": session}


def tell(invocation: Invocation, changed: Pinned, now_are: str) -> None:
    from offbook.cli.output import counted, print_json

    if invocation.is_json:
        print_json(changed)
    elif changed.changed:
        click.echo(f"{counted(changed.changed, 'entry', 'entries')} {now_are}: {' '.join(changed.entry_ids)}")
    else:
        click.echo("nothing changed: there is no such entry of this agent, or it was so already")
