from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from offbook.api.lesson_review import LONGEST_TEXT_CHARS
from offbook.api.memory import Memory
from offbook.log.store import Store
from offbook.model.errors import NotFound, StoreError, WrongShape
from offbook.model.lesson import LESSONS_SESSION, Lesson, LessonDraft
from offbook.model.receipt import FORGOTTEN_TEXT
from offbook.model.settings.sections import Lessons
from offbook.model.types import AuditDraft, Caller, Scope, now
from offbook.search.words import place_named
from offbook.statements.lessons import as_draft
from tests.unit.small_memory import caught_up, small_memory, user

ADA = Caller(name="ada's laptop", agents=["main"])
TEA = "I like black tea best."
GREEN = "I like green tea best."
LEARNT = AuditDraft(verb="learn", actor="offbook")


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    """Which learns nothing by itself."""
    async with small_memory(tmp_path, lessons=Lessons(enabled=False)) as opened:
        yield opened


async def learnt(memory: Memory, *texts: str, agent_id: str = "main", quoted: str | None = None) -> list[Lesson]:
    """Each said in a session of its own, and learnt from that: all of it, or what is quoted."""
    store: Store = memory._store
    drafts = []
    for number, text in enumerate(texts):
        scope = memory.scope(f"chat {number}", agent_id)
        await memory.on_message(scope, [user(text)])
        places = await store.places(scope, [1])
        drafts.append(
            LessonDraft(
                kind="preference",
                text=quoted or text,
                key=text,
                confidence=0.5,
                first_seen=now(),
                last_seen=now(),
                times=1,
                places=places,
            )
        )
    return await store.keep_lessons(agent_id, drafts, replaced={}, event=LEARNT)


async def events(memory: Memory, verb: str, agent_id: str = "main") -> list[Any]:
    return [event for event in await memory._store.audit_events(agent_id, limit=1_000) if event.verb == verb]


async def written(memory: Memory, agent_id: str = "main") -> list[Any]:
    return await memory._store.messages(Scope(agent_id=agent_id, session_id=LESSONS_SESSION), limit=1_000)


async def recalled(memory: Memory) -> list[str]:
    await caught_up(memory)
    found = await memory.recall(memory.scope("new"), "Which tea do I like best?")
    return [entry.text for entry in found.entries]


# ── what there is ──


async def test_lessons_come_in_pages_with_counts(memory: Memory) -> None:
    kept = await learnt(memory, "one", "two", "three")
    await memory.judge_lesson("main", kept[1].id, "accept")
    page = await memory.lessons("main", limit=2, by=ADA)
    assert [lesson.text for lesson in page.lessons] == ["three", "two"]
    assert (page.counts, page.next) == ({"accepted": 1, "learnt": 2}, "lesson-0002")
    rest = await memory.lessons("main", limit=2, before=page.next)
    assert ([lesson.text for lesson in rest.lessons], rest.next) == (["one"], None)
    accepted = await memory.lessons("main", statuses=["accepted"])
    assert [lesson.text for lesson in accepted.lessons] == ["two"]
    assert (await memory.lessons("main", kind="fact")).lessons == []
    first, *others = await events(memory, "lessons")
    assert (first.actor, first.details) == ("ada's laptop", {"lessons": 2})
    assert len(others) == 3
    with pytest.raises(WrongShape, match="limit"):
        await memory.lessons("main", limit=0)


# ── accept and reject ──


@pytest.mark.parametrize(("verdict", "status"), [("accept", "accepted"), ("reject", "rejected")])
async def test_a_verdict_is_the_status_and_nothing_else(memory: Memory, verdict: Any, status: str) -> None:
    (lesson,) = await learnt(memory, TEA)
    judged = await memory.judge_lesson("main", lesson.id, verdict, by=ADA)
    assert judged.status == status
    assert (judged.text, judged.sources, judged.times) == (lesson.text, lesson.sources, 1)
    assert judged.learnt_text is None
    assert await memory.judge_lesson("main", lesson.id, verdict) == judged
    said = await events(memory, "lessons/judge")
    assert [event.details for event in said] == [{"lesson": lesson.id, "verdict": verdict}] * 2
    assert said[0].actor == "ada's laptop"
    assert await written(memory) == []
    assert await events(memory, "supersede") == []


