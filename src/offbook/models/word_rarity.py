"""How rare a word is in general, whatever is in memory: "Thornbury" says more than "summary".

The table ships with the package: hashes of index terms, and how rare each is. It comes from the order of the
WordPiece vocabulary (most frequent first) and from our own sentences in six languages; `benchmarks/memory/fit_score.py`
makes it. A word that is not in it is as rare as any.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

TABLE = "data/word-rarity.npz"
RAREST = 11.0
"""Natural logarithm of how many messages there are to one that holds the word."""
STEPS = 20.0
"""The table counts in twentieths."""


def rarity_in_general(numbers: NDArray[np.uint32]) -> NDArray[np.float64]:
    """Of each word, given as the index numbers it: from about 1, in every other message, to RAREST."""
    keys, rarities = _table()
    at = np.minimum(np.searchsorted(keys, numbers), len(keys) - 1)
    return np.where(keys[at] == numbers, rarities[at], RAREST)


@cache
def _table() -> tuple[NDArray[np.uint32], NDArray[np.float64]]:
    with files("offbook.models").joinpath(TABLE).open("rb") as file, np.load(file) as kept:
        return kept["keys"], kept["rarities"].astype(np.float64) / STEPS
