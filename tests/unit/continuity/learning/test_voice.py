from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.continuity.learning.voice import MAX_CHARS, told


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
    assert told(clause) == text


def test_orders_corrections_and_names_are_quoted() -> None:
    assert told("never call me", is_order=True) == "They asked me: “Never call me.”"
    assert told("it is 5, not 4", is_correction=True) == "They corrected me: “It is 5, not 4.”"
    assert told("I like tea", speaker="Caroline") == "Caroline said: “I like tea.”"


def test_what_is_too_long_is_no_lesson() -> None:
    assert told("I like " + "tea and " * 60) == ""


@given(st.text(min_size=1, max_size=400))
def test_it_is_short_and_of_one_line(clause: str) -> None:
    text = told(clause)
    assert len(text) <= MAX_CHARS
    assert "\n" not in text
