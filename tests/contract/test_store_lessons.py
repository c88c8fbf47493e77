"""What every store promises to lessons (`protocols.Store`): what was learnt, how a person judged it, where it was said."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta, timezone
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from offbook.log.store import Store
from offbook.model.errors import StoreError
from offbook.model.lesson import Lesson, LessonDraft
from offbook.model.types import AuditDraft, Scope
from tests.contract.test_store import CHAT, NOON, add, entry
from tests.contract.test_store_compression import THEIRS, WORK, no_faults, talk, verbs

OpenStore = Callable[[], Store]
HOUR = timedelta(hours=1)
LEARNT = AuditDraft(verb="learn", actor="test", details={"by": "test"})
JUDGED = AuditDraft(verb="lessons/judge", actor="test", details={"verdict": "accept"})
BROKEN = AuditDraft(verb="learn", actor="test", details={"unwritable": object()})
LAST_OF_ALL = "lesson-" + "9" * 18
NO_IDS = ["", "lesson-1", "lesson-00001", "lesson-0000", "lesson-0099", LAST_OF_ALL, "lesson-" + "9" * 40, "x"]


def draft(text: str = "They prefer tea.", key: str = "tea", **fields: Any) -> LessonDraft:
    given = {
        "kind": "preference",
        "confidence": 0.7,
        "first_seen": NOON,
        "last_seen": NOON + HOUR,
        "times": 2,
        "places": [],
    } | fields
    return LessonDraft(text=text, key=key, **given)


async def keep(
    store: Store, *drafts: LessonDraft, agent_id: str = "main", replaced: dict[str, str] | None = None
) -> list[Lesson]:
    return await store.keep_lessons(agent_id, drafts, replaced=replaced or {}, event=LEARNT)


async def judged(store: Store, lesson: Lesson, *places: int, **fields: Any) -> Lesson:
    await store.judge_lesson("main", msgspec.structs.replace(lesson, **fields), places, JUDGED)
    return await there(store, lesson.id)


async def there(store: Store, id_: str, agent_id: str = "main") -> Lesson:
    found = await store.lesson(agent_id, id_)
    assert found is not None
    return found


async def places_of(store: Store, scope: Scope = CHAT) -> list[int]:
    arrived = await store.arrivals(scope.agent_id, after_event=0, limit=1_000)
    return [placed.place for placed in arrived.messages if placed.session_id == scope.session_id]


def ids(lessons: list[Lesson]) -> list[str]:
    return [lesson.id for lesson in lessons]


# ── keeping ──


async def test_it_comes_back_as_it_was(store: Store) -> None:
    await talk(store, 3)
    places = await places_of(store)
    given = draft(
        "你好 👋 \x00 end",
        key="你好 \x00 👋",
        kind="procedure",
        first_seen=NOON + timedelta(microseconds=1),
        places=places[1:],
        learnt_by="some-model",
        about="Ада",
    )
    (lesson,) = await keep(store, given)
    assert lesson.id == "lesson-0001"
    assert lesson.agent_id == "main"
    assert lesson.status == "learnt"
    assert [(source.session_id, source.seq, source.at) for source in lesson.sources] == [
        ("chat", 2, NOON),
        ("chat", 3, NOON),
    ]
    for name in ("kind", "text", "key", "confidence", "first_seen", "last_seen", "times", "learnt_by", "about"):
        assert getattr(lesson, name) == getattr(given, name), name
    assert await store.lesson("main", "lesson-0001") == lesson
    assert await store.lessons("main") == [lesson]
    assert await no_faults(store)


async def test_some_are_found_by_their_keys_and_places(store: Store) -> None:
    await talk(store, 3)
    one, two, three = await places_of(store)
    first, second, third, fourth = await keep(
        store,
        draft(key="tea", places=[one, two]),
        draft("Tea it is.", key="tea", kind="decision", places=[three]),
        draft("They call it 茶.", key="茶 \x00", places=[two]),
        draft("They like rain.", key="rain"),
    )
    await keep(store, draft(key="tea"), agent_id="other")
    assert await store.lessons_keyed("main", {"tea"}) == [first, second]
    assert await store.lessons_keyed("main", {"rain", "茶 \x00", "snow"}) == [third, fourth]
    assert await store.lessons_keyed("main", set()) == await store.lessons_keyed("nobody", {"tea"}) == []
    assert await store.lessons_at("main", [two]) == [first, third]
    assert await store.lessons_at("main", [three, one]) == [first, second]
    assert await store.lessons_at("other", [one, two, three]) == []


async def test_one_of_the_same_kind_and_key_is_the_same_lesson(store: Store) -> None:
    (first,) = await keep(store, draft("They like tea.", first_seen=NOON, last_seen=NOON, times=1))
    (again,) = await keep(
        store, draft("They prefer green tea.", first_seen=NOON - HOUR, last_seen=NOON + HOUR, times=3, confidence=0.9)
    )
    assert again.id == first.id
    assert (again.text, again.times, again.confidence) == ("They prefer green tea.", 3, 0.9)
    assert (again.first_seen, again.last_seen) == (NOON - HOUR, NOON + HOUR)
    assert await store.lesson_counts("main") == {"learnt": 1}


async def test_another_kind_or_key_is_another_lesson(store: Store) -> None:
    kept = await keep(store, draft(), draft(kind="fact"), draft(key="Tea"), draft(key=""), draft(key="", kind="fact"))
    assert ids(kept) == [f"lesson-000{number}" for number in range(1, 6)]
    assert ids(await keep(store, draft(key="", kind="fact"), draft(kind="fact"))) == ["lesson-0005", "lesson-0002"]


async def test_the_same_twice_changes_nothing_and_leaves_no_event(store: Store) -> None:
    await talk(store, 3)
    places = await places_of(store)
    drafts = [draft(places=places), draft(key="\x00"), draft(key="a\x00b"), draft(key=""), draft()]
    once = await keep(store, *drafts)
    assert (await verbs(store)).count("learn") == 1
    (event,) = await store.newest_audit_events("main", limit=1)
    assert event.details == {"by": "test", "added": 4, "changed": 0, "replaced": 0}
    assert await keep(store, *drafts) == once
    elsewhere = timezone(HOUR)
    moved = msgspec.structs.replace(drafts[0], last_seen=drafts[0].last_seen.astimezone(elsewhere))
    assert await keep(store, moved) == once[:1], "the same moment, told in another time zone"
    assert await keep(store) == []
    assert (await verbs(store)).count("learn") == 1
    assert await store.lesson_counts("main") == {"learnt": 4}


async def test_how_often_it_was_said_is_no_sum_and_never_below_the_places_that_are_known(store: Store) -> None:
    await talk(store, 4)
    places = await places_of(store)
    (lesson,) = await keep(store, draft(times=1, places=places[:1]))
    assert lesson.times == 1
    (lesson,) = await keep(store, draft(times=1, places=places[1:]))
    assert (lesson.times, len(lesson.sources)) == (4, 4)
    (lesson,) = await keep(store, draft(times=40, places=places[:1]))
    assert (lesson.times, len(lesson.sources)) == (40, 4)


async def test_the_event_says_what_came_of_it(store: Store) -> None:
    await keep(store, draft(), draft(key="coffee"))
    await keep(store, draft("new words"), draft(key="coffee"), draft(key="milk"), replaced={"lesson-0002": "milk"})
    (event,) = await store.newest_audit_events("main", limit=1)
    assert (event.verb, event.details) == ("learn", {"by": "test", "added": 1, "changed": 1, "replaced": 1})


async def test_places_that_are_not_the_agents_are_left_out(store: Store) -> None:
    await talk(store, 2)
    await talk(store, 2, WORK)
    await talk(store, 2, THEIRS)
    ours, work, theirs = [await places_of(store, scope) for scope in (CHAT, WORK, THEIRS)]
    nowhere = [0, -1, 2**62, 2**63, 2**80, max(ours) + 1]
    (lesson,) = await keep(store, draft(places=[*theirs, *nowhere, *work, *ours, *ours]))
    assert [(source.session_id, source.seq) for source in lesson.sources] == [
        ("chat", 1),
        ("chat", 2),
        ("work", 1),
        ("work", 2),
    ]
    lesson = await judged(store, lesson, *theirs, *nowhere, status="accepted")
    assert len(lesson.sources) == 4


async def test_of_many_sources_the_oldest_and_the_newest_are_shown(store: Store) -> None:
    await add(store, *[entry(f"tea {number}", ts=NOON + number * HOUR) for number in range(120)])
    places = await places_of(store)
    (lesson,) = await keep(store, draft(places=places))
    assert lesson.times == 120
    assert [source.seq for source in lesson.sources] == [*range(1, 26), *range(96, 121)]
    (few,) = await keep(store, draft(key="few", places=places[:49]))
    assert [source.seq for source in few.sources] == list(range(1, 50))


async def test_all_or_nothing(store: Store) -> None:
    await keep(store, draft())
    with pytest.raises(StoreError):
        await store.keep_lessons("main", [draft("other words"), draft(key="new")], replaced={}, event=BROKEN)
    for broken in (
        draft(key="new", confidence=1.5),
        draft(key="new", text="\ud800"),
        draft(key="new", first_seen=NOON.replace(tzinfo=None)),
        draft(last_seen=NOON.replace(tzinfo=None)),
        draft(key="new", kind="rumour"),
    ):
        with pytest.raises(StoreError):
            await keep(store, draft("other words"), broken)
    assert [lesson.text for lesson in await store.lessons("main")] == ["They prefer tea."]
    assert (await verbs(store)).count("learn") == 1
    assert await no_faults(store)


async def test_it_is_still_there_after_opening_again(open_store: OpenStore) -> None:
    store = open_store()
    await talk(store, 2)
    kept = await keep(store, draft(places=await places_of(store)), draft(key="other"))
    await store.close()
    store = open_store()
    assert await store.lessons("main") == kept[::-1]
    assert ids(await keep(store, draft(key="third"), draft())) == ["lesson-0003", "lesson-0001"]
    await store.close()


# ── what a person judged ──


@pytest.mark.parametrize("status", ["accepted", "edited", "rejected"])
async def test_what_a_person_judged_is_not_overwritten(store: Store, status: str) -> None:
    await talk(store, 3)
    places = await places_of(store)
    (lesson,) = await keep(store, draft("They like tea.", times=1, places=places[:1]))
    before = await judged(store, lesson, status=status, text="They love tea.", learnt_text="They like tea.")
    after, _ = await keep(
        store,
        draft("They hate tea.", times=9, places=places, last_seen=NOON + 5 * HOUR, first_seen=NOON - HOUR),
        draft("Coffee it is.", key="coffee"),
        replaced={lesson.id: "coffee"},
    )
    assert (after.times, after.last_seen, len(after.sources)) == (9, NOON + 5 * HOUR, 3)
    same = {"times": 1, "last_seen": before.last_seen, "sources": before.sources}
    assert msgspec.structs.replace(after, **same) == before
    assert await store.lesson("main", lesson.id) == after


async def test_a_judgement_keeps_what_was_seen_meanwhile(store: Store) -> None:
    await talk(store, 2)
    first, second = await places_of(store)
    (read,) = await keep(store, draft(times=1, places=[first]))
    await keep(store, draft(times=7, last_seen=NOON + 9 * HOUR, places=[second]))
    now_there = await judged(store, read, status="accepted")
    assert (now_there.times, now_there.last_seen, now_there.status) == (7, NOON + 9 * HOUR, "accepted")
    assert len(now_there.sources) == 2


async def test_a_judgement_adds_the_place_where_it_was_said_and_its_event(store: Store) -> None:
    await talk(store, 2)
    first, second = await places_of(store)
    (lesson,) = await keep(store, draft(places=[first]))
    after = await judged(store, lesson, second, status="edited", text="Only green tea.", learnt_text=lesson.text)
    assert [source.seq for source in after.sources] == [1, 2]
    assert (after.text, after.learnt_text) == ("Only green tea.", "They prefer tea.")
    assert (await verbs(store))[-1] == "lessons/judge"
    await store.judge_lesson("main", after, [], None)
    assert (await verbs(store)).count("lessons/judge") == 1


async def test_what_a_lesson_is_does_not_change_with_a_judgement(store: Store) -> None:
    kept = await keep(store, draft(), draft(key="other"))
    after = await judged(store, kept[0], status="accepted", kind="fact", key="other", agent_id="other")
    assert after == msgspec.structs.replace(kept[0], status="accepted")
    assert ids(await keep(store, draft(), draft(key="other"))) == ids(kept)


@pytest.mark.parametrize("id_", NO_IDS)
async def test_one_that_is_not_there_cannot_be_judged(store: Store, id_: str) -> None:
    (lesson,) = await keep(store, draft())
    with pytest.raises(StoreError):
        await store.judge_lesson("main", msgspec.structs.replace(lesson, id=id_, text="x"), [], JUDGED)
    assert await store.lessons("main") == [lesson]
    assert "lessons/judge" not in await verbs(store)


# ── what no longer holds ──


async def test_one_that_was_replaced_names_what_took_its_place(store: Store) -> None:
    (old,) = await keep(store, draft("The meeting is on Monday.", key="monday"))
    event_count = len(await verbs(store))
    (new,) = await keep(store, draft("It is on Friday.", key="friday"), replaced={old.id: "friday"})
    assert (await there(store, old.id)).replaced_by == new.id
    assert new.replaced_by is None
    await keep(store, draft("It is on Friday.", key="friday"), replaced={old.id: "friday"})
    assert len(await verbs(store)) == event_count + 1


async def test_one_that_is_said_again_holds_again(store: Store) -> None:
    monday, friday = draft("Monday", key="monday"), draft("Friday", key="friday", last_seen=NOON + 2 * HOUR)
    (old,) = await keep(store, monday)
    (new,) = await keep(store, friday, replaced={old.id: "friday"})
    (same,) = await keep(store, monday)
    assert same.replaced_by == new.id, "nothing new was said"
    (again,) = await keep(store, msgspec.structs.replace(monday, last_seen=NOON + 3 * HOUR))
    assert again.replaced_by is None


async def test_nothing_takes_its_own_place_nor_is_replaced_by_what_is_not_there(store: Store) -> None:
    kept = await keep(store, draft(key="a"), draft(key="b"))
    nobody = dict.fromkeys(NO_IDS, "a")
    await keep(store, draft(key="a"), replaced={kept[0].id: "a", kept[1].id: "no such key", **nobody})
    assert await store.lessons("main") == kept[::-1]


async def test_of_drafts_that_share_a_key_the_one_of_the_same_kind_takes_the_place(store: Store) -> None:
    (old,) = await keep(store, draft(key="old", kind="fact"))
    drafts = [draft(key="new"), draft(key="new", kind="fact")]
    kept = await keep(store, *drafts, replaced={old.id: "new"})
    assert (await there(store, old.id)).replaced_by == kept[1].id


# ── reading ──


async def test_they_come_in_pages_the_highest_number_first(store: Store) -> None:
    await keep(store, *[draft(key=str(number), kind=("fact", "decision")[number % 2]) for number in range(9)])
    pages, before = [], None
    while page := await store.lessons("main", before=before, limit=4):
        pages.append(ids(page))
        before = page[-1].id
    assert [len(page) for page in pages] == [4, 4, 1]
    assert [id_ for page in pages for id_ in page] == [f"lesson-000{number}" for number in range(9, 0, -1)]
    assert ids(await store.lessons("main", kind="decision", limit=2)) == ["lesson-0008", "lesson-0006"]
    assert ids(await store.lessons("main", kind="decision", before="lesson-0006")) == ["lesson-0004", "lesson-0002"]
    assert await store.lessons("main", limit=0) == []
    assert await store.lessons("main", limit=-1) == []


async def test_by_status(store: Store) -> None:
    kept = await keep(store, *[draft(key=str(number)) for number in range(4)])
    for lesson, status in zip(kept, ["accepted", "rejected", "edited"], strict=False):
        await judged(store, lesson, status=status)
    assert await store.lesson_counts("main") == {"accepted": 1, "edited": 1, "learnt": 1, "rejected": 1}
    assert ids(await store.lessons("main", statuses=["learnt", "accepted"])) == ["lesson-0004", "lesson-0001"]
    assert ids(await store.lessons("main", statuses=["rejected"], kind="preference")) == ["lesson-0002"]
    assert await store.lessons("main", statuses=["rejected"], kind="fact") == []
    assert await store.lessons("main", statuses=[]) == []


@pytest.mark.parametrize("id_", [id_ for id_ in NO_IDS if id_ != "lesson-0099"])
async def test_what_is_no_id_names_nothing(store: Store, id_: str) -> None:
    await keep(store, draft())
    assert await store.lesson("main", id_) is None
    if id_ != LAST_OF_ALL:
        assert await store.lessons("main", before=id_) == []


async def test_two_agents_never_meet(store: Store) -> None:
    await talk(store, 1)
    await talk(store, 1, THEIRS)
    (ours,) = await keep(store, draft("ours"))
    (theirs,) = await keep(store, draft("theirs"), agent_id="other")
    assert (ours.id, theirs.id) == ("lesson-0001", "lesson-0001"), "each counts its own"
    await keep(store, draft(key="second"), agent_id="other")
    await keep(store, draft(key="third"), replaced={"lesson-0002": "third"})
    assert (await there(store, "lesson-0002", "other")).replaced_by is None
    await judged(store, ours, status="rejected")
    assert [(lesson.key, lesson.status) for lesson in await store.lessons("other")] == [
        ("second", "learnt"),
        ("tea", "learnt"),
    ]
    assert await store.lesson_counts("other") == {"learnt": 2}
    assert {lesson.agent_id for lesson in await store.lessons("other")} == {"other"}


async def test_nothing_is_known_of_a_stranger(store: Store) -> None:
    assert await store.lessons("nobody") == []
    assert await store.lesson("nobody", "lesson-0001") is None
    assert await store.lesson_counts("nobody") == {}
    assert await keep(store, agent_id="nobody") == []
    assert await store.agents() == []


async def test_many_at_once_are_each_kept_once(store: Store) -> None:
    drafts = [draft(key=str(number)) for number in range(10)]
    await asyncio.gather(*[keep(store, *drafts) for _ in range(10)])
    assert len(await store.lessons("main")) == 10
    assert (await verbs(store)).count("learn") == 1


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    batches=st.lists(
        st.lists(
            st.tuples(st.sampled_from("abc"), st.text(max_size=8), st.integers(0, 5), st.integers(1, 9)), max_size=4
        ),
        max_size=5,
    )
)
async def test_whatever_was_kept_keeping_it_again_changes_nothing(
    open_store: OpenStore, batches: list[list[tuple[str, str, int, int]]]
) -> None:
    store = open_store()
    agent_id = f"agent {len(await store.agents())}"
    for batch in batches:
        drafts = [
            draft(text, key=key, times=times, first_seen=NOON, last_seen=NOON + hours * HOUR)
            for key, text, hours, times in batch
        ]
        await keep(store, *drafts, agent_id=agent_id)
        before, events = await store.lessons(agent_id), await verbs(store, agent_id)
        # A batch may say two things of one lesson: the last one stands, whichever way.
        await keep(store, *drafts, agent_id=agent_id)
        assert await store.lessons(agent_id) == before
        assert await verbs(store, agent_id) == events
    said = [each for batch in batches for each in batch]
    kept = {lesson.key: lesson for lesson in await store.lessons(agent_id)}
    assert set(kept) == {key for key, *_ in said}
    for key, lesson in kept.items():
        mine = [each for each in said if each[0] == key]
        assert lesson.text == mine[-1][1]
        assert lesson.times == max(times for *_, times in mine)
        assert lesson.last_seen == NOON + max(hours for *_, hours, _ in mine) * HOUR
    await store.close()
