"""The background: loops that take turns, and what the verbs ask of them.

Each loop does a bounded piece of work for one agent, then goes to the next. A piece done twice leaves the same
rows; one that fails is logged and tried again later, and never stops the others.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from offbook.context.pending_messages import Standings
from offbook.context.reader import SessionReader
from offbook.context.slots import Slots
from offbook.context.swaps import Swapping
from offbook.log.store import Blobs, Store
from offbook.model.errors import ModelUnavailable, OffbookError, StoreError
from offbook.model.memory_entry import MemoryEntry, Recollection
from offbook.model.settings import Settings
from offbook.model.status import IndexStatus, SummaryStatus, Tiers
from offbook.model.summary import CompressionEstimate, Summary
from offbook.model.types import Scope
from offbook.models.embedder import NO_MODEL
from offbook.models.summarizers.host import HostSummarizer
from offbook.search.query import Ask
from offbook.search.recall import Recall
from offbook.search.results import Choose
from offbook.worker import ageing
from offbook.worker.attending import Attending
from offbook.worker.caring import Asks, Caring
from offbook.worker.compressing import Compressing
from offbook.worker.drafting import Drafting
from offbook.worker.embedders import Embedders
from offbook.worker.embedding import EmbeddingStep, embedded_in
from offbook.worker.indexes import REST_SECONDS, Indexes
from offbook.worker.maintenance import Task
from offbook.worker.rewriting import Rewriting
from offbook.worker.summary_files import SummaryFiles
from offbook.worker.turns import Turns
from offbook.worker.writing import Writer

if TYPE_CHECKING:
    from offbook.search.index.agent_index import AgentIndex

GATHER_SECONDS = 0.1
"""News are gathered this long before they are indexed, unless others wait: one batch instead of many. A recall does
not wait for it."""
FOLLOW_SECONDS = 0.5
"""For one agent, before it is another's turn."""
COMMIT_SECONDS = 1.0
"""From news to the commit that makes them durable in the index."""
AGEING_SECONDS = 60.0
GIVE_WAY_SECONDS = 0.5
"""For an answer that somebody waits for; then it goes on all the same."""
RETRY_SECONDS = 5.0
NO_MODEL_SECONDS = 30.0

log = structlog.get_logger("offbook.worker")


