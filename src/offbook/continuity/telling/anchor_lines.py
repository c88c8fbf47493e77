"""Anchors as the agent reads them: in its own first person, with the day they were said."""

from __future__ import annotations

from collections.abc import Sequence

from offbook.compression.days import day_text
from offbook.continuity.replacing.lesson_links import claim_of
from offbook.continuity.telling.quoting import quoted
from offbook.lessons import Lesson
from offbook.retrieval.words import terms
from offbook.turns import Anchor, AnchorKind

HEADING = "What stays with me:"
TOLD_CHARS = 240
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
        f"- {_SAID[one.kind]} (said {day_text(one.at.date(), None)}): {quoted(one.text, TOLD_CHARS).text}"
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


def still_told(anchors: Sequence[Anchor], judged: Sequence[Lesson]) -> list[Anchor]:
    """Without those of which a person has said otherwise."""
    return [one for one in anchors if not any(_is_spoken_for(one, lesson) for lesson in judged)]


def _is_spoken_for(anchor: Anchor, lesson: Lesson) -> bool:
    """Whether a person has said otherwise than what the anchor quotes, or that it is not so. What was taken back since
    speaks for nothing."""
    if (anchor.session_id, anchor.seq) not in {(source.session_id, source.seq) for source in lesson.sources}:
        return False
    said, claimed = set(terms(anchor.text)), set(terms(claim_of(lesson.learnt_text or lesson.text)))
    if lesson.learnt_text is None:
        return lesson.status == "rejected" and said <= claimed
    # The same message may say something else, too.
    return lesson.status != "rejected" and len(said & claimed) >= SHARE_OF_CLAIM * len(claimed)
