from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.model.sentences import LONGEST_CHARS, MOST_CHARS, sentences

pieces = st.sampled_from(
    [
        "Hello.",
        "Why?",
        " ",
        "\n",
        "```\n",
        "~~~",
        "- ",
        "1. ",
        "Dr. Who",
        "e.g. this",
        "好的。",
        "… ",
        '"Yes."',
        "x" * 700,
        "a b ",
    ]
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I live in Lisbon. I work at Acme!", ["I live in Lisbon.", "I work at Acme!"]),
        ("Ask Dr. Weber, e.g. on Monday. Then call.", ["Ask Dr. Weber, e.g. on Monday.", "Then call."]),
        ('She said "Stop." Then she left.', ['She said "Stop."', "Then she left."]),
        ("我住在里斯本。我有一只猫！", ["我住在里斯本。", "我有一只猫！"]),
        ("¿Dónde vives? Vivo en Graz.", ["¿Dónde vives?", "Vivo en Graz."]),
        ("- buy milk\n- call Anna", ["buy milk", "call Anna"]),
        ("The port is 3.14 today", ["The port is 3.14 today"]),
        ("", []),
        (" \n\t ", []),
    ],
)
def test_text_is_cut_into_sentences(text: str, expected: list[str]) -> None:
    assert [one.text for one in sentences(text)] == expected


@given(st.one_of(st.text(max_size=400), st.lists(pieces, max_size=30).map("".join)))
def test_each_stands_where_it_says_in_order_and_whole(text: str) -> None:
    found = sentences(text)
    for one in found:
        assert text[one.start : one.end] == one.text == one.text.strip() != ""
        assert len(one.text) <= LONGEST_CHARS
    for one, other in pairwise(found):
        assert one.end <= other.start
        assert one.line <= other.line


@given(st.text("abc .\n", max_size=60), st.text("xyz .\n", max_size=60), st.sampled_from(["```", "~~~"]))
def test_code_is_nobodys_sentence(said: str, code: str, fence: str) -> None:
    told = [one.text for one in sentences(f"{said}\n{fence}python\n{code}\n{fence}\n{said}")]
    assert not set("".join(told)) & set("xyz")
    assert told == [one.text for one in sentences(said)] * 2


def test_what_is_very_long_is_not_read_to_its_end() -> None:
    assert max(one.end for one in sentences("word. " * MOST_CHARS)) <= MOST_CHARS
