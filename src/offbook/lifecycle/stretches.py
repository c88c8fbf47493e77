"""Stretches of words, and looking for known ones in many texts: most texts have none, and that is seen without reading
them word by word."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

WORDS = 5
"""Of a stretch, where nothing else is said."""
FEW = 64
"""So many are quicker looked for word by word than by reading all that a text says."""

# Scripts without spaces between words are read letter by letter.
WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]|[^\W_]+", re.UNICODE)
_BETWEEN = r"[\W_]*"
"""No letter of a word, as `WORD` reads them."""

Window = tuple[str, ...]


def plain(text: str) -> str:
    """In the letters that words are compared in."""
    return unicodedata.normalize("NFKC", text).casefold()


def words_of(text: str) -> list[str]:
    return WORD.findall(plain(text))


def windows_of(text: str, size: int = WORDS) -> Iterator[Window]:
    """Every stretch of so many words."""
    return _stretches(words_of(text), size)


def _stretches(words: Sequence[str], size: int) -> Iterator[Window]:
    return zip(*(islice(words, at, None) for at in range(size)), strict=False)


class Stretches:
    """Known ones, found in any text."""

    def __init__(self, windows: Iterable[Window]) -> None:
        self._of_size: dict[int, set[Window]] = {}
        for window in windows:
            self._of_size.setdefault(len(window), set()).add(window)
        self._longest: dict[str, list[re.Pattern[str]]] = {}
        """The longest word of each, and, where they are few, the word among the others: a text that has not even that
        one, which is most often so, is not looked at any further."""
        are_few = sum(map(len, self._of_size.values())) <= FEW
        for window in (window for known in self._of_size.values() for window in known):
            patterns = self._longest.setdefault(max(window, key=len), [])
            patterns += [re.compile(_BETWEEN.join(map(re.escape, window)))] if are_few else []
        self._are_few = are_few

    def found_in(self, text: str) -> set[Window]:
        if not self._of_size:
            return set()
        letters = plain(text)
        if self._are_few and not self._may_be_in(letters):
            return set()
        words = WORD.findall(letters)
        if self._longest.keys().isdisjoint(words):
            return set()
        return {one for size, known in self._of_size.items() for one in known.intersection(_stretches(words, size))}

    def _may_be_in(self, letters: str) -> bool:
        """Whether the words of any of them are there in a row, be it as parts of others."""
        for longest, patterns in self._longest.items():
            if longest in letters and any(pattern.search(letters) for pattern in patterns):
                return True
        return False


def saying(windows: Iterable[Window]) -> Callable[[str], bool]:
    """Tells whether a text has any of these stretches."""
    known = Stretches(windows)
    return lambda text: bool(known.found_in(text))


def without_common(windows: set[Window], texts: Iterable[str]) -> None:
    """Take away what others say, too: finding that would prove nothing."""
    known = Stretches(windows)
    for text in texts:
        windows -= known.found_in(text)
