"""Whether what was said later may take the place of what was said earlier, by words alone: tells which few pairs are
worth the model that reads both (`relation`), a thousand times dearer, and has its say beside it.

A logistic regression over hashed words and a few marks. Its weights ship with the package (`data/relation-words.npz`);
`benchmarks/memory/fit/relation_words.py` fits them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from offbook.models.sentence_features import words_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WEIGHTS = "data/relation-words.npz"
SIZE = 1 << 14
"""Of the table of weights: words are hashed into it."""
MOST_WORDS = 60
MOST_SHARED = 3
LONG_WORDS = 40
TEXTS_KEPT = 4_096
"""Whose words are summed up already: a message is compared with several."""
_NUMBER = re.compile(r"\d+(?:[.:]\d+)*")


class Said(NamedTuple):
    """One of the two: what is compared of it, and what its message was read as."""

    text: str
    keep: float
    """How likely it matters in another conversation."""
    is_replacing: bool
    """It states something that can take the place of something."""


def log_odds(earlier: Said, later: Said, shared: int) -> float:
    """That the later takes the earlier's place. `shared`: how many telling words the two share."""
    table = _table()
    total, count = 0.0, 0
    for rows in (later_words(later.text), earlier_words(earlier.text), new_words(earlier.text, later.text)):
        total += sum(map(table.words.__getitem__, rows))
        count += len(rows)
    found: float = table.offset + total / max(1, count) ** 0.5
    return found + sum(weight * value for weight, value in zip(table.marks, marks(earlier, later, shared), strict=True))


def marks(earlier: Said, later: Said, shared: int) -> list[float]:
    """What else is known of the two."""
    before, since = set(_NUMBER.findall(earlier.text)), set(_NUMBER.findall(later.text))
    return [
        float(min(shared, MOST_SHARED)),
        float(shared > 0),
        later.keep,
        float(later.is_replacing),
        earlier.keep,
        float(earlier.is_replacing),
        float(bool(before - since) and bool(since - before)),
        float(bool(before) != bool(since)),
        min(len(_words(later.text)), LONG_WORDS) / LONG_WORDS,
        min(len(_words(earlier.text)), LONG_WORDS) / LONG_WORDS,
    ]


@lru_cache(TEXTS_KEPT)
def later_words(text: str) -> tuple[int, ...]:
    """Rows of the table: its words, which follow each other, how they begin and end."""
    names: list[str] = []
    previous = "^"
    for place, word in enumerate(_words(text)):
        names += [f"l {word}", f"l {previous} {word}"]
        if len(word) > 4:
            names += [f"l<{word[:4]}", f"l>{word[-3:]}"]
        if place < 3:
            names.append(f"^{place} {word}")
        previous = word
    return _rows(names)


@lru_cache(TEXTS_KEPT)
def earlier_words(text: str) -> tuple[int, ...]:
    words = _words(text)
    return _rows(
        name
        for previous, word in zip(("^", *words), words, strict=False)
        for name in (f"e {word}", f"e {previous} {word}")
    )


def new_words(earlier: str, later: str) -> tuple[int, ...]:
    """What only the later says."""
    known = set(_words(earlier))
    return _rows(f"n {word}" for word in _words(later) if word not in known)


@lru_cache(TEXTS_KEPT)
def _words(text: str) -> tuple[str, ...]:
    return tuple(words_of(text)[:MOST_WORDS])


def _rows(names: Iterable[str]) -> tuple[int, ...]:
    return tuple({crc32(name.encode("utf-8", "surrogatepass")) % SIZE for name in names})


class _Table(NamedTuple):
    words: list[float]
    marks: list[float]
    offset: float


@cache
def _table() -> _Table:
    import numpy as np

    with files("offbook.models").joinpath(WEIGHTS).open("rb") as file, np.load(file) as kept:
        words: NDArray[np.float32] = kept["words"].astype(np.float32) * kept["scale"]
        return _Table(words.tolist(), kept["marks"].tolist(), float(kept["offset"]))
