"""Forgetting what lessons were learnt from: a lesson that is said elsewhere, too, stays as a person judged it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from offbook.api.embedded import open_parts
from offbook.api.memory import Memory
from offbook.log.sqlite.store import SqliteStore
from offbook.model.home import Home
from offbook.model.lesson import LESSONS_SESSION, Lesson, LessonDraft, Verdict
from offbook.model.receipt import FORGOTTEN_TEXT, Selection
from offbook.model.settings import Settings
from offbook.model.types import EMBEDDED, AuditDraft, now
from offbook.search.words import entry_id
from tests.unit.forget.test_forgetting import files_with
from tests.unit.small_memory import SMALL, caught_up, user

WINE = "I prefer short answers about beer without bullet points."
OTTO = "Our staging server Otto runs in Bern."
PIA = "Our database server Pia runs in Oslo."
TEA = "I prefer short answers without bullet points."

Parts = tuple[Memory, SqliteStore]


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Parts]:
    settings = msgspec.structs.replace(Settings(), **SMALL)
    async with open_parts(Home(tmp_path), settings) as opened:
        yield opened


async def learnt(memory: Memory, **said: list[str]) -> list[Lesson]:
    """The lessons of what was said, by session, the oldest first."""
    for session, texts in said.items():
        await memory.on_message(memory.scope(session), [user(text) for text in texts])
    await caught_up(memory)
    await memory.maintain("main", tasks=["lessons"])
    return (await memory._store.lessons("main"))[::-1]


async def judged(memory: Memory) -> None:
    await memory.judge_lesson("main", "lesson-0001", "reject")
    await memory.judge_lesson("main", "lesson-0002", "edit", "Our staging server Otto runs in Zug.")
    await memory.judge_lesson("main", "lesson-0003", "accept")


async def standing(store: SqliteStore) -> list[tuple[str, str, str]]:
    return [(one.id, one.status, one.text) for one in (await store.lessons("main"))[::-1]]


async def told(memory: Memory) -> str:
    turn = await memory.prepare_turn(
        memory.scope("new"), "where does our staging server Otto run, and what do I drink?"
    )
    return msgspec.json.encode(turn).decode()


async def test_lessons_whose_sources_are_elsewhere_stay_exactly_as_they_were(parts: Parts, tmp_path: Path) -> None:
    memory, store = parts
    await learnt(memory, r1=[WINE], r2=[OTTO], r3=[PIA])
    await judged(memory)
    before = await store.lessons("main")
    receipt = await memory.forget("main", session_id="r1")
    assert receipt.residue == []
    await memory.maintain("main")
    assert await store.lessons("main") == before[:2]
    assert "beer" not in await told(memory)
    assert files_with(tmp_path, "beer") == []


async def test_what_was_judged_stays_judged_when_one_of_its_sources_goes(parts: Parts, tmp_path: Path) -> None:
    memory, store = parts
    await learnt(memory, r1=[WINE, OTTO, PIA], r2=[WINE], r3=[OTTO, PIA])
    await judged(memory)
    await memory.maintain("main")
    receipt = await memory.forget("main", session_id="r1")
    assert (receipt.residue, receipt.reached.lessons) == ([], 3)
    pages = {page.name: page.read_text() for page in tmp_path.glob("wiki/main/lessons/lesson-*.md")}
    assert len(pages) == 3
    assert "session r1" not in str(pages)
    await memory.maintain("main")
    assert await standing(store) == [
        ("lesson-0001", "rejected", "I prefer short answers about beer without bullet points."),
        ("lesson-0002", "edited", "Our staging server Otto runs in Zug."),
        ("lesson-0003", "accepted", "Our database server Pia runs in Oslo."),
    ]
    for lesson in await store.lessons("main"):
        assert lesson.times == 1
        assert "r1" not in {source.session_id for source in lesson.sources}
    assert "bullet points" not in (await memory.prepare_turn(memory.scope("new"), "hello")).memory
    edited = await store.lesson("main", "lesson-0002")
    assert edited is not None
    assert edited.learnt_text == "Our staging server Otto runs in Bern."


@pytest.mark.parametrize("verdict", [None, "accept", "reject"])
async def test_it_is_told_as_the_others_say_it(parts: Parts, verdict: Verdict | None) -> None:
    memory, store = parts
    (lesson,) = await learnt(memory, r1=[TEA], r2=[TEA.replace(".", "!")])
    assert (lesson.times, lesson.text) == (2, TEA.replace(".", "!"))
    if verdict is not None:
        lesson = await memory.judge_lesson("main", lesson.id, verdict)
    assert (await memory.forget("main", session_id="r2")).residue == []
    (left,) = await store.lessons("main")
    assert (left.id, left.status, left.times, left.text) == (lesson.id, lesson.status, 1, TEA)
    assert left.last_seen < lesson.last_seen
    assert [name async for name in kept_with(store, "points!")] == []


async def kept_with(store: SqliteStore, word: str) -> AsyncIterator[str]:
    async for kept in store.kept_texts("main"):
        if word in kept.text:
            yield kept.name


async def test_of_two_edits_the_first_is_forgotten(parts: Parts) -> None:
    memory, store = parts
    await learnt(memory, r1=["Our database server Olga runs in Rom."])
    for town in ("Paris", "Madrid"):
        await memory.judge_lesson("main", "lesson-0001", "edit", f"Our database server Olga runs in {town}.")
    assert (await memory.forget("main", matching="Paris")).residue == []
    await memory.maintain("main")
    assert await standing(store) == [("lesson-0001", "edited", "Our database server Olga runs in Madrid.")]
    (said,) = await store.places(memory.scope("r1"), [1])
    assert len(await store.supersessions("main", [said])) == 1


async def test_what_took_an_edit_back_is_forgotten(parts: Parts) -> None:
    memory, store = parts
    await learnt(memory, r1=["Our database server Olga runs in Rom."])
    await memory.judge_lesson("main", "lesson-0001", "edit", "Our database server Olga runs in Paris.")
    await memory.judge_lesson("main", "lesson-0001", "reject")
    written = memory.scope(LESSONS_SESSION)
    (paris, taken_back) = await store.places(written, [1, 2])
    await memory.judge_lesson("main", "lesson-0001", "edit", "Our database server Olga runs in Madrid.")
    assert (await memory.forget("main", entry_ids=[entry_id(taken_back)])).residue == []
    assert await standing(store) == [("lesson-0001", "edited", "Our database server Olga runs in Madrid.")]
    (madrid,) = await store.places(written, [3])
    assert [link.new_place for link in await store.supersessions("main", [paris]) if link.old_place == paris] == [
        madrid
    ]


async def test_the_number_of_a_lesson_is_no_word_of_an_edit(parts: Parts) -> None:
    """Others name it, too: as what took their place."""
    memory, store = parts
    await learnt(memory, r1=["Our production server runs in Rom."])
    await learnt(memory, r2=["Our production server runs in Geheimweg now."])
    before = await store.lesson("main", "lesson-0001")
    assert before is not None
    assert before.replaced_by == "lesson-0002"
    await memory.judge_lesson("main", "lesson-0002", "edit", "Our production server runs in Geheimweg, upstairs.")
    assert (await memory.forget("main", matching="Geheimweg")).reached.lessons == 1
    assert await store.lesson("main", "lesson-0002") is None
    assert await store.lesson("main", "lesson-0001") == before


@pytest.mark.parametrize(
    ("edit", "status"),
    [
        ("Our database server Olga runs in Rom, in Geheimweg.", "accepted"),
        ("Our backup server Olga runs in Geheimweg.", "rejected"),
    ],
)
async def test_of_an_edit_that_is_forgotten_the_judgement_stays(
    parts: Parts, tmp_path: Path, edit: str, status: str
) -> None:
    """Whoever added to what was learnt held it to be so; who wrote something else did not."""
    memory, store = parts
    await learnt(memory, r1=["Our database server Olga runs in Rom."])
    await memory.judge_lesson("main", "lesson-0001", "edit", edit)
    assert (await memory.forget("main", matching="Geheimweg")).residue == []
    await memory.maintain("main")
    assert await standing(store) == [("lesson-0001", status, "Our database server Olga runs in Rom.")]
    assert files_with(tmp_path, "Geheimweg") == []


async def test_an_edit_outlives_what_it_was_learnt_from(parts: Parts, tmp_path: Path) -> None:
    memory, store = parts
    await learnt(memory, r2=[OTTO])
    await memory.judge_lesson("main", "lesson-0001", "edit", "Our staging server Otto runs in Zug.")
    assert (await memory.forget("main", session_id="r2")).residue == []
    await memory.maintain("main")
    assert await standing(store) == [("lesson-0001", "edited", "Our staging server Otto runs in Zug.")]
    left = await store.lesson("main", "lesson-0001")
    assert left is not None
    assert left.learnt_text == FORGOTTEN_TEXT
    assert files_with(tmp_path, "Bern") == []


async def test_retention_leaves_an_edited_lesson_that_was_said_since(parts: Parts) -> None:
    memory, store = parts
    await learnt(memory, r1=[OTTO])
    await asyncio.sleep(0.01)
    cut = now()
    await learnt(memory, r2=[OTTO])
    await memory.judge_lesson("main", "lesson-0001", "edit", "Our staging server Otto runs in Zug.")
    receipt = await memory._background.forgetting.forget(
        "main", Selection(before=cut), reason="kept for long", by=EMBEDDED
    )
    assert receipt.reached.messages == 1
    assert await standing(store) == [("lesson-0001", "edited", "Our staging server Otto runs in Zug.")]


async def test_a_model_s_lesson_stays_only_where_all_of_it_is_said_elsewhere(parts: Parts) -> None:
    memory, store = parts
    scope = memory.scope("chat")
    texts = ["The harbour of Lisbon opens on Mondays.", "Lisbon has a harbour.", "Quiet here."]
    await memory.on_message(scope, [user(text) for text in texts])
    places = await store.places(scope, [1, 2, 3])
    said = {"Lisbon has a harbour": places[:2], "The harbour of Lisbon opens on Mondays": [places[0], places[2]]}
    drafts = [
        LessonDraft(
            kind="fact",
            text=text,
            key=text.casefold(),
            confidence=0.5,
            first_seen=now(),
            last_seen=now(),
            times=2,
            places=where,
            learnt_by="a-model",
        )
        for text, where in said.items()
    ]
    await store.keep_lessons("main", drafts, replaced={}, event=AuditDraft(verb="learn", actor="test"))
    for id_ in ("lesson-0001", "lesson-0002"):
        await memory.judge_lesson("main", id_, "accept")
    await memory.forget("main", matching="opens on Mondays")
    assert await standing(store) == [("lesson-0001", "accepted", "Lisbon has a harbour")]
