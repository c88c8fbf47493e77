"""Lessons in the stable section: told once they are sure, and the section stays as it was until the next swap."""

from __future__ import annotations

from pathlib import Path

from offbook.api.memory import Memory
from offbook.model.settings import Settings
from offbook.model.settings.sections import Lessons
from offbook.model.turn import PreparedTurn
from offbook.projections.base import Batch
from offbook.projections.lessons import LessonProjection
from tests.unit.api.test_turn_builder import PATIENT
from tests.unit.small_memory import assistant, caught_up, small_memory, talk, user


async def learn(memory: Memory) -> None:
    await LessonProjection(memory._store, Settings()).advance(Batch("main"))


async def say(memory: Memory, text: str, session: str = "old") -> None:
    await memory.on_message(memory.scope(session), [user(text), assistant("Good to know.")])
    await caught_up(memory)
    await learn(memory)


async def turn(memory: Memory, session: str = "now") -> PreparedTurn:
    return await memory.prepare_turn(memory.scope(session), "Please write the parser now", explain=True)


async def test_what_was_learnt_is_told_and_the_section_stays_the_same(tmp_path: Path) -> None:
    async with small_memory(tmp_path, turn=PATIENT) as memory:
        await say(memory, "I prefer tabs over spaces.")
        await say(memory, "I love hiking in the mountains.")
        first = await turn(memory)
        (part,) = [one for one in first.parts if one.kind == "lessons"]
        assert "- They prefer tabs over spaces. (" in part.text
        assert "hiking" not in part.text, "said once, in passing"
        assert part.text in first.memory
        await say(memory, "I prefer spaces over tabs.")
        assert (await turn(memory)).memory == first.memory, "the same bytes until the next swap"
        fresh = (await turn(memory, "another")).memory
        assert "They prefer spaces over tabs." in fresh
        assert "They prefer tabs over spaces." not in fresh, "what was replaced is not told"


async def test_after_a_swap_the_section_knows_what_was_learnt_since(tmp_path: Path) -> None:
    async with small_memory(tmp_path, turn=PATIENT) as memory:
        scope = await talk(memory, 20, "now")
        before = await turn(memory)
        await say(memory, "I prefer tabs over spaces.")
        assert (await memory.swap(scope, used_tokens=90_000, context_window=100_000)).swapped
        after = await turn(memory)
        assert "They prefer tabs over spaces." not in before.memory
        assert "They prefer tabs over spaces." in after.memory


async def test_what_a_person_rejected_is_not_told_and_what_they_accepted_is(tmp_path: Path) -> None:
    async with small_memory(tmp_path, turn=PATIENT) as memory:
        await say(memory, "I prefer tabs over spaces.")
        await say(memory, "I love hiking in the mountains.")
        by_text = {one.text: one.id for one in (await memory.lessons("main")).lessons}
        await memory.judge_lesson("main", by_text["They prefer tabs over spaces."], "reject")
        await memory.judge_lesson("main", by_text["They love hiking in the mountains."], "accept")
        told = (await turn(memory)).memory
        assert "They love hiking in the mountains." in told
        assert "tabs over spaces" not in told


async def test_by_the_settings_none_is_told(tmp_path: Path) -> None:
    for number, lessons in enumerate((Lessons(enabled=False), Lessons(max_injected=0), Lessons(min_confidence=0.9))):
        async with small_memory(tmp_path / str(number), turn=PATIENT, lessons=lessons) as memory:
            await say(memory, "I prefer tabs over spaces.")
            assert [one.kind for one in (await turn(memory)).parts if one.kind == "lessons"] == []


GRAZ, VIENNA = "My sister Anna lives in Graz.", "Their sister Anna lives in Vienna."


async def section(memory: Memory, session: str) -> str:
    return (await memory.prepare_turn(memory.scope(session), "good morning")).memory


async def test_what_a_person_corrected_is_told_as_they_wrote_it_and_not_as_it_was_said(tmp_path: Path) -> None:
    async with small_memory(tmp_path, turn=PATIENT) as memory:
        await say(memory, GRAZ)
        (lesson,) = (await memory.lessons("main")).lessons
        assert GRAZ in await section(memory, "first"), "as who they are"
        await memory.judge_lesson("main", lesson.id, "edit", VIENNA)
        await caught_up(memory)
        told = await section(memory, "second")
        assert VIENNA in told
        assert "Graz" not in told
        await memory.judge_lesson("main", lesson.id, "accept")
        assert "Graz" not in await section(memory, "third")
        await memory.judge_lesson("main", lesson.id, "reject")
        await caught_up(memory)
        told = await section(memory, "fourth")
        assert GRAZ in told, "the original holds again"
        assert "Vienna" not in told
        await memory.judge_lesson("main", lesson.id, "accept")
        told = await section(memory, "fifth")
        assert VIENNA in told
        assert "Graz" not in told


async def test_a_statement_that_was_rejected_is_not_quoted_either(tmp_path: Path) -> None:
    async with small_memory(tmp_path, turn=PATIENT, lessons=Lessons(max_injected=0)) as memory:
        await say(memory, GRAZ)
        (lesson,) = (await memory.lessons("main")).lessons
        assert GRAZ in await section(memory, "first")
        await memory.judge_lesson("main", lesson.id, "reject")
        assert "Graz" not in await section(memory, "second")


async def test_a_context_does_not_quote_what_was_corrected(tmp_path: Path) -> None:
    async with small_memory(tmp_path, turn=PATIENT) as memory:
        await say(memory, "My name is Jonas.", "now")
        scope = await talk(memory, 60, "now")
        await caught_up(memory)
        (lesson,) = [one for one in (await memory.lessons("main")).lessons if "Jonas" in one.text]
        quoted = "“My name is Jonas.”"
        assert quoted in (await memory.get_compressed_context(scope, 5_000)).text
        await memory.judge_lesson("main", lesson.id, "edit", "Their name is Jona.")
        assert quoted not in (await memory.get_compressed_context(scope, 5_000)).text
