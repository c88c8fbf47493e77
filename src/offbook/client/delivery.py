"""The thread that empties an outbox, one per outbox of this process."""

from __future__ import annotations

import asyncio
import atexit
import itertools
import logging
import os
import threading
from collections import deque
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future, InvalidStateError
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from offbook.client.courier import BATCH_RECORDS, Courier, concerns_lane
from offbook.client.endpoint import Endpoint
from offbook.client.outbox import Outbox, OutboxBusy
from offbook.client.outboxes import folders_that_wait, open_outbox
from offbook.client.transport import Transport
from offbook.model.errors import ProviderError, ProviderRefused

FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 30.0
LONGEST_PAUSE_WHILE_FLUSHING_SECONDS = 0.25
FAILURES_OF_A_LANE = 7
"""As a pause that is 3 seconds: while one lane is held, what others say is delivered that soon."""
TEND_SECONDS = 1.0
"""How long what waits may be in the page cache only, or in memory while the disk is full."""
LOOK_AGAIN_SECONDS = 30.0
"""How long what a neighbour left when it ended may lie there."""
CLOSE_FLUSH_SECONDS = 2.0

logger = logging.getLogger("offbook.client")


class Destination(NamedTuple):
    """What two clients of one process must agree on to share an outbox."""

    home: Path
    client: str
    endpoint: Endpoint
    token: str | None
    max_bytes: int


def pause_seconds(failures: int, chance: float) -> float:
    """Twice as long after each failure, less up to a half, so that clients do not come back all at once."""
    longest = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0 ** min(failures - 1, 30))
    return longest * (1 - chance / 2)


def batch_records(failures: int) -> int:
    """A provider that could not do it gets less at a time: 200, 50, 12, 3, 1."""
    return BATCH_RECORDS >> min(2 * failures, 7)


class Flush(NamedTuple):
    """Somebody waits until `target` has arrived, or with `gives_up_early` until an attempt fails."""

    target: int
    rejected_before: int
    failed_before: int
    gives_up_early: bool
    answer: Future[bool]