async def test_a_mind_can_be_changed(memory: Memory) -> None:
    (lesson,) = await learnt(memory, TEA)
    for verdict, status in (("reject", "rejected"), ("accept", "accepted"), ("reject", "rejected")):
        judged = await memory.judge_lesson("main", lesson.id, verdict)  # type: ignore[arg-type]
        assert judged.status == status


# ── edits ──


async def test_an_edit_is_news(memory: Memory) -> None:
    (lesson,) = await learnt(memory, TEA)
    edited = await memory.judge_lesson("main", lesson.id, "edit", "  I like green tea best. \n", by=ADA)
    assert (edited.status, edited.text, edited.learnt_text) == ("edited", "I like green tea best.", TEA)
    assert [(source.session_id, source.seq) for source in edited.sources] == [("chat 0", 1), (LESSONS_SESSION, 1)]
    (logged,) = await written(memory)
    assert logged.message.role == "user"
    assert logged.message.content == "I like green tea best."
    assert logged.message.meta == {"lesson": lesson.id}
    assert logged.message.id.startswith(f"{lesson.id}:")
    assert len(logged.message.id) == len(lesson.id) + 1 + 12
    (judged,) = await events(memory, "lessons/judge")
    assert judged.actor == "ada's laptop"
    assert judged.session_id == LESSONS_SESSION
    assert {"lesson": lesson.id, "verdict": "edit", "accepted": 1, "firstSeq": 1}.items() <= judged.details.items()
    (link,) = await events(memory, "supersede")
    assert link.details == {"seq": 1, "replaced": 1, "kind": "correction", "lesson": lesson.id}
    assert (await memory.audit("main")).verified


async def test_recall_prefers_what_a_person_wrote(memory: Memory) -> None:
    (lesson,) = await learnt(memory, TEA)
    await memory.judge_lesson("main", lesson.id, "edit", "I like green tea best.")
    await caught_up(memory)
    found = await memory.recall(memory.scope("new"), "Which tea do I like best?")
    assert [entry.text for entry in found.entries] == ["I like green tea best."]
    (replaced,) = found.entries[0].why.replaces  # type: ignore[union-attr]
    assert replaced.text == TEA


async def test_what_else_a_message_says_still_holds(memory: Memory) -> None:
    long = "My landlord is called Ferdinand and lives in Linz. I like black tea best. The boiler was mended in March."
    (lesson,) = await learnt(memory, long, quoted=TEA)
    await memory.judge_lesson("main", lesson.id, "edit", "I like green tea best.")
    await caught_up(memory)
    found = await memory.recall(memory.scope("new"), "What is my landlord called?")
    assert long in [entry.text for entry in found.entries]


async def test_the_same_edit_again_changes_nothing(memory: Memory) -> None:
    (lesson,) = await learnt(memory, TEA)
    once = await memory.judge_lesson("main", lesson.id, "edit", "Green.")
    assert await memory.judge_lesson("main", lesson.id, "edit", " Green. ") == once
    assert len(await written(memory)) == 1
    assert len(await events(memory, "supersede")) == 1
    assert len(await events(memory, "lessons/judge")) == 2


async def test_the_same_edit_after_it_was_forgotten_is_news(memory: Memory) -> None:
    (lesson,) = await learnt(memory, TEA)
    for count in (1, 2):
        await memory.judge_lesson("main", lesson.id, "edit", GREEN)
        said = await written(memory)
        assert [logged.message.content for logged in said] == [FORGOTTEN_TEXT] * (count - 1) + [GREEN]
        assert await recalled(memory) == [GREEN]
        await memory.forget("main", matching=GREEN)


