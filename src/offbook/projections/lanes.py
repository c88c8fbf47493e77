"""What the runner runs (a job), one job for one agent (a lane), and how each lane is getting on."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

import structlog

from offbook.model.maintenance import TaskRun
from offbook.model.schedule import SHOWN_AFTER, next_turn
from offbook.model.status import TaskHealth
from offbook.model.types import now
from offbook.projections.base import Batch, Progress

PATIENCE_SECONDS = 30.0
"""For one piece; then the others go on beside it."""
HANGING_SECONDS = 600.0
LATEST = frozenset({"waiting", "pages not understood"})
"""Counts of what is left, not of what was done: the newest holds, they do not add up."""
MOST_NAMED = 5
"""Of what waits for a person; they are counted, too."""

log = structlog.get_logger("offbook.maintenance")


@dataclass(frozen=True)
class Job:
    """A projection's `advance`, or a scheduled task that is no projection, and when it is run."""

    name: str
    """As `maintain` and `status` know it, where it is a task."""
    run: Callable[[Batch], Awaitable[Progress]]
    is_task: bool = True
    """Shown by `status`, run by `maintain`, and looked at regularly."""
    per_agent: bool = True
    """Else its batches are of the empty name."""
    by_session: bool = False
    """Its batches name a session, where one has news."""
    every: timedelta | None = None
    """None: a task as often as all of them, any other only when it is woken."""
    news: Literal["agent", "session"] | None = None
    """What wakes it: a message of the agent, or one of a session or its end."""
    follows: tuple[str, ...] = ()
    """It is woken when one of these jobs has done something."""
    at_start: bool = False
    """What a stop left undone is found at once; else a while after the start, when whoever asks first is answered."""
    is_gathered: bool = False
    """News are gathered for a moment: one batch instead of many."""
    least_seconds: float = 0.0
    """Between two runs for an agent, however often it is woken."""
    retry_seconds: float | None = None
    """After each failure; None: soon after the first two, then at its usual turn."""
    patience_seconds: float | None = PATIENCE_SECONDS
    """None: one piece at a time, however long it takes."""
    is_apart: bool = False
    """Not while something of the agent's is being forgotten or imported."""
    is_counted: bool = True
    """Its waiting lanes are part of the backlog."""
    waiting: Callable[[str | None], int] = lambda agent_id: 0
    """What else waits, of one agent or of all."""

    @property
    def is_followed(self) -> bool:
        return self.news is not None or self.at_start


@dataclass(frozen=True)
class Step:
    """How one piece ended."""

    progress: Progress
    seconds: float
    error: str | None


