"""Vectors for what has none: news within seconds, and whatever was missed, from the newest to the oldest (A12)."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import structlog

from offbook.log.store import Blobs, Store
from offbook.model.content import render
from offbook.model.errors import ModelUnavailable, StoreCorrupt
from offbook.model.memory_entry import PlacedMessage, StoredVector, VectorRow
from offbook.model.settings.sections import Embedding
from offbook.models.embedder import NO_MODEL
from offbook.models.worker_process import step_back
from offbook.projections.base import Batch, Erased, Finding, Progress, Removal
from offbook.projections.embedders import Embedders
from offbook.projections.indexes import Indexes
from offbook.projections.log_pages import living_messages
from offbook.search.results import passages
from offbook.search.whole_messages import whole_text

if TYPE_CHECKING:
    from offbook.models.protocols import Embedder
    from offbook.search.index.agent_index import AgentIndex

MESSAGES_AT_A_TIME = 16
PASSAGES_AT_A_TIME = 32
"""Given to the model at once; between two such pieces a stop is heard."""
VECTORS_AT_A_TIME = 1_000
FOLLOW_SECONDS = 0.5
CLOSE_SECONDS = 5.0
"""For the piece that the model has in hand. A thread cannot be stopped, but need not be waited for."""
HARMLESS = "Hello."
"""A text that a model takes that takes any."""
EMBED_ANEW = "`offbook reindex --embeddings` makes them anew"

log = structlog.get_logger("offbook.embedding")


class Share(NamedTuple):
    """A message and its passages."""

    place: int
    passages: Sequence[str]


class Made(NamedTuple):
    rows: list[VectorRow]
    refused: dict[int, str]
    """Places whose text the model does not take, and why."""


@dataclass
class _Known:
    """Of an open index, by model."""

    checked: set[str] = field(default_factory=set)
    """The store has what the index has."""
    aside: dict[str, set[int]] = field(default_factory=dict)
    """Places that have no vectors and would come again and again: damaged, refused. They are tried again when the
    index is opened again."""


class Embeddings:
    """A vector for every message that is searched: of the wanted model, and until that has all, of the one before."""

    name = "embeddings"

    def __init__(self, store: Store, blobs: Blobs, indexes: Indexes, embedders: Embedders, settings: Embedding) -> None:
        self._store = store
        self._indexes = indexes
        self._embedders = embedders
        self._is_without_model = settings.model == NO_MODEL
        """By the settings: then nothing waits for one."""
        self._step = EmbeddingStep(store, blobs, indexes, threads=settings.threads)
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """Of each agent: a step must not take into the index what a rebuild has just dropped from the store."""

    async def advance(self, batch: Batch) -> Progress:
        async with self._locks[batch.agent_id]:
            return await self._advance(batch.agent_id)

    async def _advance(self, agent_id: str) -> Progress:
        embedder = await self._embedders.wanted()
        try:
            is_done = await self._step.run(agent_id, embedder)
        except ModelUnavailable as error:
            self._embedders.note_trouble(error)
            raise
        self._embedders.note_trouble(None)
        if is_done:
            await self._embedders.switch(self._store, agent_id, embedder)
            await self._drop_others(agent_id, embedder.fingerprint)
        await self._indexes.commit(agent_id)
        return Progress(is_done=is_done, again_seconds=self._indexes.next_look(agent_id) if is_done else None)

    async def forget(self, _erased: Erased) -> Removal:
        """Those of the store went with their messages; the index takes what is left when it is made anew."""
        return Removal()

    async def rebuild(self, agent_id: str) -> None:
        async with self._locks[agent_id]:
            for model in await self._store.vector_models(agent_id):
                await self._drop(agent_id, model)

    async def check(self, agent_id: str, erased: Erased | None = None) -> list[Finding]:
        """Vectors of messages that are not there, of another length than the others, or fewer than were counted. Those
        of messages that have none yet are made by themselves."""
        models = await self._store.vector_models(agent_id)
        if erased is not None:
            gone = set(erased.places)
            return [
                Finding("a vector", model)
                for model in models
                async for one in self._vectors(agent_id, model)
                if one.place in gone
            ]
        living = {one.place async for one in living_messages(self._store, agent_id)} if models else set[int]()
        found: list[Finding] = []
        for model, counted in models.items():
            vectors = [(one.place, len(one.data)) async for one in self._vectors(agent_id, model)]
            stray = sum(place not in living for place, _ in vectors)
            odd = len(vectors) - max(Counter(size for _, size in vectors).values(), default=0)
            faults = {"of no message": stray, "of another length": odd, "missing": max(0, counted - len(vectors))}
            where = f"the vectors of {model}"
            found += [Finding(where, f"{count:,} {what}", EMBED_ANEW) for what, count in faults.items() if count]
        return found

    async def _vectors(self, agent_id: str, model: str) -> AsyncIterator[StoredVector]:
        after = 0
        while page := await self._store.vectors(agent_id, model, after=after):
            after = page[-1].number
            for one in page:
                yield one

    def unembedded(self, agent_id: str) -> int:
        """Messages of an open index that wait for their vectors."""
        index = self._indexes.peek(agent_id)
        if index is None or self._is_without_model:
            return 0
        return index.rows.count - embedded_in(index, self._embedders.fingerprint)

    def has_all(self, index: AgentIndex, count: int) -> bool:
        """Whether the first so many messages of the index have their vectors, but for those that get none."""
        model = self._embedders.fingerprint
        return model is None or self._is_without_model or self._step.has_all(index, model, count)

    def waiting(self, agent_id: str | None) -> int:
        agents = self._indexes.open_agents() if agent_id is None else [agent_id]
        return sum(map(self.unembedded, agents))

    async def close(self) -> None:
        await self._step.close()

    async def _drop_others(self, agent_id: str, serving: str) -> None:
        """The vectors of models that no longer serve; also where a stop came between the switch and this."""
        for model in await self._store.vector_models(agent_id):
            if model != serving:
                await self._drop(agent_id, model)

    async def _drop(self, agent_id: str, model: str) -> None:
        await self._indexes.change(agent_id, partial(_drop_all, model=model))
        await self._store.drop_vectors(agent_id, model)


class EmbeddingStep:
    def __init__(self, store: Store, blobs: Blobs, indexes: Indexes, *, threads: int) -> None:
        self._store = store
        self._blobs = blobs
        self._indexes = indexes
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="offbook-embed", initializer=step_back)
        self._known: WeakKeyDictionary[AgentIndex, _Known] = WeakKeyDictionary()
        self._in_hand: set[Future[Made]] = set()
        self._is_closing = False

    async def run(self, agent_id: str, embedder: Embedder) -> bool:
        """Embed a few messages that have no vectors of this model; returns whether none is left. Run again, it does
        others."""
        model = embedder.fingerprint
        async with self._indexes.following(agent_id, seconds=FOLLOW_SECONDS, is_patient=True) as (index, has_all):
            if not has_all:
                return False  # a vector whose message has no row yet would be passed over
            await self._follow(agent_id, embedder, index)
            limit = MESSAGES_AT_A_TIME * self._threads
            places = _without_vectors(index, model, limit, self._known_of(index).aside.get(model, ()))
        if not places:
            return True
        messages = await self._readable(agent_id, places)
        self._set_aside(index, model, set(places) - {placed.place for placed in messages})
        shares = [messages[at :: self._threads] for at in range(self._threads)]
        made = await asyncio.gather(*(self._embedded(agent_id, embedder, share) for share in shares if share))
        vectors = [vector for some in made for vector in some.rows]
        for place, why in ((place, why) for some in made for place, why in some.refused.items()):
            log.warning("set aside", action="embedding.refused", agent=agent_id, place=place, detail=why)
            self._set_aside(index, model, [place])
        if vectors:
            await self._store.add_vectors(agent_id, model, vectors)
            await self._follow(agent_id, embedder, index)
            self._look_back(agent_id, model, index, {vector.place for vector in vectors})
        return False

    def has_all(self, index: AgentIndex, model: str, count: int) -> bool:
        return _oldest_without_vectors(index, model, count, self._known_of(index).aside.get(model, ())) is None

    def _look_back(self, agent_id: str, model: str, index: AgentIndex, places: set[int]) -> None:
        """What has no vector although it was given one is not given another, again and again."""
        if self._indexes.peek(agent_id) is not index:
            return  # another has taken its place, and has yet to take them
        vectors, order = index.vectors(model), sorted(places)
        has = vectors.has(index.rows.count)[index.rows.find(order)] if vectors else [False] * len(order)
        left = [place for place, has_one in zip(order, has, strict=True) if not has_one]
        if left:
            log.error("set aside", action="embedding.not_taken", agent=agent_id, model=model, messages=len(left))
            self._set_aside(index, model, left)

    def _known_of(self, index: AgentIndex) -> _Known:
        return self._known.setdefault(index, _Known())

    def _set_aside(self, index: AgentIndex, model: str, places: Iterable[int]) -> None:
        self._known_of(index).aside.setdefault(model, set()).update(places)

    async def _follow(self, agent_id: str, embedder: Embedder, index: AgentIndex) -> None:
        """Take into the index what the store has of this model's vectors."""
        model = embedder.fingerprint
        await self._check(agent_id, model, index)
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

    async def _check(self, agent_id: str, model: str, index: AgentIndex) -> None:
        """A restored store may have less than the index has seen, and would give its numbers again."""
        known, through = self._known_of(index), index.vectors_through(model)
        if model in known.checked:
            return
        if through:
            stored = await self._store.vectors(agent_id, model, after=through - 1, limit=1)
            if not stored or stored[0].number != through:
                log.warning("vectors of another history: taken anew", action="embedding.reset", agent=agent_id)
                await self._indexes.change(agent_id, partial(_drop, followed=index, model=model))
        known.checked.add(model)

    async def close(self) -> None:
        """Does not wait for more than the piece that the model has in hand. What was not kept is made again."""
        self._is_closing = True
        self._pool.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(wait, list(self._in_hand), CLOSE_SECONDS)

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
        return messages

    async def _embedded(self, agent_id: str, embedder: Embedder, messages: Sequence[PlacedMessage]) -> Made:
        texts = [
            render(await whole_text(self._blobs, agent_id, placed) or placed.logged.message) for placed in messages
        ]

        def work() -> Made:
            shares = [Share(one.place, passages(text)) for one, text in zip(messages, texts, strict=True)]
            return self._vectors_of(embedder, shares)

        running = self._pool.submit(work)
        self._in_hand.add(running)
        running.add_done_callback(self._in_hand.discard)
        return await asyncio.wrap_future(running)

    def _vectors_of(self, embedder: Embedder, shares: Sequence[Share], *, is_asked_again: bool = False) -> Made:
        """One text that the model refuses does not keep the others from having vectors: halved until it is alone."""
        try:
            return Made(self._rows_of(embedder, shares), {})
        except ModelUnavailable as error:
            if error.retryable or self._is_closing:
                raise
            if not is_asked_again:
                embedder.embed([HARMLESS])  # raises where it is not for the texts
            if len(shares) == 1:
                return Made([], {shares[0].place: error.detail})
        half = len(shares) // 2
        first, second = (
            self._vectors_of(embedder, some, is_asked_again=True) for some in (shares[:half], shares[half:])
        )
        return Made(first.rows + second.rows, first.refused | second.refused)

    def _rows_of(self, embedder: Embedder, shares: Sequence[Share]) -> list[VectorRow]:
        from offbook.search.index.vectors import quantised

        everything = [passage for share in shares for passage in share.passages]
        pieces = []
        for start in range(0, len(everything), PASSAGES_AT_A_TIME):
            if self._is_closing:
                return []
            pieces.append(quantised(embedder.embed(everything[start : start + PASSAGES_AT_A_TIME])))
        data = [row for piece in pieces for row in piece]
        owners = [(share.place, part) for share in shares for part in range(len(share.passages))]
        return [
            VectorRow(place=place, part=part, data=row.tobytes())
            for (place, part), row in zip(owners, data, strict=True)
        ]


