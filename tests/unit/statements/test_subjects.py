"""Which names and words are subjects, and of what kind."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from offbook.model.types import Message
from offbook.models.subject_kinds import SUBJECT_KINDS, read_subject
from offbook.statements import subjects
from offbook.statements.subjects import (
    Mention,
    SubjectNotes,
    dropped,
    kind_of,
    related,
    subjects_of,
    take,
    title_of,
)
from offbook.statements.turns import Turn, read_turn, text_read

AT = datetime(2026, 3, 1, tzinfo=UTC)


def turn_of(text: str, seq: int = 1, name: str | None = None) -> Turn:
    return read_turn(seq, AT, Message(role="user", content=text, name=name), is_noise=False)


def noted(*sessions: Sequence[str], name: str | None = None) -> SubjectNotes:
    notes, place = SubjectNotes(), 0
    for number, said in enumerate(sessions, 1):
        for seq, text in enumerate(said, 1):
            place += 1
            take(notes, place, number, turn_of(text, seq, name))
    return notes


OKSANA = (
    ["I hired Oksana as our new pastry chef last week."],
    ["Yesterday Oksana said she would bake the honey cake on Fridays.", "I gave Oksana a raise and a new title."],
)


def test_a_name_of_two_sessions_is_a_subject_and_its_sentences_are_found_again() -> None:
    notes = noted(*OKSANA)
    (one,) = subjects_of(notes)
    assert (one.label, one.kind) == ("Oksana", "person")
    first = one.mentions[0]
    text = text_read(Message(role="user", content=OKSANA[0][0]), is_noise=False)
    assert text[first.start : first.end] == OKSANA[0][0]


def test_what_is_named_once_or_only_asked_about_is_none() -> None:
    assert subjects_of(noted(["I hired Oksana as our new pastry chef last week."])) == []
    assert subjects_of(noted(["Is that Oksana?"], ["Where is Oksana now?"])) == []


def test_who_is_only_spoken_to_is_not_spoken_of() -> None:
    notes = noted(
        ["Caroline, glad you found a supportive community!", "I totally agree with that plan, Caroline."],
        ["Hey Caroline, great to hear from you again!"],
    )
    assert subjects_of(notes) == []


def test_days_and_thanks_are_none() -> None:
    notes = noted(
        ["We open the shop again on Monday at seven.", "Thanks for the long list."],
        ["The delivery comes on Monday before noon.", "Thanks, the van is fixed."],
        ["Our new oven arrives on Monday next week."],
    )
    assert {one.label for one in subjects_of(notes)}.isdisjoint({"Monday", "Thanks"})


def test_a_part_of_a_name_is_that_of_the_only_longer_one() -> None:
    notes = noted(
        ["We met Ruth Ellison at the station.", "I like Ruth a lot, she is funny."],
        ["Then Ruth Ellison moved to Leeds with her dog.", "I wrote to Ruth about the house."],
    )
    assert [(one.label, len(one.mentions)) for one in subjects_of(notes)] == [("Ruth Ellison", 4)]


def test_who_speaks_is_a_person_by_what_they_say_of_themselves() -> None:
    notes = noted(["I live in Leeds with my two sons."], ["I am a nurse and I work nights."], name="Samira")
    assert ("Samira", "person") in [(one.label, one.kind) for one in subjects_of(notes)]
    assert subjects_of(noted(["I live in Leeds with my two sons."], ["I am a nurse."], name="user-4711")) == []


def test_what_two_sentences_without_spaces_share_is_a_topic() -> None:
    notes = noted(["另一个学生陈嘉是博士生,做生存分析。"], ["陈嘉的投稿要大修,审稿人有三个。"])
    assert "陈嘉" in [one.label for one in subjects_of(notes)]


def test_of_what_was_dropped_nothing_is_left() -> None:
    notes = noted(*OKSANA)
    dropped(notes, lambda session, seq: session == 2)
    assert subjects_of(notes) == []
    dropped(notes, lambda session, seq: True)
    assert notes == SubjectNotes()


def test_there_are_only_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subjects, "MOST_KEYS", 3)
    monkeypatch.setattr(subjects, "MOST_MENTIONS", 2)
    notes = noted(*OKSANA, ["I met Kenny, Idris, Lorcan and Danylo at the harbour."])
    assert len(notes.mentions) <= 3
    assert len(notes.mentions["oksana"]) == 2


def test_those_of_the_same_message_are_related() -> None:
    notes = noted(
        ["I hired Oksana and her husband Danylo last week."],
        ["Now Oksana runs the shop.", "I paid Danylo for the van."],
    )
    found = {one.label: one for one in subjects_of(notes)}
    assert [one.label for one in related(found["Oksana"], list(found.values()), 5)] == ["Danylo"]


def test_where_the_sentences_are_not_sure_it_is_a_topic() -> None:
    def said(person: int, topic: int, is_name: bool = True) -> Mention:
        return Mention(1, 1, 1, 0, 9, "Hull", is_name, True, kinds=(person, -90, topic, -90))

    assert kind_of([said(-1, -30), said(-2, -25)]) == "person"
    assert kind_of([said(-6, -9), said(-5, -9)]) == "topic"
    assert kind_of([said(-1, -30, is_name=False)]) == "none"
    assert kind_of([Mention(1, 1, 1, 0, 9, "x", True, True)]) == "topic"


@pytest.mark.parametrize(
    ("kind", "text", "name"),
    [
        ("person", "My cousin Annabel said she would call me.", "Annabel"),
        ("person", "Meine Kollegin Wiebke hat gesagt, sie kommt später.", "Wiebke"),
        ("project", "We decided to ship the first release of Sparrowhawk in May.", "Sparrowhawk"),
        ("topic", "We stayed in Ljubljana for two nights.", "Ljubljana"),
        ("none", "We meet again on Tuesday.", "Tuesday"),
    ],
)
def test_a_sentence_tells_what_a_name_is(kind: str, text: str, name: str) -> None:
    at = text.index(name)
    scores = read_subject(text, at, at + len(name))
    assert SUBJECT_KINDS[scores.index(max(scores))] == kind


def test_a_title_is_whole_words_of_the_first_sentence_that_says_something() -> None:
    text = "Hi! Please help me plan the move of our bakery to the new place by the harbour, with the oven and all."
    title = title_of(turn_of(text))
    assert title.removesuffix("…") in text
    assert 10 < len(title) <= 60
    assert title_of(turn_of("ok")) == ""
