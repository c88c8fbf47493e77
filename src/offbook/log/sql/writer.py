"""The one thread that writes. It drains its queue into one transaction: the more arrive at once, the fewer fsyncs.

There is no window in which it waits for more (measured: a 2 ms window only added latency). While one
group is being synced the next gathers by itself.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from offbook.log.sql.connection import Connection
from offbook.log.sql.held_events import HeldEvents, ReadEvent
from offbook.log.sql.ledger import Ledger
from offbook.model.errors import StoreBusy, StoreError, StoreFull, StoreReadOnly

T = TypeVar("T")
log = logging.getLogger("offbook.store")
Operation = Callable[[Ledger], T]
Settled = Callable[[bool, T | None], None]
"""Whether it was written, and the result."""

CLOSING = "the store is closing: send it again when the provider is back"
LARGEST_GROUP = 512
"""Bounds how long one transaction runs, and so the latency of whoever is first in it."""
HELD_RETRY_SECONDS = 1.0
"""Between two tries to write what is held while the disk is full."""


@dataclass(frozen=True)
class _Job(Generic[T]):
    operation: Operation[T]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[T]
    settled: Settled[T] | None = None
    read_event: ReadEvent | None = None
    """It only says that somebody read: where there is no room it is held, and nobody is refused."""
    makes_room: bool = False
    """It may use the reserve."""


@dataclass(frozen=True, kw_only=True)
class _Alone(_Job[T]):
    """Work on the whole, outside any transaction. Nothing else is written meanwhile."""

    work: Callable[[], T]


@dataclass(frozen=True)
class _Outcome:
    job: _Job[Any]
    result: Any = None
    error: StoreError | None = None


class Writer(ABC):
    """What a backend adds: how a transaction begins and ends on its connection, and what it does between two."""

    def __init__(self, connection: Connection, *, max_queued: int) -> None:
        """Whoever inherits calls `_start` when it is ready."""
        self._queue: queue.SimpleQueue[_Job[Any] | None] = queue.SimpleQueue()
        self._max_queued = max_queued
        self._put_off: _Job[Any] | None = None
        self._is_closing = False
        self._door = threading.Lock()
        self._ledger = self._new_ledger(connection)
        self._held = HeldEvents()
        self._held_tried_at = 0.0
        self._thread = threading.Thread(target=self._run, name="offbook-writer", daemon=True)

    def _start(self) -> None:
        self._thread.start()

    # ── what a backend adds ──

    def _new_ledger(self, connection: Connection) -> Ledger:
        return Ledger(connection)

    @abstractmethod
    def _errors(self) -> AbstractContextManager[None]:
        """The database's errors as StoreErrors that say what to do."""

    @abstractmethod
    def _begin(self) -> None: ...

    @abstractmethod
    def _commit(self) -> None:
        """Returns when it is durable."""

    @abstractmethod
    def _give_up(self) -> None:
        """Undo what was begun, if anything was. Never raises."""

    @abstractmethod
    def _let_go(self) -> None:
        """Close the connection and what belongs to it."""

    @abstractmethod
    def _between_groups(self) -> None:
        """Also where there was nothing to write for as long as `_patience`."""

    def _patience(self) -> float | None:
        """Seconds to wait for work; None for as long as it takes."""
        return None

    def _room_made(self) -> bool:
        """Whether room was given back for those who free some."""
        return False

    # ── handing work to the thread ──

    @property
    def queued(self) -> int:
        return self._queue.qsize()

    async def submit(
        self, operation: Operation[T], *, makes_room: bool = False, settled: Settled[T] | None = None
    ) -> T:
        """Run `operation` in the next transaction; returns when that is durable. `settled` is called before it does,
        or where it was refused, and also where whoever waited has left."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        try:
            self._enqueue(_Job(operation, loop, future, settled, makes_room=makes_room))
        except StoreBusy:
            if settled is not None:
                settled(False, None)
            raise
        return await future

    async def submit_read(self, event: ReadEvent, operation: Operation[T]) -> T | None:
        """As `submit`, for what does no more than `event` says. None where there is no room: it is written later."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T | None] = loop.create_future()
        self._enqueue(_Job(operation, loop, future, read_event=event))
        return await future

    async def submit_between(self, work: Callable[[], T]) -> T:
        """Run `work` in the writer's thread, between two transactions. It may use the reserve."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._enqueue(_Alone(_never, loop, future, makes_room=True, work=work))
        return await future

    def _enqueue(self, job: _Job[Any]) -> None:
        if self._queue.qsize() >= self._max_queued:
            raise StoreBusy(f"{self._max_queued} writes are waiting already: send it again in a moment")
        with self._door:  # nothing comes in after the last one
            if self._is_closing:
                raise StoreBusy(CLOSING)
            self._queue.put(job)

    def close(self) -> None:
        """Write what is queued, let go. Blocks; safe to call twice."""
        with self._door:
            if self._is_closing:
                return
            self._is_closing = True
            self._queue.put(None)
        self._thread.join()
        try:
            if self._held.reads:
                self._write_held()
            if self._held.reads and self._room_made():
                self._write_held()
            if self._held.reads:
                log.error("lost for want of room: %d events of reads", self._held.reads, extra={"action": "store.held"})
            self._write_notes()
        finally:
            self._let_go()

    def _write_notes(self) -> None:
        try:
            self._in_one_transaction([lambda ledger: ledger.note()])
        except StoreError as error:
            # Notes can be had again from the log.
            log.warning("notes not written: %s", error.detail, extra={"action": "store.notes"})

    def _run(self) -> None:
        is_open = True
        while is_open:
            group, is_open = self._next_group()
            if group:
                _announce(self._write(group))
            self._between_groups()
            if self._held.reads and time.monotonic() - self._held_tried_at >= HELD_RETRY_SECONDS:
                self._write_held()

    def _next_group(self) -> tuple[list[_Job[Any]], bool]:
        patience = HELD_RETRY_SECONDS if self._held.reads else self._patience()
        try:
            job, self._put_off = self._put_off or self._queue.get(timeout=patience), None
        except queue.Empty:
            return [], True
        group: list[_Job[Any]] = []
        while job is not None:
            if isinstance(job, _Alone) and group:
                self._put_off = job
                return group, True
            group.append(job)
            if isinstance(job, _Alone) or len(group) >= LARGEST_GROUP:
                return group, True
            try:
                job = self._queue.get_nowait()
            except queue.Empty:
                return group, True
        return group, False

    def _write(self, group: list[_Job[Any]], *, has_reserve: bool = True) -> list[_Outcome]:
        """`has_reserve`: it was not given back for these yet. It is taken again meanwhile where there is room."""
        try:
            if isinstance(group[0], _Alone):
                results = [self._alone(group[0])]
            else:
                results = self._in_one_transaction([job.operation for job in group])
        except StoreFull as error:
            urgent = [job for job in group if job.makes_room]
            if not urgent or not has_reserve or not self._room_made():
                return [self._without_room(job, error) for job in group]
            others = [job for job in group if not job.makes_room]
            done = self._write(urgent, has_reserve=False)
            return done + [self._without_room(job, error) for job in others]
        except (StoreBusy, StoreReadOnly) as error:
            # It is the store's fault, not that of one of them: trying each by itself would only take longer.
            return [_Outcome(job, error=error) for job in group]
        except StoreError as error:
            if len(group) == 1:
                return [_Outcome(group[0], error=error)]
            # Something in the group failed: alone, each succeeds or fails by itself.
            return [outcome for job in group for outcome in self._write([job], has_reserve=has_reserve)]
        return [_Outcome(job, result) for job, result in zip(group, results, strict=True)]

    def _without_room(self, job: _Job[Any], error: StoreFull) -> _Outcome:
        is_held = job.read_event is not None and self._held.hold(job.read_event)
        return _Outcome(job) if is_held else _Outcome(job, error=error)

    def _write_held(self) -> None:
        self._held_tried_at = time.monotonic()
        reads = self._held.reads
        try:
            self._in_one_transaction([self._held.write])
        except (StoreFull, StoreBusy):
            return
        except StoreError as error:
            log.error("not written: %d events of reads: %s", reads, error.detail, extra={"action": "store.held"})
            return
        log.warning("there is room again: %d reads are in the chain", reads, extra={"action": "store.held"})
        self._held.clear()

    def _in_one_transaction(self, operations: Sequence[Operation[Any]]) -> list[Any]:
        try:
            with self._errors():
                self._begin()
                results = [operation(self._ledger) for operation in operations]
                self._ledger.flush()
                self._commit()
        except Exception as error:
            # The one broad handler of the store: whatever it was, the transaction and the caches must go.
            self._roll_back()
            if isinstance(error, StoreError):
                raise
            raise StoreError(f"a write failed: {type(error).__name__}: {error}") from error
        return results

    def _alone(self, job: _Alone[T]) -> T:
        with self._errors():
            return job.work()

    def _roll_back(self) -> None:
        self._ledger.forget()
        self._ledger.take_events()
        self._give_up()


def _never(_ledger: Ledger) -> Any:
    raise AssertionError("what is done alone is not done in a transaction")


def _announce(outcomes: list[_Outcome]) -> None:
    """Tell the waiting tasks, with one wake-up for each event loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[_Outcome]] = {}
    for outcome in outcomes:
        by_loop.setdefault(outcome.job.loop, []).append(outcome)
    for loop, settled in by_loop.items():
        try:
            loop.call_soon_threadsafe(_settle, settled)
        except RuntimeError:
            # That loop is closed: nobody waits there any more. What was written stays written, and counts.
            for outcome in settled:
                _count(outcome)


def _count(outcome: _Outcome) -> None:
    if outcome.job.settled is not None:
        outcome.job.settled(outcome.error is None, outcome.result)


def _settle(outcomes: list[_Outcome]) -> None:
    for outcome in outcomes:
        _count(outcome)
        if outcome.job.future.done():
            continue
        if outcome.error is not None:
            outcome.job.future.set_exception(outcome.error)
        else:
            outcome.job.future.set_result(outcome.result)
