from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from offbook.model.lesson import Lesson, LessonDraft, LessonSource
from offbook.model.settings.sections import Lessons
from offbook.statements.lessons import (
    BY_RULES,
    ENOUGH_LESSONS,
    MOST,
    chosen_lessons,
    confidence_at,
    confidence_of,
    folded,
)
from offbook.statements.reading import LessonMention
from tests.unit.statements.said import DATABASE, DAY, NOON, SERVER, lesson, said

strengths = st.lists(st.floats(0, 1), min_size=1, max_size=8)
ages = st.timedeltas(timedelta(), timedelta(days=4_000))


def known(draft: LessonDraft, *sayings: LessonMention) -> Lesson:
    fields = {name: getattr(draft, name) for name in draft.__struct_fields__ if name != "places"}
    sources = [LessonSource(session_id=one.session_id, seq=one.seq, at=one.at) for one in sayings]
    return lesson(1, **fields, sources=sources)


# ── the same said again is one lesson ──


def test_said_again_it_is_surer_and_told_in_the_newest_words() -> None:
    first = said(DATABASE, 1)
    (draft,) = folded([], first).drafts
    again = said(DATABASE.replace(".", "!"), 2, session="work")
    learnt = folded([known(draft, *first)], again)
    (more,) = learnt.drafts
    assert (learnt.new, learnt.again) == (0, 1)
    assert (more.text, more.times, more.places) == (again[0].text, 2, [1002])
    assert more.confidence >= draft.confidence
    assert (more.first_seen, more.last_seen) == (NOON + DAY, NOON + 2 * DAY)


def test_a_place_that_is_known_teaches_nothing_new() -> None:
    first = said(DATABASE, 1)
    (draft,) = folded([], first).drafts
    assert folded([known(draft, *first)], first) == ([], 0, 0, {})


def test_old_history_that_comes_late_does_not_change_the_words() -> None:
    first = said(DATABASE, 5)
    (draft,) = folded([], first).drafts
    (more,) = folded([known(draft, *first)], said(DATABASE.replace(".", "!"), 2)).drafts
    assert more.text == DATABASE
    assert (more.first_seen, more.last_seen) == (NOON + 2 * DAY, NOON + 5 * DAY)


def test_what_a_model_writes_stands_in_the_place_of_the_quotation_and_is_never_quoted_over() -> None:
    first = said(DATABASE, 1)
    (draft,) = folded([], first).drafts
    quoted = known(draft, *first)
    for key in (first[0].key, "another key"):
        written = [msgspec.structs.replace(first[0], text=DATABASE.replace("is", "was"), key=key)]
        learnt = folded([quoted], written, "a model")
        (more,) = learnt.drafts
        assert (more.text, more.learnt_by, more.times) == (written[0].text, "a model", 1)
        assert learnt.given_way == ({quoted.id: key} if key != quoted.key else {})
        assert folded([known(more, *first)], first).drafts == []
        assert folded([known(more, *first)], written, "a model").drafts == []


@given(st.permutations([*said(DATABASE, 1), *said(DATABASE, 3, session="work"), *said(SERVER, 2)]))
def test_in_which_order_it_comes_does_not_matter(sayings: list[LessonMention]) -> None:
    drafts = sorted(folded([], sayings).drafts, key=lambda one: one.key)
    assert [(one.text, one.times) for one in drafts] == sorted(
        [(DATABASE, 2), (SERVER, 1)], key=lambda each: [one.text for one in drafts].index(each[0])
    )


# ── how sure ──


def test_each_saying_takes_away_a_share_of_the_doubt() -> None:
    assert confidence_of([0.75]) == 0.75
    assert confidence_of([0.75, 0.5]) == 0.875
    assert confidence_of([0.5], before=0.75) == 0.875


@given(strengths, st.floats(0, 1))
def test_said_once_more_it_is_never_less_sure(some: list[float], more: float) -> None:
    assert 0 <= confidence_of(some) <= confidence_of([*some, more]) <= MOST


@given(strengths, st.integers(0, 7))
def test_in_which_pieces_it_is_learnt_does_not_matter(some: list[float], at: int) -> None:
    in_pieces = confidence_of(some[at:], confidence_of(some[:at])) if some[at:] else confidence_of(some)
    assert abs(in_pieces - confidence_of(some)) < 0.001
    assert confidence_of(some[::-1]) == confidence_of(some)


@given(st.floats(0, 1), ages, ages)
def test_it_fades_and_never_grows_by_itself(confidence: float, one: timedelta, other: timedelta) -> None:
    sooner, later = sorted((one, other))
    assert (
        0
        <= confidence_at(confidence, NOON, NOON + later)
        <= confidence_at(confidence, NOON, NOON + sooner)
        <= confidence
    )


def test_a_clock_that_went_back_makes_nothing_surer() -> None:
    assert confidence_at(0.7, NOON, NOON - 400 * DAY) == 0.7


# ── which come into a turn ──


THINGS = [
    "Tea",
    "Rain",
    "Bread",
    "Music",
    "Chess",
    "Snow",
    "Wine",
    "Rowing",
    "Cheese",
    "Opera",
    "Jazz",
    "Poker",
    "Skiing",
    "Yoga",
    "Coffee",
    "Cider",
]


def chosen(*lessons: Lesson, passing: Collection[str] = (), **fields: Any) -> list[int]:
    return [int(one.id[-4:]) for one in chosen_lessons(lessons, Lessons(**fields), NOON + 30 * DAY, passing)]


def test_what_a_person_judged_comes_first_then_the_newest() -> None:
    judged = lesson(1, status="accepted", confidence=0.1), lesson(2, status="edited")
    assert chosen(lesson(3), *judged, lesson(4)) == [2, 1, 4, 3]


def test_rejected_replaced_and_unsure_ones_never_come() -> None:
    least = Lessons().min_confidence
    unsure = lesson(3, confidence=round(least - 0.1, 2))
    assert chosen(lesson(1, status="rejected"), lesson(2, replaced_by="lesson-0003"), unsure) == []
    assert chosen(unsure, min_confidence=0.1) == [3]


def test_what_was_said_in_passing_comes_last_and_only_where_there_is_little_else() -> None:
    many = [lesson(number, text=f"{word} is fine with us.") for number, word in enumerate(THINGS, 1)]
    passing = {one.id for one in many[2:5]}
    assert chosen(*many[:6], passing=passing) == [6, 2, 1, 5, 4, 3]
    assert chosen(*many[: ENOUGH_LESSONS + 2], passing=passing) == [*range(ENOUGH_LESSONS + 2, 5, -1), 2, 1, 5]
    assert chosen(*many[: ENOUGH_LESSONS + 3], passing=passing) == [*range(ENOUGH_LESSONS + 3, 5, -1), 2, 1]
    judged = msgspec.structs.replace(many[3], status="accepted")
    assert chosen(*many[:3], judged, *many[4 : ENOUGH_LESSONS + 3], passing=passing)[0] == 4


def test_what_the_first_version_read_by_patterns_comes_only_where_a_person_judged_it() -> None:
    read = lesson(1, learnt_by=BY_RULES)
    assert chosen(read) == []
    assert chosen(msgspec.structs.replace(read, status="accepted")) == [1]


def test_so_many_and_no_more() -> None:
    many = [lesson(number) for number in range(1, 60)]
    most = Lessons().max_injected
    assert chosen(*many) == list(range(59, 59 - most, -1))
    assert chosen(*many, max_injected=0) == []
    assert chosen(*many, enabled=False) == []
