"""What tells whether two texts mean the same: a model, if there is one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Embed = Callable[[Sequence[str]], "NDArray[np.float32]"]
"""Texts to rows of unit length, in their order."""

VECTORS_KEPT = 1_000
"""Of each model, some 1.5 MB: the same short texts are compared turn after turn."""


def vectors_of(embed: Embed, texts: Sequence[str]) -> NDArray[np.float32]:
    """A row for each text. What was asked for lately is not embedded again."""
    import numpy as np

    known = _known(embed)
    new = [text for text in dict.fromkeys(texts) if text not in known]
    rows = dict(zip(new, embed(new), strict=True)) if new else {}
    found = np.stack([rows[text] if text in rows else known[text] for text in texts])
    known.update(rows)
    while len(known) > VECTORS_KEPT:
        del known[next(iter(known))]
    return found


@lru_cache(4)
def _known(embed: Embed) -> dict[str, NDArray[np.float32]]:
    return {}
