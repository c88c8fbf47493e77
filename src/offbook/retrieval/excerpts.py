"""What is shown of a message: all of it, or the part that was asked for, in whole sentences."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import NamedTuple

from offbook.retrieval.passages import LONGEST_WHOLE_CHARS, PASSAGE_CHARS, has_more, passages
from offbook.retrieval.spotting import Spotter
from offbook.retrieval.words import indexed_terms, stretches

WHOLE_CHARS = LONGEST_WHOLE_CHARS
"""A message up to this long is shown whole."""
EXCERPT_CHARS = PASSAGE_CHARS
SEARCHED_CHARS = 6_000
"""Of a long text: pieces that are searched for the words, and of which the best are read."""
PIECES_READ = 8
BESIDE_CHARS = 300
"""Read before and after a piece: the sentence may have begun there."""
CUT = "…"


class _Shown(NamedTuple):
    score: float
    passage: str
    is_first: bool
    is_last: bool


def excerpt(text: str, asked: Collection[str], part: int | None = None) -> str:
    """At most about EXCERPT_CHARS around what was asked for. `part`: the passage that means most like it."""
    text = text.strip()
    if len(text) <= WHOLE_CHARS:
        return text
    found = passages(text)
    goes_on = has_more(text, found)
    shown = _in_long(text, asked, found, part) if goes_on and asked else None
    if shown is None:
        best = max(range(len(found)), key=lambda at: (_shared(found[at], asked) + 0.5 * (at == part), -at))
        shown = _Shown(0.0, found[best], best == 0, best == len(found) - 1 and not goes_on)
    return f"{'' if shown.is_first else f'{CUT} '}{shown.passage}{'' if shown.is_last else f' {CUT}'}"


def _shared(passage: str, asked: Collection[str]) -> int:
    return len(set(indexed_terms(passage)) & set(asked)) if asked else 0


def _in_long(text: str, asked: Collection[str], beginning: list[str], part: int | None) -> _Shown | None:
    """Of a text that is too long to be read: the passage with the words that are rarest in it. None where it has none
    of them."""
    spotter = Spotter(asked)
    pieces = [(start, end, spotter.held_in_piece(text[start:end])) for start, end in stretches(text, SEARCHED_CHARS)]
    times = {term: sum(term in held for _, _, held in pieces) for term in spotter.terms}
    weights = {term: math.log1p(len(pieces) / count) for term, count in times.items() if count}
    if not weights:
        return None
    best = sorted(pieces, key=lambda piece: -sum(weights[term] for term in piece[2]))[:PIECES_READ]
    shown = [_shown_in(text, start, end, weights) for start, end, held in sorted(best) if held]
    if part is not None and part < len(beginning):
        nearest = beginning[part]
        score = _weight(nearest, weights) + min(weights.values()) / 2
        shown.insert(0, _Shown(score, nearest, part == 0, is_last=False))
    return max(shown, key=lambda one: one.score)  # the first of equals


def _shown_in(text: str, start: int, end: int, weights: Mapping[str, float]) -> _Shown:
    first, last = max(0, start - BESIDE_CHARS), min(len(text), end + BESIDE_CHARS)
    found = passages(text[first:last])
    scores = [_weight(passage, weights) for passage in found]
    at = max(range(len(found)), key=lambda one: (scores[one], -one))
    return _Shown(scores[at], found[at], not first and not at, last == len(text) and at == len(found) - 1)


def _weight(passage: str, weights: Mapping[str, float]) -> float:
    return sum(weights[term] for term in set(indexed_terms(passage)) & weights.keys())
