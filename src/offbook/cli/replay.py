"""`offbook replay`: what was in an agent's context at a moment, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING

import click

from offbook.cli.options import UTF8, Invocation, common_options, moment_or_end_of_day, pass_invocation

if TYPE_CHECKING:
    from offbook.model.summary import Replay, ReplayEvent

EPILOG = """\b
Examples:
  offbook replay chat --at 2026-10-03T14:30
  offbook replay chat --at 2026-10-03        at the end of that day
  offbook replay chat --at 2026-10-03T14:30Z --json | jq .why

\b
First what the agent was handed by the last swap or start before that moment,
and what had been said since; then the events that made it so.
`offbook audit --session S` shows when anything happened.
"""

HANDED = {
    "swap": "handed over by a swap at {at} (generation {generation}), and what was said since",
    "start": "given at a start at {at}, and what was said since",
    "log": "nothing was handed over before: what had been said is all there was",
}
TIMEOUT_SECONDS = 60.0
"""A long session without a swap is read from its beginning."""
TOLD_FIRST: tuple[str, ...] = ("reason", "generation")
"""Of an event's details: the rest may be cut."""


@click.command("replay", epilog=EPILOG)
@click.argument("session", type=UTF8)
@click.option(
    "--at",
    type=moment_or_end_of_day,
    required=True,
    metavar="WHEN",
    help="The moment: a day such as 2026-10-03 (its end), or an ISO 8601 time.",
)
@common_options
@pass_invocation
def command(invocation: Invocation, session: str, at: datetime) -> None:
    """Show exactly what was in the agent's context at a moment, and why."""
    from offbook.cli.answered import asked, typed
    from offbook.cli.output import print_json
    from offbook.model.summary import Replay

    with invocation.client(timeout_seconds=TIMEOUT_SECONDS) as client:
        document = asked(client, "replay", sessionId=session, at=at)
    if invocation.is_json:
        print_json(document)
        return
    _show(typed(document, Replay))


def _show(replay: Replay) -> None:
    from offbook.cli.handed import show_messages
    from offbook.cli.output import local_time, printable, warn

    place = f"{replay.session_id} of agent {replay.agent_id} at {local_time(replay.at)}"
    if not replay.messages:
        click.echo(
            printable(f"nothing was in {place}: `offbook log` lists the sessions; a later --at may show more"), err=True
        )
    else:
        handed_at = local_time(replay.handed_at) if replay.handed_at else ""
        how = HANDED[replay.kind].format(at=handed_at, generation=replay.generation)
        click.secho(printable(place), bold=True)
        click.secho(f"up to message #{replay.last_seq}; {how}\n", dim=True)
        show_messages(replay.messages)
    if replay.turn_memory:
        click.secho("the stable section of its turns then:", dim=True)
        click.echo(printable(replay.turn_memory) + "\n")
    _show_why(replay)
    if not replay.is_exact:
        warn(
            "this is not exactly what the agent had: its host compacted by itself in between, "
            "or more was said than can be shown"
        )


def _show_why(replay: Replay) -> None:
    from offbook.cli.output import local_time, table

    if not replay.why:
        return
    rows: list[list[str]] = []
    for is_summary, row in groupby(replay.why, _is_of_a_summary):
        events = list(row)
        # A long session has hundreds of summaries: those made in a row are one line.
        folded = [(events[-1], _told_summaries(events))] if is_summary else [(one, _told(one)) for one in events]
        rows += [[local_time(event.at), event.verb, event.actor, told] for event, told in folded]
    click.echo("why:")
    table(["at", "what", "by", "details"], rows)


def _is_of_a_summary(event: ReplayEvent) -> bool:
    return event.verb == "compress" and "level" in event.details


def _told_summaries(events: Sequence[ReplayEvent]) -> str:
    from offbook.cli.handed import told_levels
    from offbook.cli.output import counted

    levels = Counter(f"L{event.details['level']}" for event in events)
    return f"{counted(len(events), 'summary', 'summaries')} made: {told_levels(levels)}"


def _told(event: ReplayEvent) -> str:
    from offbook.cli.audit import told_details

    first = {name: event.details[name] for name in TOLD_FIRST if name in event.details}
    return told_details({**first, **event.details})
