"""The one runner of everything that is derived from the log or done regularly.

Each job works in bounded pieces, an agent at a time, and gives way to whoever waits for an answer. One that fails is
tried again, then shown; one that hangs is shown, and the others go on beside it. Nothing here knows of a request: it
can run in the daemon, or beside it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import timedelta
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Protocol

import structlog

from offbook.model.errors import ModelUnavailable, OffbookError, WrongShape
from offbook.model.maintenance import TaskRun
from offbook.model.status import TaskHealth
from offbook.model.types import Scope
from offbook.projections import lanes as lanes_module
from offbook.projections.base import Batch, Progress
from offbook.projections.lanes import Job, Lane, Step, added, health_of, run_of

FIRST_SECONDS = 10.0
"""After the start, before regular looks: whoever asks first is answered first."""
GATHER_SECONDS = 0.1
"""News are gathered this long before they are indexed: one batch instead of many. A recall does not wait for it."""
PIECE_SECONDS = 0.5
"""For one agent, before it is another's turn."""
GIVE_WAY_SECONDS = 0.5
"""For an answer that somebody waits for; then it goes on all the same."""
MEET_RETRY_SECONDS = 5.0

log = structlog.get_logger("offbook.projections")


class Agents(Protocol):
    """Who there is: a store."""

    async def agents(self) -> list[str]: ...


class Paused(Protocol):
    """Whose memory is being imported."""

    async def seconds(self, agent_id: str) -> float: ...


