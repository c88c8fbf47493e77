from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.rules.lessons.voice import MAX_CHARS, format_lesson


@pytest.mark.parametrize(
    ("clause", "text"),
    [
        ("I was born in Graz", "They were born in Graz."),
        ("by the way, I've two kids and I'll move to Linz", "They have two kids and they will move to Linz."),
        ("my editor is Vim", "Their editor is Vim."),
        ("The I/O port of my server is 8080", "The I/O port of their server is 8080."),
        ("I want you to be brief", "They said: “I want you to be brief.”"),
        ("Ich wohne in Wien", "They said: “Ich wohne in Wien.”"),
        ("我叫李娜", "They said: “我叫李娜。”"),
    ],
)
def test_a_clause_in_the_agents_voice(clause: str, text: str) -> None:
    assert format_lesson(clause) == text


def test_orders_corrections_and_names_are_quoted() -> None:
    assert format_lesson("never call me", is_order=True) == "They asked me: “Never call me.”"
    assert format_lesson("it is 5, not 4", is_correction=True) == "They corrected me: “It is 5, not 4.”"
    assert format_lesson("I like tea", speaker="Caroline") == "Caroline said: “I like tea.”"


@pytest.mark.parametrize(
    ("clause", "quoted"),
    [
        (
            "No, that is wrong: the meeting is on Thursday, not Tuesday.",
            "That is wrong: the meeting is on Thursday, not Tuesday.",
        ),
        ("No that's not right, the port is 8080, not 80", "That's not right, the port is 8080, not 80."),
        ("That is wrong, the port is 8080", "That is wrong, the port is 8080."),
        ("Wait times are 5 minutes, not 10", "Wait times are 5 minutes, not 10."),
        ("Right turns are allowed, not left ones", "Right turns are allowed, not left ones."),
        ("no my name is Lena, not Lea", "My name is Lena, not Lea."),
        ("Oh, no, actually my name is Lena", "My name is Lena."),
        ("Well, so the port is 8080", "The port is 8080."),
    ],
)
def test_a_quotation_has_every_word_but_those_before_it(clause: str, quoted: str) -> None:
    assert format_lesson(clause, is_correction=True) == f"They corrected me: “{quoted}”"


def test_an_order_that_begins_with_no_still_says_no() -> None:
    assert format_lesson("No meat in my recipes from now on", is_order=True) == (
        "They asked me: “No meat in my recipes from now on.”"
    )


def test_what_is_too_long_is_no_lesson() -> None:
    assert format_lesson("I like " + "tea and " * 60) == ""


@given(st.text(min_size=1, max_size=400))
def test_it_is_short_and_of_one_line(clause: str) -> None:
    text = format_lesson(clause)
    assert len(text) <= MAX_CHARS
    assert "\n" not in text
