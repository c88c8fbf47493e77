"""Looking after the memory, now and then and on demand (D14).

Each task works in pieces, an agent at a time, and others have their turn between two of them. One that fails is tried
again, then shown; one that hangs is shown, and the others go on beside it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog

from offbook.log.store import Store
from offbook.model.errors import OffbookError, WrongShape
from offbook.model.maintenance import Piece, TaskRun
from offbook.model.schedule import SHOWN_AFTER, due, next_turn, pause
from offbook.model.status import TaskHealth
from offbook.model.types import now

FIRST_SECONDS = 10.0
"""After the start: whoever asks first is answered first."""
PATIENCE_SECONDS = 30.0
"""For one piece; then the others go on beside it."""
HANGING_SECONDS = 600.0
LATEST = frozenset({"waiting", "pages not understood"})
"""Counts of what is left, not of what was done: the newest holds, they do not add up."""
MOST_NAMED = 5
"""Of what waits for a person; they are counted, too."""

log = structlog.get_logger("offbook.maintenance")


@dataclass(frozen=True)
class Task:
    """`run` is given the agent; the empty name where it is not an agent's."""

    name: str
    per_agent: bool
    run: Callable[[str], Awaitable[Piece]]
    every: timedelta | None = None
    """None: as often as all."""


@dataclass(frozen=True)
class _Step:
    """How one piece ended."""

    piece: Piece
    seconds: float
    error: str | None


@dataclass(eq=False)
class _Lane:
    """One task for one agent: what it did, and when it is its turn."""

    task: Task
    agent_id: str
    every: float
    turn: float
    runs: int = 0
    failures: int = 0
    total_failures: int = 0
    error: str | None = None
    did: dict[str, int] = field(default_factory=dict)
    waits: list[str] = field(default_factory=list)
    last_run: datetime | None = None
    last_success: datetime | None = None
    working: asyncio.Task[_Step] | None = None
    began: float = 0.0
    is_told_to_hang: bool = False

    def settle(self, step: _Step, at: float) -> None:
        self.working, self.is_told_to_hang = None, False
        self.last_run = now()
        self.did = added(self.did, step.piece.did)
        self.waits = self.waits if step.piece.waits is None else step.piece.waits
        if step.error is not None:
            self.failures += 1
            self.total_failures += 1
            self.error = step.error
            if self.failures == SHOWN_AFTER:
                log.warning("not done", action="maintenance.failing", **self.named, detail=step.error)
        else:
            if self.failures >= SHOWN_AFTER:
                log.info("works again", action="maintenance.recovered", **self.named)
            self.failures, self.error, self.last_success = 0, None, self.last_run
        self.runs += step.error is not None or step.piece.is_done
        self.turn = next_turn(at, every=self.every, failures=self.failures, is_done=step.piece.is_done)

    @property
    def named(self) -> dict[str, str]:
        return {"task": self.task.name} | ({"agent": self.agent_id} if self.agent_id else {})

    def is_hanging(self, at: float) -> bool:
        return self.working is not None and at - self.began >= HANGING_SECONDS

    def hanging(self, at: float) -> str:
        minutes = round((at - self.began) / 60)
        return f"at one piece for {minutes} minutes now: see the provider's log; starting it again may help"

    def shown_error(self, at: float) -> str | None:
        """What is to be seen in health: a trouble that passes by itself is not."""
        found = self.hanging(at) if self.is_hanging(at) else self.error if self.failures >= SHOWN_AFTER else None
        return f"agent {self.agent_id}: {found}" if found and self.agent_id else found


