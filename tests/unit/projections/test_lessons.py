"""Lessons from the log: in bounded pieces, once however often it is done, and with the person's word above all."""

from __future__ import annotations

from collections.abc import Sequence
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
from offbook.projections.embedders import Embedders
from offbook.projections.lessons import THROUGH, LessonProjection
from offbook.rules.lessons.fold import chosen_lessons
from tests.unit.log.sqlite.test_sqlite import tamper
from tests.unit.projections.conftest import add
from tests.unit.projections.doubles import Shelf, settings_for

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
    await add(store, "Good morning!", on(1, "I prefer tabs over spaces."), "ok")
    assert await run(store) == {"learnt": 1}
    (one,) = await there(store)
    assert (one.kind, one.text, one.status, one.learnt_by) == (
        "preference",
        "They prefer tabs over spaces.",
        "learnt",
        "rules",
    )
    assert [(source.session_id, source.seq) for source in one.sources] == [("chat", 2)]
    assert one.first_seen == one.last_seen == DAY + timedelta(days=1)
    (event,) = await events(store)
    assert (event.actor, event.details["lessons"], event.details["added"]) == ("offbook", 1, 1)


async def test_run_again_it_does_nothing(store: SqliteStore) -> None:
    await add(store, "I prefer tabs over spaces.")
    await run(store)
    before, head = await there(store), await store.audit_head("main")
    assert await run(store) == {}
    assert await there(store) == before
    assert await store.audit_head("main") == head


async def test_said_again_elsewhere_it_is_one_lesson_and_surer(store: SqliteStore) -> None:
    await add(store, on(1, "I prefer tabs over spaces."))
    await run(store)
    (first,) = await there(store)
    await add(store, on(2, "Remember, I prefer tabs to spaces!"), scope=WORK)
    assert await run(store) == {"seen again": 1}
    (again,) = await there(store)
    assert (again.id, again.times, len(again.sources)) == (first.id, 2, 2)
    assert again.confidence > first.confidence
    assert again.last_seen == DAY + timedelta(days=2)


async def test_a_changed_value_takes_the_place_of_the_older_one(store: SqliteStore) -> None:
    await add(store, on(1, "My birthday is on 5 May."))
    await run(store)
    await add(store, on(2, "My birthday is on 6 May."))
    assert await run(store) == {"learnt": 1, "replaced": 1}
    old, new = await there(store)
    assert (old.replaced_by, new.replaced_by) == (new.id, None)


@pytest.mark.parametrize(
    ("before", "since", "told"),
    [
        (
            "My favourite colour is blue.",
            "My favourite colour is green now, not blue.",
            "Their favourite colour is green now, not blue.",
        ),
        ("I prefer tea.", "I prefer coffee now.", "They prefer coffee now."),
        (
            "We decided to use MySQL for reporting.",
            "Actually, I changed my mind: use MariaDB for the reporting service, not MySQL.",
            "They changed their mind: use MariaDB for the reporting service, not MySQL.",
        ),
        (
            "Always use tabs for indentation.",
            "Use spaces for indentation from now on, not tabs.",
            "They asked me: “Use spaces for indentation from now on, not tabs.”",
        ),
    ],
)
async def test_what_was_replaced_in_so_many_words_is_not_chosen_for_a_turn(
    store: SqliteStore, before: str, since: str, told: str
) -> None:
    await add(store, on(1, before))
    await run(store)
    await add(store, on(4, since))
    assert await run(store) == {"learnt": 1, "replaced": 1}
    chosen = chosen_lessons(await there(store), Lessons(), DAY + timedelta(days=14))
    assert [one.text for one in chosen] == [told]


async def test_both_values_in_one_piece_and_old_history_that_comes_later(store: SqliteStore) -> None:
    await add(store, on(1, "My birthday is on 5 May."), on(3, "My birthday is on 7 May."))
    assert await run(store) == {"learnt": 2, "replaced": 1}
    await add(store, on(2, "My birthday is on 6 May."), scope=WORK)
    assert await run(store) == {"learnt": 1, "replaced": 1}
    fifth, seventh, sixth = await there(store)
    assert (fifth.replaced_by, sixth.replaced_by, seventh.replaced_by) == (seventh.id, seventh.id, None)


