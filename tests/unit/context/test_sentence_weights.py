from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from offbook.context.sentence_weights import FIRST_CHARS, weighed_sentences
from offbook.context.term_weights import terms_of, word_count

SPEAKERS = ["They", "Ada", "I", "tool bash", "tool", "system"]


def texts(text: str, speaker: str = "They") -> list[str]:
    return [one.text for one in weighed_sentences(text, speaker)]


def factor(text: str, speaker: str = "They") -> float:
    (one,) = weighed_sentences(text, speaker)
    return one.factor


def test_thanks_and_greetings_are_left_out_where_something_is_said() -> None:
    said = "Thanks, Mel! I signed up for a pottery class in Berlin."
    assert texts(said) == ["I signed up for a pottery class in Berlin."]
    assert texts("Thanks, Mel!") == ["Thanks, Mel!"]


def test_a_short_statement_stands_with_its_neighbour() -> None:
    assert texts("I am moving out. My rent was raised to 900 euros.") == [
        "I am moving out. My rent was raised to 900 euros."
    ]


def test_of_the_agent_no_tables_headings_code_or_questions() -> None:
    said = (
        "**Phase 1: Foundation and first setup of it all**\n| Metric | Current month | Change |\n"
        "Here is what I would do next for you:\n```\nprint(1)\n```\nI restarted the server on port 5433 this morning.\n"
        "Which of these would you like to see first?"
    )
    assert texts(said, "I") == ["I restarted the server on port 5433 this morning."]


def test_people_count_more_than_the_agent_and_statements_more_than_questions() -> None:
    said = "The budget is strictly under $20 a month."
    assert factor(said) > 2 * factor(said, "I")
    assert factor(said) > 2 * factor("Is the budget strictly under $20 a month?")


def test_of_a_very_long_message_the_beginning_and_the_end_are_read() -> None:
    found = texts(f"The first thing is in Berlin. {'So it goes on and on. ' * FIRST_CHARS}The last thing is in Rome.")
    assert "Berlin" in found[0]
    assert "Rome" in found[-1]


def test_names_and_numbers_are_worth_more_than_other_words_and_stop_words_nothing() -> None:
    worth = {form: weight for form, _, weight in terms_of("Yesterday I met Ada at 10:30 with the violin")}
    assert worth["ada"] > worth["violin"] > 0
    assert worth["10"] > worth["violin"]
    assert "the" not in worth
    assert worth["yesterday"] < worth["ada"]


def test_scripts_without_spaces_have_words_too() -> None:
    assert word_count("我们决定搬到柏林") >= 4
    assert ("柏林", "柏林", 0.5) in terms_of("我们决定搬到柏林")


@given(st.text(max_size=1_000), st.sampled_from(SPEAKERS))
def test_any_text_gives_sentences_of_one_line(text: str, speaker: str) -> None:
    for one in weighed_sentences(text, speaker):
        assert one.text
        assert len(one.text.splitlines()) == 1
        assert len({term[0] for term in one.terms}) == len(one.terms)
        assert one.factor > 0
