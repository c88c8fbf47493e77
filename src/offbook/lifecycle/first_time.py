"""Which stretches of a long text were not looked at before: texts say the same again and again, and each look costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Marks = npt.NDArray[np.uint64]

MOST_REMEMBERED = 2_000_000
"""Of each length: 16 MB."""
MULTIPLIER = 0x9E3779B97F4A7C15
"""Odd, so that no bit of a word is lost."""


class FirstTime:
    """Stretches of so many words, each known by 64 bits of the process's own keyed hash: that two of ten million are
    taken for one has a chance of one in a hundred thousand, and that one of the two is sought a far smaller one."""

    def __init__(self, size: int) -> None:
        import numpy as np

        self._size = size
        self._seen: Marks = np.empty(0, np.uint64)
        self._found: Marks = np.empty(0, np.uint64)

    def look(self, marks: Marks) -> Iterator[int]:
        """Where in the text what has to be looked at begins: once each, what was not seen before or was found."""
        import numpy as np

        unique, places = np.unique(self._of_stretches(marks), return_index=True)
        is_fresh = ~_is_among(unique, self._seen)
        if len(self._seen) + len(fresh := unique[is_fresh]) <= MOST_REMEMBERED:
            # Two runs that are each in order: a stable sort only merges them.
            self._seen = np.sort(np.concatenate([self._seen, fresh]), kind="stable")
        yield from np.sort(places[is_fresh | _is_among(unique, self._found)]).tolist()

    def found(self, marks: Marks, place: int) -> None:
        """It is to be looked at wherever it is."""
        import numpy as np

        self._found = np.union1d(self._found, self._of_stretches(marks[place : place + self._size]))

    def _of_stretches(self, marks: Marks) -> Marks:
        import numpy as np

        count = max(0, len(marks) - self._size + 1)
        whole: Marks = np.zeros(count, np.uint64)
        for at in range(self._size):
            whole = whole * np.uint64(MULTIPLIER) + marks[at : at + count]
        return whole


def _is_among(marks: Marks, known: Marks) -> npt.NDArray[np.bool_]:
    """`known` is in order."""
    import numpy as np

    if not len(known):
        return np.zeros(len(marks), np.bool_)
    nearest = known[np.minimum(np.searchsorted(known, marks), len(known) - 1)]
    return np.equal(nearest, marks)


def marks_of(words: Sequence[str]) -> Marks:
    import numpy as np

    return np.fromiter(map(hash, words), np.int64, len(words)).view(np.uint64)