async def test_what_it_said_first_is_kept_through_every_edit(memory: Memory) -> None:
    (lesson,) = await learnt(memory, TEA)
    for text in ("Green.", "White.", "Green.", "White.", "Green."):
        edited = await memory.judge_lesson("main", lesson.id, "edit", text)
        assert (edited.text, edited.learnt_text) == (text, TEA)
        accepted = await memory.judge_lesson("main", lesson.id, "accept")
        assert (accepted.text, accepted.learnt_text, accepted.status) == (text, TEA, "accepted")
    said = await written(memory)
    assert [logged.message.content for logged in said] == ["Green.", "White.", "Green.", "White.", "Green."]
    assert len({logged.message.id for logged in said}) == 5
    await caught_up(memory)
    store: Store = memory._store
    places = await store.places(Scope(agent_id="main", session_id=LESSONS_SESSION), range(1, 6))
    links = await store.supersessions("main", places)
    assert not [link for link in links if link.old_place >= link.new_place and link.old_place in places], "no ring"
    assert places[-1] not in {link.old_place for link in links}
    assert {link.old_place for link in links} >= set(places[:-1])


async def test_one_that_was_rejected_is_taken_up_again_by_the_same_words(memory: Memory) -> None:
    (lesson,) = await learnt(memory, TEA)
    await memory.judge_lesson("main", lesson.id, "edit", GREEN)
    await memory.judge_lesson("main", lesson.id, "reject")
    assert (await memory.judge_lesson("main", lesson.id, "edit", GREEN)).status == "edited"
    assert [logged.message.content for logged in await written(memory)] == [GREEN, f"That is not so: {GREEN}", GREEN]
    assert await recalled(memory) == [GREEN]


async def test_a_rejection_takes_back_what_was_written(memory: Memory) -> None:
    (lesson,) = await learnt(memory, TEA)
    await memory.judge_lesson("main", lesson.id, "edit", "I like white tea best.")
    await memory.judge_lesson("main", lesson.id, "edit", GREEN)
    rejected = await memory.judge_lesson("main", lesson.id, "reject", by=ADA)
    assert (rejected.status, rejected.text, rejected.learnt_text) == ("rejected", GREEN, TEA)
    assert await recalled(memory) == [TEA]
    withdrawn = (await events(memory, "supersede"))[-2]
    assert withdrawn.details == {"lesson": lesson.id, "withdrawn": 3}
    assert await memory.judge_lesson("main", lesson.id, "reject") == rejected
    assert len(await written(memory)) == 3
    assert (await memory.audit("main")).verified


async def test_what_was_taken_back_holds_again_when_it_is_accepted(memory: Memory) -> None:
    (lesson,) = await learnt(memory, TEA)
    await memory.judge_lesson("main", lesson.id, "edit", GREEN)
    await memory.judge_lesson("main", lesson.id, "reject")
    accepted = await memory.judge_lesson("main", lesson.id, "accept")
    assert (accepted.status, accepted.text, accepted.learnt_text) == ("accepted", GREEN, TEA)
    assert await recalled(memory) == [GREEN]
    assert await memory.judge_lesson("main", lesson.id, "accept") == accepted


@pytest.mark.parametrize("stopped_at", ["withdraw_supersessions", "supersede", "judge_lesson"])
async def test_a_rejection_that_was_stopped_on_its_way_is_finished_by_the_next(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, stopped_at: str
) -> None:
    (lesson,) = await learnt(memory, TEA)
    edited = await memory.judge_lesson("main", lesson.id, "edit", GREEN)

    async def stopped(*_: object, **__: object) -> None:
        raise StoreError("the lights went out")

    with monkeypatch.context() as patched:
        patched.setattr(memory._store, stopped_at, stopped)
        with pytest.raises(StoreError):
            await memory.judge_lesson("main", lesson.id, "reject")
    assert await memory._store.lesson("main", lesson.id) == edited
    assert (await memory.judge_lesson("main", lesson.id, "reject")).status == "rejected"
    assert len(await written(memory)) == 2
    assert await recalled(memory) == [TEA]


