"""`offbook topics`, `anchors`, `state`, `turn`: what an agent is on about, and what a prompt brings to its mind."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import click

from offbook.cli.output import (
    ago,
    bar,
    counted,
    local_minute,
    print_json,
    printable,
    spoken_duration,
    table,
    told_span,
    warn,
    wrapped,
)
from offbook.cli.verb_command import Fields, verb_command

if TYPE_CHECKING:
    from offbook.cli.options import Invocation
    from offbook.model.summary import Section, StateKind
    from offbook.model.turn import (
        Anchor,
        AnchorList,
        ContinuityState,
        Intent,
        PreparedTurn,
        SessionInfo,
        SessionState,
        Topic,
        TopicList,
    )
    from offbook.model.types import GapKind


# ── topics and anchors as tables, texts cut to a few lines ────────────────────────────────────────

Standing = Literal["keeps returning", "fresh", "stale"]

BAR_WIDTH = 5
STANDINGS: tuple[Standing, ...] = ("keeps returning", "fresh", "stale")


def tell_none(what: str, session: str | None) -> None:
    """What to do next where there is nothing to show."""
    steps = ["`offbook record SESSION TEXT`, or a host that records what is said"]
    if session is not None:
        steps = ["leaving out --session, for the newest sessions", "`offbook log`, which lists the sessions"]
    steps.append("--agent NAME, for another agent (`offbook status` lists the agents)")
    where = f" in session {printable(session)}" if session is not None else ""
    click.echo("\n".join([f"no {what}{where} yet. Try", *(f"  · {step}" for step in steps)]), err=True)


# ── topics and anchors ────────────────────────────────────────────────────────────────────────


def standing(topic: Topic) -> Standing:
    if topic.is_fixated:
        return "keeps returning"
    return "stale" if topic.is_stale else "fresh"


def show_topics(topics: Sequence[Topic]) -> None:
    table(
        ["", "topic", "how it stands", "lately", "ever", "freshness", "sessions", "last"],
        [
            [
                "●" if topic.is_fixated else "",
                topic.label,
                standing(topic),
                f"{topic.mentions:,}",
                f"{topic.total:,}",
                freshness(topic.freshness),
                f"{topic.sessions:,}",
                ago(topic.last_at),
            ]
            for topic in topics
        ],
        right=["lately", "ever", "sessions"],
    )


def freshness(share: float) -> str:
    percent = round(100 * share)
    return f"{bar(percent, 100, BAR_WIDTH)} {percent:>3} %"


def show_anchors(anchors: Sequence[Anchor]) -> None:
    table(
        ["kind", "what was said", "when", "times", "how it stands", "where"],
        [
            [
                anchor.kind,
                anchor.text,
                ago(anchor.at),
                f"{anchor.times:,}",
                "fresh" if anchor.is_fresh else "stale",
                f"{anchor.session_id} #{anchor.seq}",
            ]
            for anchor in anchors
        ],
        right=["times"],
    )


# ── long texts ────────────────────────────────────────────────────────────────────────────────


def shortened(text: str, *, max_lines: int, max_chars: int) -> tuple[str, str]:
    """The beginning of a text, and in words how much is left of it; "" where nothing is."""
    shown = "\n".join(text.split("\n")[:max_lines])[:max_chars].rstrip()
    left = len(text.rstrip()) - len(shown)
    return shown, counted(left, "more character") if left > 0 else ""


# ── offbook topics ────────────────────────────────────────────────────────────────────────────────

TOPICS_EPILOG = """\b
Examples:
  offbook topics
  offbook topics researcher
  offbook topics --session chat
  offbook topics --json | jq -r '.topics[] | select(.isFixated) | .label'

\b
● marks what they keep returning to. `lately` counts the turns of the window
that speak of it, `ever` all that did; freshness is full in the turn that
speaks of it, and less with each that does not.
`offbook config` has the window and what makes a return: topicTracking.
"""


@verb_command("topics", epilog=TOPICS_EPILOG, positional=["agent_id"])
def topics_command(found: TopicList, *, session_id: str | None, **_: Any) -> None:
    """Show what an agent and its people talk about: what they keep returning to, what is fresh, what has gone stale."""
    if found.topics:
        show_topics(found.topics)
    else:
        tell_none("topics", session_id)


# ── offbook anchors ───────────────────────────────────────────────────────────────────────────────

ANCHORS_EPILOG = """\b
Examples:
  offbook anchors
  offbook anchors researcher
  offbook anchors --session chat
  offbook anchors --json | jq -r '.anchors[] | select(.kind == "tension") | .text'

