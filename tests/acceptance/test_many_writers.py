"""Many connections at once, mixed batches, things sent twice, and a stop in the middle of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.provider import end, start, working_folder
from benchmarks.trials.reckoning import logged_ids, reckon
from benchmarks.trials.requests import Planned
from benchmarks.trials.writers import Load, writers_in

from offbook.model.types import Scope
from tests.acceptance.daemon import WITHOUT_MODEL, Daemon

CONNECTIONS = 32
REQUESTS = 120
REQUESTS_BEFORE_STOP = 60


@pytest.fixture
def home() -> Iterator[Path]:
    with working_folder() as folder:
        yield folder / "home"


@pytest.fixture
def provider(home: Path) -> Iterator[Daemon]:
    daemon = start(home, is_forked=True, **WITHOUT_MODEL)
    yield daemon
    end(daemon)


async def under_load(load: Load, *, requests: int) -> None:
    """Until that many were acknowledged."""
    load.begin()
    async with asyncio.timeout(60):
        while len(load.acknowledged) < requests:
            load.check()
            await asyncio.sleep(0.01)


async def test_each_writers_messages_are_there_once_and_in_its_order(home: Path, provider: Daemon) -> None:
    load = Load(writers_in(provider.socket, CONNECTIONS, seed=3, repeated_share=0.3))
    await under_load(load, requests=REQUESTS)
    await load.finish()
    assert await asyncio.to_thread(provider.stop) == 0
    found = await reckon(home, load.acknowledged, load.sent)
    assert found.faults == []
    assert load.refusals == []
    assert load.lost_answers == 0
    repeated = sum(each.duplicates for each in load.acknowledged)
    assert repeated > 0
    assert found.messages == found.acknowledged - repeated


async def test_two_agents_with_the_same_session_names_share_nothing(home: Path, provider: Daemon) -> None:
    load = Load(writers_in(provider.socket, 8, seed=4, agents=2, sessions=1))
    await under_load(load, requests=80)
    await load.finish()
    for agent_id in ("agent-0", "agent-1"):
        scope = Scope(agent_id=agent_id, session_id="session-0")
        assert set(await logged_ids(home, scope)) == ids_of(load.sent, agent_id)


def ids_of(sent: list[Planned], agent_id: str) -> set[str]:
    return {id_ for planned in sent if planned.scope.agent_id == agent_id for id_ in planned.ids}


async def test_a_stop_in_the_middle_of_load_keeps_what_was_acknowledged(home: Path, provider: Daemon) -> None:
    load = Load(writers_in(provider.socket, CONNECTIONS, seed=5))
    await under_load(load, requests=REQUESTS_BEFORE_STOP)
    # The writers go on until it is gone: so it hits some of their requests, however soon or late it is.
    assert await asyncio.to_thread(provider.stop) == 0
    await load.finish(gives_up=True)
    found = await reckon(home, load.acknowledged, load.sent)
    assert found.faults == []
    assert len(load.acknowledged) < len(load.sent), "the stop hit no request"
