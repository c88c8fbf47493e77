"""What an embedder promises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Embedder(Protocol):
    """Turns texts into vectors of unit length. Blocking: called in threads, from several at once.

    Whatever the text, it gets a vector: empty, of any length, with characters that are none. Its errors are
    `ModelUnavailable`.
    """

    @property
    def name(self) -> str:
        """As in the setting `embedding.model`."""
        ...

    @property
    def fingerprint(self) -> str:
        """Changes whenever the same text could get another vector."""
        ...

    @property
    def dimensions(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row of length 1 for each text, in their order."""
        ...

    def close(self) -> None: ...
