from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.statements.clauses import clauses, concerns, keys_in, left_of, noted, spans_of


def parts(text: str) -> list[str]:
    return [one.text for one in clauses(text, 0, len(text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("My name is Ana and I live in Berlin.", ["My name is Ana", "I live in Berlin."]),
        ("Ich heiße Jonas, und ich wohne in Köln.", ["Ich heiße Jonas", "ich wohne in Köln."]),
        ("我叫小明，我住在北京。", ["我叫小明", "我住在北京。"]),
        ("I like bread and butter.", ["I like bread and butter."]),
        ("We use Slack, it is the rule, and write in French.", ["We use Slack, it is the rule, and write in French."]),
    ],
)
def test_a_sentence_that_says_several_things_has_parts(text: str, expected: list[str]) -> None:
    assert parts(text) == expected


@given(st.text("ab ,;and und，", max_size=80))
def test_parts_are_what_stands_there_in_order(text: str) -> None:
    found = clauses(text, 0, len(text))
    assert all(text[one.start : one.end] == one.text for one in found)
    assert all(first.end <= second.start for first, second in pairwise(found))
    assert (found[0].start, found[-1].end) == (0, len(text))


@given(st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)), max_size=5))
def test_what_a_link_notes_is_read_again(spans: list[tuple[int, int]]) -> None:
    assert spans_of(noted(spans)) == spans


@pytest.mark.parametrize("note", ["", "lesson-0012", "12", "a-b", "1-2 lesson-0001", "-3-4", "1-²"])
def test_another_note_names_no_place(note: str) -> None:
    assert spans_of(note) == []


@pytest.mark.parametrize(
    ("text", "over", "left"),
    [
        ("My name is Ana and I live in Berlin.", "I live in Berlin.", "My name is Ana"),
        ("I live in Berlin and my name is Ana.", "I live in Berlin", "my name is Ana."),
        ("We use Go, and I sign off, and Tom reviews it.", "I sign off", "We use Go, and Tom reviews it."),
        (
            "Setup:\n- I work with Anna Smith and Ben Jones.\n\nI live in Berlin.",
            "I live in Berlin.",
            "Setup:\n- I work with Anna Smith and Ben Jones.",
        ),
        ("I live in Berlin.", "I live in Berlin.", ""),
    ],
)
def test_what_still_holds_is_told_as_it_was_said(text: str, over: str, left: str) -> None:
    (gone,) = [one for one in keys_in(text).values() if one.text == over]
    spans = [(gone.cut_from, gone.cut_to)]
    assert left_of(text, spans) == left
    assert concerns(spans, gone.start, gone.end)
    others = [one for one in keys_in(text).values() if one != gone]
    assert not any(concerns(spans, one.start, one.end) for one in others)
