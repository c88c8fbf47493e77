"""Which model gives the vectors, and how one moves to another.

The settings name the model that is wanted. Where an agent's vectors are of another one, that one goes on serving
(if it can be opened) while the wanted one embeds everything beside it; then they switch, and the old vectors go.
Two models' vectors are never compared with each other.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import structlog

from offbook.log.store import Store
from offbook.model.errors import ModelUnavailable, WorkerUnavailable
from offbook.model.settings.sections import Embedding
from offbook.model.types import Value
from offbook.models.embedder import NO_MODEL, Queries, is_local
from offbook.models.worker import IN_PROCESS, Worker
from offbook.models.worker_embedder import WorkerEmbedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from offbook.models.protocols import Embedder

ACTIVE = "embedding"
"""The agent's note of the model that serves."""
RETRY_SECONDS = 60.0
"""After which a model that could not be had is tried again."""

log = structlog.get_logger("offbook.embedding")


class Serving(Value, frozen=True):
    """The model whose vectors an agent's recall compares."""

    fingerprint: str
    embedding: Embedding


class Embedders:
    def __init__(self, wanted: Embedding, folder: Path, worker: Worker = IN_PROCESS) -> None:
        """`worker`: where a local model runs."""
        self._worker = worker
        self._wanted_settings = wanted
        self._folder = folder
        self._opened: dict[Embedding, Embedder] = {}
        self._failed: dict[Embedding, tuple[float, str]] = {}
        self._at_work: str | None = None
        self._lock = asyncio.Lock()
        self._serving: dict[str, Serving | None] = {}
        self._queries = Queries()
        self._is_closed = False

    async def wanted(self) -> Embedder:
        """The model the settings ask for. ModelUnavailable says why there is none."""
        return await self._open(self._wanted_settings)

    @property
    def name(self) -> str | None:
        """Of the wanted model, once it is there."""
        return self._wanted_settings.model if self._wanted_settings in self._opened else None

    @property
    def fingerprint(self) -> str | None:
        """Of the wanted model, once it is there."""
        embedder = self._opened.get(self._wanted_settings)
        return embedder.fingerprint if embedder else None

    @property
    def trouble(self) -> str | None:
        """Why the wanted model is not there, or there and of no use."""
        failed = self._failed.get(self._wanted_settings)
        return failed[1] if failed else self._at_work

    def note_trouble(self, error: ModelUnavailable | None) -> None:
        """What became of the last texts it was given: an endpoint can be opened and not answer."""
        detail = error.detail if error else None
        if detail and detail != self._at_work:
            log.warning("no vectors", action="embedding.fail", model=self._wanted_settings.model, detail=detail)
        self._at_work = detail

    async def serving(self, store: Store, agent_id: str) -> Embedder:
        """The model whose vectors the agent's recall compares now."""
        if self._wanted_settings.model == NO_MODEL:
            return await self.wanted()  # which says so
        noted = await self._noted(store, agent_id)
        if noted is None or _source(noted.embedding) == _source(self._wanted_settings):
            return await self.wanted()
        try:
            embedder = await self._open(noted.embedding)
        except ModelUnavailable:
            # What it made cannot be searched any more; the wanted one serves with what it has so far.
            return await self.wanted()
        return embedder if embedder.fingerprint == noted.fingerprint else await self.wanted()

    async def fingerprint_for(self, store: Store, agent_id: str) -> str | None:
        """Of the model whose vectors the agent has. For who compares them with each other: none is opened for that,
        which takes too long for the first turn after a start."""
        if self._wanted_settings.model == NO_MODEL:
            return None
        noted = await self._noted(store, agent_id)
        return self.fingerprint if noted is None else noted.fingerprint

    async def query_vector(self, embedder: Embedder, text: str, *, seconds: float) -> NDArray[np.float32]:
        """Of one text, for somebody who waits: TimeoutError or ModelUnavailable in at most that time."""
        return await self._queries.vector(embedder, text, seconds=seconds)

    async def switch(self, store: Store, agent_id: str, embedder: Embedder) -> None:
        """From now on this one serves the agent."""
        noted = await self._noted(store, agent_id)
        if noted is not None and noted.fingerprint == embedder.fingerprint:
            return
        now_serving = Serving(fingerprint=embedder.fingerprint, embedding=self._wanted_settings)
        await store.set_agent_note(agent_id, ACTIVE, msgspec.json.encode(now_serving).decode(), None)
        self._serving[agent_id] = now_serving
        if noted is not None:
            log.info("switched", action="embedding.switch", agent=agent_id, model=embedder.name)

    async def close(self) -> None:
        """Breaks off what endpoints are asked just now; waits for nobody."""
        self._is_closed = True
        self._queries.close()
        while self._opened:
            _, embedder = self._opened.popitem()
            await asyncio.to_thread(embedder.close)

    async def _noted(self, store: Store, agent_id: str) -> Serving | None:
        if agent_id not in self._serving:
            note = await store.agent_note(agent_id, ACTIVE)
            try:
                self._serving[agent_id] = None if note is None else msgspec.json.decode(note, type=Serving)
            except msgspec.MsgspecError:
                self._serving[agent_id] = None
        return self._serving[agent_id]

    async def _open(self, embedding: Embedding) -> Embedder:
        known = self._opened.get(embedding)
        if known is not None:
            return known
        async with self._lock:
            if self._is_closed:
                raise ModelUnavailable("the embedding model is closed")
            if embedding in self._opened:
                return self._opened[embedding]
            failed_at, why = self._failed.get(embedding, (0.0, ""))
            if why and time.monotonic() - failed_at < RETRY_SECONDS:
                raise ModelUnavailable(why)
            try:
                embedder = await asyncio.to_thread(self._opener(embedding), embedding, self._folder)
            except ModelUnavailable as error:
                self._failed[embedding] = (time.monotonic(), error.detail)
                log.warning("no model", action="embedding.open", model=embedding.model, detail=error.detail)
                raise
            except WorkerUnavailable as error:
                raise ModelUnavailable(error.detail, retryable=True) from error
            except Exception as error:
                # A defect of ours or of the model's: recall goes on by text.
                why = f"the model could not be opened ({type(error).__name__}: {error})"
                self._failed[embedding] = (time.monotonic(), why)
                log.exception("no model", action="embedding.open", model=embedding.model)
                raise ModelUnavailable(why) from error
            self._failed.pop(embedding, None)
            self._opened[embedding] = embedder
            log.info("model ready", action="embedding.open", model=embedding.model, fingerprint=embedder.fingerprint)
            return embedder

    def _opener(self, embedding: Embedding) -> Callable[[Embedding, Path], Embedder]:
        from offbook.models.embedder import open_embedder

        is_beside = self._worker.is_own_process and is_local(embedding)
        return partial(WorkerEmbedder, self._worker) if is_beside else open_embedder


def _source(embedding: Embedding) -> tuple[str, int, str | None]:
    """What of the settings makes it another model; how many threads it may use does not."""
    return embedding.model, embedding.dimensions, embedding.endpoint
