"""Recall with `depth` deep: what was found is read once more, by the model that `rerank.reader` names.

Only who asks for it waits for a model, and not beyond `rerank.deadline`; then, and whenever there is no reading, the
answer comes in the first order and says why. What was answered is kept with what models are paid for: the same question
over the same passages is asked once, it counts towards the caps of the day, and a forget takes it along.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from pathlib import Path

import msgspec
import structlog

from offbook.log.store import Store
from offbook.model.deadline import looked_at
from offbook.model.errors import ModelUnavailable, StoreError, WorkerUnavailable
from offbook.model.memory_entry import MemoryEntry, Recollection, Why
from offbook.model.settings import Settings
from offbook.model.summary import Completion
from offbook.model.types import now
from offbook.models.protocols import Passage, Reading, ReadingTask, Reranker
from offbook.models.rerankers.available import NOT_CONFIGURED, open_reranker
from offbook.models.summarizers.available import ModelHealth
from offbook.models.summarizers.host import HostSummarizer
from offbook.models.worker import IN_PROCESS, Worker
from offbook.projections.paid_answers import PaidAnswers, Unfit
from offbook.search.ask import Ask
from offbook.search.recall import Recall
from offbook.search.words import place_named

READER = "reader"
"""In `foundBy` and `ranks` of what it named, and before what is told in `degraded`."""
THREADS = 2
"""That wait for an answer: one that hangs keeps these, and nobody else's."""

log = structlog.get_logger("offbook.reader")

Opening = Callable[..., Reranker]
Found = tuple[Recollection, dict[str, list[int]]]


class NoReading(Exception):
    """Why the first order stands."""


class SecondReader:
    """Asks the model, within its deadline and the caps of the day."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        *,
        models: Path,
        host: HostSummarizer,
        worker: Worker = IN_PROCESS,
        clock: Callable[[], datetime] = now,
        monotonic: Callable[[], float] = time.monotonic,
        opening: Opening = open_reranker,
    ) -> None:
        self._settings = settings
        self._models, self._host, self._worker = models, host, worker
        self._monotonic = monotonic
        self._opening = opening
        self._answers = PaidAnswers(store, clock)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="offbook-reader")
        self._opened: dict[str, Reranker] = {}
        self._health = ModelHealth()
        self._waiting = 0
        self._door = asyncio.Lock()

    @property
    def candidates(self) -> int:
        return self._settings.rerank.candidates

    @property
    def trouble(self) -> str | None:
        """Why it did not read the last time."""
        return self._health.format(self._monotonic())

    async def order(self, task: ReadingTask) -> list[int]:
        """The passages that help, best first. NoReading says why there is no telling."""
        if self._settings.rerank.reader is None:
            raise NoReading(NOT_CONFIGURED)
        if self._health.breaker.seconds_left(self._monotonic()):
            raise NoReading(self.trouble or "it is left alone for a moment")
        if self._waiting >= THREADS:
            raise NoReading("it is still busy with earlier questions")
        seconds = self._settings.rerank.deadline.total_seconds()
        work = asyncio.ensure_future(self._read(task))
        try:
            # What takes too long goes on without us: its answer is kept for the next who asks the same.
            async with asyncio.timeout(seconds):
                order = await asyncio.shield(work)
        except TimeoutError:
            work.add_done_callback(looked_at)
            raise self._failed(f"no answer in {seconds:.3g} s: give it more in rerank.deadline") from None
        except Unfit as why:
            raise NoReading(str(why)) from None
        except (ModelUnavailable, WorkerUnavailable) as error:
            raise self._failed(error.detail) from None
        except StoreError as error:
            raise NoReading(error.detail) from None
        self._health.clear()
        return order

    async def close(self) -> None:
        """Breaks off whoever reads just now."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for reader in self._opened.values():
            await asyncio.to_thread(reader.close)

    async def _read(self, task: ReadingTask) -> list[int]:
        reader = await self._reader(task.agent_id)
        fingerprint = fingerprint_of(reader, task)
        known = await self._answers.find(task.agent_id, fingerprint)
        if known is not None:
            return msgspec.json.decode(known.text, type=list[int])
        if reader.name == self._host.name and not self._host.is_present(task.agent_id):
            raise Unfit(f"no host asks for work of agent {task.agent_id!r}")
        await self._answers.require(reader.name, reader.expected(task), self._settings)
        self._waiting += 1
        try:
            reading: Reading = await asyncio.get_running_loop().run_in_executor(self._threads, reader.read, task)
        finally:
            self._waiting -= 1
        kept = Completion(
            fingerprint=fingerprint,
            summarizer=reader.name,
            text=msgspec.json.encode(reading.order).decode(),
            usage=reading.usage,
        )
        with suppress(StoreError):  # on a full disk the answer stands, and what it cost is held
            await self._answers.keep(task.agent_id, kept)
        log.info(
            "read",
            action="reader.read",
            agent=task.agent_id,
            reader=reader.name,
            passages=len(task.passages),
            named=len(reading.order),
            input_tokens=reading.usage.input_tokens,
            output_tokens=reading.usage.output_tokens,
            dollars=round(reading.usage.dollars, 6),
        )
        return reading.order

    async def _reader(self, agent_id: str) -> Reranker:
        """An agent may have a model of its own (`model`), so each has its reader."""
        model = self._settings.for_agent(agent_id).model or ""
        async with self._door:
            if model not in self._opened:
                self._opened[model] = await asyncio.to_thread(
                    self._opening, self._settings, agent_id, models=self._models, host=self._host, worker=self._worker
                )
            return self._opened[model]

    def _failed(self, detail: str) -> NoReading:
        self._health.breaker = self._health.breaker.after_failure(self._monotonic())
        self._health.trouble = detail
        log.warning("not read", action="reader.fail", detail=detail, failures=self._health.breaker.failures)
        return NoReading(detail)


