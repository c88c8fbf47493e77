"""Several nodes over one database: who has which agents, and that nobody else writes for them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

import psycopg
import pytest

from offbook.log.postgres import node_writer
from offbook.log.postgres.connection import PostgresConnection
from offbook.log.postgres.nodes import BUCKETS, Nodes, bucket_of, proposed
from offbook.log.postgres.store import PostgresStore
from offbook.log.verification import verify
from offbook.model.errors import AgentMoved, StoreBusy, StoreError, StoreOwned
from offbook.model.types import Scope
from tests.acceptance.nodes import Ack, faults_of
from tests.contract.test_store import add, entry, texts
from tests.postgres_server import new_database

LEASE = 3.0
PATIENCE = 60.0
"""For what happens within a lease or two on a quiet machine."""


@pytest.fixture
def url() -> str:
    return new_database()


def opened(url: str, node: str) -> PostgresStore:
    return PostgresStore(url, node=node, node_url=f"http://{node}:1", lease_seconds=LEASE)


@asynccontextmanager
async def two(url: str) -> AsyncIterator[tuple[PostgresStore, PostgresStore]]:
    """Both with their share of the buckets."""
    one = opened(url, "one")
    other = opened(url, "two")
    try:
        await until(lambda: len(held(one)) + len(held(other)) == BUCKETS and bool(held(other)))
        yield one, other
    finally:
        await one.close()
        await other.close()


async def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)


def nodes_of(store: PostgresStore) -> Nodes:
    assert isinstance(store.owners, Nodes)
    return store.owners


def held(store: PostgresStore) -> set[int]:
    return set(nodes_of(store).held)


def agent_of(store: PostgresStore) -> str:
    return next(name for name in map(str, range(100_000)) if bucket_of(name) in held(store))


def chat(agent_id: str) -> Scope:
    return Scope(agent_id=agent_id, session_id="chat")


async def sound(store: PostgresStore, agent_id: str) -> bool:
    return [fault async for fault in verify(store, agent_id)] == []


@contextmanager
def stopped(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As SIGSTOP does: it renews nothing."""
    with monkeypatch.context() as patch:
        patch.setattr(nodes_of(store), "look", lambda: None)
        yield


def test_a_bucket_moves_only_with_the_node_that_comes_or_goes() -> None:
    before = {bucket: proposed(bucket, ["a", "b", "c"]) for bucket in range(BUCKETS)}
    after = {bucket: proposed(bucket, ["a", "b"]) for bucket in range(BUCKETS)}
    assert all(after[bucket] == node for bucket, node in before.items() if node != "c")
    assert min(list(before.values()).count(node) for node in "abc") > BUCKETS / 5


async def test_each_agent_is_one_nodes_and_only_that_one_writes(url: str) -> None:
    async with two(url) as (one, other):
        agent_id = agent_of(one)
        await add(one, entry("mine"), scope=chat(agent_id))
        with pytest.raises(AgentMoved):
            await add(other, entry("not mine"), scope=chat(agent_id))
        assert await texts(other, chat(agent_id)) == ["mine"]
        assert nodes_of(other).url(agent_id) == "http://one:1"
        assert nodes_of(one).url(agent_id) is None
        assert not held(one) & held(other)


async def test_rows_of_several_nodes_get_numbers_of_their_own(url: str) -> None:
    async with two(url) as (one, other):
        stores = {agent_of(one): one, agent_of(other): other}

        async def talk(agent_id: str, store: PostgresStore) -> None:
            for number in range(20):
                await add(store, entry("hello"), scope=Scope(agent_id=agent_id, session_id=f"{number}"))

        await asyncio.gather(*[talk(agent_id, store) for agent_id, store in stores.items()])
        for agent_id, store in stores.items():
            assert len(await store.sessions(agent_id, limit=100)) == 20
            assert await sound(store, agent_id)


async def test_a_node_that_leaves_hands_over_at_once(url: str) -> None:
    async with two(url) as (one, other):
        agent_id = agent_of(other)
        await add(other, entry("before"), scope=chat(agent_id))
        await other.close()
        await until(lambda: len(held(one)) == BUCKETS)
        await add(one, entry("after"), scope=chat(agent_id))
        assert await texts(one, chat(agent_id)) == ["before", "after"]
        assert await sound(one, agent_id)


