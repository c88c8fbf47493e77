"""Lessons of a store that is cut after a moment."""

from __future__ import annotations

import asyncio
from pathlib import Path

import apsw
import msgspec

from offbook.log.sqlite.point_in_time import cut_after
from offbook.log.sqlite.store import SqliteStore
from offbook.model.lesson import LESSONS_SESSION
from offbook.model.types import AuditDraft, Scope, now
from tests.contract.test_store_compression import talk
from tests.contract.test_store_lessons import draft, ids, keep, places_of


def judged(lesson: str, verdict: str) -> AuditDraft:
    return AuditDraft(verb="lessons/judge", actor="owner", details={"lesson": lesson, "verdict": verdict})


async def test_lessons_are_as_sure_as_what_is_left_of_their_sources(tmp_path: Path) -> None:
    path = tmp_path / "offbook.db"
    store = SqliteStore(path)
    await talk(store, 3)
    early = await places_of(store)
    await keep(store, *[draft(f"lesson {key}", key=key, places=early, times=3) for key in "abcd"])
    for id_, verdict, changes in (
        ("lesson-0002", "accept", {"status": "accepted"}),
        ("lesson-0004", "edit", {"status": "edited", "text": "once", "learnt_text": "lesson d"}),
    ):
        lesson = await store.lesson("main", id_)
        assert lesson is not None
        await store.judge_lesson("main", msgspec.structs.replace(lesson, **changes), [], judged(id_, verdict))
    then = {lesson.id: lesson for lesson in await store.lessons("main")}
    at = now()
    await asyncio.sleep(0.01)

    await talk(store, 2)
    late = [place for place in await places_of(store) if place not in early]
    await keep(store, draft("lesson a", key="a", places=[*early, *late], times=5), draft("new", key="e", places=late))
    await keep(store, draft("instead", key="f", places=late), replaced={"lesson-0001": "f"})
    for id_, verdict, changes in (
        ("lesson-0002", "edit", {"status": "edited", "text": "mine", "learnt_text": "lesson b"}),
        ("lesson-0003", "reject", {"status": "rejected"}),
        ("lesson-0004", "edit", {"status": "edited", "text": "twice"}),
    ):
        lesson = await store.lesson("main", id_)
        assert lesson is not None
        await store.judge_lesson("main", msgspec.structs.replace(lesson, **changes), [], judged(id_, verdict))
    await store.close()

    cut = cut_after(path, at)
    store = SqliteStore(path)
    found = {lesson.id: lesson for lesson in await store.lessons("main")}
    await store.close()
    assert ids(list(found.values())) == ids(list(then.values()))
    assert cut.agents[0].lessons == 2
    for id_ in ("lesson-0002", "lesson-0003"):
        assert found[id_] == then[id_]
    assert msgspec.structs.replace(found["lesson-0001"], last_seen=then["lesson-0001"].last_seen) == then["lesson-0001"]
    assert found["lesson-0004"].status == "edited"
    assert any("a lesson that was edited again" in told for told in cut.unknown)


async def test_who_edited_it_later_had_not_said_it(tmp_path: Path) -> None:
    """One saying and two edits come later: it was said once less, and an edit is no saying."""
    path = tmp_path / "offbook.db"
    written = Scope(agent_id="main", session_id=LESSONS_SESSION)
    store = SqliteStore(path)
    await talk(store, 4)
    await keep(store, *[draft(f"lesson {key}", key=key, places=await places_of(store), times=4) for key in "ab"])
    then = {lesson.id: lesson for lesson in await store.lessons("main")}
    at = now()
    await asyncio.sleep(0.01)
    await talk(store, 1)
    await keep(store, draft("lesson b", key="b", places=await places_of(store), times=5))
    for id_ in then:
        await talk(store, 1, scope=written)
        lesson = await store.lesson("main", id_)
        assert lesson is not None
        edited = msgspec.structs.replace(lesson, status="edited", text="mine", learnt_text=lesson.text)
        await store.judge_lesson("main", edited, (await places_of(store, written))[-1:], judged(id_, "edit"))
    await store.close()

    cut_after(path, at)
    store = SqliteStore(path)
    found = {lesson.id: lesson for lesson in await store.lessons("main")}
    await store.close()
    assert {id_: (one.times, len(one.sources), one.text) for id_, one in found.items()} == {
        id_: (4, 4, one.text) for id_, one in then.items()
    }


async def test_a_damaged_one_stops_nothing(tmp_path: Path) -> None:
    path = tmp_path / "offbook.db"
    store = SqliteStore(path)
    await talk(store, 1)
    await keep(store, draft("lesson", key="a", places=await places_of(store)))
    at = now()
    await asyncio.sleep(0.01)
    await talk(store, 1)
    await store.close()
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE lessons SET data = 'x'")
    connection.close()
    assert cut_after(path, at).messages == 1
