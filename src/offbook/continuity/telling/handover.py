"""How a conversation goes on from the one before (D16), and what it is about (D10): the lines that open a turn."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from offbook.continuity.telling.ago import ago, span_text
from offbook.continuity.telling.quoting import INSTRUCTION, quoted
from offbook.continuity.telling.told import OF_AN_INSTRUCTION
from offbook.summaries import StateRecord
from offbook.turns import SessionInfo, Topic

TOLD_CHARS = 220
"""Of a goal, an open matter, or the last words."""
MOST_OPEN = 3
MOST_TOPICS = 4
LABEL_CHARS = 60


class LastTime(NamedTuple):
    """What is known of the conversation before: when it was, what it was doing, what it was about, its last words."""

    last_at: datetime
    records: Sequence[StateRecord] = ()
    topics: Sequence[Topic] = ()
    last_said: str = ""
    is_here: bool = False
    """In this very session, before a long silence."""


def subject_of(last: LastTime) -> str:
    """What it was on, in a few words: what a search for it goes by."""
    goals = [one.text for one in last.records if one.kind == "goal"]
    return goals[0] if goals else " ".join(one.label for one in last.topics[:MOST_TOPICS])


def session_line(info: SessionInfo | None, at: datetime) -> str:
    """The conversation so far; "" where it has only begun."""
    if info is None:
        return ""
    said: list[str] = []
    if info.exchanges:
        exchanges = "1 exchange" if info.exchanges == 1 else f"{info.exchanges:,} exchanges"
        said.append(f"This conversation: {exchanges} so far, begun {ago(info.started_at, at)}.")
    if info.gap == "interrupted":
        silence = span_text((at - info.last_at).total_seconds())
        said.append(f"It was interrupted: nothing was said for {silence}.")
    return " ".join(said)


def handover(last: LastTime | None, at: datetime) -> str:
    """What a new conversation opens with; "" where there was none before it, or nothing is known of it."""
    if last is None:
        return ""
    marks: set[str] = set()

    def quote(text: str) -> str:
        shown = quoted(text, TOLD_CHARS)
        marks.update(shown.marks)
        return shown.text

    # The kinds come newest first, as working state lists them.
    goals = [one.text for one in last.records if one.kind == "goal"]
    about = _labels([one for one in last.topics if not one.is_stale] or last.topics)
    when = f"{' here' if last.is_here else ''}, {ago(last.last_at, at)}"
    if goals:
        line = f"When you last spoke{when}, you were on this: {quote(goals[0])}"
    elif about:
        line = f"When you last spoke{when}, it was about {about}."
    elif last.last_said:
        line = f"When you last spoke{when}, the last they said was {quote(last.last_said)}"
    else:
        return ""
    still_open = [quote(one.text) for one in last.records if one.kind == "open loop"][:MOST_OPEN]
    running = [quote(one.text) for one in last.records if one.kind == "live handle"][:MOST_OPEN]
    line += f" Still open: {'; '.join(still_open)}" if still_open else ""
    line += f" Still running then: {'; '.join(running)}" if running else ""
    return line + (OF_AN_INSTRUCTION if INSTRUCTION in marks else "")


def topics_line(topics: Sequence[Topic]) -> str:
    """What they keep returning to, what else they speak of, what they have left."""
    fixated = _labels([one for one in topics if one.is_fixated])
    fresh = _labels([one for one in topics if not one.is_fixated and not one.is_stale and one.total > 1])
    stale = _labels([one for one in topics if one.is_stale and not one.is_fixated])
    said = [f"They keep returning to {fixated}."] if fixated else []
    said += [f"They speak of {fresh}."] if fresh else []
    said += [f"They have left {stale} for now."] if stale and (fixated or fresh) else []
    return " ".join(said)


def _labels(topics: Sequence[Topic]) -> str:
    found = (quoted(one.label, LABEL_CHARS) for one in topics)
    labels = list(islice((one.text[1:-1] for one in found if not one.marks), MOST_TOPICS))
    return " and ".join([", ".join(labels[:-1]), labels[-1]]) if len(labels) > 1 else "".join(labels)
