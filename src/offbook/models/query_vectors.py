"""Vectors of queries, in threads of their own: an endpoint that hangs keeps these, and nobody else's."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import structlog

from offbook.model.errors import ModelUnavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from offbook.models.protocols import Embedder

THREADS = 2
VECTORS_KEPT = 16
"""Of the newest queries, by a digest of their words: whoever asks several agents' memories asks them the same."""

log = structlog.get_logger("offbook.embedding")


@runtime_checkable
class Quick(Protocol):
    """An `Embedder` that can be asked for less patience."""

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """A vector, in the first row."""
        ...


@dataclass
class _PendingVector:
    vector: asyncio.Future[NDArray[np.float32]]
    waiting: int = 0


class Queries:
    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="offbook-query")
        self._begun: dict[int, tuple[str, float]] = {}
        self._asked: OrderedDict[tuple[str, bytes], _PendingVector] = OrderedDict()
        self._numbers = itertools.count()
        self._is_closed = False

    async def vector(self, embedder: Embedder, text: str, *, seconds: float) -> NDArray[np.float32]:
        """TimeoutError after that many seconds. While a model owes an earlier answer it is not asked. The same words
        are embedded once, whoever asks for them again or meanwhile."""
        if self._is_closed:
            raise ModelUnavailable("the embedding model is closed")
        key = embedder.fingerprint, sha256(text.encode("utf-8", "surrogatepass")).digest()
        asked = self._asked.get(key)
        if asked is not None and asked.vector.cancelled():
            asked = None
        if asked is None:
            if self._is_overdue(embedder.fingerprint, seconds):
                raise ModelUnavailable("no answer yet of the model to an earlier query", retryable=True)
            asked = self._ask(key, embedder, text)
        asked.waiting += 1
        try:
            return await asyncio.wait_for(asyncio.shield(asked.vector), seconds)
        finally:
            asked.waiting -= 1
            # Who has not begun when nobody waits any more never will; who has goes on.
            if not asked.waiting and not asked.vector.done():
                asked.vector.cancel()

    def close(self) -> None:
        """Waits for nobody."""
        self._is_closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _ask(self, key: tuple[str, bytes], embedder: Embedder, text: str) -> _PendingVector:
        running = asyncio.get_running_loop().run_in_executor(self._pool, self._embedded, embedder, text)
        asked = self._asked[key] = _PendingVector(running)
        while len(self._asked) > VECTORS_KEPT:
            self._asked.popitem(last=False)

        def ended(vector: asyncio.Future[NDArray[np.float32]]) -> None:
            if (vector.cancelled() or vector.exception() is not None) and self._asked.get(key) is asked:
                del self._asked[key]

        running.add_done_callback(ended)
        return asked

    def _is_overdue(self, model: str, seconds: float) -> bool:
        before = time.monotonic() - seconds
        return any(asked == model and begun_at <= before for asked, begun_at in list(self._begun.values()))

    def _embedded(self, embedder: Embedder, text: str) -> NDArray[np.float32]:
        number = next(self._numbers)
        self._begun[number] = (embedder.fingerprint, time.monotonic())
        try:
            vectors = embedder.embed_query(text) if isinstance(embedder, Quick) else embedder.embed([text])
            first: NDArray[np.float32] = vectors[0]
            return first
        except ModelUnavailable:
            raise
        except Exception as error:
            # The one broad handler of queries: whatever a model does, the answer is by text.
            log.exception("failed", action="embedding.query", model=embedder.name)
            raise ModelUnavailable(f"the model failed ({type(error).__name__}): the log says more") from error
        finally:
            del self._begun[number]
