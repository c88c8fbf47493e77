"""Whether a message says more than the one thing of it that was corrected."""

from __future__ import annotations

import re

from offbook.retrieval.words import terms

LEAST_TERMS = 2
LEAST_TERMS_AFTER_COMMA = 3
"""Between commas there is often no more than a date or a name."""
READ_CHARS = 1000
_PARTS = re.compile(r"(?<=[.!?;。！？；])\s*|\s+(?:and|but|while|whereas)\s+|\n+")
_COMMA = re.compile(r"[,，、]\s*")


def says_more(old: str, new: str) -> bool:
    """Whether something of `old` stands beside what `new` is about: then `new` replaces it only in part."""
    about = set(terms(new[:READ_CHARS]))
    clauses = [(set(terms(clause)), least) for clause, least in _clauses(old[:READ_CHARS])]
    clauses = [(words, least) for words, least in clauses if words]
    if len(clauses) < 2:
        return False
    corrected = max(range(len(clauses)), key=lambda at: (len(clauses[at][0] & about), -at))
    return any(len(words - about) >= least for at, (words, least) in enumerate(clauses) if at != corrected)


def _clauses(text: str) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    for part in _PARTS.split(text):
        pieces = _COMMA.split(part)
        least = LEAST_TERMS if len(pieces) == 1 else LEAST_TERMS_AFTER_COMMA
        found += [(piece, least) for piece in pieces]
    return found
