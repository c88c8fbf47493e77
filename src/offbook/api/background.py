"""What a memory is put together from, in one place: the projections, one row each, and who runs and forgets them.

Adding a projection is one file in `projections/` and one row in `_rows`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import structlog

from offbook.api.second_reader import DeepRecall, SecondReader
from offbook.context.context_cache import ContextCache
from offbook.context.pending_messages import PendingMessages
from offbook.context.reader import SessionReader
from offbook.context.slots import Slots
from offbook.context.swaps import SwapService
from offbook.forget.erase import Eraser
from offbook.forget.forgetting import Forgetting
from offbook.forget.residue import ResidueSearch
from offbook.forget.retention import RETENTION_EVERY, Retention
from offbook.log.store import Blobs, Store
from offbook.model.errors import NotFound, StoreError
from offbook.model.keys import is_encrypted
from offbook.model.lesson import Verdict
from offbook.model.settings import Settings
from offbook.model.status import BackupStatus, IndexStatus, SummaryStatus, Tiers
from offbook.model.summary import CompressionEstimate, Summary
from offbook.model.types import Scope
from offbook.models.embedder import NO_MODEL
from offbook.models.relation import RelationModel
from offbook.models.summarizers.host import HostSummarizer
from offbook.models.worker import IN_PROCESS, Worker
from offbook.projections import tiers
from offbook.projections.base import Batch, Finding, KeepsState, Progress, Projection
from offbook.projections.contexts import ContextProjection
from offbook.projections.embedders import Embedders
from offbook.projections.embeddings import Embeddings, embedded_in
from offbook.projections.import_pause import ImportPause
from offbook.projections.indexes import Indexes
from offbook.projections.lanes import PATIENCE_SECONDS, Job
from offbook.projections.lessons import LessonProjection
from offbook.projections.links import Links, Vectors
from offbook.projections.runner import Runner
from offbook.projections.search_index import FOLLOW_SECONDS, SearchIndex
from offbook.projections.session_state import SessionState
from offbook.projections.summaries import Summaries
from offbook.projections.summary_drafts import SummaryDrafter
from offbook.projections.summary_files import SummaryFiles
from offbook.projections.summary_writer import Writer
from offbook.projections.wiki.projection import Wiki
from offbook.search.recall import Recall

RETRY_SECONDS = 5.0
NO_MODEL_SECONDS = 30.0
LESSONS_SECONDS = 5.0
"""What was said to be kept is on the page of the next conversation, however soon that begins."""
TIERS_SECONDS = 60.0

Judge = Callable[[str, str, Verdict, str | None], Awaitable[None]]
BackupsOf = Callable[[str], tuple[list[BackupStatus], int]]

log = structlog.get_logger("offbook.projections")


class Row(NamedTuple):
    """A projection, and when it is run. None: with another."""

    projection: Projection
    job: Job | None


class _OwnAgents:
    """Those that this node has."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def agents(self) -> list[str]:
        found, owners = await self._store.agents(), self._store.owners
        return found if owners is None else [each for each in found if owners.epoch(each) is not None]


