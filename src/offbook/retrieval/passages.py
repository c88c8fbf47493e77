"""A message as the passages that are embedded: whole sentences, about a paragraph each.

A model reads 256 tokens, and the mean of a long answer is about nothing in particular: so a long message is found
by its paragraphs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

PASSAGE_CHARS = 600
LONGEST_WHOLE_CHARS = 750
"""A message a little longer than a passage stays whole rather than leave a scrap."""
MOST_PASSAGES = 48
"""Of one message. What a pasted file means is told by its beginning; the text index has the words of all of it."""
_CJK_CHARS_FOR_LATIN = 2.5
"""A Chinese character is about as many tokens as this many Latin letters."""
_WIDE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
_ENDS = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])|\n+")


def has_more(text: str, found: Sequence[str]) -> bool:
    """Whether the text goes on after the passages that were found in it."""
    return len(found) == MOST_PASSAGES or len(text.strip()) > _limits(text.strip())[0] * (MOST_PASSAGES + 1)


def passages(text: str) -> list[str]:
    """At least one, however short the text."""
    text = text.strip()
    limit, whole = _limits(text)
    if len(text) <= whole:
        return [text]
    found: list[str] = []
    current = ""
    for sentence in _sentences(text[: limit * (MOST_PASSAGES + 1)], limit):
        if current and len(current) + len(sentence) + 1 > limit:
            found.append(current)
            current = ""
        current = f"{current} {sentence}" if current else sentence
    if current:
        found.append(current)
    return found[:MOST_PASSAGES] or [text[:limit]]


def _limits(text: str) -> tuple[int, int]:
    sample = text[: 4 * PASSAGE_CHARS]
    is_wide = len(_WIDE.findall(sample)) * 3 > len(sample)
    share = _CJK_CHARS_FOR_LATIN if is_wide else 1.0
    return int(PASSAGE_CHARS / share), int(LONGEST_WHOLE_CHARS / share)


def _sentences(text: str, limit: int) -> list[str]:
    found: list[str] = []
    for part in _ENDS.split(text):
        found += _pieces(part.strip(), limit)
    return found


def _pieces(sentence: str, limit: int) -> Iterator[str]:
    """Of a sentence that is longer than a passage: cut between words, where there are any."""
    while len(sentence) > limit:
        at = sentence.rfind(" ", limit // 2, limit + 1)
        piece = sentence[: at if at > 0 else limit]
        yield piece.rstrip()
        sentence = sentence[len(piece) :].lstrip()
    if sentence:
        yield sentence