\b
identity       who they are
contradiction  what does not fit with what was said before
tension        what is unresolved

\b
How long one is fresh, and how many are kept: `offbook config`, anchors.
"""


@verb_command("anchors", epilog=ANCHORS_EPILOG, positional=["agent_id"])
def anchors_command(found: AnchorList, *, session_id: str | None, **_: Any) -> None:
    """Show what an agent must not lose from sight: who they are, what does not fit together, what is unresolved."""
    if found.anchors:
        show_anchors(found.anchors)
    else:
        tell_none("anchors", session_id)


# ── offbook state ─────────────────────────────────────────────────────────────────────────────────

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

STATE_EPILOG = """\b
Examples:
  offbook state
  offbook state researcher
  offbook state --session chat            with how the session stands
  offbook state --json | jq '.working[].records'

\b
`offbook topics` and `offbook anchors` tell more of each.
"""


@verb_command("state", epilog=STATE_EPILOG, positional=["agent_id"])
def state_command(found: ContinuityState, *, session_id: str | None, **_: Any) -> None:
    """Show what an agent is on about: its topics, its anchors, and what each session was doing."""
    _show_state(found)
    if not (found.topics or found.anchors or found.working):
        tell_none("topics, anchors or working state", session_id)


def _show_state(state: ContinuityState) -> None:
    click.secho(f"Agent {printable(state.agent_id)}", bold=True)
    if state.session is not None:
        click.echo(printable(_told_session(state.session)))
    if state.topics:
        click.echo("\ntopics:")
        _show_topics(state.topics)
    if state.anchors:
        fresh = sum(anchor.is_fresh for anchor in state.anchors)
        click.echo(f"\n{counted(len(state.anchors), 'anchor')}, {fresh:,} fresh:")
        show_anchors(state.anchors)
    for working in state.working:
        _show_working(working)


def _told_session(info: SessionInfo) -> str:
    lasted = spoken_duration(info.last_at - info.started_at)
    return (
        f"session {info.session_id} · {counted(info.exchanges, 'exchange')} in {lasted}, "
        f"{local_minute(info.started_at)} to {local_minute(info.last_at)} ({ago(info.last_at)}) · {GAPS[info.gap]}"
    )


def _show_topics(topics: list[Topic]) -> None:
    """Each group in a line."""
    for group in STANDINGS:
        labels = [topic.label for topic in topics if standing(topic) == group]
        more = f", and {len(labels) - TOPICS_SHOWN:,} more" if len(labels) > TOPICS_SHOWN else ""
        if labels:
            click.echo(printable(f"{INDENT}{group:<17}{', '.join(labels[:TOPICS_SHOWN])}{more}"))


def _show_working(working: SessionState) -> None:
    click.echo(printable(f"\nsession {working.session_id} was doing ({ago(working.last_at)}):"))
    for kind, name in KINDS.items():
        of_kind = [record for record in working.records if record.kind == kind]
        for record in sorted(of_kind, key=lambda record: -record.last_seq):
            where = click.style(f"({told_span(record.first_seq, record.last_seq)}, {ago(record.at)})", dim=True)
            text = " ".join(record.text.split())
            click.echo(f"{INDENT}{name:<9}{printable(text)} {where}")


# ── offbook turn ──────────────────────────────────────────────────────────────────────────────────

LINES_SHOWN = 12
CHARS_SHOWN = 1_200
TURN_INDENT = "  "
INTENTS: dict[Intent, str] = {
    "recall": "it asks for what was said before",
    "resume": "it picks up the thread again",
    "plain": "it asks for nothing in particular",
    "brief": "it is too short to search for",
}
PLACES: dict[Section, str] = {
    "memory": "at the start of the context, the same until the next swap",
    "recall": "at the end of the user's turn, for this turn only",
}

TURN_EPILOG = """\b
Examples:
  offbook turn chat what did we decide about the database?
  offbook turn chat "good morning" --current-tokens 120000 --window 200000
  offbook turn chat "my sister" --text          as the model would get it
  offbook turn chat "my sister" --json | jq '.parts[] | {kind, tokens, why}'