class Background:
    """Verbs ask each part directly; what is said here concerns several of them."""

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
        tasks: Sequence[Job] = (),
        folder: Path | None = None,
        worker: Worker = IN_PROCESS,
    ) -> None:
        """`tasks`: those of maintenance that are done from outside. `folder`: the data folder. `worker`: who reads and
        embeds."""
        folder = folder or indexes.parent
        self._store = store
        self._settings = settings
        self._worker = worker
        self.is_encrypted = is_encrypted(folder)
        self.judge: Judge = _nobody_judges
        """Ends in the verb: a lesson that was edited by hand in the wiki is news."""
        self.backups_of: BackupsOf = lambda _agent_id: ([], 0)
        """Of an agent, the newest first, and how many cannot be read."""
        self.import_pause = ImportPause(store)
        self.runner = Runner(_OwnAgents(store), settings.maintenance.interval, import_pause=self.import_pause)

        # ── search ──
        self.embedders = Embedders(settings.embedding, models, self._worker)
        self._relations = RelationModel(models, is_wanted=settings.embedding.model != NO_MODEL)
        self.indexes = Indexes(
            store, blobs, indexes, silence=lambda agent_id: settings.for_agent(agent_id).session.interrupted_gap
        )
        self.recall = Recall(store, blobs, self.indexes, self.embedders, settings)
        self._embeddings = Embeddings(store, blobs, self.indexes, self.embedders, settings.embedding)
        self.search_index = SearchIndex(store, self.indexes, unembedded=self._embeddings.unembedded)

        # ── contexts ──
        pending_messages = PendingMessages(store, blobs, settings, self._worker)
        pending_messages.when_behind = self.runner.notify
        self.reader = SessionReader(store, blobs, settings, pending_messages, frame_key)
        self.contexts = ContextCache(store, self.reader)
        self.contexts.when_made = self.runner.notify
        self.slots = Slots(store, settings, self.reader)
        self.swapping = SwapService(store, settings, self.reader, self.contexts, self.slots)

        # ── summaries ──
        self.host = HostSummarizer(timeout_seconds=settings.summarizer.timeout.total_seconds())
        self._writer = Writer(store, settings, models=models, host=self.host)
        self.second_reader = SecondReader(store, settings, models=models, host=self.host, worker=self._worker)
        self.deep_recall = DeepRecall(store, self.recall, self.second_reader)
        self._summary_files = SummaryFiles(store, settings, summaries)
        drafting = SummaryDrafter(store, settings, pending_messages, self._writer, self._summary_files, self._worker)
        self._summaries = Summaries(store, settings, pending_messages, self._writer, drafting)

        self._wiki = Wiki(store, blobs, settings, folder / "wiki", folder / "wiki-state", self._judged)
        rows = self._rows()
        self.projections = [row.projection for row in rows]
        self.forgetting = Forgetting(
            store,
            Eraser(store, blobs, settings),
            self.projections,
            ResidueSearch(store, blobs, self.projections, folder, key=frame_key, index_rows=self._index_rows),
            self.runner,
            key=frame_key,
            without_models=self._writer.giving_way,
            take_edits=self._wiki.take_edits,
        )
        retention = Retention(store, self.forgetting, settings)
        self.runner.add(
            *(row.job for row in rows if row.job is not None),
            Job("forgetting", self.forgetting.finish, at_start=True),
            Job("retention", retention.run, every=RETENTION_EVERY),
            Job("backfill", self._note_backfill, is_task=False, follows=("summaries", "lessons")),
            *tasks,
        )

    def _rows(self) -> list[Row]:
        """Every projection, in the order in which they follow each other."""
        store, settings = self._store, self._settings
        index, embeddings, summaries = self.search_index, self._embeddings, self._summaries
        session_state = SessionState(store, settings, self._worker)
        contexts = ContextProjection(store, self.reader, self.contexts, self.slots)
        offload = tiers.TierOffload(store, self.indexes, settings)
        vectors = Vectors(embeddings.has_all, partial(self.runner.wake, "embeddings"))
        links = Links(store, self.indexes, self.embedders, self._relations, self._worker, vectors)
        # What means the same is known by its vectors; where there are to be none, what is in the index is compared.
        compared_after = "index" if settings.embedding.model == NO_MODEL else "embeddings"
        lessons = LessonProjection(store, settings, self._worker)
        # Follows the log or another of them, never while something of the agent's is forgotten or imported.
        follower = partial(Job, is_task=False, is_apart=True, retry_seconds=RETRY_SECONDS, patience_seconds=None)
        return [
            Row(
                index,
                Job(
                    "index",
                    index.advance,
                    news="agent",
                    is_gathered=True,
                    retry_seconds=RETRY_SECONDS,
                    patience_seconds=None,
                ),
            ),
            Row(
                embeddings,
                Job(
                    "embeddings",
                    embeddings.advance,
                    is_task=False,
                    follows=("index",),
                    retry_seconds=NO_MODEL_SECONDS,
                    patience_seconds=None,
                    waiting=embeddings.waiting,
                ),
            ),
            Row(links, follower("links", partial(self._link, links), follows=(compared_after,))),
            Row(
                session_state,
                follower("session_state", session_state.advance, by_session=True, news="session", is_gathered=True),
            ),
            Row(
                summaries,
                follower(
                    "summaries",
                    summaries.advance,
                    by_session=True,
                    follows=("session_state",),
                    every=settings.worker_interval,
                    waiting=summaries.waiting,
                ),
            ),
            Row(
                self._summary_files,
                follower(
                    "summary_files",
                    self._summary_files.advance,
                    follows=("summaries",),
                    patience_seconds=PATIENCE_SECONDS,
                ),
            ),
            Row(
                contexts,
                Job(
                    "contexts",
                    contexts.advance,
                    is_task=False,
                    by_session=True,
                    follows=("summaries",),
                    is_counted=False,
                    patience_seconds=None,
                    waiting=contexts.waiting,
                ),
            ),
            Row(
                offload,
                Job("tiers", offload.advance, follows=("index",), least_seconds=TIERS_SECONDS, is_counted=False),
            ),
            Row(
                lessons,
                Job(
                    "lessons",
                    lessons.advance,
                    follows=("session_state",),
                    least_seconds=LESSONS_SECONDS,
                    is_apart=True,
                    is_counted=False,
                ),
            ),
            Row(self._wiki, Job("wiki", self._wiki.advance, is_apart=True)),
        ]

    async def _link(self, links: Links, batch: Batch) -> Progress:
        """With what was corrected read, so that no turn has to."""
        progress = await links.advance(batch)
        if progress.did:
            await self.reader.corrections.outdated(batch.agent_id)
        return progress

    async def _note_backfill(self, batch: Batch) -> Progress:
        """What was imported has been summarised and learnt from: the memory sections of its sessions are made anew."""
        if not self.to_compress(batch.agent_id) and not self.runner.waiting("lessons", batch.agent_id):
            await self.import_pause.note_end(batch.agent_id)
        return Progress(is_idle=True)

    # ── its life ──

    def start(self) -> None:
        self.runner.start()

    async def close(self) -> None:
        await self.runner.close()
        await self.forgetting.close()
        await self._writer.close()
        await self.second_reader.close()
        await self._worker.close()
        await self.embedders.close()  # first: who waits for an endpoint's answer would wait for minutes
        await self._embeddings.close()
        await self.indexes.close()

    # ── what concerns several of them ──

    async def let_go(self, agent_id: str) -> None:
        """Another node has the agent now: nothing is done for it here, and nothing kept."""
        await self.runner.let_go(agent_id)
        for projection in self.projections:
            if isinstance(projection, KeepsState):
                projection.let_go(agent_id)
        self.forgetting.let_go(agent_id)
        self._store.let_go(agent_id)
        await self.indexes.discard(agent_id)

    async def rebuild(self, agent_id: str, *, embeddings: bool) -> IndexStatus:
        """Make the agent's index anew from the log. Vectors are in the store and are taken from there, or (with
        `embeddings`) made anew as well."""
        names = {"embeddings", "search_index"} if embeddings else {"search_index"}
        for projection in self.projections:
            if projection.name in names:
                await projection.rebuild(agent_id)
        self.runner.notify_agent(agent_id)
        return await self._without_index(agent_id, self._index_rows(agent_id), self.embedders.trouble)

    async def check(self, agent_id: str) -> dict[str, list[Finding]]:
        """What is wrong with each projection of the agent's."""
        return {projection.name: await projection.check(agent_id) for projection in self.projections}

    async def compress(self, agent_id: str, session_id: str | None, *, again: bool = False) -> None:
        """Look at the session, or at all of the agent's, for what is to be summarised; with `again` also for what a
        better one can write now."""
        self._store.versions.changed(agent_id, "asked")
        if again:
            self._summaries.want_again(agent_id, session_id)
            self.runner.wake("summaries", agent_id)
        if session_id is not None:
            self.runner.wake("session_state", agent_id, session_id)
        else:
            self._summaries.look_again(agent_id)
            self.runner.wake("summaries", agent_id)

    async def compression_estimate(self, agent_id: str, session_id: str | None, *, again: bool) -> CompressionEstimate:
        return await self._summaries.estimate(
            agent_id, session_id, is_again=again, waiting=self.to_compress(agent_id) - self._summaries.waiting(agent_id)
        )

    def to_compress(self, agent_id: str) -> int:
        return self.runner.waiting("session_state", agent_id) + self.runner.waiting("summaries", agent_id)

    async def summary_status(self, agent_id: str) -> SummaryStatus:
        return await self._summaries.status(agent_id, self.to_compress(agent_id))

    async def imported(self, scopes: Sequence[Scope], summaries: Sequence[Summary]) -> None:
        """Messages and summaries came that somebody else had made."""
        for summary in summaries:
            self._summary_files.lacks(summary.agent_id, [summary.id])
            self.runner.wake("summary_files", summary.agent_id)
        for scope in scopes:
            self.runner.notify(scope)

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
        return await self._without_index(agent_id, 0, trouble), Tiers(hot=0, warm=0, cold=0)

    async def _status(self, agent_id: str) -> tuple[IndexStatus, Tiers]:
        async with self.indexes.following(agent_id, seconds=FOLLOW_SECONDS) as (index, _):
            counts = await tiers.tiers(self._store, agent_id, index, self._settings.for_agent(agent_id).ttl)
            return IndexStatus(
                entries=index.rows.count,
                embedded=embedded_in(index, self.embedders.fingerprint),
                waiting=self._embeddings.unembedded(agent_id),
                model=self.embedders.name,
                trouble=self.indexes.trouble(agent_id) or self.embedders.trouble,
                reader=self._settings.rerank.reader,
                reader_trouble=self.second_reader.trouble,
            ), counts

    async def _without_index(self, agent_id: str, entries: int, trouble: str | None) -> IndexStatus:
        counts = await self._store.counts(agent_id)
        return IndexStatus(
            entries=entries, embedded=0, waiting=counts.messages, model=self.embedders.name, trouble=trouble
        )

    def _index_rows(self, agent_id: str) -> int:
        index = self.indexes.peek(agent_id)
        return index.rows.count if index is not None else 0

    async def _judged(self, agent_id: str, lesson_id: str, verdict: Verdict, text: str | None) -> None:
        await self.judge(agent_id, lesson_id, verdict, text)


async def _nobody_judges(_agent_id: str, lesson_id: str, _verdict: Verdict, _text: str | None) -> None:
    raise NotFound(f"nobody can judge {lesson_id} here")
