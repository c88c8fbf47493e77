"""`offbook state`: what an agent is on about, in one session or lately."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from offbook.cli.verb_command import verb_command

if TYPE_CHECKING:
    from offbook.model.summary import StateKind
    from offbook.model.turn import ContinuityState, SessionInfo, SessionState, Topic
    from offbook.model.types import GapKind

TOPICS_SHOWN = 12
INDENT = "  "
GAPS: dict[GapKind, str] = {
    "first": "nothing before it",
    "continuous": "still going on",
    "interrupted": "interrupted since",
    "new": "over: what comes next begins anew",
}
KINDS: dict[StateKind, str] = {
    "goal": "goal",
    "open loop": "open",
    "confirmed action": "done",
    "live handle": "running",
}

EPILOG = """\b
Examples:
  offbook state
  offbook state researcher
  offbook state --session chat            with how the session stands
  offbook state --json | jq '.working[].records'

\b
`offbook topics` and `offbook anchors` tell more of each.
"""


@verb_command("state", epilog=EPILOG, positional=["agent_id"])
def command(found: ContinuityState, *, session_id: str | None, **_: Any) -> None:
    """Show what an agent is on about: its topics, its anchors, and what each session was doing."""
    from offbook.cli.continuity import tell_none

    _show(found)
    if not (found.topics or found.anchors or found.working):
        tell_none("topics, anchors or working state", session_id)


def _show(state: ContinuityState) -> None:
    from offbook.cli.continuity import show_anchors
    from offbook.cli.output import counted, printable

    click.secho(f"Agent {printable(state.agent_id)}", bold=True)
    if state.session is not None:
        click.echo(printable(_session(state.session)))
    if state.topics:
        click.echo("\ntopics:")
        _show_topics(state.topics)
    if state.anchors:
        fresh = sum(anchor.is_fresh for anchor in state.anchors)
        click.echo(f"\n{counted(len(state.anchors), 'anchor')}, {fresh:,} fresh:")
        show_anchors(state.anchors)
    for working in state.working:
        _show_working(working)


def _session(info: SessionInfo) -> str:
    from offbook.cli.output import ago, counted, local_minute, spoken_duration

    lasted = spoken_duration(info.last_at - info.started_at)
    return (
        f"session {info.session_id} · {counted(info.exchanges, 'exchange')} in {lasted}, "
        f"{local_minute(info.started_at)} to {local_minute(info.last_at)} ({ago(info.last_at)}) · {GAPS[info.gap]}"
    )


def _show_topics(topics: list[Topic]) -> None:
    """Each group in a line."""
    from offbook.cli.continuity import STANDINGS, standing
    from offbook.cli.output import printable

    for group in STANDINGS:
        labels = [topic.label for topic in topics if standing(topic) == group]
        more = f", and {len(labels) - TOPICS_SHOWN:,} more" if len(labels) > TOPICS_SHOWN else ""
        if labels:
            click.echo(printable(f"{INDENT}{group:<17}{', '.join(labels[:TOPICS_SHOWN])}{more}"))


def _show_working(working: SessionState) -> None:
    from offbook.cli.handed import told_span
    from offbook.cli.output import ago, printable

    click.echo(printable(f"\nsession {working.session_id} was doing ({ago(working.last_at)}):"))
    for kind, name in KINDS.items():
        of_kind = [record for record in working.records if record.kind == kind]
        for record in sorted(of_kind, key=lambda record: -record.last_seq):
            where = click.style(f"({told_span(record.first_seq, record.last_seq)}, {ago(record.at)})", dim=True)
            text = " ".join(record.text.split())
            click.echo(f"{INDENT}{name:<9}{printable(text)} {where}")
