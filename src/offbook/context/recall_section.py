"""The volatile section: what this turn brings to mind, within its budget (A5), in the agent's own voice (D8). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from offbook.context.prompt_text import Recalled, Room, format_memory
from offbook.ingest.frames import frame
from offbook.model.summary import PartKind, TurnPart
from offbook.model.turn import Intent
from offbook.models.tokens import CHARS_PER_TOKEN, chunk_tokens, estimate_tokens

OPENINGS: dict[Intent, str] = {
    "recall": "You remember. Speak from it naturally: you were there.",
    "resume": "You remember. Speak from it naturally: you were there.",
    "plain": "This comes to mind; use it where it helps:",
    "brief": "This comes to mind; use it where it helps:",
}
NOTHING_IN_PARTICULAR = "Nothing in particular comes to mind; the newest you remember:"
BLOCK_SHARE = 0.25
"""Of the budget, at the most, for all that is not recalled."""


LEAST_TOLD = 200
"""Characters: with less room than that a memory is left out rather than cut to a scrap."""


class ContinuityLine(NamedTuple):
    """A line of the continuity block, and why it is there."""

    kind: PartKind
    text: str
    why: str


class Ranked(NamedTuple):
    """Something recalled, with its place in the ranking: where there is no room, the last goes first."""

    recalled: Recalled
    rank: int
    also: tuple[str, ...] = ()
    """Ids of entries that are told of beside it."""


class RecallSection(NamedTuple):
    text: str
    tokens: int
    shown: list[str]
    """Ids of the entries that are told of."""
    parts: list[TurnPart]


def recall_section(
    lines: Sequence[ContinuityLine],
    found: Sequence[Ranked],
    *,
    intent: Intent,
    budget: int,
    at: datetime,
    own_agent: str,
    said_chars: int,
    beside_chars: int,
    why: str,
    key: bytes,
    asked: frozenset[str] = frozenset(),
) -> RecallSection:
    """As much as fits, never one token more by our estimate. `found` in order of time; who ranks first has the first
    claim on the budget. `asked`: the words of the prompt, for the sentences that hold them."""
    kept_lines = _lines_within([one for one in lines if one.text], int(budget * BLOCK_SHARE))
    left = budget - sum(estimate_tokens(one.text) for one in kept_lines)
    texts = _told(found, left, Room(said_chars, beside_chars, asked), at, own_agent)
    kept = _within(found, texts, left)
    while True:
        text = _composed(kept_lines, [texts[one.recalled.entry.id] for one in kept], intent, found, key)
        tokens = estimate_tokens(text)
        if tokens <= budget or not text:
            break
        if kept:
            last = max(kept, key=lambda one: one.rank)
            kept = [one for one in kept if one is not last]
        else:
            kept_lines = kept_lines[:-1]
    shown = [entry_id for one in kept for entry_id in (one.recalled.entry.id, *one.also)]
    return RecallSection(text, tokens, shown, _parts(kept_lines, kept, texts, why))


def _told(found: Sequence[Ranked], budget: int, room: Room, at: datetime, own_agent: str) -> dict[str, str]:
    """Each as fully as its place allows: what ranks first may take half of what is left, and so on."""
    texts: dict[str, str] = {}
    ranked = sorted(found, key=lambda one: one.rank)
    for place, one in enumerate(ranked):
        chars = max(0, budget) * CHARS_PER_TOKEN // (1 if place == len(ranked) - 1 else 2)
        share = min(1.0, chars / max(1, room.said + room.beside))
        own = Room(max(LEAST_TOLD, int(room.said * share)), int(room.beside * share), room.asked)
        text = format_memory(one.recalled, at, own_agent=own_agent, room=own)
        texts[one.recalled.entry.id] = text
        budget -= chunk_tokens(len(text))
    return texts


def _lines_within(lines: Sequence[ContinuityLine], most_tokens: int) -> list[ContinuityLine]:
    kept: list[ContinuityLine] = []
    for one in lines:
        tokens = estimate_tokens(one.text)
        if tokens <= most_tokens:
            kept.append(one)
            most_tokens -= tokens
    return kept


def _within(found: Sequence[Ranked], texts: Mapping[str, str], budget: int) -> list[Ranked]:
    """The best that fit by the documents' reckoning; what is too long by itself leaves room for the next."""
    kept: set[str] = set()
    for one in sorted(found, key=lambda one: one.rank):
        cost = chunk_tokens(len(texts[one.recalled.entry.id]))
        if cost <= budget:
            kept.add(one.recalled.entry.id)
            budget -= cost
    return [one for one in found if one.recalled.entry.id in kept]


def _composed(
    lines: Sequence[ContinuityLine], texts: Sequence[str], intent: Intent, found: Sequence[Ranked], key: bytes
) -> str:
    said = [one.text for one in lines]
    if texts:
        is_newest = all(one.recalled.is_newest for one in found)
        said += [NOTHING_IN_PARTICULAR if is_newest else OPENINGS[intent], *texts]
    return frame("\n".join(said), kind="recall", key=key) if said else ""


def _parts(
    lines: Sequence[ContinuityLine], kept: Sequence[Ranked], texts: Mapping[str, str], why: str
) -> list[TurnPart]:
    parts = [
        TurnPart(section="recall", kind=one.kind, tokens=estimate_tokens(one.text), items=1, why=one.why, text=one.text)
        for one in lines
    ]
    if kept:
        text = "\n".join(texts[one.recalled.entry.id] for one in kept)
        kind: PartKind = "newest" if all(one.recalled.is_newest for one in kept) else "recalled"
        parts.append(
            TurnPart(section="recall", kind=kind, tokens=estimate_tokens(text), items=len(kept), why=why, text=text)
        )
    return parts