def _drop_all(index: AgentIndex, *, model: str) -> None:
    index.drop_vectors(model)


def _drop(index: AgentIndex, *, followed: AgentIndex, model: str) -> None:
    if index is followed:
        index.drop_vectors(model)


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


def _without_vectors(index: AgentIndex, model: str, limit: int, aside: Collection[int]) -> list[int]:
    """The newest messages that have none."""
    import numpy as np

    vectors = index.vectors(model)
    view = index.rows.view()
    missing = np.flatnonzero(~vectors.has(len(view))) if vectors else np.arange(len(view))
    newest = view["place"][missing[-(limit + len(aside)) :]].tolist()
    return [place for place in newest if place not in aside][-limit:]


def _oldest_without_vectors(index: AgentIndex, model: str, count: int, aside: Collection[int]) -> int | None:
    """Of the first so many messages."""
    import numpy as np

    vectors = index.vectors(model)
    if vectors and vectors.embedded >= index.rows.count:
        return None
    missing = np.flatnonzero(~vectors.has(count)) if vectors else range(count)
    places = index.rows.view()["place"]
    return next((place for row in missing if (place := int(places[row])) not in aside), None)


def _whole_messages(stored: Sequence[StoredVector]) -> list[StoredVector]:
    """Without those at the end whose other parts may be on the next page."""
    last = stored[-1].place
    whole = [one for one in stored if one.place != last]
    return whole or list(stored)
