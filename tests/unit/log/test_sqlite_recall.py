"""What is SQLite's own about recall: its migration from the oldest store, its plans, its transactions, its damage."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from offbook.log.sql import recall_reads, recall_writes
from offbook.log.sqlite.connection import latest_version, migrations, open_reader, schema_version
from offbook.log.sqlite.store import SqliteStore
from offbook.log.verification import verify
from offbook.model.errors import StoreBusy, StoreCorrupt, StoreError
from offbook.model.home import Home
from offbook.model.memory_entry import HoldCounts, Supersession, VectorRow
from offbook.model.types import AuditDraft, Scope, now
from offbook.transfer.backup import restore, write_backup
from tests.unit.log.sqlite.test_sqlite import CHAT, add, tamper, with_steps

MADE_BY_0001 = Path(__file__).with_name("made_by_0001.sql")
EVENT = AuditDraft(verb="search", actor="test")


def oldest_store(path: Path) -> Path:
    """A store as schema version 1 left it, with its data."""
    connection = apsw.Connection(str(path))
    connection.execute(MADE_BY_0001.read_text())
    connection.close()
    return path


def schema_of(connection: apsw.Connection) -> dict[str, str]:
    rows = connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
    return {name: re.sub(r"\s+", " ", sql) for name, sql in rows}


async def filled(path: Path) -> tuple[SqliteStore, list[int]]:
    """Some of everything that recall keeps."""
    store = SqliteStore(path)
    await add(store, *[f"message {number}" for number in range(10)])
    await add(store, "elsewhere", scope=Scope(agent_id="main", session_id="work"))
    places = [message.place for message in (await store.arrivals("main", after_event=0)).messages]
    await store.add_vectors("main", "m", [VectorRow(place=place, part=0, data=b"v" * 400) for place in places])
    await store.recalled("main", places[:3], EVENT)
    await store.pin("main", places[2:5], pinned=True, event=EVENT)
    link = Supersession(old_place=places[0], new_place=places[1], kind="correction", at=now())
    await store.supersede("main", [link], EVENT)
    await store.set_agent_note("main", "consent", "on", EVENT)
    return store, places


async def kept(store: SqliteStore, places: list[int]) -> list[object]:
    return [
        await store.arrivals("main", after_event=0),
        await store.messages_at("main", places),
        await store.vectors("main", "m"),
        await store.vector_models("main"),
        await store.holds("main", places),
        await store.pinned("main"),
        await store.hold_counts("main"),
        await store.supersessions("main", places),
        await store.agent_note("main", "consent"),
    ]


# ── migration ──


def test_the_first_migration_is_what_was_released(tmp_path: Path) -> None:
    released = apsw.Connection(str(oldest_store(tmp_path / "released.db")))
    first = apsw.Connection(":memory:")
    first.execute(migrations()[0][1])
    assert schema_of(first) == schema_of(released)
    assert schema_version(released) == 1


async def test_the_oldest_store_opens_with_all_it_held(tmp_path: Path) -> None:
    path = oldest_store(tmp_path / "offbook.db")
    before = SqliteStore(path, read_only=True)
    agents = await before.agents()
    logs = {agent: (await before.counts(agent), await before.audit_events(agent)) for agent in agents}
    chat = await before.messages(CHAT), await before.marks(CHAT), await before.captures("main")
    await before.close()

    store = SqliteStore(path)
    assert schema_version(open_reader(path)) == latest_version()
    assert agents == await store.agents() == ["main", "other"]
    assert {agent: (await store.counts(agent), await store.audit_events(agent)) for agent in agents} == logs
    assert (await store.messages(CHAT), await store.marks(CHAT), await store.captures("main")) == chat
    for agent in agents:
        assert [fault async for fault in verify(store, agent)] == []
    assert [fault async for fault in store.faults()] == []
    await store.close()


async def test_recall_works_over_what_the_oldest_store_held(tmp_path: Path) -> None:
    store = SqliteStore(oldest_store(tmp_path / "offbook.db"))
    answer = await store.arrivals("main", after_event=0)
    assert [message.logged.message.content for message in answer.messages] == [
        "What is the tide table for Dover?",
        "High water is at 14:20.",
        "你好 👋",
        "And the day after?",
    ]
    assert (answer.through_event, answer.is_end) == (5, True)
    own = [message.place for message in answer.messages]
    await store.add_vectors("main", "m", [VectorRow(place=place, part=0, data=b"v") for place in own])
    await store.recalled("main", own, EVENT)
    assert await store.pin("main", own[:1], pinned=True, event=EVENT) == own[:1]
    await add(store, "and on it goes")
    assert len((await store.arrivals("main", after_event=answer.through_event)).messages) == 1
    assert await store.hold_counts("main") == HoldCounts(pinned=1, retrievals=4)
    assert await store.vector_models("main") == {"m": 4}
    assert [fault async for fault in verify(store, "main")] == []
    assert [fault async for fault in store.faults()] == []
    await store.close()


async def test_a_migrated_store_has_the_schema_of_a_new_one(tmp_path: Path) -> None:
    await SqliteStore(oldest_store(tmp_path / "old.db")).close()
    await SqliteStore(tmp_path / "new.db").close()
    assert schema_of(open_reader(tmp_path / "old.db")) == schema_of(open_reader(tmp_path / "new.db"))


async def test_every_table_is_strict(tmp_path: Path) -> None:
    await SqliteStore(tmp_path / "offbook.db").close()
    rows = open_reader(tmp_path / "offbook.db").execute("PRAGMA table_list")
    tables = {name: strict for _, name, kind, _, _, strict in rows if kind == "table" and not name.startswith("sqlite")}
    assert len(tables) >= 13
    assert all(tables.values())


async def test_a_store_that_was_not_migrated_yet_can_be_looked_at(tmp_path: Path) -> None:
    """The offline tools open it for reading before the next `offbook serve` does."""
    reader = SqliteStore(oldest_store(tmp_path / "offbook.db"), read_only=True)
    assert len((await reader.arrivals("main", after_event=0)).messages) == 4
    sessions = await reader.sessions("main")
    assert [session.parent_session_id for session in sessions] == [None] * len(sessions) != []
    with pytest.raises(StoreError):
        await reader.pinned("main")
    await reader.close()


# ── copies ──


async def test_a_copy_holds_all_of_it(tmp_path: Path) -> None:
    store, places = await filled(tmp_path / "offbook.db")
    before = await kept(store, places)
    await store.backup(tmp_path / "copy.db")
    await store.close()
    copy = SqliteStore(tmp_path / "copy.db")
    assert await kept(copy, places) == before
    assert [fault async for fault in copy.faults()] == []
    await copy.close()


async def test_it_survives_backup_and_restore(tmp_path: Path) -> None:
    home, elsewhere = Home(tmp_path / "home"), Home(tmp_path / "elsewhere")
    home.folder.mkdir()
    elsewhere.folder.mkdir()
    store, places = await filled(home.database)
    before = await kept(store, places)
    await store.close()
    await write_backup(home, tmp_path / "backup.tar.gz")
    assert (await restore(tmp_path / "backup.tar.gz", elsewhere)).faults == []
    again = SqliteStore(elsewhere.database)
    assert await kept(again, places) == before
    await again.close()


# ── plans ──


def plans(connection: apsw.Connection, work: Callable[[], Any]) -> list[str]:
    """The steps of every statement that `work` runs."""
    asked: list[tuple[str, Any]] = []
    connection.exec_trace = lambda cursor, sql, bindings: not asked.append((sql, bindings))
    work()
    connection.exec_trace = None
    return [
        f"{step[3]} ({sql.split(maxsplit=1)[0]}: {sql})"
        for sql, bindings in asked
        for step in connection.execute(f"EXPLAIN QUERY PLAN {sql}", bindings)
    ]


async def test_no_question_of_recall_reads_a_whole_table(tmp_path: Path) -> None:
    store, places = await filled(tmp_path / "offbook.db")
    await store.close()
    connection = open_reader(tmp_path / "offbook.db")
    questions: list[Callable[[], object]] = [
        lambda: recall_reads.arrivals(connection, "main", 0, 10),
        lambda: recall_reads.messages_at(connection, "main", places),
        lambda: recall_reads.own_places(connection, "main", places),
        lambda: recall_reads.vectors(connection, "main", "m", 0, 10),
        lambda: recall_reads.vector_models(connection, "main"),
        lambda: recall_reads.newest_vector(connection, "main", "m"),
        lambda: recall_reads.holds(connection, "main", places),
        lambda: recall_reads.pinned(connection, "main", 10),
        lambda: recall_reads.pinned(connection, "main", 10, "chat"),
        lambda: recall_reads.hold_counts(connection, "main"),
        lambda: recall_reads.retrieved_since(connection, "main", now(), 10),
        lambda: recall_reads.supersessions(connection, "main", places),
        lambda: recall_reads.newest_supersessions(connection, "main", 10),
        lambda: recall_reads.agent_note(connection, "main", "consent"),
        lambda: recall_reads.agents_with_note(connection, "consent", "on"),
    ]
    for question in questions:
        steps = plans(connection, question)
        assert steps
        assert [step for step in steps if step.startswith("SCAN") and "CONSTANT ROW" not in step] == []
    steps = [step for question in questions for step in plans(connection, question)]
    assert [
        step
        for step in steps
        if "supersessions" not in step and "sessions" in step and "agent=?" in step and "key=?" not in step
    ] == []
    by_place = plans(connection, lambda: recall_reads.supersessions(connection, "main", places))
    assert (
        [step for step in by_place if "old_place=?" in step]
        != []
        != [step for step in by_place if "new_place=?" in step]
    )
    sorts = [step for step in steps if "TEMP B-TREE" in step]
    # The pins of one session are few.
    few = ("FROM agent_notes", "FROM vector_sets", "FROM holds WHERE place BETWEEN")
    assert all(any(table in step for table in few) for step in sorts)
    connection.close()


async def test_the_pins_of_a_session_are_one_stretch_of_an_index(tmp_path: Path) -> None:
    """Not its retrievals, of which there may be many."""
    store, _ = await filled(tmp_path / "offbook.db")
    await store.close()
    connection = open_reader(tmp_path / "offbook.db")
    steps = plans(connection, lambda: recall_reads.pinned(connection, "main", 10, "chat"))
    (search,) = [step for step in steps if step.startswith("SEARCH holds")]
    assert "USING COVERING INDEX holds_pinned (place>? AND place<?)" in search
    connection.close()


async def test_no_write_of_recall_reads_a_whole_table(tmp_path: Path) -> None:
    store, places = await filled(tmp_path / "offbook.db")
    ledger = store._writer._ledger  # type: ignore[union-attr]
    recall, connection = ledger.recall, store._writer._connection  # type: ignore[union-attr]
    link = Supersession(old_place=places[1], new_place=places[2], kind="correction", at=now())
    writes: list[Callable[[], object]] = [
        lambda: recall.add_vectors("main", "m", [VectorRow(place=places[0], part=0, data=b"v")]),
        lambda: recall.drop_vectors("main", "m", 2**62),
        lambda: recall.recalled("main", places, EVENT),
        lambda: recall.pin("main", places, pinned=True, event=EVENT),
        lambda: recall.pin("main", places, pinned=False, event=EVENT),
        lambda: recall.supersede("main", [link], EVENT),
        lambda: recall.set_agent_note("main", "consent", "off", EVENT),
    ]
    with connection:
        steps = [step for write in writes for step in plans(connection, write)]
    await store.close()
    # What is given to a statement is no table.
    assert [step for step in steps if step.startswith("SCAN") and not step.startswith("SCAN json_each")] == []


# ── transactions ──


async def test_vectors_are_dropped_in_pieces_and_others_write_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall_writes, "DROPPED_AT_A_TIME", 10)
    store, places = await filled(tmp_path / "offbook.db")
    await store.add_vectors(
        "main", "m", [VectorRow(place=place, part=part, data=b"v") for place in places for part in range(1, 40)]
    )
    dropping = asyncio.create_task(store.drop_vectors("main", "m"))
    while (await store.vector_models("main")).get("m", 0) in (0, 440) and not dropping.done():
        await asyncio.sleep(0)
    await add(store, "meanwhile")
    assert not dropping.done()
    assert await dropping == 440
    assert await store.vectors("main", "m") == []
    await store.close()


async def test_a_drop_that_broke_off_is_counted_and_finished_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall_writes, "DROPPED_AT_A_TIME", 4)
    store, _ = await filled(tmp_path / "offbook.db")
    await store._write().submit(lambda ledger: ledger.recall.drop_vectors("main", "m", 2**62))
    assert await store.vector_models("main") == {"m": 7} == {"m": len(await store.vectors("main", "m"))}
    assert await store.drop_vectors("main", "m") == 7
    await store.close()


async def test_what_failed_beside_others_leaves_their_rows_and_its_own_out(tmp_path: Path) -> None:
    store, places = await filled(tmp_path / "offbook.db")
    before = await store.hold_counts("main")
    broken = AuditDraft(verb="search", actor="test", details={"unwritable": object()})
    outcomes = await asyncio.gather(
        store.recalled("main", places[:1], EVENT),
        store.recalled("main", places[:1], broken),
        store.recalled("main", places[:1], EVENT),
        return_exceptions=True,
    )
    assert [isinstance(outcome, StoreError) for outcome in outcomes] == [False, True, False]
    assert (await store.hold_counts("main")).retrievals == before.retrievals + 2
    assert [fault async for fault in verify(store, "main")] == []
    await store.close()


async def test_following_leaves_no_reading_open(tmp_path: Path) -> None:
    """One left open would keep the write-ahead log from being emptied."""
    store, _ = await filled(tmp_path / "offbook.db")
    for _ in range(20):
        assert not (await store.arrivals("main", after_event=0, limit=1)).is_end
    writer = store._writer._connection  # type: ignore[union-attr]
    assert writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE) == (0, 0)
    await store.close()


# ── damage ──


async def test_a_damaged_message_is_named(tmp_path: Path) -> None:
    store, places = await filled(tmp_path / "offbook.db")
    await store.close()
    tamper(tmp_path / "offbook.db", "UPDATE messages SET content = 'no JSON' WHERE seq = 6")
    reader = SqliteStore(tmp_path / "offbook.db", read_only=True)
    with pytest.raises(StoreCorrupt, match="message 6 of session 'chat' of agent 'main'"):
        await reader.messages_at("main", places)
    with pytest.raises(StoreCorrupt, match="message 6 of session 'chat' of agent 'main'"):
        await reader.arrivals("main", after_event=0)
    assert len(await reader.messages_at("main", places[:5])) == 5
    await reader.close()


async def test_a_damaged_link_keeps_only_itself_back(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "offbook.db")
    await add(store, "one", "two", "three", "four")
    one, two, three, four = (message.place for message in (await store.arrivals("main", after_event=0)).messages)
    whole = Supersession(old_place=three, new_place=four, kind="correction", at=now())
    damaged = Supersession(old_place=one, new_place=two, kind="correction", at=now())
    await store.supersede("main", [whole, damaged], EVENT)
    tamper(tmp_path / "offbook.db", f"UPDATE supersessions SET at = {2**62} WHERE old_place = {one}")
    assert await store.supersessions("main", [three]) == [whole]
    with pytest.raises(StoreCorrupt):
        await store.supersessions("main", [two, three])
    await store.close()


async def test_a_note_whose_fate_nobody_knows_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqliteStore(tmp_path / "offbook.db")
    await add(store, "one")
    await store.set_agent_note("main", "consent", "on", None)
    await store.set_session_note(CHAT, "state", "before")
    assert (await store.agent_note("main", "consent"), await store.session_note(CHAT, "state")) == ("on", "before")
    writer = store._write()
    commit = writer._commit

    def unanswered() -> None:
        commit()
        raise StoreBusy("an outcome is unknown")

    monkeypatch.setattr(writer, "_commit", unanswered)
    for setting in (
        store.set_agent_note("main", "consent", "off", None),
        store.set_session_note(CHAT, "state", "after"),
    ):
        with pytest.raises(StoreBusy):
            await setting
    monkeypatch.undo()
    assert (await store.agent_note("main", "consent"), await store.session_note(CHAT, "state")) == ("off", "after")
    await store.close()


@pytest.mark.parametrize("details", ["no JSON", '{"accepted": "many"}'])
async def test_a_damaged_event_is_told(tmp_path: Path, details: str) -> None:
    store, _ = await filled(tmp_path / "offbook.db")
    await store.close()
    tamper(tmp_path / "offbook.db", f"UPDATE audit SET details = '{details}' WHERE seq = 1")
    reader = SqliteStore(tmp_path / "offbook.db", read_only=True)
    with pytest.raises(StoreCorrupt, match="audit event"):
        await reader.arrivals("main", after_event=0)
    await reader.close()


@pytest.mark.parametrize("last", [2**33, 2**62])
async def test_an_event_that_claims_more_leads_into_no_other_session(tmp_path: Path, last: int) -> None:
    store = SqliteStore(tmp_path / "offbook.db")
    await add(store, "mine")
    await add(store, "theirs", scope=Scope(agent_id="other", session_id="chat"))
    await store.close()
    claim = f'{{"accepted": 1, "firstSeq": -5, "lastSeq": {last}}}'
    tamper(tmp_path / "offbook.db", f"UPDATE audit SET details = '{claim}' WHERE agent = 1")
    reader = SqliteStore(tmp_path / "offbook.db", read_only=True)
    answer = await reader.arrivals("main", after_event=0)
    assert [message.logged.message.content for message in answer.messages] == ["mine"]
    await reader.close()


# ── speed ──


async def test_looking_for_thirty_messages_does_not_grow_with_history(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "offbook.db")
    connection = open_reader(tmp_path / "offbook.db")
    taken = []
    for count in (60, 940):
        await add(store, *["x" * 200 for _ in range(count)])
        arrived = (await store.arrivals("main", after_event=0, limit=10_000)).messages
        places = [message.place for message in arrived][:: len(arrived) // 30][:30]
        found, steps = with_steps(connection, lambda: recall_reads.messages_at(connection, "main", places))  # noqa: B023
        assert [message.place for message in found] == places
        taken.append(steps)
    connection.close()
    await store.close()
    assert taken[0] == taken[1]


async def test_a_reader_that_met_damage_goes_on_to_see_what_is_written(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "offbook.db", readers=1)
    await add(store, "first", "second", "third")
    places = [message.place for message in (await store.arrivals("main", after_event=0)).messages]
    tamper(tmp_path / "offbook.db", f"UPDATE messages SET content = '{{' WHERE place = {places[0]}")
    kept_errors = []
    for number in range(3):
        with pytest.raises(StoreCorrupt) as caught:
            await store.messages_at("main", places)
        kept_errors.append(caught.value)  # and with it whatever its frames hold
        await store.add_vectors("main", "m", [VectorRow(place=places[1], part=number, data=b"v")])
        assert await store.vector_models("main") == {"m": number + 1}
    await store.close()
