"""What one sentence says of several things: "My name is Ana and I live in Berlin." Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from offbook.model.plain_names import is_digits
from offbook.model.sentences import sentences

LEAST_WORDS = 3
"""Of a clause: fewer go with what is before them."""
ENDS = tuple(".!?…。！？")
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
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")


class Clause(NamedTuple):
    text: str
    start: int
    end: int
    """Where it stands in the text."""


def clauses(text: str, start: int, end: int) -> list[Clause]:
    """The parts of a sentence; the sentence itself, where it has none."""
    joints = [(match.start(), match.end()) for match in _JOINT.finditer(text, start, end)]
    found: list[Clause] = []
    begin = start
    for stop, next_begin in joints:
        if _is_long(text[begin:stop]) and _is_long(text[next_begin:end]):
            found.append(Clause(text[begin:stop], begin, stop))
            begin = next_begin
    return [*found, Clause(text[begin:end], begin, end)]


def _is_long(part: str) -> bool:
    return len(part.split()) >= LEAST_WORDS or len(_UNSPACED.findall(part)) >= LEAST_LETTERS


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


def statements(text: str) -> list[Clause]:
    """The parts of each of its sentences."""
    return [part for one in sentences(text) for part in clauses(text, one.start, one.end)]


def left_of(text: str, spans: Sequence[Span]) -> str:
    """What of it still holds; "" where nothing does."""
    left = [one for one in statements(text) if not concerns(spans, one.start, one.end)]
    return " ".join(one.text if one.text[-1:] in ENDS else f"{one.text}." for one in left)
