"""What a model answers about a stretch: whatever can be read of it, and only what its lines bear out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.context.span_answer import SpanStatement, grounded, read_answer

LINES = {
    1: "I prefer tabs over spaces in the parser.",
    2: "Fine, tabs it is.",
    3: "Anna leads the Kestrel project from Graz.",
    4: "Scrap that: spaces, as everybody else has them.",
    5: "我们在柏林的办公室周五搬家。",
}
KNOWN = {"lesson-0007"}


def statement(text: str, lines: list[int], quote: str | None = None, **fields: Any) -> dict[str, Any]:
    said = quote if quote is not None else " ".join(LINES.get(lines[0] if lines else 0, "nothing").split()[:4])
    return {"kind": "fact", "text": text, "quote": said, "lines": lines, **fields}


def answer(*statements: dict[str, Any], summary: str = "They told me of Anna.") -> str:
    return json.dumps({"summary": summary, "statements": statements}, ensure_ascii=False)


def kept(*statements: dict[str, Any]) -> list[SpanStatement]:
    return grounded(read_answer(answer(*statements)).statements, LINES, KNOWN)


def test_memory_and_statements_are_one_object() -> None:
    text = answer(statement("They prefer tabs over spaces.", [1], kind="preference", lasting=True))
    read = read_answer(text)
    assert read.summary == "They told me of Anna."
    assert (read.statements[0].kind, read.statements[0].lasting) == ("preference", True)
    assert read_answer(f"```json\n{text}\n```") == read
    assert read_answer(f"\n {text}\n\nI hope this helps.") == read


def test_plain_prose_is_a_memory_without_statements() -> None:
    assert read_answer(" They told me of {Anna}. ") == ("They told me of {Anna}.", [])
    assert read_answer("") == ("", [])


def test_of_an_answer_that_was_cut_off_stays_what_came_before() -> None:
    whole = answer(statement("Anna leads the Kestrel project.", [3]), statement("They prefer tabs over spaces.", [1]))
    cut = read_answer(whole[:-30])
    assert cut.summary == "They told me of Anna."
    assert [one.text for one in cut.statements] == ["Anna leads the Kestrel project."]
    assert read_answer('{"summary": "They told me of An').summary == ""


def test_one_that_is_not_what_was_asked_for_is_dropped_by_itself() -> None:
    odd = [{"kind": "rumour", "text": "Anna leads it.", "quote": "Anna", "lines": [3]}, {"text": "x"}, {"lines": "3"}]
    read = read_answer(answer(*odd, statement("Anna leads the Kestrel project.", [3])))
    assert [one.text for one in read.statements] == ["Anna leads the Kestrel project."]


def test_what_its_lines_bear_out_is_kept() -> None:
    first, second, third = kept(
        statement("They prefer tabs over spaces", [1, 1]),
        statement("Anna leads the Kestrel project.", [3], quote="anna  leads the kestrel"),
        statement("他们在柏林的办公室周五搬家。", [5], quote="柏林的办公室"),
    )
    assert (first.text, first.lines) == ("They prefer tabs over spaces.", [1])
    assert second.quote == "anna leads the kestrel"
    assert third.lines == [5]


@pytest.mark.parametrize(
    "one",
    [
        statement("They prefer tabs over spaces.", [99], quote="tabs over spaces"),
        statement("They prefer tabs over spaces.", [3], quote="tabs over spaces"),
        statement("They prefer tabs over spaces.", [1], quote="tabs before spaces"),
        statement("They prefer tabs over spaces.", [1], quote="x"),
        statement("They prefer tabs over spaces.", []),
        statement("They own a yacht in Monaco.", [1]),
        statement("Berta leads the Kestrel project.", [3]),
        statement("Anna leads 12 Kestrel projects from Graz.", [3]),
        statement("They don't prefer tabs over spaces.", [1]),
    ],
    ids=["no such line", "another line", "quote changed", "no quote", "no line", "invented", "name", "number", "not"],
)
def test_what_its_lines_do_not_bear_out_is_dropped(one: dict[str, Any]) -> None:
    assert kept(one) == []


def test_only_what_is_there_and_earlier_is_replaced() -> None:
    named = ["lesson-0007", "lesson-9999", 1, 1, 4, 5, 77]
    (one,) = kept(statement("They want spaces, as everybody else.", [4], quote="Scrap that: spaces", replaces=named))
    assert one.replaces == ["lesson-0007", 1]


def test_the_same_twice_is_told_once() -> None:
    assert len(kept(*[statement("Anna leads the Kestrel project.", [3])] * 2)) == 1


@given(st.text(max_size=400), st.text(max_size=40), st.lists(st.integers(), max_size=4))
def test_whatever_is_answered_nothing_breaks(text: str, quote: str, lines: list[int]) -> None:
    read_answer(text)
    read_answer("{" + text)
    read_answer('{"summary": ' + text)
    for one in kept({"kind": "fact", "text": text, "quote": quote, "lines": lines}):
        assert set(one.lines) <= set(LINES)
