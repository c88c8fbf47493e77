"""A store that finds no room: what is said is refused, what is read is held, what makes room may use the reserve."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import nullcontext
from pathlib import Path

import apsw
import pytest

from offbook.log.sql import held_events, writer
from offbook.log.sqlite import checkpointer, purge, reserve
from offbook.log.sqlite.store import SqliteStore
from offbook.log.verification import verify
from offbook.model.errors import StoreFull
from offbook.model.types import AuditDraft, AuditEvent
from tests.unit.log.sqlite.test_sqlite import add

READ = AuditDraft(verb="recall", actor="test", session_id="chat", details={"entries": ["a" * 400]})


@pytest.fixture
async def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SqliteStore]:
    monkeypatch.setattr(writer, "HELD_RETRY_SECONDS", 0.01)
    monkeypatch.setattr(checkpointer, "IDLE_SECONDS", 3_600.0)  # the reserve is taken when a test says so
    store = SqliteStore(tmp_path / "offbook.db")
    await add(store, "hello")
    yield store
    await store.close()


async def limited(store: SqliteStore, is_full: bool) -> None:
    """SQLite's own bound does as a full disk does."""

    def bounded(connection: apsw.Connection) -> None:
        pages = int(connection.pragma("page_count"))
        connection.pragma("max_page_count", pages if is_full else 1_000_000)

    await store._write().submit_alone(bounded)
    with pytest.raises(StoreFull) if is_full else nullcontext():
        for _ in range(20):
            await add(store, "there is room " * 200)


async def read_until_held(store: SqliteStore, reads: int) -> None:
    held = 0
    while held < reads:
        held += await store.record("main", READ) is None


async def held_in(store: SqliteStore) -> list[AuditEvent]:
    return [event for event in await store.audit_events("main", limit=10_000) if "heldSince" in event.details]


async def told(store: SqliteStore) -> AuditEvent:
    async with asyncio.timeout(60):
        while True:
            for event in await store.audit_events("main", limit=10_000):
                if event.verb == held_events.HELD_VERB:
                    return event
            await asyncio.sleep(0.01)


async def test_reads_go_on_and_are_in_the_chain_once_there_is_room(store: SqliteStore) -> None:
    places = [placed.place for placed in (await store.arrivals("main", after_event=0)).messages]
    await limited(store, True)
    await read_until_held(store, 3)
    await store.recalled("main", places, READ)
    assert await held_in(store) == []
    retrievals = (await store.hold_counts("main")).retrievals
    assert retrievals == 0
    await limited(store, False)
    event = await told(store)
    held = await held_in(store)
    assert [one.verb for one in held] == ["recall"] * 4
    assert event.details["reads"] == event.details["written"] == 4
    assert event.details["from"] == held[0].details["heldSince"]
    assert event.details["to"] == held[-1].details["heldSince"]
    assert event.details["reason"] == "store-full"
    assert (await store.hold_counts("main")).retrievals == 1
    assert [fault async for fault in verify(store, "main")] == []


async def test_of_more_reads_than_are_held_the_chain_has_the_number(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_events, "MOST_HELD", 5)
    await limited(store, True)
    await read_until_held(store, 12)
    await limited(store, False)
    event = await told(store)
    assert (event.details["reads"], event.details["written"]) == (12, 5)
    assert len(await held_in(store)) == 5


async def test_what_is_held_is_written_when_the_store_is_closed(tmp_path: Path, store: SqliteStore) -> None:
    await limited(store, True)
    await read_until_held(store, 2)
    await store._write().submit_alone(lambda connection: connection.pragma("max_page_count", 1_000_000))
    await store.close()
    again = SqliteStore(tmp_path / "offbook.db")
    assert len(await held_in(again)) == 2
    assert [fault async for fault in verify(again, "main")] == []
    await again.close()


async def test_what_makes_room_may_use_the_reserve_and_nobody_else(
    tmp_path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "offbook.reserve"
    store._write()._reserve.keep()
    assert kept.stat().st_size == (tmp_path / "offbook.db").stat().st_size > 0

    def full_while_kept(connection: apsw.Connection) -> str:
        if kept.exists():
            raise apsw.FullError("no room")
        return "done"

    def refused(_ledger: object) -> None:
        raise apsw.FullError("no room")

    with pytest.raises(StoreFull):
        await store._write().submit(refused)
    assert kept.exists()
    assert await store._write().submit_alone(full_while_kept) == "done"
    assert not kept.exists()
    monkeypatch.setattr(reserve, "FREE_FOR_EACH", 10**12)
    store._write()._reserve.keep()
    assert not kept.exists()  # the disk has not enough besides


async def test_the_reserve_is_given_back_once_for_what_finds_no_room_all_the_same(store: SqliteStore) -> None:
    kept = store._write()._reserve
    kept.keep()
    tries = []

    def never_enough(connection: apsw.Connection) -> None:
        tries.append(1)
        kept.keep()  # as the checkpointer does beside it
        raise apsw.FullError("no room")

    with pytest.raises(StoreFull):
        await store._write().submit_alone(never_enough)
    assert len(tries) == 2
    await add(store, "the writer goes on")


async def test_a_file_is_not_written_anew_where_that_would_fill_the_disk(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purge, "WAL_FRAME_BYTES", 10**15)
    with pytest.raises(StoreFull, match="bytes on the disk"):
        await store.purge()
    await add(store, "goes on")
