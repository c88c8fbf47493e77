"""Whether what was said later takes the place of what was said earlier: the installed embedding model, tuned for it.

What was tuned are additions to its matrices (`data/relation.npz`, whole numbers with a scale for each column, fitted to
pairs of messages in six languages, see `docs/decisions/0022-statements.md`); the model itself is the one that embeds.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from offbook.model.errors import ModelUnavailable
from offbook.models import weights
from offbook.models.glossary import in_english

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from offbook.models.bert import Bert
    from offbook.models.minilm import WordPiece

TUNED = "data/relation.npz"
SCALE = ".scale"
MOST_PIECES = 64
"""Read of each of the two."""
PAIRS_AT_ONCE = 8


class _Loaded(NamedTuple):
    bert: Bert
    wordpiece: WordPiece
    weight: NDArray[np.float32]
    bias: NDArray[np.float32]


class RelationModel(NamedTuple):
    """Loaded when it is first asked; threads share it. Can be sent to another process, which loads it there."""

    folder: Path
    """Keeps the weights of local models."""
    is_wanted: bool = True
    """Not where embeddings are switched off."""

    def replaces(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """For each pair (earlier, later) how likely it is that the later takes the earlier's place.
        ModelUnavailable where the weights are not there."""
        import numpy as np

        from offbook.models.bert import Pieces

        bert, wordpiece, weight, bias = self._ready()
        found: list[float] = []
        for start in range(0, len(pairs), PAIRS_AT_ONCE):
            texts: list[Pieces] = []
            for earlier, later in pairs[start : start + PAIRS_AT_ONCE]:
                first, second = (wordpiece.pieces(text, in_english) for text in (earlier, later))
                first, second = first[:-1][: MOST_PIECES + 1], second[1:-1][:MOST_PIECES]
                end = wordpiece.end
                texts.append(Pieces([*first, end, *second, end], [0] * (len(first) + 1) + [1] * (len(second) + 1)))
            for rows in bert.hidden(texts):
                scores = np.concatenate([rows[0], rows.mean(axis=0)]) @ weight + bias
                scores = np.exp(scores - scores.max())
                found.append(float(scores[0] / scores.sum()))
        return found

    def _ready(self) -> _Loaded:
        if not self.is_wanted:
            raise ModelUnavailable("embeddings are switched off")
        with _loading:
            return _loaded(self.folder)


_loading = threading.Lock()


@cache
def _loaded(folder: Path) -> _Loaded:
    try:
        from offbook.models.bert import Bert, read_weights
        from offbook.models.minilm import MAX_PIECES, WordPiece
    except ImportError as error:
        raise ModelUnavailable(f"what runs the local model is not installed ({error})") from error
    base = read_weights(weights.ensure(weights.MINILM, folder))
    with as_file(files("offbook.models").joinpath(TUNED)) as path:
        tuned = read_additions(path)
    weight, bias = tuned.pop("relation.weight"), tuned.pop("relation.bias")
    return _Loaded(Bert(base, tuned), WordPiece(MAX_PIECES), weight, bias)


def read_additions(path: Path) -> dict[str, NDArray[np.float32]]:
    """What is added to each matrix and vector of the embedding model, and the last layer."""
    import numpy as np

    with np.load(path) as kept:
        read = {name: kept[name].astype(np.float32) for name in kept.files}
    scales = {name.removesuffix(SCALE): read.pop(name) for name in list(read) if name.endswith(SCALE)}
    return {name: value * scales.get(name, np.float32(1)) for name, value in read.items()}
