"""Lessons from the log: in bounded pieces, once however often it is done, and with the person's word above all."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from offbook.log.sqlite.store import SqliteStore
from offbook.model.errors import StoreFull
from offbook.model.lesson import LESSONS_SESSION, Lesson
from offbook.model.settings import Settings
from offbook.model.settings.sections import Lessons
from offbook.model.types import AuditDraft, AuditEvent, Message, Scope
from offbook.projections import lessons as learning
from offbook.projections.base import Batch, Progress
from offbook.projections.lessons import THROUGH, LessonProjection
from tests.unit.log.sqlite.test_sqlite import tamper
from tests.unit.projections.conftest import add
from tests.unit.statements.said import BUDGET, DATABASE, GERMAN, SERVER, SHORT

WORK = Scope(agent_id="main", session_id="work")
DAY = datetime(2026, 3, 1, 12, tzinfo=UTC)


def on(day: int, text: str, **fields: Any) -> Message:
    return Message(**{"role": "user", "content": text, "ts": DAY + timedelta(days=day), **fields})


async def run(store: SqliteStore, settings: Settings | None = None, agent_id: str = "main") -> dict[str, int]:
    """Progress by piece, as maintenance does."""
    worker = LessonProjection(store, settings or Settings())
    did: dict[str, int] = {}
    for _ in range(100):
        piece = await worker.advance(Batch(agent_id))
        did = {name: did.get(name, 0) + piece.did.get(name, 0) for name in (*did, *piece.did)}
        if piece.is_done:
            return did
    raise AssertionError("never done")


async def there(store: SqliteStore, agent_id: str = "main") -> list[Lesson]:
    return sorted(await store.lessons(agent_id, limit=1_000), key=lambda one: one.id)


async def events(store: SqliteStore) -> list[AuditEvent]:
    return [one for one in await store.audit_events("main", limit=10_000) if one.verb == "learn"]


async def test_what_was_said_is_learnt_with_its_place(store: SqliteStore) -> None:
    await add(store, "Good morning!", on(1, SHORT), "ok")
    assert await run(store) == {"learnt": 1}
    (one,) = await there(store)
    assert (one.kind, one.text, one.status, one.learnt_by) == (
        "preference",
        SHORT,
        "learnt",
        "quoted",
    )
    assert [(source.session_id, source.seq) for source in one.sources] == [("chat", 2)]
    assert one.first_seen == one.last_seen == DAY + timedelta(days=1)
    (event,) = await events(store)
    assert (event.actor, event.details["lessons"], event.details["added"]) == ("offbook", 1, 1)


async def test_run_again_it_does_nothing(store: SqliteStore) -> None:
    await add(store, SHORT)
    await run(store)
    before, head = await there(store), await store.audit_head("main")
    assert await run(store) == {}
    assert await there(store) == before
    assert await store.audit_head("main") == head


async def test_said_again_elsewhere_it_is_one_lesson_and_surer(store: SqliteStore) -> None:
    await add(store, on(1, SHORT))
    await run(store)
    (first,) = await there(store)
    await add(store, on(2, SHORT.replace(".", "!")), scope=WORK)
    assert await run(store) == {"seen again": 1}
    (again,) = await there(store)
    assert (again.id, again.times, len(again.sources)) == (first.id, 2, 2)
    assert again.confidence > first.confidence
    assert again.last_seen == DAY + timedelta(days=2)


async def test_stopped_between_learning_and_noting_it_counts_nothing_twice(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(store, *[on(day, SHORT) for day in range(3)], on(4, SERVER))

    async def full(*args: object, **fields: object) -> None:
        raise StoreFull("no room")

    with monkeypatch.context() as patched:
        patched.setattr(SqliteStore, "set_agent_note", full)
        with pytest.raises(StoreFull):
            await run(store)
    before = await there(store)
    assert [one.times for one in before] == [3, 1]
    assert await run(store) == {}
    assert await there(store) == before
    assert len(await events(store)) == 1


async def test_a_lesson_that_was_said_very_often_is_counted_right(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learning, "MESSAGES_AT_A_TIME", 40)
    for day in range(12):
        await add(store, *[on(day, GERMAN) for _ in range(10)])
    await run(store)
    (one,) = await there(store)
    assert one.times == 120
    await store.set_agent_note("main", THROUGH, None, None)
    await run(store)
    (same,) = await there(store)
    assert same.times == 120


async def test_a_piece_is_bounded(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "MESSAGES_AT_A_TIME", 5)
    for day in range(4):
        await add(store, *[on(day, f"The port number of server {day}{at} is 80{day}{at}.") for at in range(3)])
    pieces: list[Progress] = []
    worker = LessonProjection(store, Settings())
    while not pieces or not pieces[-1].is_done:
        pieces.append(await worker.advance(Batch("main")))
    assert len(pieces) > 1


async def test_switched_off_it_learns_nothing(store: SqliteStore) -> None:
    await add(store, SHORT)
    off = msgspec.structs.replace(Settings(), lessons=Lessons(enabled=False))
    assert await run(store, off) == {}
    assert await run(store, msgspec.structs.replace(Settings(), agents={"main": off})) == {}
    assert await there(store) == []
    assert await run(store) == {"learnt": 1}


async def test_noise_other_agents_and_the_lessons_own_session_teach_nothing(store: SqliteStore) -> None:
    await add(store, SHORT, noise="forgotten")
    await add(store, SHORT, scope=Scope(agent_id="other", session_id="chat"))
    await add(store, SHORT, scope=Scope(agent_id="main", session_id=LESSONS_SESSION))
    assert await run(store) == {}
    assert await there(store) == []


async def judged(store: SqliteStore, one: Lesson, **fields: object) -> None:
    event = AuditDraft(verb="judge", actor="test")
    await store.judge_lesson("main", msgspec.structs.replace(one, **fields), [], event)


async def test_what_a_person_judged_is_not_changed(store: SqliteStore) -> None:
    await add(store, on(1, DATABASE), on(1, SERVER))
    await run(store)
    database, server = await there(store)
    await judged(store, database, status="edited", text="Postgres it is.")
    await judged(store, server, status="rejected")
    await add(store, on(2, DATABASE.replace(".", "!")), on(2, SERVER), on(3, BUDGET))
    await run(store)
    database, server, budget = await there(store)
    assert (database.text, database.status, database.times) == ("Postgres it is.", "edited", 2)
    assert (server.status, server.times) == ("rejected", 2)
    assert budget.text == BUDGET


async def test_a_note_that_cannot_be_read_begins_anew(store: SqliteStore) -> None:
    await add(store, SHORT)
    await run(store)
    for note in ("", "x", "-3", "９", "9" * 40):
        await store.set_agent_note("main", THROUGH, note, None)
        assert await run(store) == {}
    (one,) = await there(store)
    assert one.times == 1


async def test_what_is_damaged_is_passed_over(store: SqliteStore, tmp_path: Path) -> None:
    await add(store, on(1, SHORT))
    await add(store, on(1, DATABASE))
    await add(store, on(1, SERVER))
    await store.close()
    tamper(tmp_path / "offbook.db", "UPDATE messages SET content = '{' WHERE seq = 2")
    again = SqliteStore(tmp_path / "offbook.db")
    try:
        assert await run(again) == {"learnt": 2}
    finally:
        await again.close()
