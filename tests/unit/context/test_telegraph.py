from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.context.telegraph import FIRST_CHARS, LAST_CHARS, LONGEST_CLAUSE_CHARS, as_clause, clauses, whole_letters

DAY = date(2023, 5, 8)


def texts(text: str, day: date | None = None) -> list[str]:
    return [clause.text for clause in clauses(text, day)]


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (
            "I went to a LGBTQ support group yesterday and it was so powerful.",
            "went to LGBTQ support group 7 May, powerful",
        ),
        ("I think we should move to Berlin.", "should move to Berlin"),
        ("It took from 3 to 5 hours.", "took from 3 to 5 hours"),
        ("We did not use tiktoken.", "not use tiktoken"),
        ("I never said that to Bob.", "never said to Bob"),
        ("It could fail without warning.", "could fail without warning"),
        ("Hey Mel! The port is 5433.", "port 5433"),
    ],
)
def test_words_that_carry_nothing_are_left_out(said: str, kept: str) -> None:
    assert texts(said, DAY)[0] == kept


def test_a_sentence_is_cut_into_clauses() -> None:
    assert texts(
        "We moved the whole database to Frankfurt, because the old region was slow, and I told Bob about the change."
    ) == [
        "moved whole database to Frankfurt",
        "because old region slow",
        "told Bob change",
    ]


@pytest.mark.parametrize("mark", ["- ", "* ", "3. ", "(b) ", "## ", "**IV.** ", "> - "])
def test_the_marks_of_lists_and_headings_are_left_out(mark: str) -> None:
    assert texts(f"{mark}Bob paints pots in Berlin") == ["Bob paints pots in Berlin"]


def test_numbers_alone_say_little() -> None:
    alone, told = clauses("1250 90. Bob scored 1250.")
    assert alone.factor < told.factor


def test_a_list_stays_together() -> None:
    assert texts("I have dogs, cats, and birds.") == ["dogs, cats, birds"]


def test_a_question_stays_a_question_and_counts_less_unless_it_asks_for_something() -> None:
    asking, statement = clauses("Was Postgres slow again? Postgres was slow again.")
    (request,) = clauses("Can you restart the Postgres server?")
    assert asking.text == "Postgres slow again?"
    assert asking.factor < statement.factor < request.factor


def test_a_decision_counts_more() -> None:
    plain, decision = clauses("Bob uses Postgres everywhere. Bob decided on Postgres everywhere.")
    assert decision.factor > plain.factor


@pytest.mark.parametrize(
    "line",
    [
        "def estimate(text: str) -> int:",
        'raise ValueError(f"the port {port} is taken")',
        '{"path": "/etc/hosts", "mode": 420}',
        "$ git commit -m 'the a of'",
    ],
)
def test_code_is_left_as_it_is(line: str) -> None:
    assert texts(line) == [line]


def test_scripts_without_spaces_are_cut_at_their_marks() -> None:
    said = "我们决定使用第二个方案，服务器的端口是8080。明天下午三点在会议室开会！"
    assert texts(said) == ["我们决定使用第二个方案, 服务器的端口是8080", "明天下午三点在会议室开会"]


def test_of_a_very_long_message_the_beginning_and_the_end_are_looked_at() -> None:
    found = texts("First Alpha said it. " + "word " * 100_000 + "Last Omega said it.")
    assert "Alpha" in found[0]
    assert "Omega" in found[-1]
    assert sum(map(len, found)) <= FIRST_CHARS + LAST_CHARS


def test_a_word_without_end_is_bounded() -> None:
    (clause,) = clauses("x" * 10_000)
    assert len(clause.text) <= LONGEST_CLAUSE_CHARS
    assert clause.text.endswith("…")


@pytest.mark.parametrize("letter", ["👩‍👩‍👧‍👦", "e\u0301", "👍🏽", "नि", "❤️"])
def test_no_letter_is_broken(letter: str) -> None:
    text = letter * 50
    for at in range(len(letter), 80):
        assert whole_letters(text, at) % len(letter) == 0


def test_what_stays_as_it_is_still_counts() -> None:
    clause = as_clause("They moved to Berlin")
    assert clause.text == "They moved to Berlin"
    assert "berlin" in [term[0] for term in clause.terms]


@given(st.text(max_size=2_000), st.dates() | st.none())
def test_any_text_gives_clauses_of_one_line(text: str, day: date | None) -> None:
    for clause in clauses(text, day):
        assert clause.text
        assert len(clause.text.splitlines()) == 1
        assert len({term[0] for term in clause.terms}) == len(clause.terms)


@given(st.lists(st.sampled_from(["Berlin", "5433", "user_name", "Ada,", "not", "the", "and", "so", "I", "went."])))
def test_names_numbers_and_negations_stay(words: list[str]) -> None:
    kept = " ".join(texts(" ".join(words)))
    for word in ("Berlin", "5433", "user_name", "not"):
        assert (word in words) == (word in kept)