class Runner:
    def __init__(self, agents: Agents, interval: timedelta, *, import_pause: Paused | None = None) -> None:
        """`interval`: how often tasks are looked at."""
        self._agents = agents
        self._interval = interval.total_seconds()
        self._import_pause = import_pause
        self._first_turn = time.monotonic() + min(FIRST_SECONDS, self._interval)
        self._jobs: dict[str, Job] = {}
        self._lanes: dict[str, dict[str, Lane]] = {}
        self._queues: dict[str, list[tuple[float, int, Lane]]] = {}
        """Of each job, the lanes by their turn. An entry is void where the lane is queued by another turn by now."""
        self._queued = count()
        self._busy: set[Lane] = set()
        """Lanes that somebody waits for, or that are at work: so many more are not that they are not looked at."""
        self._news: dict[str, asyncio.Event] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._answering = 0
        self._is_quiet = asyncio.Event()
        self._is_quiet.set()
        self._has_begun = False
        self._are_others = asyncio.Event()
        self._workers: list[asyncio.Task[None]] = []

    def add(self, *jobs: Job) -> None:
        for job in jobs:
            self._jobs[job.name] = job
            self._lanes[job.name] = {}
            self._queues[job.name] = []
            self._news[job.name] = asyncio.Event()

    # ── its life ──

    def start(self) -> None:
        """From here on everything that a stop left undone is found again, and what comes is followed."""
        self._workers = [
            asyncio.create_task(work) for work in (self._meet_on(), *map(self._serve, self._jobs.values()))
        ]

    async def close(self) -> None:
        working = [lane.working for lane in self._busy if lane.working is not None]
        for task in (*self._workers, *working):
            task.cancel()
        await asyncio.gather(*self._workers, *working, return_exceptions=True)

    # ── who goes first ──

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

    @asynccontextmanager
    async def apart(self, agent_id: str) -> AsyncIterator[None]:
        """Nothing is written down of the agent's meanwhile that is about to be forgotten."""
        async with self._locks.setdefault(agent_id, asyncio.Lock()):
            yield

    async def _give_way(self) -> None:
        # Not `wait_for`: before Python 3.12 it may swallow that the task was cancelled.
        with suppress(TimeoutError):
            async with asyncio.timeout(GIVE_WAY_SECONDS):
                await self._is_quiet.wait()

    # ── news ──

    def notify(self, scope: Scope) -> None:
        """The session has news, or has ended."""
        for job in self._jobs.values():
            if job.news is not None:
                self._wake(job, scope.agent_id, scope.session_id if job.by_session else None, is_news=True)

    def notify_agent(self, agent_id: str) -> None:
        """All of the agent's is looked at."""
        for job in self._jobs.values():
            if job.news is not None:
                self._wake(job, agent_id, None, is_news=True)

    def resume(self, agent_id: str) -> None:
        """What was put off while the agent's memory was imported is due now, and all of the agent's is looked at."""
        for lane in [lane for lane in self._busy if lane.job.is_apart and lane.agent_id == agent_id]:
            for session_id in list(lane.woken):
                self._wake(lane.job, agent_id, session_id)
        self.notify_agent(agent_id)

    def wake(self, name: str, agent_id: str, session_id: str | None = None) -> None:
        """There is something to do for one job."""
        self._wake(self._jobs[name], agent_id, session_id)

    def _wake(self, job: Job, agent_id: str, session_id: str | None, *, is_news: bool = False) -> None:
        gather = GATHER_SECONDS if is_news and job.is_gathered else 0.0
        lane = self._lane(job, agent_id)
        lane.wake(session_id, time.monotonic() + gather)
        self._changed(lane)

    def meet(self) -> None:
        """There are other agents than before."""
        self._are_others.set()

    async def let_go(self, agent_id: str) -> None:
        """Nothing more is done for the agent: another node has it."""
        for lanes in self._lanes.values():
            lane = lanes.pop(agent_id, None)
            if lane is None:
                continue
            lane.queued = inf
            self._busy.discard(lane)
            if lane.working is not None:
                lane.working.cancel()
                await asyncio.gather(lane.working, return_exceptions=True)

    # ── what is asked of it ──

    async def now(self, agent_id: str | None = None, tasks: Sequence[str] | None = None) -> list[TaskRun]:
        """Run the tasks at once, to their end: for one agent or for all, those named or all of them."""
        chosen = self._chosen(tasks)
        agents = [agent_id] if agent_id is not None else await self._agents.agents()
        lanes = [self._lane(job, each) for job in chosen for each in (agents if job.per_agent else [""])]
        left, ended = deque((lane, dict[str, int](), 0.0) for lane in lanes), dict[int, TaskRun]()
        while left:
            lane, did, seconds = left.popleft()
            step = await self._step(lane, None, patience=lanes_module.HANGING_SECONDS)
            if step is None:
                hanging = lane.hanging(time.monotonic())
                ended[id(lane)] = run_of(lane, did, seconds + lanes_module.HANGING_SECONDS, hanging)
                continue
            did, seconds = added(did, step.progress.did), seconds + step.seconds
            if step.error is not None or step.progress.is_done:
                ended[id(lane)] = run_of(lane, did, seconds, step.error)
            else:
                left.append((lane, did, seconds))
        return [ended[id(lane)] for lane in lanes]

    def health(self, agent_id: str | None = None, *, with_others: bool = False) -> list[TaskHealth]:
        """Of each task; with an agent, only of what is done for that one and for nobody in particular. `with_others`:
        also whether it works for others, but not what it did for them."""
        at = time.monotonic()
        return [
            health_of(job, self._lanes[job.name].values(), agent_id, at, with_others=with_others)
            for job in self._tasks()
        ]

    @property
    def failures(self) -> dict[str, int]:
        """How often each task has failed since the start."""
        return {job.name: sum(lane.total_failures for lane in self._lanes[job.name].values()) for job in self._tasks()}

    def backlog(self, agents: Collection[str] | None = None) -> int:
        """What is not done yet and is not merely due some time; of these agents only, where some are named."""
        lanes = [lane for lane in self._busy if agents is None or lane.agent_id in agents]
        waiting = sum(lane.undone for lane in lanes if lane.job.is_counted)
        whose = [None] if agents is None else list(agents)
        waiting += sum(job.waiting(agent_id) for job in self._jobs.values() for agent_id in whose)
        return waiting + (bool(self._workers) and not self._has_begun)

    def waiting(self, name: str, agent_id: str | None = None) -> int:
        """Sessions that a job has still to look at, and what else waits for it."""
        of_all = self._lanes[name]
        lanes = list(of_all.values()) if agent_id is None else [of_all[agent_id]] if agent_id in of_all else []
        looks = sum(lane.is_looked_for for lane in lanes)
        return sum(lane.sessions for lane in lanes) + max(looks, self._jobs[name].waiting(agent_id))

    # ── how ──

    def _tasks(self) -> list[Job]:
        return [job for job in self._jobs.values() if job.is_task]

    def _chosen(self, names: Sequence[str] | None) -> list[Job]:
        tasks = {job.name: job for job in self._tasks()}
        unknown = sorted(set(names or ()) - tasks.keys())
        if unknown:
            raise WrongShape(f"there is no task {unknown[0]!r}: there are {', '.join(tasks)}")
        return [job for name, job in tasks.items() if names is None or name in names]

    def _lane(self, job: Job, agent_id: str) -> Lane:
        lanes, key = self._lanes[job.name], agent_id if job.per_agent else ""
        if key not in lanes:
            every = self._interval if job.every is None and job.is_task else None
            lane = Lane(job=job, agent_id=key, every=job.every.total_seconds() if job.every else every)
            if lane.every is not None:
                lane.pending[None] = max(time.monotonic(), self._first_turn)
            lanes[key] = lane
            self._changed(lane)
        return lanes[key]

    def _changed(self, lane: Lane) -> None:
        """It was woken, begun or settled: when is its turn now, and does somebody wait for it?"""
        if self._lanes[lane.job.name].get(lane.agent_id) is not lane:
            return  # let go of meanwhile
        (self._busy.add if lane.is_busy else self._busy.discard)(lane)
        turn = lane.turn if lane.working is None else inf
        if turn != lane.queued:
            lane.queued = turn
            if turn < inf:
                heappush(self._queues[lane.job.name], (turn, next(self._queued), lane))
        self._news[lane.job.name].set()

    def _first(self, job: Job) -> Lane | None:
        """Whose turn is next: who has waited longest."""
        queue = self._queues[job.name]
        while queue and queue[0][0] != queue[0][2].queued:
            heappop(queue)
        return queue[0][2] if queue else None

    async def _meet_on(self) -> None:
        """Agents come and go; and one that hangs is told of."""
        while True:
            pause = self._interval
            try:
                await self._meet_agents()
            except OffbookError as error:
                log.warning("not done", action="maintenance.agents", detail=error.detail)
                pause = min(MEET_RETRY_SECONDS, self._interval)
            self._tell_of_hanging(time.monotonic())
            with suppress(TimeoutError):
                async with asyncio.timeout(min(pause, lanes_module.HANGING_SECONDS)):
                    await self._are_others.wait()
            self._are_others.clear()

    async def _meet_agents(self) -> None:
        agents = set(await self._agents.agents())
        for job in self._jobs.values():
            lanes, there = self._lanes[job.name], agents if job.per_agent else [""]
            for agent_id in there:
                lane = self._lane(job, agent_id)
                if not lane.is_met and job.is_followed:
                    self._wake(job, agent_id, None)
                lane.is_met = True
            for agent_id in [each for each, lane in lanes.items() if each not in there and not lane.is_busy]:
                lanes.pop(agent_id).queued = inf
        self._has_begun = True

    async def _serve(self, job: Job) -> None:
        """For ever: a piece for each agent whose turn it is, and first for who has waited longest."""
        news = self._news[job.name]
        while True:
            news.clear()
            lane = self._first(job)
            seconds = lane.queued - time.monotonic() if lane is not None else None
            if lane is not None and seconds is not None and seconds <= 0:
                await self._step(lane, lane.next_due(), patience=job.patience_seconds)
            else:
                with suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await news.wait()

    async def _step(self, lane: Lane, session_id: str | None, *, patience: float | None) -> Step | None:
        """One piece; the one that is under way, where there is one. None: not within `patience`, it goes on."""
        await self._give_way()
        if lane.working is None:
            lane.begin(session_id, time.monotonic())
            lane.working = asyncio.create_task(self._work(lane, session_id))
            self._changed(lane)
        working = lane.working
        done, _ = await asyncio.wait([working], timeout=patience)
        return working.result() if done and not working.cancelled() else None

    async def _work(self, lane: Lane, session_id: str | None) -> Step:
        job, progress, error = lane.job, Progress(), None
        try:
            progress = await self._run(job, Batch(lane.agent_id, session_id, PIECE_SECONDS))
        except ModelUnavailable as failed:
            error = failed.detail  # told where it was noted, and in `status`
        except OffbookError as failed:
            error = failed.detail
            if not job.is_task:
                log.warning("not done", action=f"worker.{job.name}", detail=error)
        except Exception as failed:
            # The one broad handler of the background: a defect of ours in one job must not stop the others.
            if not job.is_task:
                log.exception("failed", action=f"worker.{job.name}", **lane.named)
            elif lane.failures == 0:
                log.exception("failed", action="maintenance.failed", **lane.named)
            error = f"it failed ({type(failed).__name__}): see the provider's log"
        at = time.monotonic()
        step = Step(progress=progress, seconds=at - lane.began, error=error)
        lane.settle(step, at)
        self._changed(lane)
        if error is None and not progress.is_idle:
            self._wake_followers(job, lane.agent_id, session_id)
        return step

    async def _run(self, job: Job, batch: Batch) -> Progress:
        if not job.is_apart:
            return await job.run(batch)
        if self._import_pause is not None and (left := await self._import_pause.seconds(batch.agent_id)):
            # Nothing is made of half an import. Who asked for it is not kept waiting; a session keeps its turn.
            return Progress(is_done=batch.session_id is None, again_seconds=left, is_idle=True)
        async with self.apart(batch.agent_id):
            return await job.run(batch)

    def _wake_followers(self, job: Job, agent_id: str, session_id: str | None) -> None:
        for follower in self._jobs.values():
            if job.name in follower.follows and (session_id is not None or not follower.by_session):
                self._wake(follower, agent_id, session_id if follower.by_session else None)

    def _tell_of_hanging(self, at: float) -> None:
        for lane in self._busy:
            if lane.is_hanging(at) and not lane.is_reported_hanging:
                lane.is_reported_hanging = True
                log.error("hangs", action="maintenance.hanging", **lane.named, detail=lane.hanging(at))
