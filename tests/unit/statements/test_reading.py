from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.model.large_parts import externalise
from offbook.statements.reading import KEPT as LEAST
from offbook.statements.reading import LONGEST_CHARS, MOST_OF_ONE_MESSAGE, NOTED, kept_in, key_of
from tests.unit.statements.said import BUDGET, DATABASE, DAY, GERMAN, KEPT, NOON, SERVER, SHORT, placed, said


@pytest.mark.parametrize("sentence", KEPT)
def test_a_sentence_is_kept_word_for_word(sentence: str) -> None:
    (one,) = said(f"Good morning! {sentence} Thanks a lot!")
    assert (one.text, one.key) == (sentence, key_of(sentence))
    assert one.strength >= LEAST
    assert (one.session_id, one.seq, one.place) == ("chat", 1, 1001)


def test_what_it_is_read_as_says_what_kind_of_lesson_it_is() -> None:
    assert [said(one)[0].kind for one in (DATABASE, SHORT, GERMAN)] == ["fact", "preference", "procedure"]


@pytest.mark.parametrize(
    "text",
    [
        "Good morning!",
        "What is the capital of France?",
        "Can you write me an email to the landlord?",
        "Imagine you are a solicitor in London.",
        f"```\n{DATABASE}\n```",
        "",
    ],
)
def test_what_matters_only_now_or_is_nobodys_own_is_not_kept(text: str) -> None:
    assert said(text) == []


@pytest.mark.parametrize(
    "fields",
    [
        {"noise": "heartbeat"},
        {"role": "assistant"},
        {"role": "tool", "tool_call_id": "x"},
        {"tool_call_id": "x"},
        {"origin": "web"},
    ],
)
def test_only_what_a_person_says_in_person_teaches(fields: dict[str, Any]) -> None:
    assert said(DATABASE, **fields) == []


def test_ones_own_origin_is_ones_own() -> None:
    assert len(said(DATABASE, origin="user")) == 1


def test_a_clock_that_is_ahead_of_ours_makes_nothing_later_than_its_arrival() -> None:
    (one,) = kept_in(placed(DATABASE, at=NOON, ts=NOON + DAY))
    assert one.at == NOON


def test_who_teaches_very_much_at_once_is_quoted_with_the_surest() -> None:
    many = [DATABASE.replace("16", str(number)).replace("Our", f"Team {number}'s") for number in range(20)]
    found = said("\n".join(many))
    assert len(found) == MOST_OF_ONE_MESSAGE
    assert min(one.strength for one in found) >= LEAST


def test_a_sentence_that_says_too_little_by_itself_is_quoted_with_the_one_before() -> None:
    for one in said(f"{DATABASE} {SERVER} {BUDGET} {SHORT} {GERMAN}"):
        assert any(
            one.text in (sentence, f"{before} {sentence}") for before, sentence in zip(("", *KEPT), KEPT, strict=False)
        )


def test_a_note_of_another_memory_is_kept_whatever_it_says() -> None:
    found = said("Likes green tea. Lives in Graz with two cats. Hm.", origin="memory:MEMORY.md")
    assert [one.text for one in found] == ["Likes green tea.", "Lives in Graz with two cats."]
    assert {one.strength for one in found} == {NOTED}


def test_of_a_large_part_only_the_beginning_is_read() -> None:
    left, moved = externalise(f"{DATABASE} " + "Word soup and noise. " * 200, 1_000)
    assert moved
    assert isinstance(left, str)
    assert [one.text for one in said(left)] == [DATABASE]


def test_the_same_words_in_another_order_are_one_thing() -> None:
    assert key_of("Short answers I prefer.") == key_of("I prefer short answers!")
    assert key_of(DATABASE) != key_of(SERVER)


@given(st.text(max_size=2_000))
def test_whatever_is_said_only_what_was_said_is_kept(text: str) -> None:
    for one in said(text):
        assert len(one.text) <= LONGEST_CHARS
        assert all(piece in text for piece in one.text.split())
