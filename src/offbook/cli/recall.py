"""`offbook recall`: what was said about something, whenever and in whichever session."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from offbook.cli.verb_command import Fields, verb_command

if TYPE_CHECKING:
    from offbook.cli.options import Invocation
    from offbook.model.memory_entry import Reach, Recollection

SHELL_SESSION = "cli"
"""Who asks, where no session is named: the audit shows it."""
OPTIONS: dict[str, Fields] = {
    "session_id": {
        "required": False,
        "help": "Session that asks; with --scope session, the one that is searched.",
    },
    "limit": {"names": ["-n", "--limit"]},
}

EPILOG = """\b
Examples:
  offbook recall what did we decide about the database?
  offbook recall "my sister" --limit 10
  offbook recall "the deadline" --at 2026-10-03      as it was known that day
  offbook recall "the deadline" --include-superseded
  offbook recall recipe --scope session --session chat
  offbook recall "the deadline" --explain
  offbook recall recipe --json | jq -r '.entries[].id' | xargs offbook pin

\b
What was found is shown in the order it was said, the score of each beside it
(only the order of scores means anything). With --json it comes best first.
What was corrected since is left out; its correction says what it replaces.
"""


def _asking(invocation: Invocation, fields: Fields) -> Fields:
    if fields["scope"] == "session" and fields["session_id"] is None:
        raise click.UsageError(
            "--scope session needs --session: name the one to search; `offbook log` lists the sessions"
        )
    if not fields["query"].strip():
        raise click.BadParameter("it is empty: say what is to be recalled", param_hint="QUERY")
    return fields | {
        "session_id": fields["session_id"] or SHELL_SESSION,
        "query": fields["query"].strip(),
        # The name of who spoke is told with an explanation only, and a person wants to see it.
        "explain": fields["explain"] or not invocation.is_json,
    }


@verb_command("recall", epilog=EPILOG, positional=["query"], options=OPTIONS, asking=_asking)
def command(found: Recollection, *, scope: Reach, at: datetime | None, explain: bool, **_: Any) -> None:
    """Find what was said that answers QUERY, and when.

    A question, a few words or a whole message will do. Times in it are understood ("last Tuesday", "in May").
    """
    from offbook.cli.recalled import show

    show(found, explains=explain, names_agents=scope == "all")
    if not found.entries:
        click.echo(_nothing(found, scope=scope, at=at), err=True)


def _nothing(found: Recollection, *, scope: Reach, at: datetime | None) -> str:
    """What to try where nothing was found."""
    tries = ["other words: names and things rather than a whole sentence"]
    if found.explained is not None and found.explained.times:
        tries.append("leaving out the time")
    if at is not None:
        tries.append("a later --at, or none")
    if scope == "agent":
        tries.append("--agent NAME, for another agent's memory (`offbook status` lists the agents)")
    return "\n".join(["nothing found. Try", *(f"  · {each}" for each in tries)])
