"""Anchors as the agent reads them: in its own first person, with the day they were said."""

from __future__ import annotations

from collections.abc import Sequence

from offbook.compression.days import day_text
from offbook.continuity.quoting import quoted
from offbook.turns import Anchor, AnchorKind

HEADING = "What stays with me:"
TOLD_CHARS = 240
_SAID: dict[AnchorKind, str] = {
    "identity": "Who they are",
    "contradiction": "What did not fit together",
    "tension": "What was unresolved",
}


def anchor_lines(anchors: Sequence[Anchor]) -> list[str]:
    # A date rather than "yesterday": what is told here is read for as long as a context lasts.
    return [
        f"- {_SAID[one.kind]} (said {day_text(one.at.date(), None)}): {quoted(one.text, TOLD_CHARS).text}"
        for one in anchors
    ]


def listed(anchors: Sequence[Anchor], max_chars: int) -> str:
    """As many as fit under their heading, the first first; "" where none does."""
    kept: list[str] = []
    left = max_chars - len(HEADING)
    for line in anchor_lines(anchors):
        left -= len(line) + 1
        if left < 0:
            break
        kept.append(line)
    return "\n".join([HEADING, *kept]) if kept else ""
