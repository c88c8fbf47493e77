"""A local embedding model in the worker's process: there it is loaded, and freed when that ends."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from offbook.model.settings.sections import Embedding
from offbook.models.embedder import Quick, open_local
from offbook.models.worker import Worker

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from offbook.models.protocols import Embedder


class WorkerEmbedder:
    """An `Embedder`."""

    def __init__(self, worker: Worker, embedding: Embedding, folder: Path) -> None:
        """ModelUnavailable says why there is none."""
        self._worker = worker
        self._embedding = embedding
        self._folder = folder
        self.name, self.fingerprint, self.dimensions = worker.call("query", _about, embedding, folder)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._worker.call("embed", _embedded, self._embedding, self._folder, list(texts))

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """A vector, in the first row, for somebody who waits."""
        return self._worker.call("query", _embedded_query, self._embedding, self._folder, text)

    def close(self) -> None:
        return  # it goes with the worker


# ── in the worker ──


class _About(NamedTuple):
    name: str
    fingerprint: str
    dimensions: int


_opening = threading.Lock()


def _opened(embedding: Embedding, folder: Path) -> Embedder:
    with _opening:  # a query and a batch come at once, and one model is enough
        return _open(embedding, folder)


@cache
def _open(embedding: Embedding, folder: Path) -> Embedder:
    return open_local(embedding, folder)


def _about(embedding: Embedding, folder: Path) -> _About:
    embedder = _opened(embedding, folder)
    return _About(embedder.name, embedder.fingerprint, embedder.dimensions)


def _embedded(embedding: Embedding, folder: Path, texts: list[str]) -> NDArray[np.float32]:
    return _opened(embedding, folder).embed(texts)


def _embedded_query(embedding: Embedding, folder: Path, text: str) -> NDArray[np.float32]:
    embedder = _opened(embedding, folder)
    return embedder.embed_query(text) if isinstance(embedder, Quick) else embedder.embed([text])
