"""What is shown of a message: all of it, or the part that was asked for, in whole sentences."""

from __future__ import annotations

from collections.abc import Collection

from offbook.retrieval.passages import passages
from offbook.retrieval.phrases import sentences_of
from offbook.retrieval.words import indexed_terms

WHOLE_CHARS = 700
"""A message up to this long is shown whole."""
EXCERPT_CHARS = 600
CUT = "…"


def excerpt(text: str, asked: Collection[str], part: int | None = None) -> str:
    """At most about EXCERPT_CHARS around what was asked for. `part`: the passage that means most like it."""
    text = text.strip()
    if len(text) <= WHOLE_CHARS:
        return text
    found = passages(text)
    best = max(range(len(found)), key=lambda at: (_shared(found[at], asked) + 0.5 * (at == part), -at))
    passage = _whole_sentences(found[best])
    begins = f"{CUT} " if best > 0 else ""
    ends = f" {CUT}" if best < len(found) - 1 or len(passage) < len(found[best]) else ""
    return f"{begins}{passage}{ends}"


def _shared(passage: str, asked: Collection[str]) -> int:
    return len(set(indexed_terms(passage)) & set(asked)) if asked else 0


def _whole_sentences(passage: str) -> str:
    """As many sentences as fit; a sentence that is too long by itself is cut at a word."""
    if len(passage) <= EXCERPT_CHARS:
        return passage
    kept = ""
    for sentence in sentences_of(passage):
        if kept and len(kept) + len(sentence) + 1 > EXCERPT_CHARS:
            break
        kept = f"{kept} {sentence}".strip()
    return kept if len(kept) <= EXCERPT_CHARS else kept[:EXCERPT_CHARS].rsplit(" ", 1)[0].rstrip()
