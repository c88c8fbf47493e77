"""What each sentence of a message is: a linear classifier over words, fitted to labelled sentences of six languages.

Its weights ship with the package (`sentence_fit` makes them); it needs no model, and takes well under a millisecond.
"""

from __future__ import annotations

from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

from offbook.model.sentences import sentences
from offbook.model.statement import KINDS, ReadSentence
from offbook.models.sentence_features import features, surroundings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WEIGHTS = "data/sentence-kinds.npz"
OTHER = KINDS.index("other")
MESSAGES_KEPT, LONGEST_KEPT = 512, 4_000
"""What is read of a message is asked for by lessons, links, state and summaries, one soon after the other."""
MOST_SENTENCES = 1_000
"""Of one message: as many as the longest text that is read has, and more. What has more is a listing."""


def read_sentences(text: str, *, is_user: bool) -> list[ReadSentence]:
    """Every sentence of a message, and what it is."""
    return list(_read_once(text, is_user) if len(text) <= LONGEST_KEPT else _read(text, is_user))


@lru_cache(MESSAGES_KEPT)
def _read_once(text: str, is_user: bool) -> tuple[ReadSentence, ...]:
    return _read(text, is_user)


def _read(text: str, is_user: bool) -> tuple[ReadSentence, ...]:
    import numpy as np

    message = sentences(text)[:MOST_SENTENCES]
    if not message:
        return ()
    table, around = _table(), surroundings(message)
    scores = np.empty((len(message), table.shape[1]), np.float32)
    for at in range(len(message)):
        rows = list(set(features(message, at, around, is_user=is_user)))
        scores[at] = table[rows].sum(axis=0) / len(rows) ** 0.5
    kinds = np.exp(scores[:, :-2] - scores[:, :-2].max(axis=1, keepdims=True))
    kinds /= kinds.sum(axis=1, keepdims=True)
    sides = 1 / (1 + np.exp(-scores[:, -2:]))
    best = kinds.argmax(axis=1)
    return tuple(
        ReadSentence(
            one.text,
            one.start,
            one.end,
            KINDS[int(best[at])],
            float(kinds[at, best[at]]),
            1 - float(kinds[at, OTHER]),
            0.0 if one.is_quoted else float(sides[at, 0]),
            float(sides[at, 1]),
        )
        for at, one in enumerate(message)
    )


@cache
def _table() -> NDArray[np.float32]:
    import numpy as np

    with files("offbook.models").joinpath(WEIGHTS).open("rb") as file, np.load(file) as kept:
        table: NDArray[np.float32] = kept["table"].astype(np.float32) * kept["scale"]
    return table
