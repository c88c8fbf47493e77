"""Lessons in the stable section: told once they are sure, and the section stays as it was until the next swap."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from offbook.api.memory import Memory
from offbook.model.record import MessageRecord, SessionRecord
from offbook.model.settings import Settings
from offbook.model.settings.sections import Embedding, Lessons
from offbook.model.turn import PreparedTurn
from offbook.models import embedder
from offbook.projections.base import Batch
from offbook.projections.lessons import LessonProjection
from tests.unit.api.test_turn_builder import PATIENT
from tests.unit.projections.doubles import Shelf, WordsEmbedder
from tests.unit.small_memory import assistant, caught_up, small_memory, talk, user

TABS, SPACES = "I prefer tabs over spaces in all my code.", "Now I prefer spaces over tabs in all my code."
KIDS = "The kids cycle on Sundays."
"""Learnt, but less sure."""
SURE = Lessons(min_confidence=0.79)


async def learn(memory: Memory) -> None:
    await LessonProjection(memory._store, Settings()).advance(Batch("main"))


async def say(memory: Memory, text: str, session: str = "old") -> None:
    await memory.on_message(memory.scope(session), [user(text), assistant("Good to know.")])
    await caught_up(memory)
    await learn(memory)


async def turn(memory: Memory, session: str = "now") -> PreparedTurn:
    return await memory.prepare_turn(memory.scope(session), "Please write the parser now", explain=True)


async def test_what_was_learnt_is_told_and_the_section_stays_the_same(tmp_path: Path) -> None:
    async with small_memory(tmp_path, turn=PATIENT, lessons=SURE) as memory:
        await say(memory, KIDS)
        await say(memory, TABS)
        assert {one.text for one in (await memory.lessons("main")).lessons} == {KIDS, TABS}
        first = await turn(memory)
        (part,) = [one for one in first.parts if one.kind == "lessons"]
        assert f"What holds:\n- “{TABS}” (" in part.text
        assert "kids" not in part.text, "not sure enough"
        assert part.text in first.memory
        await say(memory, "We deploy only on Tuesdays, never on a Friday.")
        assert (await turn(memory)).memory == first.memory, "the same bytes until the next swap"
        await say(memory, SPACES)
        anew = (await turn(memory)).memory
        assert anew != first.memory, "something it asserts was corrected"
        assert f"- “{SPACES}” (since " in anew
        assert anew.count(TABS) == anew.count(f"; before: “{TABS}”)") == 1, "what was replaced is told as such"
        await say(memory, "My daughter Ines starts school in September.")
        assert (await turn(memory)).memory == anew, "made anew once"


async def test_what_was_unlinked_is_not_told_as_over_any_more(tmp_path: Path) -> None:
    async with small_memory(tmp_path, turn=PATIENT) as memory:
        await say(memory, TABS)
        await say(memory, SPACES)
        assert f"; before: “{TABS}”)" in (await turn(memory)).memory
        found = (await memory.recall(memory.scope("now"), SPACES)).entries
        ((replaced,),) = [one.why.replaces for one in found if one.text == SPACES and one.why]
        assert (await memory.unlink("main", replaced.id)).changed == 1
        anew = (await turn(memory)).memory
        assert "before:" not in anew
        assert f"- “{TABS}” (" in anew
        assert f"- “{SPACES}” (" in anew


async def test_what_they_never_came_back_to_is_no_part_of_the_story_also_right_after_a_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = Shelf(WordsEmbedder("old"))
    monkeypatch.setattr(embedder, "open_embedder", shelf)
    fields: dict[str, Any] = {"turn": PATIENT, "embedding": Embedding(model="old", dimensions=64)}
    async with small_memory(tmp_path, **fields) as memory:
        for number in range(6):
            released = f"We released the parser of the harbour on day {number} and the parser of the harbour works."
            await say(memory, released, f"work-{number}")
        await memory.on_message(memory.scope("once"), [user("Grandma Ottilie baked seven walnut cakes yesterday.")])
        for session in ("once", *(f"work-{number}" for number in range(6))):
            await memory.session_end(memory.scope(session), reason="idle")
        await caught_up(memory)
        assert "parser of the harbour" in (await turn(memory)).memory
        assert "walnut" not in (await turn(memory)).memory
    shelf.embedders.clear()
    async with small_memory(tmp_path, **fields) as memory:
        anew = (await turn(memory, "later")).memory
        assert "parser of the harbour" in anew
        assert "walnut" not in anew


async def test_after_a_backfill_the_section_is_made_anew_once(tmp_path: Path) -> None:
    said = [user(text, ts=datetime(2026, 1, day, tzinfo=UTC)) for day, text in enumerate((TABS, "Thanks."), 1)]
    messages = [MessageRecord(session_id="past", seq=seq, message=message) for seq, message in enumerate(said, 1)]
    records = [SessionRecord(session_id="past", started_at=datetime(2026, 1, 1, tzinfo=UTC)), *messages]
    async with small_memory(tmp_path, turn=PATIENT) as memory:
        await say(memory, "Good morning.", "now")
        before = (await turn(memory)).memory
        await memory.import_records("main", records, done=True)
        await caught_up(memory)
        await memory.maintain("main")
        await caught_up(memory)
        anew = (await turn(memory)).memory
        assert TABS not in before
        assert TABS in anew
        await say(memory, "We deploy only on Tuesdays, never on a Friday.")
        assert (await turn(memory)).memory == anew


async def test_after_a_swap_the_section_knows_what_was_learnt_since(tmp_path: Path) -> None:
    async with small_memory(tmp_path, turn=PATIENT) as memory:
        scope = await talk(memory, 20, "now")
        before = await turn(memory)
        await say(memory, TABS)
        assert (await memory.swap(scope, used_tokens=90_000, context_window=100_000)).swapped
        after = await turn(memory)
        assert TABS not in before.memory
        assert f"- “{TABS}” (" in after.memory


async def test_what_a_person_rejected_is_not_told_and_what_they_accepted_is(tmp_path: Path) -> None:
    async with small_memory(tmp_path, turn=PATIENT, lessons=SURE) as memory:
        await say(memory, TABS)  # what the conversation begins with is its goal, too
        await say(memory, KIDS)
        by_text = {one.text: one.id for one in (await memory.lessons("main")).lessons}
        told = (await turn(memory, "before")).memory
        assert (KIDS in told, TABS in told) == (False, True)
        await memory.judge_lesson("main", by_text[TABS], "reject")
        await memory.judge_lesson("main", by_text[KIDS], "accept")
        told = (await turn(memory)).memory
        assert KIDS in told
        assert "tabs over spaces" not in told


async def test_by_the_settings_none_is_told(tmp_path: Path) -> None:
    for number, lessons in enumerate((Lessons(enabled=False), Lessons(max_injected=0), Lessons(min_confidence=1.0))):
        async with small_memory(tmp_path / str(number), turn=PATIENT, lessons=lessons) as memory:
            await say(memory, TABS)
            assert [one.kind for one in (await turn(memory)).parts if one.kind == "lessons"] == []


GRAZ, VIENNA = "My name is Jonas and I live in Graz.", "Their name is Jonas and they live in Vienna."


async def section(memory: Memory, session: str) -> str:
    return (await memory.prepare_turn(memory.scope(session), "good morning")).memory


async def test_what_a_person_corrected_is_told_as_they_wrote_it_and_not_as_it_was_said(tmp_path: Path) -> None:
    async with small_memory(tmp_path, turn=PATIENT) as memory:
        await say(memory, GRAZ)
        (lesson,) = (await memory.lessons("main")).lessons
        assert f"Who they are:\n- “{GRAZ}” (" in await section(memory, "first")
        await memory.judge_lesson("main", lesson.id, "edit", VIENNA)
        await caught_up(memory)
        told = await section(memory, "second")
        assert VIENNA in told
        assert "Graz" not in told
        await memory.judge_lesson("main", lesson.id, "accept")
        assert "Graz" not in await section(memory, "third")
        await memory.judge_lesson("main", lesson.id, "reject")
        await caught_up(memory)
        assert "Jonas" not in await section(memory, "fourth")
        recall = (await memory.prepare_turn(memory.scope("fourth"), "Do I live in Graz or in Vienna?")).recall
        assert f"They told you (just now): “{GRAZ}” You said" in recall, "the original holds again"
        assert VIENNA not in recall
        await memory.judge_lesson("main", lesson.id, "accept")
        told = await section(memory, "fifth")
        assert VIENNA in told
        assert "Graz" not in told


async def test_a_statement_that_was_rejected_is_not_quoted_either(tmp_path: Path) -> None:
    async with small_memory(tmp_path, turn=PATIENT, lessons=Lessons(max_injected=0)) as memory:
        await say(memory, GRAZ)
        for _ in range(2):
            await say(memory, "What would be nice to do in the rain, and what in the sun, and what on such a day?")
        await memory.session_end(memory.scope("old"))
        await caught_up(memory)
        (lesson,) = (await memory.lessons("main")).lessons
        assert f"They: {GRAZ}" in await section(memory, "first"), "in the story"
        await memory.judge_lesson("main", lesson.id, "reject")
        await caught_up(memory)
        assert "Graz" not in await section(memory, "second")


async def test_a_context_does_not_quote_what_was_corrected(tmp_path: Path) -> None:
    async with small_memory(tmp_path, turn=PATIENT) as memory:
        await say(memory, GRAZ, "now")
        scope = await talk(memory, 60, "now")
        await caught_up(memory)
        (lesson,) = [one for one in (await memory.lessons("main")).lessons if "Jonas" in one.text]
        assert f"“{GRAZ}”" in (await memory.get_compressed_context(scope, 5_000)).text
        await memory.judge_lesson("main", lesson.id, "edit", VIENNA)
        assert GRAZ not in (await memory.get_compressed_context(scope, 5_000)).text


async def test_what_may_have_replaced_a_lesson_and_is_one_itself_is_told_once(tmp_path: Path) -> None:
    bruno, brutus = "Our dog is called Bruno.", "Actually, our dog is called Brutus."
    async with small_memory(tmp_path, turn=PATIENT) as memory:
        await say(memory, bruno)
        await say(memory, brutus)
        told = await section(memory, "new")
    assert told.count(brutus) == 1
    assert f"“{brutus}” (since " in told
    assert f"; before: “{bruno}”)" in told
