"""Vectors for what has none: news within seconds, and whatever was missed, from the newest to the oldest (A12)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from offbook.content import render
from offbook.entries import PlacedMessage, StoredVector, VectorRow
from offbook.protocols import Blobs, Store
from offbook.retrieval.passages import passages
from offbook.worker.indexes import Indexes, whole_text

if TYPE_CHECKING:
    from offbook.protocols import Embedder
    from offbook.retrieval.index.agent_index import AgentIndex

MESSAGES_AT_A_TIME = 16
VECTORS_AT_A_TIME = 1_000
NICE = 10
"""Added to the background threads' niceness: who waits for an answer goes first."""


class EmbeddingStep:
    def __init__(self, store: Store, blobs: Blobs, indexes: Indexes, *, threads: int) -> None:
        self._store = store
        self._blobs = blobs
        self._indexes = indexes
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="offbook-embed", initializer=_step_back)

    async def run(self, agent_id: str, embedder: Embedder) -> int:
        """Embed a few messages that have no vectors of this model; returns how many. Run again, it does others."""
        model = embedder.fingerprint
        await self.follow(agent_id, embedder)
        async with self._indexes.following(agent_id, seconds=0) as (index, _):
            places = _without_vectors(index, model, MESSAGES_AT_A_TIME * self._threads)
        if not places:
            return 0
        messages = await self._store.messages_at(agent_id, places)
        shares = [messages[at :: self._threads] for at in range(self._threads)]
        made = await asyncio.gather(*(self._embedded(agent_id, embedder, share) for share in shares if share))
        await self._store.add_vectors(agent_id, model, [vector for vectors in made for vector in vectors])
        await self.follow(agent_id, embedder)
        return len(messages)

    async def follow(self, agent_id: str, embedder: Embedder) -> None:
        """Take into the index what the store has of this model's vectors."""
        model = embedder.fingerprint
        while True:
            index = self._indexes.peek(agent_id)
            after = index.vectors_through(model) if index else 0
            stored = await self._store.vectors(agent_id, model, after=after, limit=VECTORS_AT_A_TIME)
            is_page = len(stored) == VECTORS_AT_A_TIME
            whole = _whole_messages(stored) if is_page else stored
            if not whole:
                return
            await self._indexes.change(
                agent_id, partial(_take, model=model, dimensions=embedder.dimensions, stored=whole)
            )
            if not is_page:
                return

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    async def _embedded(self, agent_id: str, embedder: Embedder, messages: Sequence[PlacedMessage]) -> list[VectorRow]:
        texts = [
            render(await whole_text(self._blobs, agent_id, placed) or placed.logged.message) for placed in messages
        ]

        def work() -> list[VectorRow]:
            from offbook.retrieval.index.vectors import quantised

            parts = [passages(text) for text in texts]
            data = quantised(embedder.embed([passage for some in parts for passage in some]))
            owners = [
                (placed.place, part) for placed, some in zip(messages, parts, strict=True) for part in range(len(some))
            ]
            return [
                VectorRow(place=place, part=part, data=row.tobytes())
                for (place, part), row in zip(owners, data, strict=True)
            ]

        return await asyncio.get_running_loop().run_in_executor(self._pool, work)


def _take(index: AgentIndex, *, model: str, dimensions: int, stored: Sequence[StoredVector]) -> None:
    index.take_vectors(model, dimensions, stored)


def waiting_for_vectors(index: AgentIndex, model: str | None) -> int:
    vectors = index.vectors(model) if model else None
    return index.rows.count - (vectors.embedded if vectors else 0)


def _without_vectors(index: AgentIndex, model: str, limit: int) -> list[int]:
    """The newest messages that have none."""
    import numpy as np

    vectors = index.vectors(model)
    count = index.rows.count
    missing = np.flatnonzero(~vectors.has(count))[-limit:] if vectors else np.arange(max(0, count - limit), count)
    return [int(place) for place in index.rows.view()["place"][missing]]


def _whole_messages(stored: Sequence[StoredVector]) -> list[StoredVector]:
    """Without those at the end whose other parts may be on the next page."""
    last = stored[-1].place
    whole = [one for one in stored if one.place != last]
    return whole or list(stored)


def _step_back() -> None:
    with contextlib.suppress(AttributeError, OSError):  # not on every system, and never needed
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
