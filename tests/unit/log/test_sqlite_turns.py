"""What is SQLite's own about prepared turns: the migration from older stores, plans, copies, damage."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import apsw
import msgspec
import pytest

from offbook.api.doctor.record import check_summaries
from offbook.log.sql import derived_faults
from offbook.log.sql import turns as turn_reads
from offbook.log.sql import turns as turn_writes
from offbook.log.sqlite.connection import latest_version, migrations, open_reader, schema_version
from offbook.log.sqlite.store import SqliteStore
from offbook.log.verification import verify
from offbook.model.errors import StoreCorrupt, StoreError
from offbook.model.home import Home
from offbook.model.summary import TurnPart
from offbook.model.turn import TurnMemory
from offbook.model.types import Scope
from offbook.transfer.backup import restore, write_backup
from tests.unit.log import test_sqlite_compression as of_compression
from tests.unit.log import test_sqlite_recall as of_recall
from tests.unit.log.sqlite.test_sqlite import CHAT, add, tamper, with_steps
from tests.unit.log.test_sqlite_compression import (
    MADE_BY_0002,
    MADE_BY_0003,
    NOON,
    WORK,
    every_older_store,
    older_store,
)
from tests.unit.log.test_sqlite_recall import plans, schema_of

THEIRS = Scope(agent_id="other", session_id="chat")


def memory(number: int, text: str = "what stays") -> TurnMemory:
    part = TurnPart(section="memory", kind="summaries", tokens=9, items=1, why="it is of this session", text=text)
    return TurnMemory(epoch=str(number), at=NOON + timedelta(minutes=number), text=text, tokens=9, parts=[part])


async def filled(path: Path) -> SqliteStore:
    store = SqliteStore(path)
    await add(store, "hello")
    for number in (1, 2, 3):
        await store.keep_turn_memory(CHAT, memory(number))
        await store.keep_turn_memory(THEIRS, memory(number, "theirs"))
    await store.keep_turn_memory(WORK, memory(1))
    return store


async def kept(store: SqliteStore) -> list[object]:
    return [
        *[await store.turn_memory(scope) for scope in (CHAT, THEIRS, WORK)],
        *[await store.turn_memory(CHAT, at=memory(number).at) for number in (1, 2)],
    ]


# ── migration ──


def test_the_third_migration_is_what_stores_were_made_with(tmp_path: Path) -> None:
    older = apsw.Connection(str(older_store(MADE_BY_0003, tmp_path / "older.db")))
    third = apsw.Connection(":memory:")
    for _, sql in migrations()[:3]:
        third.execute(sql)
    assert schema_of(third) == schema_of(older)
    assert schema_version(older) == 3


@pytest.mark.parametrize("made_by", [MADE_BY_0002, MADE_BY_0003], ids=["version 2", "version 3"])
async def test_what_recall_kept_is_there_after_the_fourth_migration(tmp_path: Path, made_by: Path) -> None:
    path = older_store(made_by, tmp_path / "offbook.db")
    before = SqliteStore(path, read_only=True)
    places = [message.place for message in (await before.arrivals("main", after_event=0)).messages]
    held = await of_recall.kept(before, places)
    assert all(held)
    await before.close()
    store = SqliteStore(path)
    assert await of_recall.kept(store, places) == held
    await store.close()


async def test_what_compression_kept_is_there_after_the_fourth_migration(tmp_path: Path) -> None:
    path = older_store(MADE_BY_0003, tmp_path / "offbook.db")
    before = SqliteStore(path, read_only=True)
    held = await of_compression.kept(before)
    assert all(held)
    await before.close()
    store = SqliteStore(path)
    assert schema_version(open_reader(path)) == latest_version() >= 4
    assert await of_compression.kept(store) == held
    assert [fault async for fault in store.derived_faults()] == []
    await store.close()


@every_older_store
async def test_turns_are_kept_over_what_an_older_store_held(tmp_path: Path, made_by: Path) -> None:
    store = SqliteStore(older_store(made_by, tmp_path / "offbook.db"))
    new_session = Scope(agent_id="main", session_id="not there yet")
    for scope in (CHAT, THEIRS, new_session):
        assert await store.turn_memory(scope) is None
        await store.keep_turn_memory(scope, memory(1, scope.session_id))
    assert await store.agents() == ["main", "other"]
    await store.close()
    again = SqliteStore(tmp_path / "offbook.db")
    for scope in (CHAT, THEIRS, new_session):
        assert await again.turn_memory(scope) == memory(1, scope.session_id)
    for agent in ("main", "other"):
        assert [fault async for fault in verify(again, agent)] == []
    assert [fault async for fault in again.faults()] == []
    assert [fault async for fault in again.derived_faults()] == []
    await again.close()


async def test_a_store_that_was_not_migrated_yet_can_be_looked_at(tmp_path: Path) -> None:
    path = older_store(MADE_BY_0003, tmp_path / "offbook.db")
    reader = SqliteStore(path, read_only=True)
    with pytest.raises(StoreError):
        await reader.turn_memory(CHAT)
    assert (await check_summaries(reader, Home(tmp_path), None)).level == "ok"
    await reader.close()
    tamper(path, "UPDATE contexts SET payload = X'00' WHERE generation = 2")
    reader = SqliteStore(path, read_only=True)
    finding = await check_summaries(reader, Home(tmp_path), None)
    assert finding.level == "warn"
    assert "the context of generation 2 cannot be read" in finding.what
    assert schema_version(open_reader(path)) == 3
    await reader.close()


# ── copies ──


async def test_a_copy_holds_all_of_it(tmp_path: Path) -> None:
    store = await filled(tmp_path / "offbook.db")
    before = await kept(store)
    assert all(before)
    await store.backup(tmp_path / "copy.db")
    await store.close()
    copy = SqliteStore(tmp_path / "copy.db")
    assert await kept(copy) == before
    assert [fault async for fault in copy.faults()] == []
    await copy.close()


async def test_it_survives_backup_and_restore(tmp_path: Path) -> None:
    home, elsewhere = Home(tmp_path / "home"), Home(tmp_path / "elsewhere")
    home.folder.mkdir()
    elsewhere.folder.mkdir()
    store = await filled(home.database)
    before = await kept(store)
    await store.close()
    await write_backup(home, tmp_path / "backup.tar.gz")
    assert (await restore(tmp_path / "backup.tar.gz", elsewhere)).faults == []
    again = SqliteStore(elsewhere.database)
    assert await kept(again) == before
    await again.close()


# ── plans ──


async def test_a_time_is_looked_for_in_the_index_alone(tmp_path: Path) -> None:
    await (await filled(tmp_path / "offbook.db")).close()
    connection = open_reader(tmp_path / "offbook.db")
    for at in (None, NOON):
        steps = plans(connection, lambda: turn_reads.turn_memory(connection, CHAT, at))  # noqa: B023
        assert [step for step in steps if step.startswith("SCAN") or "TEMP B-TREE" in step] == []
        index = "SEARCH turn_memories USING COVERING INDEX turn_memories_by_session (agent=? AND session_key=?"
        assert len([step for step in steps if step.startswith(index)]) == 1
    connection.close()


async def test_no_write_reads_a_whole_table(tmp_path: Path) -> None:
    store = await filled(tmp_path / "offbook.db")
    turns, connection = store._writer._ledger.turns, store._writer._connection  # type: ignore[union-attr]
    new = memory(4)
    writes: list[Callable[[], object]] = [
        lambda: turns.keep(CHAT, new, turn_writes.packed(new)),
        lambda: turns.keep(CHAT, new, turn_writes.packed(new)),
    ]
    with connection:
        steps = [step for write in writes for step in plans(connection, write)]
    await store.close()
    assert steps
    assert [step for step in steps if step.startswith("SCAN")] == []


async def test_the_same_again_is_no_row(tmp_path: Path) -> None:
    store = await filled(tmp_path / "offbook.db")
    connection = open_reader(tmp_path / "offbook.db")
    assert connection.execute("SELECT count(*) FROM turn_memories").get == 7
    await store.keep_turn_memory(CHAT, memory(3))
    assert connection.execute("SELECT count(*) FROM turn_memories").get == 7
    await store.keep_turn_memory(CHAT, memory(4))
    assert connection.execute("SELECT count(*) FROM turn_memories").get == 8
    connection.close()
    await store.close()


# ── damage ──

DAMAGED = [
    "X'00'",
    "X''",
    "X'789c030000000001'",  # nothing, well compressed
    "X'789cabae0500017500f9'",  # `{}`
    "substr(payload, 1, 20)",
]


@pytest.mark.parametrize("payload", DAMAGED)
async def test_a_damaged_one_is_told(tmp_path: Path, payload: str) -> None:
    await (await filled(tmp_path / "offbook.db")).close()
    tamper(tmp_path / "offbook.db", f"UPDATE turn_memories SET payload = {payload} WHERE memory = 5")
    reader = SqliteStore(tmp_path / "offbook.db", read_only=True)
    with pytest.raises(StoreCorrupt, match=r"turns of session 'chat' of agent 'main' .*`offbook doctor`"):
        await reader.turn_memory(CHAT)
    assert await reader.turn_memory(CHAT, at=memory(2).at) == memory(2)
    assert await reader.turn_memory(THEIRS) == memory(3, "theirs")
    faults = [fault async for fault in reader.derived_faults()]
    assert [(fault.what.partition(" cannot")[0], fault.agent_id, fault.session_id) for fault in faults] == [
        ("what turns were prepared with at 2026-11-15 12:03:00 UTC", "main", "chat")
    ]
    finding = await check_summaries(reader, Home(tmp_path), None)
    assert (finding.level, faults[0].what in finding.what) == ("warn", True)
    await reader.close()


async def test_a_new_one_takes_the_place_of_a_damaged_one(tmp_path: Path) -> None:
    await (await filled(tmp_path / "offbook.db")).close()
    tamper(tmp_path / "offbook.db", "UPDATE turn_memories SET payload = X'00' WHERE memory = 5")
    store = SqliteStore(tmp_path / "offbook.db")
    await store.keep_turn_memory(CHAT, memory(3))
    assert await store.turn_memory(CHAT) == memory(3)
    assert len([fault async for fault in store.derived_faults()]) == 1
    await store.close()


async def test_damage_is_told_page_by_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "offbook.db"
    await (await filled(path)).close()
    tamper(
        path,
        "UPDATE turn_memories SET payload = X'00' WHERE memory IN (1, 4)",
        f"UPDATE turn_memories SET at = {2**62} WHERE memory = 2",
        "UPDATE turn_memories SET agent = 99 WHERE memory = 3",
        "UPDATE turn_memories SET session_key = CAST(X'ff' AS TEXT) WHERE memory = 7",
    )
    for rows in (1, 2, 3, 50):
        monkeypatch.setattr(derived_faults, "ROWS_AT_A_TIME", rows)
        reader = SqliteStore(path, read_only=True, snapshot=True)
        faults = [fault async for fault in reader.derived_faults()]
        await reader.close()
        assert [(fault.what.partition(" cannot")[0], fault.agent_id, fault.session_id) for fault in faults] == [
            ("what turns were prepared with at 2026-11-15 12:01:00 UTC", "main", "chat"),
            ("row 2 of turn_memories", "other", "chat"),
            ("row 3 of turn_memories", None, None),
            ("what turns were prepared with at 2026-11-15 12:02:00 UTC", "other", "chat"),
            ("row 7 of turn_memories", None, None),
        ]


# ── threads ──


async def test_it_is_packed_beside_the_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqliteStore(tmp_path / "offbook.db")
    threads: list[str] = []

    class Decoder:
        def decode(self, data: bytes) -> TurnMemory:
            threads.append(threading.current_thread().name)
            return msgspec.json.decode(data, type=TurnMemory)

    monkeypatch.setattr(turn_reads, "memory_decoder", Decoder())
    await store.keep_turn_memory(CHAT, memory(1))
    assert len(threads) == 1
    assert threads[0] not in (threading.main_thread().name, store._write()._thread.name)
    await store.close()


# ── speed ──


async def test_the_newest_does_not_take_longer_with_history(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "offbook.db")
    await store.keep_turn_memory(CHAT, memory(1))
    await store.close()
    agent, payload = 1, turn_writes.packed(memory(1))
    connection = apsw.Connection(str(tmp_path / "offbook.db"))
    taken = []
    for count in (20, 1_000):
        with connection:
            connection.executemany(
                "INSERT INTO turn_memories (agent, session_key, at, payload) VALUES (?,?,?,?)",
                ((agent, key, number, payload) for key in ("chat", "another") for number in range(count)),
            )
        found, steps = with_steps(connection, lambda: turn_reads.turn_memory(connection, CHAT, None))
        assert found == memory(1)
        taken.append(steps)
    connection.close()
    assert taken[0] == taken[1]