class Delivery:
    """One outbox and the one thread that delivers it.

    The thread sleeps on a lock, not in its event loop: a lock is released without letting go of the
    interpreter, so that the thread it wakes does not run, and the caller wait, before `record` returns.
    """

    def __init__(self, destination: Destination, outbox: Outbox) -> None:
        self.outbox = outbox
        self.numbers = itertools.count(1)
        self.process_id = os.getpid()
        self.users: set[int] = set()
        self.last_error: str | None = None
        self._destination = destination
        # Both for a signal handler that records while its thread is in `_start`, as in the outbox.
        self._start_lock = threading.RLock()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._ended: Future[None] = Future()
        self._bell = threading.Lock()
        self._bell.acquire()
        self._is_idle = False
        self._is_closing = False
        self._attempting: tuple[asyncio.AbstractEventLoop, asyncio.Task[None]] | None = None
        self._flushes: deque[Flush] = deque()
        self._leftovers: list[Path] = []
        self._rejected_told = outbox.rejected
        self._failures = 0
        self._failed_attempts = 0

    # ── from any thread ──

    @property
    def has_ended(self) -> bool:
        return self._ended.done()

    def wake(self) -> None:
        """There is something new. A provider that is away is not asked any sooner for it."""
        if self._thread is None:
            self._start()
        elif self._is_idle:
            self._is_idle = False
            self._ring()

    def flush(self, *, gives_up_early: bool = False) -> Future[bool]:
        """Done when all that waits now has arrived; False where some was refused since the last flush.

        Cancel it to stop waiting.
        """
        answer: Future[bool] = Future()
        self._flushes.append(
            Flush(self.outbox.asked, self._rejected_told, self._failed_attempts, gives_up_early, answer)
        )
        if self._start():
            self._ring()
        if self._thread is None or self.has_ended:
            self._answer_flushes()
        return answer

    def close(self) -> Future[None]:
        """Stop, and leave what waits on disk."""
        with self._start_lock:
            self._is_closing = True
            if self._thread is None and not self.has_ended:
                self._end()
        self._ring()
        attempting = self._attempting
        if attempting is not None:
            loop, task = attempting
            with suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(task.cancel)
        return self._ended

    def _ring(self) -> None:
        with suppress(RuntimeError):  # it rings already
            self._bell.release()

    def _start(self) -> bool:
        """False where no thread can be had: what waits is on disk, for the next attempt or process."""
        with self._start_lock:
            if self._starting.locked():
                return True
            with self._starting:
                if self._thread is None and not self._is_closing:
                    self._thread = threading.Thread(target=self._work, name="offbook-delivery", daemon=True)
                    try:
                        self._thread.start()
                    except RuntimeError:
                        self._thread = None
                return self._thread is not None

    def _end(self) -> None:
        self.outbox.close()
        self._ended.set_result(None)
        self._answer_flushes()

    # ── in the thread ──

    def _work(self) -> None:
        try:
            while not self._is_closing:
                try:
                    with asyncio.Runner() as runner:
                        self._deliver_until_closed(runner)
                except Exception as error:  # noqa: BLE001 - out of descriptors there is no event loop, for one
                    self._note(str(error))
                    self._answer_flushes()
                    self._pause(pause_seconds(self._failures, chance=os.urandom(1)[0] / 255))
        finally:
            self._is_closing = True
            self._end()

    def _deliver_until_closed(self, runner: asyncio.Runner) -> None:
        transport = Transport(self._destination.endpoint, token=self._destination.token)
        courier = Courier(self.outbox, transport)
        self._look_for_leftovers()
        while not self._is_closing:
            # Leftovers first: they are older, and may be of the same sessions.
            if self._leftovers:
                self._attempt(runner, self._deliver_leftover(transport))
            elif self.outbox.waiting:
                self._attempt(runner, courier.deliver_some(batch_records(self._failures)))
            else:
                self._failures = 0
            self._answer_flushes()
            if self._failures:
                self._pause(pause_seconds(self._failures, chance=os.urandom(1)[0] / 255))
                continue
            if self.outbox.needs_tending:
                self.outbox.tend()
            if not self.outbox.waiting and not self._leftovers:
                self._rest()
        runner.run(_close(transport))

    def _look_for_leftovers(self) -> None:
        where = self._destination
        waiting = folders_that_wait(where.home, where.client, where.endpoint)
        self._leftovers = [folder for folder in waiting if folder != self.outbox.folder]

    def _attempt(self, runner: asyncio.Runner, delivering: Coroutine[Any, Any, None]) -> None:
        async def attempt() -> None:
            task = asyncio.current_task()
            assert task is not None
            self._attempting = runner.get_loop(), task
            await asyncio.sleep(0)  # for connections that were closed while the loop stood still
            if not self._is_closing:
                await delivering

        try:
            runner.run(attempt())
            self._failures = 0
            if not self.outbox.waiting or self.outbox.lane_count == 1:  # else another agent's may wait still, for that
                self.last_error = None
        except asyncio.CancelledError:
            pass  # by `close`
        except ProviderError as error:
            self._note(error.detail)
            if self.outbox.lane_count > 1 and isinstance(error, ProviderRefused) and concerns_lane(error):
                self._failures = min(self._failures, FAILURES_OF_A_LANE)
        except OSError as error:  # the outbox cannot be read now, or what was refused not be kept
            self._note(str(error))
        except Exception as error:
            logger.exception("delivery failed in a way nobody expected; it goes on")
            self._note(repr(error))
        finally:
            self._attempting = None
            delivering.close()

    async def _deliver_leftover(self, transport: Transport) -> None:
        """What a process of the same client left that has ended since. Live ones deliver their own."""
        folder = self._leftovers.pop(0)
        try:
            leftover = Outbox(folder, max_bytes=self._destination.max_bytes, endpoint=str(self._destination.endpoint))
        except OutboxBusy:
            return
        courier = Courier(leftover, transport)
        try:
            while leftover.waiting:
                await courier.deliver_some(batch_records(self._failures))
        except ProviderError as error:
            # One that is refused on its own must not hold up the others; it is tried again after a rest.
            if not isinstance(error, ProviderRefused) or error.retryable:
                self._leftovers.insert(0, folder)
            raise
        finally:
            leftover.close()

    def _note(self, reason: str) -> None:
        if self.last_error is None:
            logger.warning("messages wait in %s: %s", self.outbox.folder, reason)
        self.last_error = reason
        self._failures += 1
        self._failed_attempts += 1

    def _rest(self) -> None:
        # Said before looking: whoever appends after the look sees the flag and rings.
        self._is_idle = True
        if not self.outbox.waiting and not self._is_closing:
            is_rung = self._bell.acquire(timeout=TEND_SECONDS if self.outbox.needs_tending else LOOK_AGAIN_SECONDS)
            if not is_rung:
                self._look_for_leftovers()
        self._is_idle = False

    def _pause(self, seconds: float) -> None:
        """Cut short by whoever flushes or closes. What waits meanwhile is made safe."""
        if self._flushes:
            seconds = min(seconds, LONGEST_PAUSE_WHILE_FLUSHING_SECONDS)
        while seconds > 0 and not self._is_closing:
            if seconds >= TEND_SECONDS:
                self.outbox.tend()
            if self._bell.acquire(timeout=min(seconds, TEND_SECONDS)):
                return
            seconds -= TEND_SECONDS

    def _answer_flushes(self) -> None:
        for flush in list(self._flushes):
            is_done = not self.outbox.waiting or self.outbox.cursor >= flush.target
            is_over = self.has_ended or self._thread is None
            has_failed = flush.gives_up_early and self._failed_attempts > flush.failed_before
            if is_done or is_over or has_failed:
                rejected = self.outbox.rejected
                if not flush.answer.cancelled() and not flush.gives_up_early:
                    self._rejected_told = rejected  # before the answer, which another flush may follow at once
                with suppress(InvalidStateError):  # cancelled
                    flush.answer.set_result(is_done and rejected == flush.rejected_before)
            if flush.answer.done():
                with suppress(ValueError):  # answered by another thread at the end
                    self._flushes.remove(flush)