async def test_a_rejection_leaves_what_other_lessons_say(memory: Memory) -> None:
    tea, cake = await learnt(memory, TEA, "I like cake.")
    await memory.judge_lesson("main", tea.id, "edit", GREEN)
    await memory.judge_lesson("main", cake.id, "edit", "I like cheese.")
    await memory.judge_lesson("main", tea.id, "reject")
    found = await memory.recall(memory.scope("new"), "Do I like cheese?")
    assert "I like cheese." in [entry.text for entry in found.entries]


async def test_an_edit_stands_for_what_was_said_and_the_next_for_both(memory: Memory) -> None:
    (lesson,) = await learnt(memory, "My birthday is 5 May.")
    for year in ("1990", "1991"):
        await memory.judge_lesson("main", lesson.id, "edit", f"My birthday is 5 May {year}.")
        await caught_up(memory)
        found = await memory.recall(memory.scope("new"), "When is my birthday?")
        assert [entry.text for entry in found.entries] == [f"My birthday is 5 May {year}."]
    assert [event.details["replaced"] for event in await events(memory, "supersede")] == [1, 2]


async def test_who_edits_does_not_say_it_once_more(memory: Memory) -> None:
    (lesson,) = await learnt(memory, TEA)
    for text in (GREEN, "I like white tea best.", "I like red tea best."):
        edited = await memory.judge_lesson("main", lesson.id, "edit", text)
    assert (edited.times, len(edited.sources)) == (1, 4)
    (kept,) = await memory._store.keep_lessons("main", [as_draft(edited)], replaced={}, event=LEARNT)
    assert kept.times == 1


async def test_what_was_written_is_no_conversation(memory: Memory) -> None:
    (lesson,) = await learnt(memory, "My sister Anna lives in Graz.")
    await memory.judge_lesson("main", lesson.id, "edit", "I am a nurse from Vienna.")
    await caught_up(memory)
    status = await memory.status("main")
    assert [session.session_id for session in status.sessions] == ["chat 0"]
    assert status.counts.sessions == 1
    assert "nurse" not in str((await memory.anchors("main")).anchors)
    (logged,) = await written(memory)
    assert logged.message.origin == "lesson"


@pytest.mark.parametrize("stopped_at", ["supersede", "judge_lesson", "places"])
async def test_an_edit_that_was_stopped_on_its_way_is_finished_by_the_next(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, stopped_at: str
) -> None:
    (lesson,) = await learnt(memory, TEA)

    async def stopped(*_: object, **__: object) -> None:
        raise StoreError("the lights went out")

    with monkeypatch.context() as patched:
        patched.setattr(memory._store, stopped_at, stopped)
        with pytest.raises(StoreError):
            await memory.judge_lesson("main", lesson.id, "edit", "Green.")
    assert await memory._store.lesson("main", lesson.id) == lesson
    edited = await memory.judge_lesson("main", lesson.id, "edit", "Green.")
    assert (edited.status, edited.text, len(edited.sources)) == ("edited", "Green.", 2)
    assert len(await written(memory)) == 1
    assert len(await events(memory, "supersede")) == 1


async def test_a_lesson_that_gave_way_holds_again_by_an_edit(memory: Memory) -> None:
    old, new = await learnt(memory, TEA, "I like coffee.")
    draft = LessonDraft(
        kind="preference",
        text="I like coffee.",
        key="I like coffee.",
        confidence=0.5,
        first_seen=now(),
        last_seen=now(),
        times=1,
        places=[],
    )
    await memory._store.keep_lessons("main", [draft], replaced={old.id: draft.key}, event=LEARNT)
    assert (await memory.lessons("main")).lessons[-1].replaced_by == new.id
    assert (await memory.judge_lesson("main", old.id, "edit", "Tea it is.")).replaced_by is None


async def test_secrets_do_not_get_in(memory: Memory) -> None:
    (lesson,) = await learnt(memory, TEA)
    edited = await memory.judge_lesson("main", lesson.id, "edit", "The password: tulip-Harbour-42 opens the shed.")
    assert "tulip-Harbour-42" not in edited.text
    (logged,) = await written(memory)
    assert logged.message.content == edited.text


