"""Maintenance: tasks in turns, retried, shown where they go on failing, and never in each other's way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
import structlog

from offbook.log.sqlite.store import SqliteStore
from offbook.model.errors import StoreFull, WrongShape
from offbook.model.maintenance import Piece
from offbook.model.status import TaskHealth
from offbook.worker import maintenance
from offbook.worker.maintenance import Maintenance, Task, added
from tests.unit.worker.conftest import CHAT, add, until

SOON = timedelta(seconds=0.05)


class Agents:
    """Of a store what maintenance asks."""

    def __init__(self, *names: str) -> None:
        self.names = list(names)

    async def agents(self) -> list[str]:
        return list(self.names)


def opened(tasks: list[Task], *agents: str, interval: timedelta = SOON) -> Maintenance:
    return Maintenance(Agents(*(agents or ("ada", "bea"))), interval, tasks)  # type: ignore[arg-type]


@asynccontextmanager
async def running(maintained: Maintenance) -> AsyncIterator[Maintenance]:
    loop = asyncio.create_task(maintained.run())
    try:
        yield maintained
    finally:
        loop.cancel()
        await asyncio.gather(loop, return_exceptions=True)
        await maintained.close()


def health_of(maintained: Maintenance, task: str) -> TaskHealth:
    (found,) = [health for health in maintained.health() if health.task == task]
    return found


def counting(calls: list[str], *pieces: Piece) -> Callable[[str], Awaitable[Piece]]:
    """Gives the pieces one after the other, to each agent, then the last one again."""
    given: dict[str, int] = {}

    async def run(agent_id: str) -> Piece:
        calls.append(agent_id)
        number = given.get(agent_id, 0)
        given[agent_id] = number + 1
        return pieces[min(number, len(pieces) - 1)] if pieces else Piece()

    return run


async def fails(agent_id: str) -> Piece:
    raise StoreFull("the disk is full: free some space")


# ── now ──


async def test_now_runs_each_task_for_each_agent_to_its_end() -> None:
    calls: list[str] = []
    part, last = Piece(did={"pages": 2}, is_done=False), Piece(did={"pages": 1, "waiting": 7})
    maintained = opened([Task("wiki", True, counting(calls, part, part, last)), Task("backup", False, counting([]))])
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
    maintained = opened([Task("index", True, counting(calls)), Task("tiers", True, fails)])
    (run,) = await maintained.now("bea", ["index"])
    assert (run.task, run.agent_id, run.error, calls) == ("index", "bea", None, ["bea"])
    with pytest.raises(WrongShape, match="no task 'indx': there are index, tiers"):
        await maintained.now("bea", ["indx"])


async def test_one_that_fails_stops_no_other_and_says_why() -> None:
    calls: list[str] = []

    async def broken(agent_id: str) -> Piece:
        raise ZeroDivisionError("a secret detail")

    maintained = opened([Task("tiers", True, fails), Task("wiki", True, broken), Task("index", True, counting(calls))])
    runs = await maintained.now("ada")
    assert [run.error for run in runs] == [
        "the disk is full: free some space",
        "it failed (ZeroDivisionError): see the provider's log",
        None,
    ]
    assert calls == ["ada"]


async def test_two_who_ask_at_once_do_not_run_a_task_twice_at_a_time() -> None:
    at_once, most = 0, 0

    async def run(agent_id: str) -> Piece:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.01)
        at_once -= 1
        return Piece()

    maintained = opened([Task("index", True, run)], "ada")
    both = await asyncio.gather(maintained.now(), maintained.now())
    assert [[run.error for run in runs] for runs in both] == [[None], [None]]
    assert most == 1


async def test_whoever_goes_away_does_not_break_off_what_was_begun() -> None:
    has_begun, is_let_go, ended = asyncio.Event(), asyncio.Event(), list[str]()

    async def run(agent_id: str) -> Piece:
        has_begun.set()
        await is_let_go.wait()
        ended.append(agent_id)
        return Piece()

    maintained = opened([Task("index", True, run)], "ada")
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
    async with running(Maintenance(agents, SOON, [Task("index", True, counting(calls))])) as maintained:  # type: ignore[arg-type]
        await until(lambda: calls.count("ada") > 2)
        agents.names = ["bea"]
        await until(lambda: "bea" in calls)
        await until(lambda: health_of(maintained, "index").runs == calls.count("bea"))


async def test_one_with_its_own_pace_keeps_to_it() -> None:
    calls: list[str] = []
    often: list[str] = []
    rarely = Task("backup", False, counting(calls), every=timedelta(hours=1))
    async with running(opened([rarely, Task("index", True, counting(often))])):
        await until(lambda: len(often) > 20)
    assert calls == [""]


async def test_a_failure_is_retried_before_its_usual_turn_and_then_only_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("offbook.model.schedule.RETRY_SECONDS", (0.01, 0.02))
    monkeypatch.setattr(maintenance, "FIRST_SECONDS", 0.0)
    attempts: list[str] = []

    async def run(agent_id: str) -> Piece:
        attempts.append(agent_id)
        raise StoreFull("the disk is full")

    often = Task("index", False, counting([]), every=SOON)
    async with running(opened([Task("tiers", True, run), often], "ada", interval=timedelta(hours=1))) as maintained:
        await until(lambda: len(attempts) == 3)
        seen = health_of(maintained, "index").runs
        await until(lambda: health_of(maintained, "index").runs > seen + 5)
    assert attempts == ["ada"] * 3


async def test_a_failure_is_retried_then_shown_and_then_over() -> None:
    attempts = 0

    async def run(agent_id: str) -> Piece:
        nonlocal attempts
        attempts += 1
        if attempts <= 5:
            raise StoreFull("the disk is full")
        return Piece()

    seen: list[TaskHealth] = []
    maintained = opened([Task("tiers", True, run)], "ada")
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
    async def run(agent_id: str) -> Piece:
        if agent_id == "bea":
            raise StoreFull("bea's secret")
        return Piece(did={"pages": 1})

    maintained = opened([Task("wiki", True, run)])
    for _ in range(3):
        await maintained.now()
    (ada,), (bea,), (all_,) = maintained.health("ada"), maintained.health("bea"), maintained.health()
    assert (ada.error, ada.did, ada.runs) == (None, {"pages": 3}, 3)
    assert bea.error == all_.error == "agent bea: bea's secret"


async def test_what_waits_for_a_person_is_named_for_its_agent_only() -> None:
    waiting = {"ada": ["wiki/ada/lessons/lesson-0001.md: it has no statement"], "bea": ["another"] * 9}

    async def run(agent_id: str) -> Piece:
        return Piece(did={"pages not understood": len(waiting[agent_id])}, waits=waiting[agent_id])

    maintained = opened([Task("wiki", True, run)])
    runs = {each.agent_id: each for each in await maintained.now()}
    assert (runs["ada"].waits, len(runs["bea"].waits)) == (waiting["ada"], maintenance.MOST_NAMED)
    (ada,) = maintained.health("ada", with_others=True)
    assert (ada.waits, ada.did, ada.runs) == (waiting["ada"], {"pages not understood": 1}, 2)
    waiting["ada"] = []
    await maintained.now("ada")
    assert maintained.health("ada")[0].waits == []


async def test_one_that_hangs_is_shown_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "PATIENCE_SECONDS", 0.02)
    monkeypatch.setattr(maintenance, "HANGING_SECONDS", 0.05)
    calls: list[str] = []

    async def hangs(agent_id: str) -> Piece:
        await asyncio.Event().wait()
        return Piece()

    with structlog.testing.capture_logs() as logs:
        async with running(opened([Task("wiki", True, hangs), Task("index", True, counting(calls))], "ada")) as all_:
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
    monkeypatch.setattr(maintenance, "now", lambda: datetime(next(years), 1, 1, tzinfo=UTC))
    rarely = Task("backup", False, counting(calls), every=timedelta(hours=1))
    often: list[str] = []
    async with running(opened([rarely, Task("index", True, counting(often))], "ada")) as maintained:
        await until(lambda: len(often) > 10)
        assert calls == [""]
        assert all(health.error is None and health.next_run is not None for health in maintained.health())


async def test_it_waits_for_those_who_wait_for_an_answer() -> None:
    order: list[str] = []

    async def give_way() -> None:
        order.append("waited")

    async def run(agent_id: str) -> Piece:
        order.append("ran")
        return Piece()

    await Maintenance(Agents("ada"), SOON, [Task("index", True, run)], give_way=give_way).now()  # type: ignore[arg-type]
    assert order == ["waited", "ran"]


async def test_closing_does_not_wait_for_one_that_hangs() -> None:
    has_begun = asyncio.Event()

    async def hangs(agent_id: str) -> Piece:
        has_begun.set()
        await asyncio.Event().wait()
        return Piece()

    maintained = opened([Task("wiki", True, hangs)], "ada")
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

    async with running(Maintenance(Flaky(), SOON, [Task("index", True, counting(calls))])):  # type: ignore[arg-type]
        await until(lambda: "main" in calls)


def test_what_waits_is_not_added_up() -> None:
    assert added({"indexed": 2, "waiting": 9}, {"indexed": 3, "waiting": 4}) == {"indexed": 5, "waiting": 4}
