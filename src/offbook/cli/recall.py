"""`offbook recall`: what was said about something, whenever and in whichever session."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

from offbook.cli.options import UTF8, Invocation, common_options, moment_or_end_of_day, pass_invocation

if TYPE_CHECKING:
    from offbook.model.memory_entry import Reach, Recollection

SHELL_SESSION = "cli"
"""Who asks, where no session is named: the audit shows it."""
MOST_ENTRIES = 100
"""The contract's."""

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


@click.command("recall", epilog=EPILOG)
@click.argument("query", type=UTF8, nargs=-1, required=True, metavar="QUERY…")
@click.option(
    "--session", type=UTF8, metavar="S", help="Session that asks; with --scope session, the one that is searched."
)
@click.option(
    "-n", "--limit", type=click.IntRange(1, MOST_ENTRIES), default=5, show_default=True, help="Most entries shown."
)
@click.option(
    "--scope",
    type=click.Choice(["session", "agent", "all"]),
    default="agent",
    show_default=True,
    help="One session, all of the agent's, or those of other agents too (see `offbook cross`).",
)
@click.option(
    "--at",
    type=moment_or_end_of_day,
    metavar="WHEN",
    help="Answer from what had been said by then: a day such as 2026-10-03 (its end), or an ISO 8601 time.",
)
@click.option("--include-superseded", is_flag=True, help="Also what was corrected since.")
@click.option("--explain", is_flag=True, help="Say why each was found, and what was left out.")
@common_options
@pass_invocation
def command(
    invocation: Invocation,
    query: tuple[str, ...],
    session: str | None,
    limit: int,
    scope: Reach,
    at: datetime | None,
    include_superseded: bool,
    explain: bool,
) -> None:
    """Find what was said that answers QUERY, and when.

    A question, a few words or a whole message will do. Times in it are understood ("last Tuesday", "in May").
    """
    from offbook.cli.output import print_json
    from offbook.cli.recalled import show

    if scope == "session" and session is None:
        raise click.UsageError(
            "--scope session needs --session: name the one to search; `offbook log` lists the sessions"
        )
    wanted = " ".join(query).strip()
    if not wanted:
        raise click.BadParameter("it is empty: say what is to be recalled", param_hint="QUERY")
    with invocation.client() as client:
        found = client.recall(
            session or SHELL_SESSION,
            wanted,
            limit=limit,
            scope=scope,
            at=at,
            include_superseded=include_superseded,
            # The name of who spoke is told with an explanation only, and a person wants to see it.
            explain=explain or not invocation.is_json,
        )
    if invocation.is_json:
        print_json(found)
        return
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