async def test_two_who_edit_at_once_leave_one_standing(memory: Memory) -> None:
    (lesson,) = await learnt(memory, TEA)
    texts = [f"Tea number {number}." for number in range(8)]
    await asyncio.gather(*[memory.judge_lesson("main", lesson.id, "edit", text) for text in texts])
    said = [logged.message.content for logged in await written(memory)]
    (kept,) = (await memory.lessons("main")).lessons
    assert sorted(said) == texts
    assert kept.text == said[-1]
    assert len(kept.sources) == 9


async def test_the_next_context_is_made_anew(memory: Memory) -> None:
    (lesson,) = await learnt(memory, TEA)
    scope = memory.scope("anew")
    await memory.on_message(scope, [user("Hello.")])
    session = await memory._store.session(scope)
    assert session is not None
    before = await memory._background.contexts.composed(scope, session, 1_000)
    assert await memory._background.contexts.composed(scope, session, 1_000) is before
    await memory.judge_lesson("main", lesson.id, "reject")
    assert await memory._background.contexts.composed(scope, session, 1_000) is not before


# ── what is refused ──


@pytest.mark.parametrize(
    ("verdict", "text", "why"),
    [
        ("edit", None, "empty"),
        ("edit", "", "empty"),
        ("edit", " \n\t\u3000", "empty"),
        ("edit", "x" * (LONGEST_TEXT_CHARS + 1), "2,001 characters"),
        ("edit", "x" * 5_000_000, "5,000,000 characters"),
        ("edit", "\ud800", "surrogate"),
        ("accept", "text", "goes with the verdict edit"),
        ("reject", "", "goes with the verdict edit"),
        ("praise", None, "accept, edit or reject"),
    ],
)
async def test_what_cannot_be_meant_changes_nothing(memory: Memory, verdict: Any, text: str | None, why: str) -> None:
    (lesson,) = await learnt(memory, TEA)
    with pytest.raises(WrongShape, match=why):
        await memory.judge_lesson("main", lesson.id, verdict, text)
    assert (await memory.lessons("main")).lessons == [lesson]
    assert await events(memory, "lessons/judge") == []
    assert await written(memory) == []


@pytest.mark.parametrize("lesson_id", ["lesson-0002", "lesson-1", "", "../x", "lesson-" + "9" * 40])
@pytest.mark.parametrize(("verdict", "text"), [("accept", None), ("edit", "x")])
async def test_one_that_is_not_there_cannot_be_judged(
    memory: Memory, lesson_id: str, verdict: Any, text: str | None
) -> None:
    await learnt(memory, TEA)
    with pytest.raises(NotFound, match="offbook lessons"):
        await memory.judge_lesson("main", lesson_id, verdict, text)
    assert await written(memory) == []


async def test_nobody_judges_the_lessons_of_another(memory: Memory) -> None:
    await learnt(memory, TEA, agent_id="main")
    with pytest.raises(NotFound):
        await memory.judge_lesson("other", "lesson-0001", "edit", "x")
    (theirs,) = await learnt(memory, "I like cake.", agent_id="other")
    await memory.judge_lesson("other", theirs.id, "edit", "I like cheese.")
    assert [lesson.text for lesson in (await memory.lessons("main")).lessons] == [TEA]
    assert await written(memory) == []
    found = await memory.recall(memory.scope("new", "main"), "cheese", limit=50)
    assert not [entry for entry in found.entries if place_named(entry.id) and "cheese" in entry.text]


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(text=st.text(min_size=1, max_size=60).filter(lambda text: text.strip()))
async def test_any_words_come_back_as_they_were(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    async with small_memory(tmp_path_factory.mktemp("home"), lessons=Lessons(enabled=False)) as memory:
        (lesson,) = await learnt(memory, TEA)
        edited = await memory.judge_lesson("main", lesson.id, "edit", text)
        assert (edited.status, len(edited.sources)) == ("edited", 2)
        assert edited.text == (await written(memory))[0].message.content
        assert await memory.judge_lesson("main", lesson.id, "edit", text) == edited
