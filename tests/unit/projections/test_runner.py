"""The runner: jobs in turns, retried, shown where they go on failing, and never in each other's way."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import structlog

from offbook.log.sqlite.store import SqliteStore
from offbook.model.errors import StoreFull, WrongShape
from offbook.model.status import TaskHealth
from offbook.model.types import Scope
from offbook.projections import lanes
from offbook.projections import runner as runner_module
from offbook.projections.base import Batch, Progress
from offbook.projections.lanes import Job, added
from offbook.projections.runner import Runner
from tests.unit.projections.conftest import CHAT, add, until

SOON = timedelta(seconds=0.05)


class Agents:
    """Of a store what a runner asks."""

    def __init__(self, *names: str) -> None:
        self.names = list(names)

    async def agents(self) -> list[str]:
        return list(self.names)


def opened(jobs: list[Job], *agents: str, interval: timedelta = SOON) -> Runner:
    return of_agents(Agents(*(agents or ("ada", "bea"))), jobs, interval)


def of_agents(agents: Agents, jobs: list[Job], interval: timedelta = SOON) -> Runner:
    runner = Runner(agents, interval)
    runner.add(*jobs)
    return runner


@asynccontextmanager
async def running(maintained: Runner) -> AsyncIterator[Runner]:
    maintained.start()
    try:
        yield maintained
    finally:
        await maintained.close()


def health_of(maintained: Runner, task: str) -> TaskHealth:
    (found,) = [health for health in maintained.health() if health.task == task]
    return found


def counting(calls: list[str], *pieces: Progress) -> Callable[[Batch], Awaitable[Progress]]:
    """Gives the pieces one after the other, to each agent, then the last one again."""
    given: dict[str, int] = {}

    async def run(batch: Batch) -> Progress:
        agent_id = batch.agent_id
        calls.append(agent_id)
        number = given.get(agent_id, 0)
        given[agent_id] = number + 1
        return pieces[min(number, len(pieces) - 1)] if pieces else Progress()

    return run


async def fails(batch: Batch) -> Progress:
    raise StoreFull("the disk is full: free some space")


# ── now ──


async def test_now_runs_each_task_for_each_agent_to_its_end() -> None:
    calls: list[str] = []
    part, last = Progress(did={"pages": 2}, is_done=False), Progress(did={"pages": 1, "waiting": 7})
    maintained = opened([Job("wiki", counting(calls, part, part, last)), Job("backup", counting([]), per_agent=False)])
    runs = await maintained.now()
    assert [(run.task, run.agent_id, run.did) for run in runs] == [
        ("wiki", "ada", {"pages": 5, "waiting": 7}),
        ("wiki", "bea", {"pages": 5, "waiting": 7}),
        ("backup", None, {}),
    ]
    assert calls == ["ada", "bea"] * 3, "others have their turn between two pieces"
    assert health_of(maintained, "wiki").did == {"pages": 10, "waiting": 14}
    assert health_of(maintained, "wiki").runs == 2


async def test_now_runs_what_was_named_for_whom_it_was_named() -> None:
    calls: list[str] = []
    maintained = opened([Job("index", counting(calls)), Job("tiers", fails)])
    (run,) = await maintained.now("bea", ["index"])
    assert (run.task, run.agent_id, run.error, calls) == ("index", "bea", None, ["bea"])
    with pytest.raises(WrongShape, match="no task 'indx': there are index, tiers"):
        await maintained.now("bea", ["indx"])


async def test_one_that_fails_stops_no_other_and_says_why() -> None:
    calls: list[str] = []

    async def broken(batch: Batch) -> Progress:
        raise ZeroDivisionError("a secret detail")

    maintained = opened([Job("tiers", fails), Job("wiki", broken), Job("index", counting(calls))])
    runs = await maintained.now("ada")
    assert [run.error for run in runs] == [
        "the disk is full: free some space",
        "it failed (ZeroDivisionError): see the provider's log",
        None,
    ]
    assert calls == ["ada"]


async def test_two_who_ask_at_once_do_not_run_a_task_twice_at_a_time() -> None:
    at_once, most = 0, 0

    async def run(batch: Batch) -> Progress:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.01)
        at_once -= 1
        return Progress()

    maintained = opened([Job("index", run)], "ada")
    both = await asyncio.gather(maintained.now(), maintained.now())
    assert [[run.error for run in runs] for runs in both] == [[None], [None]]
    assert most == 1


async def test_whoever_goes_away_does_not_break_off_what_was_begun() -> None:
    has_begun, is_let_go, ended = asyncio.Event(), asyncio.Event(), list[str]()

    async def run(batch: Batch) -> Progress:
        agent_id = batch.agent_id
        has_begun.set()
        await is_let_go.wait()
        ended.append(agent_id)
        return Progress()

    maintained = opened([Job("index", run)], "ada")
    asking = asyncio.create_task(maintained.now())
    await has_begun.wait()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    is_let_go.set()
    await until(lambda: ended == ["ada"])
    await until(lambda: health_of(maintained, "index").runs == 1)


# ── by itself ──


async def test_it_runs_by_itself_again_and_again_also_for_who_comes_later() -> None:
    calls: list[str] = []
    agents = Agents("ada")
    async with running(of_agents(agents, [Job("index", counting(calls))])) as maintained:
        await until(lambda: calls.count("ada") > 2)
        agents.names = ["bea"]
        await until(lambda: "bea" in calls)
        await until(lambda: health_of(maintained, "index").runs == calls.count("bea"))


async def test_one_with_its_own_pace_keeps_to_it() -> None:
    calls: list[str] = []
    often: list[str] = []
    rarely = Job("backup", counting(calls), every=timedelta(hours=1), per_agent=False)
    async with running(opened([rarely, Job("index", counting(often))])):
        await until(lambda: len(often) > 20)
    assert calls == [""]


async def test_a_failure_is_retried_before_its_usual_turn_and_then_only_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("offbook.model.schedule.RETRY_SECONDS", (0.01, 0.02))
    monkeypatch.setattr(runner_module, "FIRST_SECONDS", 0.0)
    attempts: list[str] = []

    async def run(batch: Batch) -> Progress:
        agent_id = batch.agent_id
        attempts.append(agent_id)
        raise StoreFull("the disk is full")

    often = Job("index", counting([]), per_agent=False, every=SOON)
    async with running(opened([Job("tiers", run), often], "ada", interval=timedelta(hours=1))) as maintained:
        await until(lambda: len(attempts) == 3)
        seen = health_of(maintained, "index").runs
        await until(lambda: health_of(maintained, "index").runs > seen + 5)
    assert attempts == ["ada"] * 3


async def test_a_failure_is_retried_then_shown_and_then_over() -> None:
    attempts = 0

    async def run(batch: Batch) -> Progress:
        nonlocal attempts
        attempts += 1
        if attempts <= 5:
            raise StoreFull("the disk is full")
        return Progress()

    seen: list[TaskHealth] = []
    maintained = opened([Job("tiers", run)], "ada")
    with structlog.testing.capture_logs() as logs:
        for _ in range(6):
            await maintained.now()
            seen.append(health_of(maintained, "tiers"))
    assert [(health.failures, health.error) for health in seen] == [
        (1, None),
        (2, None),
        (3, "agent ada: the disk is full"),
        (4, "agent ada: the disk is full"),
        (5, "agent ada: the disk is full"),
        (0, None),
    ]
    assert [line["event"] for line in logs] == ["not done", "works again"], "told once"
    assert maintained.failures == {"tiers": 5}
    assert seen[-1].last_success is not None
    assert seen[0].last_success is None


async def test_who_asks_for_one_agent_is_not_told_of_others() -> None:
    async def run(batch: Batch) -> Progress:
        agent_id = batch.agent_id
        if agent_id == "bea":
            raise StoreFull("bea's secret")
        return Progress(did={"pages": 1})

    maintained = opened([Job("wiki", run)])
    for _ in range(3):
        await maintained.now()
    (ada,), (bea,), (all_,) = maintained.health("ada"), maintained.health("bea"), maintained.health()
    assert (ada.error, ada.did, ada.runs) == (None, {"pages": 3}, 3)
    assert bea.error == all_.error == "agent bea: bea's secret"


async def test_what_waits_for_a_person_is_named_for_its_agent_only() -> None:
    waiting = {"ada": ["wiki/ada/lessons/lesson-0001.md: it has no statement"], "bea": ["another"] * 9}

    async def run(batch: Batch) -> Progress:
        agent_id = batch.agent_id
        return Progress(did={"pages not understood": len(waiting[agent_id])}, waits=waiting[agent_id])

    maintained = opened([Job("wiki", run)])
    runs = {each.agent_id: each for each in await maintained.now()}
    assert (runs["ada"].waits, len(runs["bea"].waits)) == (waiting["ada"], lanes.MOST_NAMED)
    (ada,) = maintained.health("ada", with_others=True)
    assert (ada.waits, ada.did, ada.runs) == (waiting["ada"], {"pages not understood": 1}, 2)
    waiting["ada"] = []
    await maintained.now("ada")
    assert maintained.health("ada")[0].waits == []


async def test_one_that_hangs_is_shown_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "HANGING_SECONDS", 0.05)
    calls: list[str] = []

    async def hangs(batch: Batch) -> Progress:
        await asyncio.Event().wait()
        return Progress()

    with structlog.testing.capture_logs() as logs:
        async with running(opened([Job("wiki", hangs), Job("index", counting(calls))], "ada")) as all_:
            await until(lambda: any(line["event"] == "hangs" for line in logs))
            seen = len(calls)
            await until(lambda: len(calls) > seen + 3)
            error = health_of(all_, "wiki").error
            assert error is not None
            assert error.startswith("agent ada: at one piece for 0 minutes now")
            (run,) = await all_.now("ada", ["wiki"])
            assert run.error is not None
    assert [line["event"] for line in logs].count("hangs") == 1


async def test_a_wall_clock_that_jumps_changes_no_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    years = iter([1971, 2026, 8999, 2026, 1902, 2500] * 1000)
    monkeypatch.setattr(lanes, "now", lambda: datetime(next(years), 1, 1, tzinfo=UTC))
    rarely = Job("backup", counting(calls), every=timedelta(hours=1), per_agent=False)
    often: list[str] = []
    async with running(opened([rarely, Job("index", counting(often))], "ada")) as maintained:
        await until(lambda: len(often) > 10)
        assert calls == [""]
        assert all(health.error is None and health.next_run is not None for health in maintained.health())


async def test_it_waits_for_those_who_wait_for_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner_module, "GIVE_WAY_SECONDS", 60.0)
    order: list[str] = []

    async def run(batch: Batch) -> Progress:
        order.append("ran")
        return Progress()

    runner = opened([Job("index", run)], "ada")
    with runner.answering():
        asked = asyncio.create_task(runner.now())
        await asyncio.sleep(0.02)
        order.append("answered")
    await asked
    assert order == ["answered", "ran"]


async def test_closing_does_not_wait_for_one_that_hangs() -> None:
    has_begun = asyncio.Event()

    async def hangs(batch: Batch) -> Progress:
        has_begun.set()
        await asyncio.Event().wait()
        return Progress()

    maintained = opened([Job("wiki", hangs)], "ada")
    asking = asyncio.create_task(maintained.now())
    await has_begun.wait()
    async with asyncio.timeout(120):
        await maintained.close()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)


async def test_a_store_that_cannot_say_who_is_there_is_asked_again(store: SqliteStore) -> None:
    await add(store, "hello", scope=CHAT)
    calls: list[str] = []
    asked = 0

    class Flaky(Agents):
        async def agents(self) -> list[str]:
            nonlocal asked
            asked += 1
            if asked < 3:
                raise StoreFull("not now")
            return await store.agents()

    async with running(of_agents(Flaky(), [Job("index", counting(calls))])):
        await until(lambda: "main" in calls)


def test_what_waits_is_not_added_up() -> None:
    assert added({"indexed": 2, "waiting": 9}, {"indexed": 3, "waiting": 4}) == {"indexed": 5, "waiting": 4}


# ── news ──


def following(name: str, run: Callable[[Batch], Awaitable[Progress]], **fields: Any) -> Job:
    return Job(name, run, is_task=False, **{"news": "session", "by_session": True, **fields})


def noting(seen: list[tuple[str, str | None]], *, pieces: int = 1) -> Callable[[Batch], Awaitable[Progress]]:
    """Takes so many pieces for each session."""
    left: dict[tuple[str, str | None], int] = {}

    async def run(batch: Batch) -> Progress:
        key = (batch.agent_id, batch.session_id)
        seen.append(key)
        left[key] = left.get(key, pieces) - 1
        if left[key] <= 0:
            del left[key]
            return Progress()
        return Progress(is_done=False)

    return run


async def test_who_has_news_has_its_turn_once_and_others_between_two_pieces() -> None:
    seen: list[tuple[str, str | None]] = []
    runner = opened([following("state", noting(seen, pieces=2))], "nobody", interval=timedelta(hours=1))
    for agent_id in ("ada", "bea", "ada"):
        runner.notify(Scope(agent_id=agent_id, session_id="chat"))
    async with running(runner):
        await until(lambda: len(seen) > 4 and runner.backlog() == 0)
    said = [key for key in seen if key[1] is not None]
    assert said == [("ada", "chat"), ("bea", "chat")] * 2
    assert [key for key in seen if key[1] is None] == [("nobody", None)] * 2, "whoever is there is looked at once"


async def test_what_follows_is_woken_for_the_same_session_and_nobody_forgets_it_meanwhile() -> None:
    first, second, files = (list[tuple[str, str | None]]() for _ in range(3))
    jobs = [
        following("state", noting(first)),
        following("summaries", noting(second), news=None, follows=("state",)),
        following("files", noting(files), news=None, by_session=False, follows=("summaries",)),
    ]
    runner = opened(jobs, "nobody")
    async with running(runner):
        await until(lambda: runner.backlog() == 0)
        runner.notify(Scope(agent_id="ada", session_id="chat"))
        assert runner.backlog() > 0
        assert runner.waiting("state", "ada") == 1
        await until(lambda: runner.backlog() == 0)
        assert (second, files) == ([("ada", "chat")], [("ada", None)])


async def test_sessions_that_a_look_finds_are_done() -> None:
    seen: list[str | None] = []

    async def run(batch: Batch) -> Progress:
        seen.append(batch.session_id)
        return Progress(sessions=("one", "two")) if batch.session_id is None else Progress()

    runner = opened([following("state", run)], "ada")
    async with running(runner):
        await until(lambda: seen == [None, "one", "two"])


async def test_what_is_to_be_asked_again_later_is_no_backlog() -> None:
    seen: list[str | None] = []

    async def run(batch: Batch) -> Progress:
        seen.append(batch.session_id)
        return Progress(again_seconds=0.02 if len(seen) < 3 else None)

    runner = opened([following("index", run, by_session=False, news="agent")], "ada", interval=timedelta(hours=1))
    async with running(runner):
        await until(lambda: len(seen) == 1)
        assert runner.backlog() == 0
        await until(lambda: len(seen) == 3)
        await asyncio.sleep(0.1)
    assert len(seen) == 3


async def test_a_session_that_fails_is_tried_again_and_stays_in_the_backlog() -> None:
    attempts: list[str | None] = []

    async def run(batch: Batch) -> Progress:
        if batch.session_id is not None:
            attempts.append(batch.session_id)
            if len(attempts) < 3:
                raise StoreFull("the disk is full")
        return Progress()

    runner = opened([following("summaries", run, retry_seconds=0.01)], "ada")
    async with running(runner):
        runner.notify(Scope(agent_id="ada", session_id="chat"))
        await until(lambda: len(attempts) == 1)
        assert runner.waiting("summaries", "ada") >= 1  # with the first look at the agent, where that is still to come
        await until(lambda: len(attempts) == 3 and runner.backlog() == 0)


async def test_nothing_is_made_of_half_an_import_nor_while_something_is_forgotten() -> None:
    seen: list[tuple[str, str | None]] = []
    left = 0.05

    class Pause:
        async def seconds(self, agent_id: str) -> float:
            return left

    runner = Runner(Agents("ada"), timedelta(hours=1), import_pause=Pause())
    runner.add(following("summaries", noting(seen), is_apart=True), Job("wiki", noting(seen), is_apart=True))
    async with running(runner):
        runner.notify(Scope(agent_id="ada", session_id="chat"))
        (run,) = await runner.now("ada")
        assert (run.error, run.did, seen) == (None, {}, [])
        async with runner.apart("ada"):
            left = 0.0
            await asyncio.sleep(0.1)
            assert seen == []
            assert runner.backlog() > 0
        await until(lambda: ("ada", "chat") in seen and runner.backlog() == 0)


async def test_one_that_may_run_only_so_often_waits() -> None:
    seen: list[tuple[str, str | None]] = []
    job = Job("tiers", noting(seen), news="agent", least_seconds=30.0, is_counted=False)
    runner = opened([job], "ada", interval=timedelta(hours=1))
    async with running(runner):
        await until(lambda: len(seen) == 1)
        runner.notify(Scope(agent_id="ada", session_id="chat"))
        await asyncio.sleep(0.05)
    assert len(seen) == 1


# ── many agents ──


async def test_whatever_happens_each_lane_is_queued_by_its_turn_and_only_busy_ones_are_counted() -> None:
    chance = random.Random(5)
    agents = [f"agent-{number}" for number in range(40)]
    is_over = asyncio.Event()

    async def work(batch: Batch) -> Progress:
        await asyncio.sleep(chance.uniform(0, 0.002))
        if is_over.is_set():
            return Progress()
        if chance.random() < 0.1:
            raise StoreFull("the disk is full: free some space")
        again = 0.01 if chance.random() < 0.2 else None
        return Progress(is_done=chance.random() < 0.7, again_seconds=again)

    jobs = [
        Job("index", work, news="agent", retry_seconds=0.005),
        Job("state", work, is_task=False, by_session=True, news="session", follows=("index",), retry_seconds=0.005),
    ]
    async with running(opened(jobs, *agents, interval=timedelta(hours=1))) as maintained:
        for _ in range(300):
            maintained.notify(Scope(agent_id=chance.choice(agents), session_id=f"chat{chance.randrange(3)}"))
            if chance.random() < 0.2:
                await maintained.now(chance.choice(agents), ["index"])
            for each in [lane for of_job in maintained._lanes.values() for lane in of_job.values()]:
                assert each.queued == (each.turn if each.working is None else math.inf)
                assert (each in maintained._busy) == each.is_busy
            await asyncio.sleep(0)
        is_over.set()
        await until(lambda: not maintained.backlog())
        assert max(map(len, maintained._queues.values())) < 40 * len(agents), "what is void is taken out in time"
