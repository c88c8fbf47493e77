"""A message as the reader of sentences (`sentence_kinds`) takes it: its sentences in pieces, each behind a mark."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from offbook.model.sentences import Sentence

if TYPE_CHECKING:
    from offbook.models.minilm import WordPiece

USER, AGENT = 1, 2
SENTENCE, LINE, ITEM, LEAD = 3, 4, 5, 6
"""Marks, which the vocabulary keeps free: who speaks; a sentence, one that begins a line, an item of a list; the
beginning of a long message."""
MOST_PIECES, MOST_OF_SENTENCE, MOST_OF_LEAD = 192, 64, 24


class Window(NamedTuple):
    """As many sentences as are read together. Of a long message the first sentence is told again in each: what is
    pasted is mostly announced there."""

    first: int
    """The number of its first sentence."""
    pieces: list[int]
    spans: list[tuple[int, int]]
    """Of each sentence, its mark included."""


def windows(message: Sequence[Sentence], *, is_user: bool) -> list[Window]:
    """Every sentence stands in one of them."""
    who = USER if is_user else AGENT
    found: list[Window] = []
    lead: list[int] = []
    for at, one in enumerate(message):
        pieces = [_mark(message, at), *_wordpiece().pieces(one.text)[1:-1]]
        if not found or len(found[-1].pieces) + len(pieces) > MOST_PIECES:
            found.append(Window(at, [who, *lead], []))
        if not lead:
            lead = [LEAD, *pieces[1 : MOST_OF_LEAD + 1]]
        window = found[-1]
        window.spans.append((len(window.pieces), len(window.pieces) + len(pieces)))
        window.pieces.extend(pieces)
    return found


def _mark(message: Sequence[Sentence], at: int) -> int:
    if message[at].is_listed:
        return ITEM
    return LINE if at and message[at].line != message[at - 1].line else SENTENCE


@cache
def _wordpiece() -> WordPiece:
    from offbook.models.minilm import WordPiece

    return WordPiece(MOST_OF_SENTENCE + 2)