@dataclass(eq=False)
class Lane:
    """One job for one agent: what is due when, and what it did."""

    job: Job
    agent_id: str
    every: float | None
    pending: dict[str | None, float] = field(default_factory=dict)
    """When the agent's own turn is (None), and that of each of its sessions with news."""
    woken: set[str | None] = field(default_factory=set)
    """Those of them that somebody waits for: the backlog."""
    runs: int = 0
    failures: int = 0
    total_failures: int = 0
    error: str | None = None
    did: dict[str, int] = field(default_factory=dict)
    waits: list[str] = field(default_factory=list)
    last_run: datetime | None = None
    last_success: datetime | None = None
    working: asyncio.Task[Step] | None = None
    in_hand: str | None = None
    """The session that is worked on."""
    is_in_hand_woken: bool = False
    began: float = -math.inf
    is_reported_hanging: bool = False
    is_met: bool = False
    """The agent was looked for in the store, not only heard of."""
    queued: float = math.inf
    """The turn by which it stands in its job's queue."""

    @property
    def turn(self) -> float:
        return min(self.pending.values(), default=math.inf)

    @property
    def is_busy(self) -> bool:
        """Also where an agent was heard of that the store was not asked for yet."""
        return self.working is not None or bool(self.woken)

    @property
    def undone(self) -> int:
        return len(self.woken) + (self.working is not None and self.is_in_hand_woken)

    @property
    def sessions(self) -> int:
        """With news that are not done with."""
        is_in_hand = self.working is not None and self.in_hand is not None
        return sum(key is not None for key in self.pending) + is_in_hand

    @property
    def is_looked_for(self) -> bool:
        """Somebody waits for the agent's own turn."""
        return None in self.woken or (self.working is not None and self.in_hand is None and self.is_in_hand_woken)

    def wake(self, session_id: str | None, at: float) -> None:
        at = max(at, self.began + self.job.least_seconds)
        self.pending[session_id] = min(at, self.pending.get(session_id, math.inf))
        self.woken.add(session_id)

    def next_due(self) -> str | None:
        """The session whose turn it is, or None for the agent's own."""
        return min(self.pending, key=self.pending.__getitem__, default=None)

    def begin(self, session_id: str | None, at: float) -> None:
        self.pending.pop(session_id, None)
        self.in_hand, self.is_in_hand_woken = session_id, session_id in self.woken
        self.woken.discard(session_id)
        self.began = at

    def settle(self, step: Step, at: float) -> None:
        """The piece in hand has ended: when is the next turn, and how is it going."""
        session_id, progress = self.in_hand, step.progress
        self.working, self.is_reported_hanging = None, False
        self.last_run = now()
        self.did = added(self.did, progress.did)
        self.waits = self.waits if progress.waits is None else progress.waits
        if step.error is not None:
            self._failed(step.error)
        else:
            self._succeeded()
        self.runs += step.error is not None or progress.is_done
        for found in progress.sessions:
            self.wake(found, at)
        is_left = step.error is None and not progress.is_done
        if is_left or (step.error is not None and session_id is not None):
            self.woken.add(session_id)
        due = self._next(step, at)
        if due is not None:
            self.pending[session_id] = min(due, self.pending.get(session_id, math.inf))
        if session_id is None and self.every is not None:
            self.pending.setdefault(None, at + self.every)

    def _next(self, step: Step, at: float) -> float | None:
        if step.error is not None:
            if self.job.retry_seconds is not None:
                return at + self.job.retry_seconds
            every = self.every if self.every is not None else math.inf
            return next_turn(at, every=every, failures=self.failures, is_done=False)
        if step.progress.again_seconds is not None:
            return at + step.progress.again_seconds
        return None if step.progress.is_done else at

    def _failed(self, error: str) -> None:
        self.failures += 1
        self.total_failures += 1
        self.error = error
        if self.job.is_task and self.failures == SHOWN_AFTER:
            log.warning("not done", action="maintenance.failing", **self.named, detail=error)

    def _succeeded(self) -> None:
        if self.job.is_task and self.failures >= SHOWN_AFTER:
            log.info("works again", action="maintenance.recovered", **self.named)
        self.failures, self.error, self.last_success = 0, None, self.last_run

    # ── how it is ──

    @property
    def named(self) -> dict[str, str]:
        return {"task": self.job.name} | ({"agent": self.agent_id} if self.agent_id else {})

    def is_hanging(self, at: float) -> bool:
        return self.working is not None and at - self.began >= HANGING_SECONDS

    def hanging(self, at: float) -> str:
        minutes = round((at - self.began) / 60)
        return f"at one piece for {minutes} minutes now: see the provider's log; starting it again may help"

    def shown_error(self, at: float) -> str | None:
        """What is to be seen in health: a trouble that passes by itself is not."""
        found = self.hanging(at) if self.is_hanging(at) else self.error if self.failures >= SHOWN_AFTER else None
        return f"agent {self.agent_id}: {found}" if found and self.agent_id else found


def health_of(job: Job, lanes: Iterable[Lane], agent_id: str | None, at: float, *, with_others: bool) -> TaskHealth:
    """Of one task; with an agent, only of what is done for that one and for nobody in particular. `with_others`: also
    whether it works for others, but not what it did for them."""
    everybody = list(lanes)
    own = [lane for lane in everybody if agent_id is None or lane.agent_id in ("", agent_id)]
    shown = everybody if with_others else own
    did: dict[str, int] = {}
    for lane in own:
        did = {name: did.get(name, 0) + lane.did.get(name, 0) for name in did | lane.did}
    errors = [error for lane in shown if (error := lane.shown_error(at))]
    turns = [lane.turn for lane in shown if lane.working is None and lane.turn < math.inf]
    return TaskHealth(
        task=job.name,
        runs=sum(lane.runs for lane in shown),
        failures=max((lane.failures for lane in shown), default=0),
        last_run=max((lane.last_run for lane in shown if lane.last_run), default=None),
        last_success=max((lane.last_success for lane in shown if lane.last_success), default=None),
        next_run=now() + timedelta(seconds=max(0.0, min(turns) - at)) if turns else None,
        error=errors[0] if errors else None,
        did=did,
        waits=[each for lane in own for each in lane.waits][:MOST_NAMED],
    )


def run_of(lane: Lane, did: dict[str, int], seconds: float, error: str | None) -> TaskRun:
    return TaskRun(
        task=lane.job.name,
        agent_id=lane.agent_id or None,
        did=did,
        seconds=seconds,
        error=error,
        waits=lane.waits[:MOST_NAMED],
    )


def added(did: dict[str, int], more: dict[str, int]) -> dict[str, int]:
    return did | {name: number + (0 if name in LATEST else did.get(name, 0)) for name, number in more.items()}
