from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.log.audit_chain import fingerprint
from offbook.model.lesson import LESSON_ORIGIN, LESSONS_SESSION, Lesson, LessonStatus
from offbook.model.memory_entry import PlacedMessage
from offbook.model.receipt import FORGOTTEN_TEXT
from offbook.model.types import Entry, LoggedMessage, Message
from offbook.rules.lessons.fold import folded
from offbook.rules.lessons.reader import said_in
from offbook.rules.lessons.remains import remains_of
from offbook.rules.supersession.lesson_links import TAKES_BACK

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
SAID = ["I like tea.", "I adore tea.", "I really like tea."]
EDITS = ["They like green tea.", "They like black tea."]


def placed(place: int, text: str, session_id: str = "chat", **fields: object) -> PlacedMessage:
    at = NOON + timedelta(minutes=place)
    message = Message(role="user", content=text, ts=at, **fields)  # type: ignore[arg-type]
    logged = LoggedMessage(
        seq=place,
        entry=Entry(message=message, chars=len(text), fingerprint=fingerprint(message)),
        received_at=at,
        hash=b"h",
    )
    return PlacedMessage(place=place, session=1, session_id=session_id, logged=logged)


def wrote(place: int, text: str, **fields: object) -> PlacedMessage:
    return placed(place, text, LESSONS_SESSION, origin=LESSON_ORIGIN, **fields)


def learnt(sources: list[PlacedMessage], status: LessonStatus = "learnt", **fields: object) -> Lesson:
    said = [one for source in sources if source.session_id != LESSONS_SESSION for one in said_in(source)]
    (draft,) = folded([], said).drafts
    given_fields = msgspec.structs.asdict(draft)
    del given_fields["places"]
    lesson = Lesson(id="lesson-0001", agent_id="main", status=status, sources=[], **given_fields)
    return msgspec.structs.replace(lesson, **fields)


def nothing(_text: str) -> bool:
    return False


SOURCES = [placed(number, text) for number, text in enumerate(SAID, start=1)]
EDITED = [*SOURCES, *(wrote(number, text) for number, text in enumerate(EDITS, start=10))]


@given(gone=st.sets(st.sampled_from([1, 2, 3])), status=st.sampled_from(["learnt", "accepted", "rejected"]))
def test_it_is_told_in_words_of_those_who_stay(gone: set[int], status: LessonStatus) -> None:
    lesson = learnt(SOURCES, status)
    left = remains_of(lesson, SOURCES, gone, nothing)
    if not gone:
        assert left == lesson
        return
    if len(gone) == 3:
        assert left is None
        return
    assert left is not None
    assert (left.id, left.status, left.key, left.times) == (lesson.id, status, lesson.key, 3 - len(gone))
    if 2 in gone:
        assert "adore" not in msgspec.json.encode(left).decode()
    assert (left.first_seen, left.last_seen) == tuple(
        SOURCES[at - 1].logged.message.ts for at in (min({1, 2, 3} - gone), max({1, 2, 3} - gone))
    )


@given(gone=st.sets(st.sampled_from([1, 2, 3, 10, 11])))
def test_what_a_person_wrote_stays_while_it_is_in_the_log(gone: set[int]) -> None:
    lesson = learnt(EDITED, "edited", text=EDITS[1], learnt_text="They really like tea.", last_seen=NOON)
    left = remains_of(lesson, EDITED, gone, nothing)
    if gone == {1, 2, 3, 10, 11}:
        assert left is None
        return
    assert left is not None
    if 11 not in gone:
        assert (left.status, left.text) == ("edited", EDITS[1])
    elif 10 not in gone:  # that was not so, either
        assert (left.status, left.text) == ("rejected", EDITS[0])
    else:  # whoever said what kind held that they like it
        assert (left.status, left.learnt_text) == ("accepted", None)
    if {1, 2, 3} <= gone:
        assert (left.learnt_text, left.key, left.about) == (FORGOTTEN_TEXT, lesson.id, None)


def test_of_what_was_taken_back_the_no_stays() -> None:
    sources = [*SOURCES, wrote(10, EDITS[0]), wrote(11, f"That is not so: {EDITS[0]}", meta=TAKES_BACK)]
    lesson = learnt(sources, "rejected", text=EDITS[0], learnt_text="They really like tea.")
    for gone in ({11}, {10}, {10, 11}, {1, 2, 3}):
        left = remains_of(lesson, sources, gone, nothing)
        assert left is not None
        assert left.status == "rejected"
        assert (left.text == EDITS[0]) == (10 not in gone)


@pytest.mark.parametrize(("heard", "is_left"), [("Lisbon has a harbour, I think", True), ("Quiet here.", False)])
def test_a_model_s_words_stay_where_those_who_stay_say_them(heard: str, is_left: bool) -> None:
    sources = [placed(1, "The harbour of Lisbon is large."), placed(2, heard)]
    lesson = learnt(SOURCES, "accepted", text="Lisbon has a harbour", key="a-model's", learnt_by="a-model", about=None)
    left = remains_of(lesson, sources, {1}, nothing)
    assert (left is not None) == is_left
    assert remains_of(lesson, sources, {1}, lambda text: "Lisbon" in text) is None


def test_other_words_for_the_same_make_it_known_by_theirs() -> None:
    """Two that mean the same were one lesson, under the words of the first."""
    sources = [placed(1, "I prefer red wine."), placed(2, "My uncle Otto lives in Bern.")]
    (other,) = said_in(sources[1])
    lesson = msgspec.structs.replace(learnt(sources[:1], "accepted"), kind=other.kind)
    left = remains_of(lesson, sources, {1}, nothing)
    assert left is not None
    assert (left.text, left.key, left.status) == (other.text, other.key, "accepted")


def test_an_edit_that_is_in_no_message_goes_where_it_says_what_goes() -> None:
    """Nobody who stays says it, so that nothing would find it there."""
    lesson = learnt(SOURCES, "edited", text="They drink tea in Zanzibar.", learnt_text="They really like tea.")
    left = remains_of(lesson, SOURCES, {1}, nothing)
    assert left is not None
    assert (left.status, left.text) == ("edited", lesson.text)
    assert remains_of(lesson, SOURCES, {1}, lambda text: "Zanzibar" in text) is None
