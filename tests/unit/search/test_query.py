from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.search.query import MAX_QUERY_CHARS, MAX_SENTENCES, read_query

NAMES = ("Caroline", "Melanie")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[Telegram Ada id:123 2026-01-02 10:00] where is it?", "where is it?"),
        ("[Tue 2026-01-02 10:00 UTC] go on", "go on"),
        ("[message_id: 77]\ngo on", "go on"),
        ("go on\n[message_id: 77]", "go on"),
        ("[Discord #general Bob]: go on", "go on"),
        ("System: [2026-01-02 10:00] Node connected\n\ngo on", "go on"),
        ("System: [2026-01-02 10:00] go on", "go on"),
        ("<user_query>go on</user_query>", "go on"),
        ("<system-reminder>be nice</system-reminder>go on", "go on"),
        ("> you said this\n> and that\nI disagree", "I disagree"),
        ("> only a quote", "> only a quote"),
        ("[see the list] go on", "[see the list] go on"),
        ("a List<String> of names", "a List<String> of names"),
        ("[message_id: 77]", "[message_id: 77]"),
    ],
)
def test_envelopes(text: str, expected: str) -> None:
    assert read_query(text).text == expected


def test_long_code_is_shortened_and_short_code_is_kept() -> None:
    code = "```py\n" + "x = 1\n" * 200 + "```"
    said = read_query(f"Why does this fail?\n{code}\nIt did work.").text
    assert "…" in said
    assert len(said) < 400
    assert said.endswith("It did work.")
    assert "```py\nx = 1\n```" in read_query("Why?\n```py\nx = 1\n```").text


@pytest.mark.parametrize(
    ("text", "focus"),
    [
        ("When did Caroline go to the LGBTQ support group?", "go LGBTQ support group"),
        ("What is caroline’s dog called?", "dog called"),
        ("Do you remember my recipe?", "recipe"),
        ("What did we decide about the database?", "decide about database"),
        ("What did I tell you about Lisbon?", "Lisbon"),
        ("Caroline?", "Caroline"),
        ("Do you remember?", "remember"),
        ("who are you?", "who are you?"),
        ("?", "?"),
        ("I moved to Lisbon with Caroline last week.", "I moved to Lisbon with Caroline last week."),
        ("The build is red. What now?", "The build is red. What now?"),
    ],
)
def test_focus(text: str, focus: str) -> None:
    assert read_query(text, NAMES).focus == focus


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Caroline's dog and MELANIE", ("Caroline", "Melanie")),
        ("melanie’s dog, Melanie", ("Melanie",)),
        ("the carolines of this world", ()),
        ("小明的生日是什么时候？", ("小明",)),
        ("a user interface", ()),
    ],
)
def test_names(text: str, names: tuple[str, ...]) -> None:
    assert read_query(text, (*NAMES, "小明", "user", "")).names == names


@pytest.mark.parametrize(
    ("text", "is_asked"),
    [
        ("What did you suggest for my trip?", True),
        ("Which book did you recommend?", True),
        ("Your last suggestion, what was it?", True),
        ("What did I say about the port?", False),
        ("What did I tell you that you should do?", False),
        ("When did Caroline move?", False),
        ("My sister came to see me.", False),
    ],
)
def test_whether_the_agents_words_are_asked_for(text: str, is_asked: bool) -> None:
    assert read_query(text).asks_assistant is is_asked


@pytest.mark.parametrize(
    "text",
    [
        "Do you remember my recipe?",
        "the plan we talked about",
        "like last time",
        "Can you recall the port?",
        "What did I say?",
        "you told me so",
        "I told you about Ada",
        "Let's go back to the setup",
        "what did we settle on?",
        "还记得吗",
        "覚えていますか",
        "기억해?",
        "هل تتذكر",
    ],
)
def test_what_refers_to_the_past(text: str) -> None:
    assert read_query(text).wants_memory


@pytest.mark.parametrize(
    "text", ["Remember to buy milk", "Eat before noon", "An earlier train is fine", "Write a poem", "你好"]
)
def test_what_does_not(text: str) -> None:
    assert not read_query(text).wants_memory


def test_a_long_message_keeps_its_beginning_and_its_end() -> None:
    middle = " ".join(f"Then something number {count} happened in the garden." for count in range(400))
    query = read_query(f"My tax return is late. {middle} Which form do I need for the pension?")
    assert query.text.startswith("My tax return is late.")
    assert query.text.endswith("Which form do I need for the pension?")
    assert MAX_QUERY_CHARS - 200 < len(query.text) <= MAX_QUERY_CHARS
    assert query.focus == query.text
    assert len(query.sentences) == MAX_SENTENCES


def test_sentences_come_most_specific_first() -> None:
    query = read_query("Hello! I like tea. The Kyoto trip needs a Saiho-ji postcard before Friday. ok?")
    assert query.sentences[0].startswith("The Kyoto trip")
    assert "Hello!" not in query.sentences


@given(st.text(), st.lists(st.text(max_size=8), max_size=4))
def test_any_text(text: str, names: list[str]) -> None:
    query = read_query(text, names)
    assert len(query.text) <= MAX_QUERY_CHARS
    assert bool(query.text) == bool(text.strip())
    assert bool(query.focus.strip()) == bool(query.text)
    assert len(query.sentences) <= MAX_SENTENCES
    assert set(query.names) <= set(names)


PIECES = [
    "a",
    "i ",
    "what ",
    "[",
    "[a",
    "<a ",
    "<system-reminder>",
    "> ",
    "```",
    "`",
    "remember ",
    "?",
    ".\n",
    "我",
    " ",
    "\n",
    "what a b c ",
    "did i ",
]


@pytest.mark.parametrize("piece", PIECES)
def test_time_grows_with_the_text(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    started = time.process_time()
    read_query(text, NAMES)
    assert time.process_time() - started < 2