class Background:
    def __init__(
        self,
        store: Store,
        blobs: Blobs,
        settings: Settings,
        *,
        indexes: Path,
        models: Path,
        summaries: Path,
        frame_key: bytes,
        tasks: Sequence[Task] = (),
        folder: Path | None = None,
    ) -> None:
        """`tasks`: those of maintenance that are done from outside."""
        self._store = store
        self._settings = settings
        self.embedders = Embedders(settings.embedding, models)
        self.indexes = Indexes(
            store, blobs, indexes, silence=lambda agent_id: settings.for_agent(agent_id).session.interrupted_gap
        )
        self._embedding = EmbeddingStep(store, blobs, self.indexes, threads=settings.embedding.threads)
        standings = Standings(store, blobs, settings)
        self.reader = SessionReader(store, blobs, settings, standings, frame_key)
        standings.when_behind = self.notify_session
        self.slots = Slots(store, settings, self.reader)
        self.swapping = Swapping(store, settings, self.reader, self.slots)
        self.host = HostSummarizer(timeout_seconds=settings.summarizer.timeout.total_seconds())
        self._writer = Writer(store, settings, models=models, host=self.host)
        self._files = SummaryFiles(store, settings, summaries)
        drafting = Drafting(store, settings, standings, self._writer, self._files)
        attending = Attending(store, settings, standings, self.embedders)
        self._compressing = Compressing(store, settings, standings, self._writer, drafting, self.slots, attending)
        self._rewriting = Rewriting(store, standings, self._writer, drafting)
        self.when_forgotten: list[Callable[[str], None]] = []
        """Told of an agent of which something was forgotten: who keeps words of it lets them go."""
        self._to_compress = Turns()
        self._put_off: set[str] = set()
        self._standings = standings
        self._recall = Recall(store, blobs, self.indexes, self.embedders, settings)
        self._to_follow = Turns()
        self._to_embed = Turns()
        self._to_commit = Turns()
        self._aged_at: dict[str, float] = {}
        self._answering = 0
        self._is_quiet = asyncio.Event()
        self._is_quiet.set()
        self._has_begun = False
        self.caring = Caring(
            store,
            blobs,
            settings,
            indexes=self.indexes,
            embedders=self.embedders,
            writer=self._writer,
            files=self._files,
            folder=folder or indexes.parent,
            key=frame_key,
            asks=Asks(self._forget_words, self._look_again, self._to_embed.add, self._unembedded, self._give_way),
            tasks=tasks,
        )
        self._tasks: list[asyncio.Task[None]] = []

    # ── its life ──

    def start(self) -> None:
        for loop in (
            self._begin,
            self._follow_on,
            self._embed_on,
            self._commit_on,
            self._rest_on,
            self._compress_on,
            self._look_on,
            self.caring.maintenance.run,
        ):
            self._tasks.append(asyncio.create_task(loop()))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.caring.close()
        await self.slots.close()
        await self._writer.close()
        await self.embedders.close()  # first: who waits for an endpoint's answer would wait for minutes
        await self._embedding.close()
        await self.indexes.close()

    # ── what the verbs ask ──

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Somebody waits for an answer: what can wait does, for a moment."""
        self._answering += 1
        self._is_quiet.clear()
        try:
            yield
        finally:
            self._answering -= 1
            if not self._answering:
                self._is_quiet.set()

    async def _give_way(self) -> None:
        # Not `wait_for`: before Python 3.12 it may swallow that the task was cancelled.
        with suppress(TimeoutError):
            async with asyncio.timeout(GIVE_WAY_SECONDS):
                await self._is_quiet.wait()

    def notify(self, agent_id: str) -> None:
        """The agent has news."""
        self._to_follow.add(agent_id)

    def notify_session(self, scope: Scope) -> None:
        """The session has news, or has ended."""
        self._compressing.note(scope)
        self._to_compress.add(scope.agent_id)

    async def _look_again(self, agent_id: str) -> None:
        await self.compress(agent_id, None, again=self._writer.has_models(agent_id))
        self.notify(agent_id)

    def _forget_words(self, agent_id: str) -> None:
        self.reader.forget_words(agent_id)
        self.slots.forget(agent_id)
        self._standings.forget_agent(agent_id)
        self._standings.changed(agent_id)
        self._standings.was_rewritten(agent_id)
        for told in self.when_forgotten:
            told(agent_id)

    async def imported(self, agent_id: str, scopes: Sequence[Scope], summaries: Sequence[Summary]) -> None:
        """Messages and summaries came that somebody else had made."""
        for summary in summaries:
            await self._files.kept(summary)
        for span in [span for summary in summaries for span in summary.draft.spans]:
            self._standings.forget(Scope(agent_id=agent_id, session_id=span.session_id))
        if summaries:
            self._standings.changed(agent_id)
        self.reader.forget(agent_id)
        self.slots.forget(agent_id)
        if scopes:
            self.notify(agent_id)
        for scope in scopes:
            self.notify_session(scope)

    async def compress(self, agent_id: str, session_id: str | None, *, again: bool = False) -> None:
        """Look at the session, or at all of the agent's, for what is to be summarised; with `again` also for what a
        better one can write now."""
        if session_id is not None:
            self._compressing.note(Scope(agent_id=agent_id, session_id=session_id))
        else:
            await self._compressing.note_all(agent_id)
        if again:
            self._rewriting.want(agent_id, session_id)
        self._to_compress.add(agent_id)

    async def compression_estimate(self, agent_id: str, session_id: str | None, *, again: bool) -> CompressionEstimate:
        written_again = await self._rewriting.count(agent_id, session_id) if again else 0
        return await self._compressing.estimate(agent_id, session_id, again=written_again)

    def to_compress(self, agent_id: str | None = None) -> int:
        return self._compressing.waiting(agent_id) + self._rewriting.waiting(agent_id)

    async def summary_status(self, agent_id: str) -> SummaryStatus:
        counts = await self._store.summary_counts(agent_id)
        return SummaryStatus(
            counts={f"L{level}": count for level, count in sorted(counts.items())},
            waiting=self.to_compress(agent_id),
            summarizers=self._writer.names(agent_id),
            troubles=self._writer.troubles(agent_id),
        )

    async def recall(self, ask: Ask, choose: Choose = list) -> tuple[Recollection, dict[str, list[int]]]:
        return await self._recall(ask, choose)

    def anticipate(self, agent_id: str, query: str) -> None:
        """Begin with what takes longest of a recall that is about to be asked for."""
        self._recall.anticipate(agent_id, query)

    async def entries_at(self, scope: Scope, places: Sequence[int], choose: Choose = list) -> list[MemoryEntry]:
        return await self._recall.entries_at(scope, places, choose)

    async def places(self, agent_id: str, keyword: str | None, session: int | None, limit: int) -> list[int]:
        """Where the messages lie that have the keyword's words, or all of a session: the newest of them."""
        from offbook.search.candidates import matching_rows

        async with self.indexes.following(agent_id, seconds=FOLLOW_SECONDS) as (index, _):
            rows = await asyncio.to_thread(matching_rows, index, keyword, session, limit)
            return [int(place) for place in index.rows.view()["place"][rows]]

    async def newest(self, agent_id: str, limit: int) -> list[int]:
        """Where the newest messages lie, newest first."""
        async with self.indexes.following(agent_id, seconds=FOLLOW_SECONDS) as (index, _):
            return [int(place) for place in index.rows.view()["place"][-limit:][::-1]]

    async def rebuild(self, agent_id: str, *, embeddings: bool) -> IndexStatus:
        """Make the agent's index anew from the log. Vectors are in the store and are taken from there, or (with
        `embeddings`) made anew as well."""
        if embeddings:
            for model in await self._store.vector_models(agent_id):
                await self._store.drop_vectors(agent_id, model)
        await self.indexes.rebuild(agent_id)
        self.notify(agent_id)
        index = self.indexes.peek(agent_id)
        counts = await self._store.counts(agent_id)
        return IndexStatus(
            entries=index.rows.count if index else 0,
            embedded=0,
            waiting=counts.messages,
            model=self.embedders.name,
            trouble=self.embedders.trouble,
        )

    async def status(self, agent_id: str) -> tuple[IndexStatus, Tiers]:
        """Also of an index that cannot be opened or written, and then why."""
        try:
            return await self._status(agent_id)
        except StoreError as error:
            trouble = error.detail
        except Exception as error:
            # Status is where one looks when something is wrong, so it answers, whatever it was.
            log.exception("no status", action="worker.status", agent=agent_id)
            trouble = f"the index cannot be looked at ({type(error).__name__}): see the daemon's log"
        counts = await self._store.counts(agent_id)
        index = IndexStatus(entries=0, embedded=0, waiting=counts.messages, model=self.embedders.name, trouble=trouble)
        return index, Tiers(hot=0, warm=0, cold=0)

    async def _status(self, agent_id: str) -> tuple[IndexStatus, Tiers]:
        async with self.indexes.following(agent_id, seconds=FOLLOW_SECONDS) as (index, _):
            ttl = self._settings.for_agent(agent_id).ttl
            tiers = await ageing.tiers(self._store, agent_id, index, ttl)
            model = self.embedders.fingerprint
            embedded = embedded_in(index, model)
            return IndexStatus(
                entries=index.rows.count,
                embedded=embedded,
                waiting=0 if self._is_without_model else index.rows.count - embedded,
                model=self.embedders.name,
                trouble=self.indexes.trouble(agent_id) or self.embedders.trouble,
            ), tiers

    @property
    def model(self) -> str | None:
        return self.embedders.name

    @property
    def _is_without_model(self) -> bool:
        """By the settings: then nothing waits for one."""
        return self._settings.embedding.model == NO_MODEL

    def backlog(self) -> int:
        """Messages not yet embedded, agents not yet looked at, and contexts that are not standing by yet."""
        waiting = self._to_follow.undone + self._to_embed.undone + self._to_compress.undone + (not self._has_begun)
        waiting += self.to_compress() + self.slots.waiting
        return waiting + sum(self._unembedded(agent_id) for agent_id in self.indexes.open_agents())

    def _unembedded(self, agent_id: str) -> int:
        index = self.indexes.peek(agent_id)
        if index is None or self._is_without_model:
            return 0
        return index.rows.count - embedded_in(index, self.embedders.fingerprint)

    # ── the loops ──

    async def _begin(self) -> None:
        """Everything that was left undone is found again: whatever stopped us, and however."""
        await self._attempt("begin", self._notify_all)
        self._has_begun = True
        # So that the first recall does not have to wait for it.
        await self._attempt("open", self._open_model)

    async def _open_model(self) -> None:
        if await self._store.agents():
            await self.embedders.wanted()

    async def _notify_all(self) -> None:
        for agent_id in await self._store.agents():
            self.notify(agent_id)
            await self.compress(agent_id, None)
            await self.caring.forgets.resume(agent_id)

    async def _follow_on(self) -> None:
        while True:
            agent_id = await self._to_follow.next()
            if not len(self._to_follow):
                await asyncio.sleep(GATHER_SECONDS)
            if not await self._attempt("follow", partial(self._follow, agent_id)):
                self._later(self._to_follow, agent_id, RETRY_SECONDS)

    async def _follow(self, agent_id: str) -> None:
        async with self.indexes.following(agent_id, seconds=FOLLOW_SECONDS, is_patient=True) as (index, has_all):
            self._to_embed.add(agent_id)
            if has_all:
                await self._age(agent_id, index)
        await self._commit(agent_id)
        if not has_all:
            self._to_follow.add(agent_id)

    async def _commit(self, agent_id: str) -> None:
        """Now, or where it was done just before, soon."""
        await self.indexes.commit(agent_id)
        index = self.indexes.peek(agent_id)
        if index is not None and index.is_dirty:
            self._later(self._to_commit, agent_id, COMMIT_SECONDS)

    async def _commit_on(self) -> None:
        while True:
            agent_id = await self._to_commit.next()
            if not await self._attempt("commit", partial(self._commit, agent_id)):
                self._later(self._to_commit, agent_id, RETRY_SECONDS)

    async def _age(self, agent_id: str, index: AgentIndex) -> None:
        if time.monotonic() - self._aged_at.get(agent_id, -AGEING_SECONDS) < AGEING_SECONDS:
            return
        self._aged_at[agent_id] = time.monotonic()
        moved = await ageing.offload(self._store, agent_id, index, self._settings.for_agent(agent_id))
        if moved:
            log.info("offloaded", action="memory.offload", agent=agent_id, moved=moved)

    async def _embed_on(self) -> None:
        while True:
            agent_id = await self._to_embed.next()
            if not await self._attempt("embed", partial(self._embed, agent_id)):
                self._later(self._to_embed, agent_id, NO_MODEL_SECONDS)

    async def _embed(self, agent_id: str) -> None:
        embedder = await self.embedders.wanted()
        try:
            is_done = await self._embedding.run(agent_id, embedder)
        except ModelUnavailable as error:
            self.embedders.note_trouble(error)
            raise
        self.embedders.note_trouble(None)
        if is_done:
            await self.embedders.switch(self._store, agent_id, embedder)
            await self._drop_others(agent_id, embedder.fingerprint)
        else:
            self._to_embed.add(agent_id)
        await self._commit(agent_id)

    async def _drop_others(self, agent_id: str, serving: str) -> None:
        """The vectors of models that no longer serve; also where a stop came between the switch and this."""
        for model in await self._store.vector_models(agent_id):
            if model != serving:
                await self.indexes.change(agent_id, partial(_drop, model=model))
                await self._store.drop_vectors(agent_id, model)

    async def _compress_on(self) -> None:
        while True:
            agent_id = await self._to_compress.next()
            if not len(self._to_compress):
                await asyncio.sleep(GATHER_SECONDS)
            if not await self._attempt("compress", partial(self._compress, agent_id)):
                self._later(self._to_compress, agent_id, RETRY_SECONDS)

    async def _compress(self, agent_id: str) -> None:
        if held_seconds := await self.caring.holding.seconds(agent_id):
            self._put_off_compressing(agent_id, held_seconds)
            return
        until = time.monotonic() + FOLLOW_SECONDS
        while not await self._compress_piece(agent_id):
            await self._give_way()
            if time.monotonic() >= until:
                self._to_compress.add(agent_id)
                return

    def _put_off_compressing(self, agent_id: str, seconds: float) -> None:
        def again() -> None:
            self._put_off.discard(agent_id)
            self._to_compress.add(agent_id)

        if agent_id not in self._put_off:
            self._put_off.add(agent_id)
            asyncio.get_running_loop().call_later(seconds, again)

    async def _compress_piece(self, agent_id: str) -> bool:
        """News first; then what is written again; then the files of both."""
        async with self.caring.forgets.apart(agent_id):
            return (
                await self._compressing.run(agent_id)
                and await self._rewriting.run(agent_id)
                and await self._files.run(agent_id)
            )

    async def _look_on(self) -> None:
        """A session that has fallen silent has no news that would tell of it, so all are looked at now and then."""
        while True:
            await asyncio.sleep(self._settings.worker_interval.total_seconds())
            await self._attempt("look", self._look)

    async def _look(self) -> None:
        for agent_id in await self._store.agents():
            if await self._compressing.note_changed(agent_id):
                self._to_compress.add(agent_id)

    async def _rest_on(self) -> None:
        """Indexes without news let go of what they only need for writing."""
        while True:
            await asyncio.sleep(REST_SECONDS)
            for agent_id in self.indexes.open_agents():
                await self._attempt("rest", partial(self.indexes.commit, agent_id))

    # ── how ──

    async def _attempt(self, what: str, work: Callable[[], Awaitable[None]]) -> bool:
        await self._give_way()
        try:
            await work()
        except ModelUnavailable:
            return False  # told where it was noted, and in `status`
        except OffbookError as error:
            log.warning("not done", action=f"worker.{what}", detail=error.detail)
            return False
        except Exception:
            # The one broad handler of the background: a defect of ours must not stop the other agents.
            log.exception("failed", action=f"worker.{what}")
            return False
        return True

    def _later(self, turns: Turns, agent_id: str, seconds: float) -> None:
        asyncio.get_running_loop().call_later(seconds, turns.add, agent_id)


def _drop(index: AgentIndex, *, model: str) -> None:
    index.drop_vectors(model)
