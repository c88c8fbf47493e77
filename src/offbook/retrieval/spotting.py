"""Which words stand in a text, found without reading all of it into words.

A word is looked for by what any of its forms hold (see `stems.roots`); only what stands where that occurs is read.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from offbook.retrieval.stems import roots
from offbook.retrieval.words import MAX_TERM_CHARS, PIECE_CHARS, indexed_terms, plain_letters, stretches

MOST_PLACES = 20_000
"""Of one root in a piece: of a text that is nothing else, the first ones tell."""
MOST_KEPT = 50_000
_SPACE = re.compile(r"\s")
_JOINED = re.compile(r"(?<=[^\W\d_])[-'’.](?=[^\W\d_])|(?<=\d),(?=\d)")


class Spotter:
    """Looks for the same terms in one text after another."""

    def __init__(self, terms: Collection[str]) -> None:
        self.terms = frozenset(terms)
        self._roots = {term: _spelt(term) for term in self.terms}
        self._read: dict[str, frozenset[str]] = {}

    def held(self, text: str, *, without: Collection[str] = ()) -> set[str]:
        """The terms that a text of any length holds. `without`: those that need not be looked for."""
        sought = self.terms.difference(without)
        found: set[str] = set()
        for start, end in stretches(text, PIECE_CHARS):
            if len(found) == len(sought):
                break
            found |= self.held_in_piece(text[start:end], sought - found)
        return found

    def held_in_piece(self, piece: str, terms: Collection[str] | None = None) -> set[str]:
        cased = plain_letters(piece)
        lower = cased.casefold()
        if len(lower) != len(cased):
            cased = lower
        wanted = self.terms if terms is None else terms
        found = self._standing(wanted, lower, cased)
        if len(found) < len(wanted) and _JOINED.search(lower):
            # e-mail and 1,234.5 are read as one word.
            joined = _JOINED.sub("", cased)
            found |= self._standing([term for term in wanted if term not in found], joined.casefold(), joined)
        return found

    def _standing(self, terms: Collection[str], lower: str, cased: str) -> set[str]:
        return {term for term in terms if any(self._stands(term, root, lower, cased) for root in self._roots[term])}

    def _stands(self, term: str, root: str, lower: str, cased: str) -> bool:
        at = lower.find(root)
        for _ in range(MOST_PLACES):
            if at < 0:
                return False
            start, end = _around(lower, at, at + len(root))
            if term in self._terms_of(cased[start:end]):
                return True
            # Without a space near, another may stand across the end.
            at = lower.find(root, end if end - at <= MAX_TERM_CHARS else max(at + 1, end - MAX_TERM_CHARS))
        return False

    def _terms_of(self, word: str) -> frozenset[str]:
        known = self._read.get(word)
        if known is None:
            known = frozenset(indexed_terms(word))
            if len(self._read) < MOST_KEPT:
                self._read[word] = known
        return known


def _spelt(term: str) -> tuple[str, ...]:
    """With a number as people write it, too: 12,000."""
    is_long_number = term.isascii() and term.isdecimal() and 4 <= len(term) <= 15
    return (term, f"{int(term):,}") if is_long_number else roots(term)


def _around(text: str, start: int, end: int) -> tuple[int, int]:
    """From the space before to the one after it, where there are any near."""
    first = max(0, start - MAX_TERM_CHARS)
    before = max(text.rfind(space, first, start) for space in " \n\t")
    after = _SPACE.search(text, end, end + MAX_TERM_CHARS)
    return before + 1 if before >= 0 else first, after.start() if after else min(len(text), end + MAX_TERM_CHARS)