async def _close(transport: Transport) -> None:
    transport.close()
    await asyncio.sleep(0)


# ── The deliveries of this process: one per destination, shared by its clients ──

_deliveries: dict[Destination, Delivery] = {}
_deliveries_lock = threading.RLock()
_inherited: list[Delivery] = []


def join_delivery(destination: Destination, user: object) -> Delivery:
    """The delivery of this process for `destination`, opened if need be. Raises OutboxBusy."""
    with _deliveries_lock:
        delivery = _deliveries.get(destination)
        if delivery is not None and delivery.outbox.is_closed:
            del _deliveries[destination]
            delivery = None
        if delivery is None:
            outbox = open_outbox(
                destination.home, destination.client, endpoint=destination.endpoint, max_bytes=destination.max_bytes
            )
            # A signal handler that records may have opened one while this thread was at it.
            delivery = _deliveries.setdefault(destination, Delivery(destination, outbox))
            if delivery.outbox is not outbox:
                outbox.close()
        delivery.users.add(id(user))
        return delivery


def leave_delivery(delivery: Delivery, user: object) -> Future[None] | None:
    """The last one to leave closes it, or the end of the process as long as something is in memory only."""
    with _deliveries_lock:
        delivery.users.discard(id(user))
        if delivery.users or (delivery.outbox.waiting and delivery.outbox.in_memory_bytes):
            return None
        for destination in [known for known, each in _deliveries.items() if each is delivery]:
            del _deliveries[destination]
    return delivery.close()


def _close_all() -> None:
    with _deliveries_lock:
        deliveries = list(_deliveries.values())
        _deliveries.clear()
    flushes = [delivery.flush(gives_up_early=True) for delivery in deliveries]
    for delivery, flush in zip(deliveries, flushes, strict=True):
        with suppress(TimeoutError, CancelledError):
            flush.result(CLOSE_FLUSH_SECONDS)
        with suppress(TimeoutError):
            delivery.close().result(CLOSE_FLUSH_SECONDS)


def _forget_after_fork() -> None:
    """In a forked child the threads are gone, and the outboxes, the parent's, are closed already."""
    global _deliveries_lock  # noqa: PLW0603 - another thread of the parent may have held it
    _deliveries_lock = threading.RLock()
    # Kept, so that nothing of the parent's event loop is finalised here: it would reach into the parent's.
    _inherited.extend(_deliveries.values())
    _deliveries.clear()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_forget_after_fork)