class Maintenance:
    """`give_way` lets those go first that wait for an answer."""

    def __init__(
        self,
        store: Store,
        interval: timedelta,
        tasks: Sequence[Task],
        *,
        give_way: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._store = store
        self._interval = interval.total_seconds()
        self._tasks = {task.name: task for task in tasks}
        self._give_way = give_way
        self._first_turn = time.monotonic() + min(FIRST_SECONDS, self._interval)
        self._lanes: dict[tuple[str, str], _Lane] = {}

    # ── what is asked of it ──

    async def now(self, agent_id: str | None = None, tasks: Sequence[str] | None = None) -> list[TaskRun]:
        """Run the tasks at once, to their end: for one agent or for all, those named or all of them."""
        chosen = self._chosen(tasks)
        agents = [agent_id] if agent_id is not None else await self._store.agents()
        lanes = [self._lane(task, each) for task in chosen for each in (agents if task.per_agent else [""])]
        left, ended = deque((lane, Piece(is_done=False), 0.0) for lane in lanes), list[TaskRun]()
        while left:
            lane, so_far, seconds = left.popleft()
            step = await self._step(lane, patience=HANGING_SECONDS)
            if step is None:
                ended.append(_run(lane, so_far.did, seconds + HANGING_SECONDS, lane.hanging(time.monotonic())))
                continue
            did, seconds = added(so_far.did, step.piece.did), seconds + step.seconds
            if step.error is not None or step.piece.is_done:
                ended.append(_run(lane, did, seconds, step.error))
            else:
                left.append((lane, Piece(did=did, is_done=False), seconds))
        order = {id(lane): place for place, lane in enumerate(lanes)}
        by_lane = {(lane.task.name, lane.agent_id or None): order[id(lane)] for lane in lanes}
        return sorted(ended, key=lambda run: by_lane[run.task, run.agent_id])

    def health(self, agent_id: str | None = None, *, with_others: bool = False) -> list[TaskHealth]:
        """Of each task; with an agent, only of what is done for that one and for nobody in particular. `with_others`:
        also whether it works for others, but not what it did for them."""
        return [self._health(task, agent_id, with_others=with_others) for task in self._tasks.values()]

    @property
    def failures(self) -> dict[str, int]:
        """How often each task has failed since the start."""
        return {
            name: sum(lane.total_failures for lane in self._lanes.values() if lane.task.name == name)
            for name in self._tasks
        }

    # ── its life ──

    async def run(self) -> None:
        """For ever: a piece for each whose turn it is."""
        while True:
            try:
                await self._meet_agents()
            except OffbookError as error:
                log.warning("not done", action="maintenance.agents", detail=error.detail)
            at = time.monotonic()
            self._tell_of_hanging(at)
            turns = {key: lane.turn for key, lane in self._lanes.items() if lane.working is None}
            keys = due(turns, at)
            for key in keys:
                await self._step(self._lanes[key], patience=PATIENCE_SECONDS)
            if not keys:
                await asyncio.sleep(pause(turns, at, longest=self._interval))

    async def close(self) -> None:
        working = [lane.working for lane in self._lanes.values() if lane.working is not None]
        for task in working:
            task.cancel()
        await asyncio.gather(*working, return_exceptions=True)

    # ── how ──

    def _chosen(self, names: Sequence[str] | None) -> list[Task]:
        unknown = sorted(set(names or ()) - self._tasks.keys())
        if unknown:
            raise WrongShape(f"there is no task {unknown[0]!r}: there are {', '.join(self._tasks)}")
        return [task for task in self._tasks.values() if names is None or task.name in names]

    async def _meet_agents(self) -> None:
        agents = await self._store.agents()
        wanted = [(task, each) for task in self._tasks.values() for each in (agents if task.per_agent else [""])]
        for task, agent_id in wanted:
            self._lane(task, agent_id)
        there = {(task.name, agent_id) for task, agent_id in wanted}
        for key in [key for key, lane in self._lanes.items() if key not in there and lane.working is None]:
            del self._lanes[key]

    def _lane(self, task: Task, agent_id: str) -> _Lane:
        key = (task.name, agent_id if task.per_agent else "")
        if key not in self._lanes:
            every = self._interval if task.every is None else task.every.total_seconds()
            turn = max(time.monotonic(), self._first_turn)
            self._lanes[key] = _Lane(task=task, agent_id=key[1], every=every, turn=turn)
        return self._lanes[key]

    async def _step(self, lane: _Lane, *, patience: float) -> _Step | None:
        """One piece; the one that is under way, where there is one. None: not within `patience`, it goes on."""
        if self._give_way is not None:
            await self._give_way()
        if lane.working is None:
            lane.began = time.monotonic()
            lane.working = asyncio.create_task(self._work(lane))
        working = lane.working
        done, _ = await asyncio.wait([working], timeout=patience)
        return working.result() if done else None

    async def _work(self, lane: _Lane) -> _Step:
        piece, error = Piece(), None
        try:
            piece = await lane.task.run(lane.agent_id)
        except OffbookError as failed:
            error = failed.detail
        except Exception as failed:
            # A defect of ours in one task must not stop the others.
            if lane.failures == 0:
                log.exception("failed", action="maintenance.failed", **lane.named)
            error = f"it failed ({type(failed).__name__}): see the provider's log"
        at = time.monotonic()
        step = _Step(piece=piece, seconds=at - lane.began, error=error)
        lane.settle(step, at)
        return step

    def _tell_of_hanging(self, at: float) -> None:
        for lane in self._lanes.values():
            if lane.is_hanging(at) and not lane.is_told_to_hang:
                lane.is_told_to_hang = True
                log.error("hangs", action="maintenance.hanging", **lane.named, detail=lane.hanging(at))

    def _health(self, task: Task, agent_id: str | None, *, with_others: bool) -> TaskHealth:
        lanes = [lane for lane in self._lanes.values() if lane.task is task]
        own = [lane for lane in lanes if agent_id is None or lane.agent_id in ("", agent_id)]
        lanes = lanes if with_others else own
        at, did = time.monotonic(), dict[str, int]()
        for lane in own:
            did = {name: did.get(name, 0) + lane.did.get(name, 0) for name in did | lane.did}
        errors = [error for lane in lanes if (error := lane.shown_error(at))]
        turns = [lane.turn for lane in lanes if lane.working is None]
        return TaskHealth(
            task=task.name,
            runs=sum(lane.runs for lane in lanes),
            failures=max((lane.failures for lane in lanes), default=0),
            last_run=max((lane.last_run for lane in lanes if lane.last_run), default=None),
            last_success=max((lane.last_success for lane in lanes if lane.last_success), default=None),
            next_run=now() + timedelta(seconds=max(0.0, min(turns) - at)) if turns else None,
            error=errors[0] if errors else None,
            did=did,
            waits=[each for lane in own for each in lane.waits][:MOST_NAMED],
        )


def added(did: dict[str, int], more: dict[str, int]) -> dict[str, int]:
    return did | {name: number + (0 if name in LATEST else did.get(name, 0)) for name, number in more.items()}


def _run(lane: _Lane, did: dict[str, int], seconds: float, error: str | None) -> TaskRun:
    return TaskRun(
        task=lane.task.name,
        agent_id=lane.agent_id or None,
        did=did,
        seconds=seconds,
        error=error,
        waits=lane.waits[:MOST_NAMED],
    )
