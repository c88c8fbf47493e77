"""Lessons in SQLite: rows that were forgotten or damaged, and how they are found."""

from __future__ import annotations

from pathlib import Path

import apsw
import msgspec
import pytest

from offbook.log.sql import lesson_reads, lesson_writes
from offbook.log.sqlite.store import SqliteStore
from offbook.model.errors import StoreCorrupt, StoreError
from tests.contract.test_store import CHAT
from tests.contract.test_store_compression import talk, verbs
from tests.contract.test_store_lessons import JUDGED, draft, ids, keep, places_of


def tamper(path: Path, *statements: str) -> None:
    connection = apsw.Connection(str(path))
    for statement in statements:
        connection.execute(statement)
    connection.close()


async def three(path: Path) -> SqliteStore:
    store = SqliteStore(path)
    await talk(store, 3)
    places = await places_of(store)
    await keep(store, *[draft(f"lesson {key}", key=key, places=places) for key in "abc"])
    return store


# ── forgotten ──


@pytest.mark.parametrize("data", ["''", "'{}'", "'x'", """'{"key":"b"}'""", "data"])
async def test_one_that_was_forgotten_is_nowhere(tmp_path: Path, data: str) -> None:
    path = tmp_path / "offbook.db"
    store = await three(path)
    kept = await store.lesson("main", "lesson-0002")
    assert kept is not None
    tamper(path, f"UPDATE lessons SET status = 'forgotten', data = {data} WHERE number = 2")
    assert ids(await store.lessons("main")) == ["lesson-0003", "lesson-0001"]
    assert ids(await store.lessons("main", before="lesson-0003")) == ["lesson-0001"]
    assert ids(await store.lessons("main", before="lesson-0002")) == ["lesson-0001"]
    assert await store.lesson("main", "lesson-0002") is None
    assert await store.lesson_counts("main") == {"learnt": 2}
    with pytest.raises(StoreError):
        await store.judge_lesson("main", msgspec.structs.replace(kept, status="accepted"), [], JUDGED)
    assert [fault async for fault in store.derived_faults()] == []
    (again,) = await keep(store, draft("said again", key="b"), replaced={"lesson-0002": "b"})
    assert again.id == "lesson-0004", "it is learnt anew, under another number"
    await store.close()


# ── damage ──


@pytest.mark.parametrize("data", ["'x'", "'{}'", "CAST(X'ff' AS TEXT)", """json_set(data, '$.confidence', 7)"""])
async def test_one_that_is_damaged_is_told_and_stops_nothing_that_is_learnt(tmp_path: Path, data: str) -> None:
    path = tmp_path / "offbook.db"
    store = await three(path)
    tamper(path, f"UPDATE lessons SET data = {data} WHERE number = 2")
    with pytest.raises(StoreCorrupt, match=r"lesson-0002 of agent 'main' cannot be read .*`offbook doctor`"):
        await store.lesson("main", "lesson-0002")
    with pytest.raises(StoreCorrupt):
        await store.lessons("main")
    assert await store.lesson("main", "lesson-0001") is not None
    (fault,) = [fault async for fault in store.derived_faults()]
    assert (fault.what.partition(" cannot")[0], fault.agent_id, fault.session_id) == ("lesson-0002", "main", None)
    drafts = [draft(key=key) for key in "abc"]
    assert ids(await keep(store, *drafts, replaced={"lesson-0002": "a"})) == [
        "lesson-0001",
        "lesson-0004",
        "lesson-0003",
    ]
    await store.close()


async def test_a_source_that_is_gone_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "offbook.db"
    store = await three(path)
    first, _, _ = await store.places(CHAT, [1, 2, 3])
    tamper(path, "PRAGMA foreign_keys = OFF", f"DELETE FROM messages WHERE place = {first}")
    lesson = await store.lesson("main", "lesson-0001")
    assert lesson is not None
    assert [source.seq for source in lesson.sources] == [2, 3]
    await store.close()


async def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await three(tmp_path / "offbook.db")
    before = await store.lessons("main"), await verbs(store)

    def fails(*_: object) -> None:
        raise StoreError("the lights went out")

    monkeypatch.setattr(lesson_writes.LessonLedger, "_replace", fails)
    with pytest.raises(StoreError):
        await keep(store, draft("other words", key="a"), draft(key="new"))
    assert (await store.lessons("main"), await verbs(store)) == before
    await store.close()


# ── how they are found ──


async def test_places_of_a_session(tmp_path: Path) -> None:
    store = await three(tmp_path / "offbook.db")
    places = await places_of(store)
    assert await store.places(CHAT, [3, 1, 3, 0, -1, 4, 2**33, 2**70]) == [places[2], places[0]]
    assert await store.places(msgspec.structs.replace(CHAT, session_id="nowhere"), [1]) == []
    assert await store.places(msgspec.structs.replace(CHAT, agent_id="nobody"), [1]) == []
    await store.close()


async def test_a_lessons_sources_are_found_by_an_index(tmp_path: Path) -> None:
    store = await three(tmp_path / "offbook.db")
    await store.close()
    connection = apsw.Connection(str(tmp_path / "offbook.db"))
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {lesson_reads._SOURCES}", (1, 9, 1, 9))]
    connection.close()
    assert plan.count("SEARCH lesson_sources USING PRIMARY KEY (lesson=?)") == 2, plan
    assert not [step for step in plan if step.startswith("SCAN") and "messages" in step], plan


async def test_where_one_was_said_is_told_or_called_damaged(tmp_path: Path) -> None:
    path = tmp_path / "offbook.db"
    store = await three(path)
    tamper(path, f"UPDATE messages SET ts = {2**62}")
    for reading in (store.lessons("main"), store.lesson("main", "lesson-0001"), store.lessons_keyed("main", {"a"})):
        with pytest.raises(StoreCorrupt):
            await reading
    await store.close()