\b
Only a look: nothing is injected, no retrieval is counted and no section is
kept. A host asks the same before each model call.
"""


TURN_OPTIONS: dict[str, Fields | None] = {
    "context_window": {"names": ["--window"]},
    **dict.fromkeys(["swap_at_tokens", "swap_to_tokens", "token_ratio", "deadline_ms", "explain", "preview"]),
}
TEXT_OPTION = click.option(
    "--text", "is_text", is_flag=True, help="Print the two sections as the model would get them, no more."
)


def _turn_fields(invocation: Invocation, fields: Fields) -> Fields:
    if fields["is_text"] and invocation.is_json:
        raise click.UsageError("--text and --json are two ways to print it: leave out one of them")
    return fields | {"explain": True, "preview": True}


@verb_command(
    "turn",
    verb="prepareTurn",
    epilog=TURN_EPILOG,
    positional=["session_id", "prompt"],
    options=TURN_OPTIONS,
    own=[TEXT_OPTION],
    asking=_turn_fields,
    prints_json=True,
)
def turn_command(turn: PreparedTurn, *, invocation: Invocation, is_text: bool, **_: Any) -> None:
    """Show what would be injected for PROMPT in a session and why, part by part, with its cost in tokens."""
    if invocation.is_json:
        print_json(turn)
        return
    for note in turn.degraded:
        warn(printable(note))
    if is_text:
        _print_text(turn)
    else:
        _show_turn(turn)
    _tell_missing(turn)


def _print_text(turn: PreparedTurn) -> None:
    """Byte for byte, but where it would steer a terminal."""
    text = "\n\n".join(section for section in (turn.memory, turn.recall) if section)
    if text:
        # As bytes: of text, click takes out what looks like a colour where there is no terminal.
        click.echo(printable(text) if sys.stdout.isatty() else text.encode())


def _show_turn(turn: PreparedTurn) -> None:
    tokens = turn.tokens
    click.secho(f"intent  {turn.intent}: {INTENTS[turn.intent]}", bold=True)
    click.echo(f"memory  {counted(tokens.memory, 'token')}, {PLACES['memory']}" if turn.memory else "memory  nothing")
    budget = f"of at most {tokens.budget:,}"
    click.echo(
        f"recall  {counted(tokens.recall, 'token')} {budget}, {PLACES['recall']}"
        if turn.recall
        else f"recall  nothing {budget} tokens"
    )
    if turn.parts:
        click.echo()
        table(
            ["section", "part", "tokens", "items", "why"],
            [[part.section, part.kind, f"{part.tokens:,}", f"{part.items:,}", part.why] for part in turn.parts],
            right=["tokens", "items"],
        )
    _show_section("memory", turn.memory)
    _show_section("recall", turn.recall)


def _show_section(section: Section, text: str) -> None:
    if not text:
        return
    shown, left = shortened(text, max_lines=LINES_SHOWN, max_chars=CHARS_SHOWN)
    click.secho(f"\n── {section} ──", bold=True)
    for line in wrapped(printable(shown), TURN_INDENT):
        click.echo(line)
    if left:
        click.secho(f"{TURN_INDENT}… {left}: --text shows all", dim=True)


def _tell_missing(turn: PreparedTurn) -> None:
    """Why a section is empty, and what to do about it."""
    if not turn.memory and not turn.recall:
        click.echo("nothing would be injected:", err=True)
    if not turn.memory:
        why = "nothing to keep in mind yet; summaries, anchors and what was being done come as sessions grow"
        click.echo(f"memory: {why}{_or_unavailable(turn)}", err=True)
    if not turn.recall:
        click.echo(f"recall: {_why_nothing_recalled(turn)}", err=True)


def _why_nothing_recalled(turn: PreparedTurn) -> str:
    if not turn.tokens.budget:
        return "there is no room for it: the context is too full (--current-tokens, --window)"
    if turn.intent == "brief":
        return "the prompt is too short to search for"
    return f"nothing comes to mind; `offbook recall` searches by hand{_or_unavailable(turn)}"


def _or_unavailable(turn: PreparedTurn) -> str:
    return "; or see the warnings above" if turn.degraded else ""
