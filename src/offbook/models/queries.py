"""Vectors of queries, in threads of their own: an endpoint that hangs keeps these, and nobody else's."""

from __future__ import annotations

import asyncio
import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import structlog

from offbook.errors import ModelUnavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from offbook.protocols import Embedder

THREADS = 2

log = structlog.get_logger("offbook.embedding")


@runtime_checkable
class Quick(Protocol):
    """An `Embedder` that can be asked for less patience."""

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """A vector, in the first row."""
        ...


class Queries:
    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="offbook-query")
        self._begun: dict[int, tuple[str, float]] = {}
        self._numbers = itertools.count()
        self._is_closed = False

    async def vector(self, embedder: Embedder, text: str, *, seconds: float) -> NDArray[np.float32]:
        """TimeoutError after that many seconds. While a model owes an earlier answer it is not asked."""
        if self._is_closed:
            raise ModelUnavailable("the embedding model is closed")
        if self._is_overdue(embedder.fingerprint, seconds):
            raise ModelUnavailable("no answer yet of the model to an earlier query", retryable=True)
        running = asyncio.get_running_loop().run_in_executor(self._pool, self._embedded, embedder, text)
        # Who has not begun by then never will; who has goes on, and nobody waits.
        return await asyncio.wait_for(running, seconds)

    def close(self) -> None:
        """Waits for nobody."""
        self._is_closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)

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
