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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import apsw

from offbook.log.sqlite.connection import BUSY_MILLISECONDS, open_writer, store_errors
from offbook.log.sqlite.head import HeadFile, refuse_missing
from offbook.log.sqlite.held_events import HeldEvents, ReadEvent
from offbook.log.sqlite.ledger import Ledger
from offbook.log.sqlite.reserve import Reserve
from offbook.model.errors import StoreBusy, StoreError, StoreFull, StoreReadOnly

# ── Moving the write-ahead log into the file, beside the writer rather than inside a write ──

PAGES_WORTH_MOVING = 4_000
"""16 MB, four times SQLite's own figure: a page that changes with every commit is moved once each time."""
PAGES_TOO_MANY = 16_000
"""64 MB: under constant load a passive checkpoint never catches up with the end, so the writer steps in."""
RESTART_MILLISECONDS = 100
"""How long the writer waits for readers then. A backup may read for minutes: the WAL grows on and is tried again."""
IDLE_SECONDS = 2.0


class Checkpointer:
    def __init__(self, path: Path, writer: apsw.Connection, reserve: Reserve) -> None:
        self._path = path
        self._writer = writer
        self._reserve = reserve
        self._pages = 0
        self._restart_at = PAGES_TOO_MANY
        self._wanted = threading.Event()
        self._is_closing = False
        writer.set_wal_hook(self._note_pages)
        self._thread = threading.Thread(target=self._run, name="offbook-checkpoint", daemon=True)
        self._thread.start()

    def _note_pages(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self._pages = pages
        return apsw.SQLITE_OK

    def after_commit(self) -> None:
        """Called by the writer between two groups."""
        if self._pages < PAGES_TOO_MANY:
            self._restart_at = PAGES_TOO_MANY
        if self._pages >= self._restart_at:
            self._writer.set_busy_timeout(RESTART_MILLISECONDS)
            _checkpoint(self._writer, apsw.SQLITE_CHECKPOINT_RESTART)
            self._writer.set_busy_timeout(BUSY_MILLISECONDS)
            self._restart_at = self._pages + PAGES_TOO_MANY
        elif self._pages >= PAGES_WORTH_MOVING:
            self._wanted.set()

    def close(self) -> None:
        self._is_closing = True
        self._wanted.set()
        self._thread.join()
        _checkpoint(self._writer, apsw.SQLITE_CHECKPOINT_TRUNCATE)

    def _run(self) -> None:
        connection = apsw.Connection(str(self._path))
        # Autocheckpoint is per connection and this one never writes; passive mode waits for nobody.
        while not self._is_closing:
            self._wanted.wait(IDLE_SECONDS)
            self._wanted.clear()
            _checkpoint(connection, apsw.SQLITE_CHECKPOINT_PASSIVE)
            self._reserve.keep()
        connection.close()


def _checkpoint(connection: apsw.Connection, mode: int) -> None:
    try:
        # A connection that has read nothing yet knows of no WAL, and would move nothing without an error.
        _ = connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").get
        connection.wal_checkpoint(mode=mode)
    except (apsw.BusyError, apsw.LockedError, apsw.FullError):
        # A reader is in the way, or there is no room: the WAL stays as it is and the next round tries again.
        return
    except apsw.Error as error:
        # What is wrong with the file shows in the next write; a checkpoint must not take the writer with it.
        log.error("checkpoint failed: %s", error, extra={"action": "store.checkpoint"})


T = TypeVar("T")
log = logging.getLogger("offbook.store")
Operation = Callable[[Ledger], T]

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
    read_event: ReadEvent | None = None
    """It only says that somebody read: where there is no room it is held, and nobody is refused."""
    makes_room: bool = False
    """It may use the reserve."""


@dataclass(frozen=True, kw_only=True)
class _Alone(_Job[T]):
    """Work on the file as a whole, outside any transaction. Nothing else is written meanwhile."""

    work: Callable[[apsw.Connection], T]


@dataclass(frozen=True)
class _Outcome:
    job: _Job[Any]
    result: Any = None
    error: StoreError | None = None


class Writer:
    def __init__(self, path: Path, *, max_queued: int) -> None:
        self._queue: queue.SimpleQueue[_Job[Any] | None] = queue.SimpleQueue()
        self._max_queued = max_queued
        self._put_off: _Job[Any] | None = None
        self._is_closing = False
        self._door = threading.Lock()
        refuse_missing(path)
        with store_errors():
            self._connection = open_writer(path)
            try:
                self._head = HeadFile(path, self._connection)
            except BaseException:
                self._connection.close()
                raise
        self._ledger = Ledger(self._connection)
        self._held = HeldEvents()
        self._held_tried_at = 0.0
        self._reserve = Reserve(path)
        self._checkpointer = Checkpointer(path, self._connection, self._reserve)
        self._thread = threading.Thread(target=self._run, name="offbook-writer", daemon=True)
        self._thread.start()

    @property
    def queued(self) -> int:
        return self._queue.qsize()

    async def submit(self, operation: Operation[T], *, makes_room: bool = False) -> T:
        """Run `operation` in the next transaction; returns when that is durable."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._enqueue(_Job(operation, loop, future, makes_room=makes_room))
        return await future

    async def submit_read(self, event: ReadEvent, operation: Operation[T]) -> T | None:
        """As `submit`, for what does no more than `event` says. None where there is no room: it is written later."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T | None] = loop.create_future()
        self._enqueue(_Job(operation, loop, future, read_event=event))
        return await future

    async def submit_alone(self, work: Callable[[apsw.Connection], T]) -> T:
        """Run `work` on the connection itself, between two transactions. It may use the reserve."""
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
        """Write what is queued, move the WAL into the file, let go. Blocks; safe to call twice."""
        with self._door:
            if self._is_closing:
                return
            self._is_closing = True
            self._queue.put(None)
        self._thread.join()
        try:
            if self._held.reads:
                self._write_held()
            if self._held.reads and self._reserve.give_back():
                self._write_held()
            if self._held.reads:
                log.error("lost for want of room: %d events of reads", self._held.reads, extra={"action": "store.held"})
            self._write_notes()
        finally:
            self._checkpointer.close()
            self._connection.close()
            self._head.close()

    def _write_notes(self) -> None:
        try:
            with store_errors(), self._connection:
                self._ledger.note()
        except StoreError as error:
            # Notes can be had again from the log.
            log.warning("notes not written: %s", error.detail, extra={"action": "store.notes"})

    def _run(self) -> None:
        is_open = True
        while is_open:
            group, is_open = self._next_group()
            if group:
                _announce(self._write(group))
                self._checkpointer.after_commit()
            if self._held.reads and time.monotonic() - self._held_tried_at >= HELD_RETRY_SECONDS:
                self._write_held()

    def _next_group(self) -> tuple[list[_Job[Any]], bool]:
        patience = HELD_RETRY_SECONDS if self._held.reads else None
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
            if not urgent or not has_reserve or not self._reserve.give_back():
                return [self._without_room(job, error) for job in group]
            others = [job for job in group if not job.makes_room]
            done = self._write(urgent, has_reserve=False)
            return done + [self._without_room(job, error) for job in others]
        except (StoreBusy, StoreReadOnly) as error:
            # It is the file's fault, not that of one of them: trying each by itself would only take longer.
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
            with store_errors():
                self._connection.execute("BEGIN IMMEDIATE")
                results = [operation(self._ledger) for operation in operations]
                self._ledger.flush()
                self._connection.execute("COMMIT")
                self._head.note(self._head.events + self._ledger.take_events())
        except Exception as error:
            # The one broad handler of the store: whatever it was, the transaction and the caches must go.
            self._roll_back()
            if isinstance(error, StoreError):
                raise
            raise StoreError(f"a write failed: {type(error).__name__}: {error}") from error
        return results

    def _alone(self, job: _Alone[T]) -> T:
        with store_errors():
            return job.work(self._connection)

    def _roll_back(self) -> None:
        self._ledger.forget()
        self._ledger.take_events()
        if self._connection.in_transaction:
            try:
                self._connection.execute("ROLLBACK")
            except apsw.Error:
                # SQLite rolls back by itself where a statement failed hard; the next BEGIN shows if not.
                return


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
            # That loop is closed: nobody waits there any more. What was written stays written.
            continue


def _settle(outcomes: list[_Outcome]) -> None:
    for outcome in outcomes:
        if outcome.job.future.done():
            continue
        if outcome.error is not None:
            outcome.job.future.set_exception(outcome.error)
        else:
            outcome.job.future.set_result(outcome.result)
