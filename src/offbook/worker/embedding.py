"""Vectors for what has none: news within seconds, and whatever was missed, from the newest to the oldest (A12)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import structlog

from offbook.content import render
from offbook.entries import PlacedMessage, StoredVector, VectorRow
from offbook.errors import StoreCorrupt
from offbook.protocols import Blobs, Store
from offbook.retrieval.passages import passages
from offbook.worker.indexes import Indexes, whole_text

if TYPE_CHECKING:
    from offbook.protocols import Embedder
    from offbook.retrieval.index.agent_index import AgentIndex

MESSAGES_AT_A_TIME = 16
PASSAGES_AT_A_TIME = 32
"""Given to the model at once; between two such pieces a stop is heard."""
VECTORS_AT_A_TIME = 1_000
FOLLOW_SECONDS = 0.5
NICE = 10
"""Added to the background threads' niceness: who waits for an answer goes first."""

log = structlog.get_logger("offbook.embedding")


class EmbeddingStep:
    def __init__(self, store: Store, blobs: Blobs, indexes: Indexes, *, threads: int) -> None:
        self._store = store
        self._blobs = blobs
        self._indexes = indexes
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="offbook-embed", initializer=_step_back)
        self._unreadable: dict[str, set[int]] = {}
        """Places of damaged messages, which would come again and again."""
        self._is_closing = False

    async def run(self, agent_id: str, embedder: Embedder) -> bool:
        """Embed a few messages that have no vectors of this model; returns whether none is left. Run again, it does
        others."""
        async with self._indexes.following(agent_id, seconds=FOLLOW_SECONDS) as (index, has_all):
            if not has_all:
                return False  # a vector whose message has no row yet would be passed over
            await self._follow(agent_id, embedder, index)
            limit = MESSAGES_AT_A_TIME * self._threads
            places = _without_vectors(index, embedder.fingerprint, limit, self._unreadable.get(agent_id, set()))
        if not places:
            return True
        messages = await self._readable(agent_id, places)
        shares = [messages[at :: self._threads] for at in range(self._threads)]
        made = await asyncio.gather(*(self._embedded(agent_id, embedder, share) for share in shares if share))
        vectors = [vector for some in made for vector in some]
        if vectors:
            await self._store.add_vectors(agent_id, embedder.fingerprint, vectors)
            await self._follow(agent_id, embedder, index)
        return False

    async def _follow(self, agent_id: str, embedder: Embedder, index: AgentIndex) -> None:
        """Take into the index what the store has of this model's vectors."""
        model = embedder.fingerprint
        while True:
            after = index.vectors_through(model)
            stored = await self._store.vectors(agent_id, model, after=after, limit=VECTORS_AT_A_TIME)
            is_page = len(stored) == VECTORS_AT_A_TIME
            whole = _whole_messages(stored) if is_page else stored
            if not whole:
                return
            take = partial(_take, followed=index, model=model, dimensions=embedder.dimensions, stored=whole)
            if not await self._indexes.change(agent_id, take) or not is_page:
                return

    async def close(self) -> None:
        """Does not wait for more than the piece that the model has in hand. What was not kept is made again."""
        self._is_closing = True
        await asyncio.to_thread(self._pool.shutdown, wait=True, cancel_futures=True)

    async def _readable(self, agent_id: str, places: Sequence[int]) -> list[PlacedMessage]:
        """Damaged messages are passed over: `doctor` and `audit --verify` tell of them."""
        try:
            messages = await self._store.messages_at(agent_id, places)
        except StoreCorrupt as error:
            log.error("passed over", action="embedding.damage", agent=agent_id, detail=error.detail)
            messages = []
            for place in places:
                with contextlib.suppress(StoreCorrupt):
                    messages += await self._store.messages_at(agent_id, [place])
        unreadable = set(places) - {placed.place for placed in messages}
        self._unreadable.setdefault(agent_id, set()).update(unreadable)
        return messages

    async def _embedded(self, agent_id: str, embedder: Embedder, messages: Sequence[PlacedMessage]) -> list[VectorRow]:
        texts = [
            render(await whole_text(self._blobs, agent_id, placed) or placed.logged.message) for placed in messages
        ]

        def work() -> list[VectorRow]:
            from offbook.retrieval.index.vectors import quantised

            parts = [passages(text) for text in texts]
            everything = [passage for some in parts for passage in some]
            pieces = []
            for start in range(0, len(everything), PASSAGES_AT_A_TIME):
                if self._is_closing:
                    return []
                pieces.append(quantised(embedder.embed(everything[start : start + PASSAGES_AT_A_TIME])))
            data = [row for piece in pieces for row in piece]
            owners = [
                (placed.place, part) for placed, some in zip(messages, parts, strict=True) for part in range(len(some))
            ]
            return [
                VectorRow(place=place, part=part, data=row.tobytes())
                for (place, part), row in zip(owners, data, strict=True)
            ]

        return await asyncio.get_running_loop().run_in_executor(self._pool, work)


def _take(
    index: AgentIndex, *, followed: AgentIndex, model: str, dimensions: int, stored: Sequence[StoredVector]
) -> bool:
    """Not into one that was made anew meanwhile: it has none of those before."""
    if index is followed:
        index.take_vectors(model, dimensions, stored)
    return index is followed


def embedded_in(index: AgentIndex, model: str | None) -> int:
    """How many messages of the index have vectors of the model."""
    vectors = index.vectors(model) if model else None
    return vectors.embedded if vectors else 0


def _without_vectors(index: AgentIndex, model: str, limit: int, unreadable: Collection[int]) -> list[int]:
    """The newest messages that have none."""
    import numpy as np

    vectors = index.vectors(model)
    view = index.rows.view()
    missing = np.flatnonzero(~vectors.has(len(view))) if vectors else np.arange(len(view))
    newest = view["place"][missing[-(limit + len(unreadable)) :]].tolist()
    return [place for place in newest if place not in unreadable][-limit:]


def _whole_messages(stored: Sequence[StoredVector]) -> list[StoredVector]:
    """Without those at the end whose other parts may be on the next page."""
    last = stored[-1].place
    whole = [one for one in stored if one.place != last]
    return whole or list(stored)


def _step_back() -> None:
    with contextlib.suppress(AttributeError, OSError):  # not on every system, and never needed
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