async def test_stopped_between_learning_and_noting_it_counts_nothing_twice(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(store, *[on(day, "I prefer tabs over spaces.") for day in range(3)], on(4, "I'm allergic to nuts."))

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
        await add(store, *[on(day, "Please always answer in German.") for _ in range(10)])
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
    await add(store, "I prefer tabs over spaces.")
    off = msgspec.structs.replace(Settings(), lessons=Lessons(enabled=False))
    assert await run(store, off) == {}
    assert await run(store, msgspec.structs.replace(Settings(), agents={"main": off})) == {}
    assert await there(store) == []
    assert await run(store) == {"learnt": 1}


async def test_noise_other_agents_and_the_lessons_own_session_teach_nothing(store: SqliteStore) -> None:
    await add(store, "I prefer tabs over spaces.", noise="forgotten")
    await add(store, "I prefer tabs over spaces.", scope=Scope(agent_id="other", session_id="chat"))
    await add(store, "I prefer tabs over spaces.", scope=Scope(agent_id="main", session_id=LESSONS_SESSION))
    assert await run(store) == {}
    assert await there(store) == []


async def judged(store: SqliteStore, one: Lesson, **fields: object) -> None:
    event = AuditDraft(verb="judge", actor="test")
    await store.judge_lesson("main", msgspec.structs.replace(one, **fields), [], event)


async def test_what_a_person_judged_is_not_changed(store: SqliteStore) -> None:
    await add(store, on(1, "My birthday is on 5 May."), on(1, "I'm allergic to nuts."))
    await run(store)
    birthday, nuts = await there(store)
    await judged(store, birthday, status="edited", text="Born on 5 May 1980.")
    await judged(store, nuts, status="rejected")
    await add(
        store, on(2, "My birthday is on 5 May!"), on(2, "I'm allergic to nuts."), on(3, "My birthday is on 6 May.")
    )
    await run(store)
    birthday, nuts, sixth = await there(store)
    assert (birthday.text, birthday.status, birthday.times, birthday.replaced_by) == (
        "Born on 5 May 1980.",
        "edited",
        2,
        None,
    )
    assert (nuts.status, nuts.times) == ("rejected", 2)
    assert sixth.text == "Their birthday is on 6 May."


async def test_a_note_that_cannot_be_read_begins_anew(store: SqliteStore) -> None:
    await add(store, "I prefer tabs over spaces.")
    await run(store)
    for note in ("", "x", "-3", "９", "9" * 40):
        await store.set_agent_note("main", THROUGH, note, None)
        assert await run(store) == {}
    (one,) = await there(store)
    assert one.times == 1


async def test_what_is_damaged_is_passed_over(store: SqliteStore, tmp_path: Path) -> None:
    await add(store, on(1, "I prefer tabs over spaces."))
    await add(store, on(1, "Our database is Postgres 16."))
    await add(store, on(1, "I'm allergic to nuts."))
    await store.close()
    tamper(tmp_path / "offbook.db", "UPDATE messages SET content = '{' WHERE seq = 2")
    again = SqliteStore(tmp_path / "offbook.db")
    try:
        assert await run(again) == {"learnt": 2}
    finally:
        await again.close()


async def test_with_a_model_what_means_the_same_is_one(store: SqliteStore, tmp_path: Path, shelf: Shelf) -> None:
    settings = settings_for("old")
    embedders = Embedders(settings.embedding, tmp_path / "models")
    shelf.embedders["old"].embed = alike  # type: ignore[method-assign]
    await add(store, on(1, "Please always answer in German."))
    await LessonProjection(store, settings, embedders).advance(Batch("main"))
    await add(store, on(2, "From now on, reply to me in German."))
    assert (await LessonProjection(store, settings, embedders).advance(Batch("main"))).did == {"seen again": 1}
    (one,) = await there(store)
    assert one.times == 2
    await embedders.close()


async def test_without_its_model_the_rules_learn_alone(store: SqliteStore, tmp_path: Path, shelf: Shelf) -> None:
    await add(store, "Please always answer in German.")
    settings = settings_for("nowhere")
    embedders = Embedders(settings.embedding, tmp_path / "models")
    assert (await LessonProjection(store, settings, embedders).advance(Batch("main"))).did == {"learnt": 1}
    shelf.embedders["old"].refused = "French"
    broken = Embedders(settings_for("old").embedding, tmp_path / "models")
    await add(store, "Please always answer in French.", "Please always write in French.")
    assert (await LessonProjection(store, settings_for("old"), broken).advance(Batch("main"))).did == {"learnt": 2}
    await embedders.close()
    await broken.close()


def alike(texts: Sequence[str]) -> Any:
    import numpy as np

    return np.tile(np.array([1.0, 0.0], np.float32), (len(texts), 1))
