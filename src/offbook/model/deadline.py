"""Work that has until a moment, and no longer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

import structlog

from offbook.model.errors import OffbookError

T = TypeVar("T")
log = structlog.get_logger("offbook.turns")
LEAST_SECONDS = 0.05
"""For what has to be done in any case."""
_LATE: set[asyncio.Future[Any]] = set()
"""The event loop does not hold on to its tasks."""


class Deadline:
    """Lets a piece of work take until then; what is late or broken is named and goes without."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = time.monotonic() + seconds
        self.degraded: list[str] = []

    @property
    def left(self) -> float:
        return max(0.0, self._until - time.monotonic())

    async def get(self, what: str, work: Coroutine[Any, Any, T]) -> T | None:
        task = asyncio.ensure_future(work)
        # What is late goes on without us: a thread cannot be stopped, and what it makes may serve the next turn.
        await asyncio.wait((task,), timeout=self.left)
        if not task.done():
            _LATE.add(task)
            task.add_done_callback(looked_at)
            self.degraded.append(f"{what}: not ready in {self._seconds * 1_000:.0f} ms")
            return None
        try:
            return task.result()
        except OffbookError as error:
            self.degraded.append(f"{what}: {error.detail}")
        except Exception as error:
            # A defect in one part must not cost the agent its turn.
            log.exception("left out", action="turn.prepare", part=what)
            self.degraded.append(f"{what}: it failed ({type(error).__name__}); the daemon's log has the details")
        return None

    async def finish(self, what: str, work: Coroutine[Any, Any, None]) -> None:
        """Work that is seen to its end in any case, and waited for until then; what goes wrong with it is raised."""
        task = asyncio.ensure_future(work)
        await asyncio.wait((task,), timeout=max(self.left, LEAST_SECONDS))
        if task.done():
            task.result()
            return
        _LATE.add(task)
        task.add_done_callback(_log_outcome)
        self.degraded.append(f"{what}: still being written")


def _log_outcome(task: asyncio.Future[Any]) -> None:
    """What came of it when nobody waited any more."""
    _LATE.discard(task)
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("not done", action="turn.finish", detail=str(error))


def looked_at(task: asyncio.Future[Any]) -> None:
    """So that nobody complains that nobody did."""
    _LATE.discard(task)
    if not task.cancelled():
        task.exception()