async def test_one_that_was_stopped_is_overtaken_and_writes_and_reads_nothing(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with two(url) as (one, other):
        agent_id = agent_of(other)
        await add(other, entry("before"), scope=chat(agent_id))
        began, number = time.monotonic(), nodes_of(other).number
        with stopped(other, monkeypatch):
            await until(lambda: len(held(one)) == BUCKETS)
            assert time.monotonic() - began >= LEASE * 0.8, "before the lease had lapsed"
            await add(one, entry("after"), scope=chat(agent_id))
            with pytest.raises(StoreError):
                await add(other, entry("too late"), scope=chat(agent_id))
            assert nodes_of(other).epoch(agent_id) is None
            with pytest.raises(StoreBusy):
                await texts(other, chat(agent_id))
        await until(lambda: nodes_of(other).number != number)
        assert await texts(one, chat(agent_id)) == ["before", "after"]
        await until(lambda: bucket_of(agent_id) in held(other))
        await add(other, entry("back"), scope=chat(agent_id))
        assert await texts(other, chat(agent_id)) == ["before", "after", "back"]
        assert await sound(other, agent_id)


async def test_what_is_kept_of_an_agent_is_of_another_version_when_it_comes_back(url: str) -> None:
    async with two(url) as (_, other):
        agent_id = agent_of(other)
        before = other.versions.of(agent_id, "erased")
        nodes_of(other).lose([bucket_of(agent_id)])
        await until(lambda: bucket_of(agent_id) in held(other))
        assert other.versions.of(agent_id, "erased") > before
        assert not other.versions.is_erased_since(agent_id, other.versions.of(agent_id, "erased"))


async def test_none_is_taken_back_before_it_was_let_go_of(url: str) -> None:
    store = opened(url, "one")
    lost: list[int] = []
    nodes_of(store).when_lost = lost.extend
    nodes_of(store).lose([7])
    assert lost == [7]
    await until(lambda: owner_in(url, 7) == 0)
    await asyncio.sleep(LEASE / 2)
    assert 7 not in held(store)
    nodes_of(store).let_go([7])
    await until(lambda: 7 in held(store))
    await store.close()


def owner_in(url: str, bucket: int) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT owner FROM offbook.buckets WHERE bucket = %s", (bucket,)).fetchone()
    assert row is not None
    return int(row[0])


async def test_a_provider_that_is_alone_and_nodes_keep_each_other_out(url: str) -> None:
    node = opened(url, "one")
    with pytest.raises(StoreOwned, match="several nodes"):
        PostgresStore(url, node="alone")
    await node.close()
    alone = PostgresStore(url, node="alone", lease_seconds=LEASE)
    await add(alone, entry("alone"))
    with pytest.raises(StoreOwned):
        opened(url, "one")
    await alone.close()
    again = opened(url, "one")
    assert len(held(again)) == BUCKETS
    await add(again, entry("one of several"))
    assert await texts(again) == ["alone", "one of several"]
    await again.close()


async def test_nodes_that_were_stopped_write_nothing_after_one_that_is_alone(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = opened(url, "one")
    with stopped(node, monkeypatch):
        deadline, alone = time.monotonic() + PATIENCE, None
        while alone is None:
            try:
                alone = PostgresStore(url, node="alone", lease_seconds=LEASE)
            except StoreOwned:
                assert time.monotonic() < deadline
                await asyncio.sleep(0.1)
        await add(alone, entry("alone"))
        with pytest.raises(StoreError):
            await add(node, entry("too late"))
    await until(lambda: node._writer is not None and node._writer.ended is not None)
    assert await texts(alone) == ["alone"]
    await node.close()
    await alone.close()


async def test_the_same_folder_takes_over_from_its_earlier_process(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = opened(url, "one")
    await add(first, entry("before"))
    monkeypatch.setattr(nodes_of(first), "look", lambda: None)  # it was killed
    second = opened(url, "one")
    assert len(held(second)) == BUCKETS
    await add(second, entry("after"))
    assert await texts(second) == ["before", "after"]
    assert nodes_of(first).number != nodes_of(second).number
    await second.close()
    await first.close()


async def test_after_one_that_was_alone_numbers_go_on_from_the_largest(url: str) -> None:
    alone = PostgresStore(url, node="one")
    for number in range(5):
        await add(alone, entry("hello"), scope=Scope(agent_id="main", session_id=f"{number}"))
    await alone.close()
    node = opened(url, "one")
    await add(node, entry("hello"), scope=Scope(agent_id="main", session_id="new"))
    assert await node.session_number("main", "new") == 6
    await node.close()
    connection = PostgresConnection(url, name="test")
    assert connection.execute("SELECT count(*) FROM nodes").get == 0
    connection.close()


@pytest.mark.parametrize("is_checked", [True, False])
async def test_without_the_check_of_epochs_the_checker_finds_a_fault(
    url: str, monkeypatch: pytest.MonkeyPatch, is_checked: bool
) -> None:
    """The same history with it and without: an owner that was overtaken writes."""
    acks: list[Ack] = []

    async def say(store: PostgresStore, agent_id: str, epoch: int) -> None:
        said = entry("hello", id=str(len(acks) + 1))
        with suppress(StoreError):
            await add(store, said, scope=chat(agent_id))
            acks.append(Ack(agent_id, str(len(acks) + 1), epoch))

    async with two(url) as (one, other):
        agent_id = agent_of(other)
        earlier = nodes_of(other).held[bucket_of(agent_id)]
        await say(other, agent_id, earlier)
        with stopped(other, monkeypatch):
            await until(lambda: len(held(one)) == BUCKETS)
            await say(one, agent_id, nodes_of(one).held[bucket_of(agent_id)])
            if not is_checked:
                monkeypatch.setattr(node_writer, "_HOLD", UNCHECKED)
                monkeypatch.setattr(node_writer.NodeLedger, "confirm", lambda self, number: None)
            await say(other, agent_id, earlier)
        faults = await faults_of(one, acks)
    assert len(acks) == (2 if is_checked else 3)
    assert [fault for fault in faults if "overtaken" in fault] == faults
    assert bool(faults) != is_checked


UNCHECKED = "UPDATE node_writes SET writes = writes + 1 WHERE number = ? RETURNING writes"
