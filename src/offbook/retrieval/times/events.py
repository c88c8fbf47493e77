"""Bounds without a date: "before the move", "since we launched"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from offbook.retrieval.times.dates import Text
from offbook.retrieval.times.relations import DISTANCE, Found
from offbook.retrieval.times.values import EventBound
from offbook.retrieval.times.words import (
    CLAUSE_BEGINS,
    EMPTY_EVENTS,
    INVERSIONS,
    PAST_VERBS,
    PRESENT_VERBS,
    SUBJECTS,
    WEAK_ENDS,
)

MOST_WORDS = 8
LOOK_BEHIND_CHARS = 40

_RELATION = re.compile(r"(?<![a-z0-9_'-])(ever +since|since|before|prior +to|until|till|after)(?= +[^\s])")
_BEFORE = frozenset({"before", "prior to", "until", "till"})
_WORD = re.compile(r" +((?:[^\s,.;:?!()\[\]{}\"“”…，。？！；：、]|\.(?=[a-z0-9]))+)")
_NOT_AFTER = re.compile(r"(?<![a-z])(?:look(?:s|ed|ing)?|named|modell?ed|patterned) +\Z")
"""What makes something else of "after": to look after."""


class FoundBound(NamedTuple):
    first: int
    last: int
    bound: EventBound


def find_bounds(text: Text, ranges: Sequence[Found]) -> list[FoundBound]:
    """Every bound outside the dates. An event ends where a date begins."""
    is_date = bytearray(len(text.plain) + 1)
    for found in ranges:
        is_date[found.first : found.last] = b"\x01" * (found.last - found.first)
    bounds: list[FoundBound] = []
    for relation in _RELATION.finditer(text.plain):
        if is_date[relation.start()] or (bounds and relation.start() < bounds[-1].last):
            continue
        bound = _bound(relation, text, is_date)
        if bound is not None:
            bounds.append(bound)
    return bounds


def _bound(relation: re.Match[str], text: Text, is_date: bytearray) -> FoundBound | None:
    word = " ".join(relation[1].split())
    words = _event_words(relation.end(), text, is_date)
    plain = [found[1] for found in words]
    if not plain or not _is_event(word, plain):
        return None
    behind = text.behind(relation.start(), LOOK_BEHIND_CHARS)
    is_idiom = _NOT_AFTER.search(behind) is not None or text.word_before(relation.start()) == plain[0]
    if word == "after" and is_idiom:
        return None  # to look after, day after day
    distance = DISTANCE.search(behind)
    first, last = relation.start() - (len(distance[0]) if distance else 0), words[-1].end()
    if any(is_date[first : relation.start()]):
        first = relation.start()
    side: Literal["before", "after"] = "before" if word in _BEFORE else "after"
    event = text.written[words[0].start(1) : last]
    return FoundBound(first, last, EventBound(relation=side, event=event, phrase=text.written[first:last]))


def _event_words(at: int, text: Text, is_date: bytearray) -> list[re.Match[str]]:
    words: list[re.Match[str]] = []
    while len(words) < MOST_WORDS and (found := _WORD.match(text.plain, at)) and not is_date[found.start(1)]:
        word = found[1]
        is_inverted = word in INVERSIONS and text.word_after(found.end()) in SUBJECTS
        if word in CLAUSE_BEGINS or is_inverted or _RELATION.match(text.plain, found.start(1)):
            break
        words.append(found)
        at = found.end()
    while words and words[-1][1] in WEAK_ENDS:
        words.pop()
    return words


def _is_event(relation: str, words: list[str]) -> bool:
    first, second = words[0], words[1] if len(words) > 1 else ""
    if first in EMPTY_EVENTS and not (first in ("that", "this", "those") and second.isalpha()):
        return False
    if not first[0].isalpha() and not first[0].isdigit():
        return False
    if first in SUBJECTS:
        return second in PAST_VERBS or second.endswith("ed")
    if first.split("'")[0] in SUBJECTS:
        return first.endswith("'d")
    return relation != "since" or not PRESENT_VERBS.intersection(words)
