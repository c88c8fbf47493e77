"""What one sentence says of several things: "My name is Ana and I live in Berlin." Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from offbook.model.plain_names import is_digits
from offbook.model.sentences import sentences
from offbook.search.words import UNSPACED_RUN
from offbook.statements.reading import key_of

LEAST_WORDS = 3
"""Of a clause: fewer go with what is before them."""
LEAST_LETTERS = 4
"""The same, of a script without spaces."""
_SUBJECTS = (
    r"i(?=['’ ])|my|we|our|he|his|she|her|they|their|it|the|every|no|nobody|when|ich|meine?|wir|unsere?|er|sie|ihre?|"
    r"der|die|das|je|mon|ma|mes|nous|notre|nos|il|elle|le|la|les|yo|mis?|nuestr[oa]s?|el|ella|los|las|io|mi[oa]|noi|"
    r"nostr[oa]|lo|gli|ik|mijn|wij|onze|de|het"
)
_JOINT = re.compile(
    rf",?\s+(?:and|und|en|et|y|e)\s+(?=(?:(?i:{_SUBJECTS})\b|[jl]['’]|(?-i:[A-ZÀ-Ü])))|[，；](?:而且)?(?=[我他她它你咱这那])",
    re.IGNORECASE,
)
"""Where one ends: what follows has a subject of its own."""


class Clause(NamedTuple):
    text: str
    start: int
    end: int
    """Where it stands in the text."""
    cut_from: int
    cut_to: int
    """What goes with it where it is cut out: the "and", too."""


def clauses(text: str, start: int, end: int) -> list[Clause]:
    """The parts of a sentence; the sentence itself, where it has none."""
    places: list[tuple[int, int]] = []
    begin = start
    for match in _JOINT.finditer(text, start, end):
        if _is_long(text[begin : match.start()]) and _is_long(text[match.end() : end]):
            places.append((begin, match.start()))
            begin = match.end()
    places.append((begin, end))
    found: list[Clause] = []
    for at, (first, last) in enumerate(places):
        cut_from = places[at - 1][1] if at else first
        cut_to = places[1][0] if at == 0 and len(places) > 1 else last
        found.append(Clause(text[first:last], first, last, cut_from, cut_to))
    return found


def _is_long(part: str) -> bool:
    return len(part.split()) >= LEAST_WORDS or sum(map(len, UNSPACED_RUN.findall(part))) >= LEAST_LETTERS


# ── Which characters of a message no longer hold, as a link notes it ──

Span = tuple[int, int]
UNCLEAR = "unclear"
"""The note of a link that is about one of several statements, nobody knows which."""


def noted(spans: Sequence[Span]) -> str:
    return " ".join(f"{start}-{end}" for start, end in spans)


def spans_of(note: str) -> list[Span]:
    """None where the link is about the whole message, or its note says something else."""
    found: list[Span] = []
    for part in note.split():
        start, _, end = part.partition("-")
        if not (is_digits(start) and is_digits(end)):
            return []
        found.append((int(start), int(end)))
    return found


def concerns(spans: Sequence[Span], start: int, end: int) -> bool:
    return any(first < end and start < last for first, last in spans)


def left_of(text: str, spans: Sequence[Span], start: int = 0, end: int | None = None) -> str:
    """What of it, or of a part of it, still holds, as it was said; "" where nothing does."""
    end = len(text) if end is None else end
    kept: list[str] = []
    for first, last in sorted(spans):
        if start < last and first < end:
            kept.append(text[start : max(start, first)])
            start = max(start, last)
    left = ""
    for part in [*kept, text[start:end]]:
        is_apart = not left or left[-1].isspace() or part[:1].isspace() or part[:1] in ",;.!?，；。"
        left += (part.lstrip(" ") if left[-1:].isspace() else part) if is_apart else f" {part}"
    return left.strip()


def keys_in(text: str) -> dict[str, Clause]:
    """The statements of a text, by what they have in common with others that say the same in the same words."""
    parts = (part for one in sentences(text) for part in clauses(text, one.start, one.end))
    return {key_of(part.text): part for part in parts}
