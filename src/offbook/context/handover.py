"""How a conversation goes on from the one before (D16), and what it is about (D10): the lines that open a turn."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from itertools import islice
from typing import Literal, NamedTuple

from offbook.context.prompt_text import OF_AN_INSTRUCTION
from offbook.context.quotes import INSTRUCTION, quoted
from offbook.context.time_text import ago, day_text, span_text
from offbook.model.lesson import Lesson
from offbook.model.summary import StateRecord
from offbook.model.turn import Anchor, AnchorKind, Intent, SessionInfo, Topic
from offbook.model.types import GapKind
from offbook.models.sentence_kinds import read_sentences
from offbook.search.words import terms

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
    session_id: str = ""


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


def handover(last: LastTime | None, at: datetime, *, with_last_words: bool = True) -> str:
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
    elif last.last_said and with_last_words:
        line = f"When you last spoke{when}, the last they said was {quote(last.last_said)}"
    else:
        return ""
    loops = [one.text for one in last.records if one.kind == "open loop"]
    still_open = [quote(text) for text in loops if last.is_here or not _is_order(text)][:MOST_OPEN]
    running = [quote(one.text) for one in last.records if one.kind == "live handle"][:MOST_OPEN]
    line += f" Still open: {'; '.join(still_open)}" if still_open else ""
    line += f" Still running then: {'; '.join(running)}" if running else ""
    return line + (OF_AN_INSTRUCTION if INSTRUCTION in marks else "")


def handover_reason(
    last: LastTime | None, *, intent: Intent, gap: GapKind | None, is_greeting: bool, found_in: Collection[str]
) -> Literal["picked up", "came to mind"] | None:
    """Why a turn opens with the conversation before: the prompt picks it up or says nothing of its own, or the session
    was interrupted; or something of that conversation came to mind (`found_in`: of which sessions)."""
    if last is None or (gap == "continuous" and intent != "resume"):
        return None
    if intent == "resume" or gap == "interrupted" or is_greeting:
        return "picked up"
    return "came to mind" if last.session_id in found_in else None


def _is_order(text: str) -> bool:
    """How the agent is to behave holds for the conversation it was said in."""
    return any(one.kind == "order" for one in read_sentences(text, is_user=True))


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


# ── Anchors as the agent reads them: in its own first person, with the day they were said ──

HEADING = "What stays with me:"
ANCHOR_LINES_TOLD_CHARS = 240
SHARE_OF_CLAIM = 0.5
"""Of a lesson's words: an anchor with as many quotes what the lesson says."""
_SAID: dict[AnchorKind, str] = {
    "identity": "Who they are",
    "contradiction": "What did not fit together",
    "tension": "What was unresolved",
}


def anchor_lines(anchors: Sequence[Anchor]) -> list[str]:
    """One line each, in the order given."""
    # A date rather than "yesterday": what is told here is read for as long as a context lasts.
    return [
        f"- {_SAID[one.kind]} (said {day_text(one.at.date(), None)}): {quoted(one.text, ANCHOR_LINES_TOLD_CHARS).text}"
        for one in anchors
    ]


def in_order_of_time(anchors: Sequence[Anchor]) -> list[Anchor]:
    """What takes something back stands after it."""
    return sorted(anchors, key=lambda one: (one.at, one.seq))


def listed(anchors: Sequence[Anchor], max_chars: int) -> str:
    """As many as fit under their heading, the first given first, oldest first; "" where none does."""
    kept: list[Anchor] = []
    left = max_chars - len(HEADING)
    for one, line in zip(anchors, anchor_lines(anchors), strict=True):
        left -= len(line) + 1
        if left < 0:
            break
        kept.append(one)
    return "\n".join([HEADING, *anchor_lines(in_order_of_time(kept))]) if kept else ""


def not_contradicted(anchors: Sequence[Anchor], judged: Sequence[Lesson]) -> list[Anchor]:
    """Without those of which a person has said otherwise."""
    return [one for one in anchors if not any(_is_spoken_for(one, lesson) for lesson in judged)]


def _is_spoken_for(anchor: Anchor, lesson: Lesson) -> bool:
    """Whether a person has said otherwise than what the anchor quotes, or that it is not so. What was taken back since
    speaks for nothing."""
    if (anchor.session_id, anchor.seq) not in {(source.session_id, source.seq) for source in lesson.sources}:
        return False
    said, claimed = set(terms(anchor.text)), set(terms(lesson.learnt_text or lesson.text))
    if lesson.learnt_text is None:
        return lesson.status == "rejected" and said <= claimed
    # The same message may say something else, too.
    return lesson.status != "rejected" and len(said & claimed) >= SHARE_OF_CLAIM * len(claimed)