def fingerprint_of(reader: Reranker, task: ReadingTask) -> str:
    """Of who reads, what was asked when (to the day), and what was found, word for word."""
    said = [(one.text, one.speaker, one.ts) for one in task.passages]
    parts = [READER, reader.fingerprint, task.agent_id, task.query, task.asked_at.date().isoformat(), said]
    return sha256(msgspec.json.encode(parts)).hexdigest()


class DeepRecall:
    """`Recall`, with a second reading of what comes first."""

    def __init__(self, store: Store, recall: Recall, reader: SecondReader) -> None:
        self._store = store
        self._recall = recall
        self._reader = reader

    async def __call__(self, ask: Ask) -> Found:
        started = time.perf_counter()
        erased = {agent: self._store.versions.of(agent, "erased") for agent in (ask.scope.agent_id, *ask.others)}
        # Who spoke is told with an explanation only, and the reader has to know.
        wider = msgspec.structs.replace(ask, limit=max(ask.limit, self._reader.candidates), explain=True)
        found, _ = await self._recall(wider)
        first, rest = found.entries[: self._reader.candidates], found.entries[self._reader.candidates :]
        try:
            order = await self._reader.order(task_of(ask, first)) if len(first) > 1 else []
        except NoReading as why:
            entries, notes = found.entries, [f"{READER}: {why}"]
        else:
            entries, notes = [*reordered(first, order), *rest], []
        if any(self._store.versions.is_erased_since(agent, version) for agent, version in erased.items()):
            # What was read may be forgotten by now.
            found, shown = await self._recall(ask)
            notes = [f"{READER}: something was forgotten meanwhile"]
            return msgspec.structs.replace(found, degraded=[*found.degraded, *notes]), shown
        entries = entries[: ask.limit]
        return msgspec.structs.replace(
            found,
            entries=entries if ask.explain else [_unexplained(entry) for entry in entries],
            took_ms=round((time.perf_counter() - started) * 1_000, 3),
            degraded=[*found.degraded, *notes],
            explained=found.explained if ask.explain else None,
        ), _places(entries)


def task_of(ask: Ask, entries: Sequence[MemoryEntry]) -> ReadingTask:
    passages = tuple(Passage(text=one.text, speaker=_speaker(one), ts=one.ts) for one in entries)
    return ReadingTask(agent_id=ask.scope.agent_id, query=ask.query, asked_at=ask.at or now(), passages=passages)


def _speaker(entry: MemoryEntry) -> str:
    return (entry.why.speaker if entry.why is not None else None) or entry.origin


def reordered(entries: Sequence[MemoryEntry], order: Sequence[int]) -> list[MemoryEntry]:
    """Those that the reader named, in its order; then the others, in theirs. Scores only say the order, so they are
    given out anew."""
    named = [_named(entries[at], rank) for rank, at in enumerate(order, 1)]
    others = [entry for at, entry in enumerate(entries) if at not in set(order)]
    scores = sorted((entry.score for entry in entries), reverse=True)
    return [msgspec.structs.replace(entry, score=score) for entry, score in zip([*named, *others], scores, strict=True)]


def _named(entry: MemoryEntry, rank: int) -> MemoryEntry:
    why = entry.why or Why()
    ranks = {**why.ranks, READER: rank}
    return msgspec.structs.replace(
        entry, found_by=[*entry.found_by, READER], why=msgspec.structs.replace(why, ranks=ranks)
    )


def _unexplained(entry: MemoryEntry) -> MemoryEntry:
    replaces = entry.why.replaces if entry.why is not None else []
    return msgspec.structs.replace(entry, why=Why(replaces=replaces) if replaces else None)


def _places(entries: Sequence[MemoryEntry]) -> dict[str, list[int]]:
    shown: dict[str, list[int]] = {}
    for entry in entries:
        if (place := place_named(entry.id)) is not None:
            shown.setdefault(entry.agent_id, []).append(place)
    return shown
