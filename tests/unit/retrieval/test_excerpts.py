from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from offbook.retrieval.excerpts import CUT, EXCERPT_CHARS, WHOLE_CHARS, excerpt
from offbook.retrieval.passages import passages
from offbook.retrieval.words import query_terms

FILLER = [f"The weather on day {number} was neither good nor bad in the valley." for number in range(60)]
LONGEST = max(WHOLE_CHARS, EXCERPT_CHARS + 2 * len(f" {CUT}"))
anything = st.text(max_size=3_000) | st.text("ab .!\n", max_size=5_000) | st.text("猫犬。！", max_size=3_000)


def test_what_is_short_is_shown_whole() -> None:
    text = "It rained. " * 60
    assert len(text) <= WHOLE_CHARS
    assert excerpt(f"  {text}\n", ["rain"]) == text.strip()


def test_of_a_long_text_the_part_that_was_asked_for_is_shown_in_whole_sentences() -> None:
    text = " ".join([*FILLER[:40], "My grandmother's soup needs saffron and two lemons.", *FILLER[40:]])
    shown = excerpt(text, query_terms("saffron soup"))
    assert "My grandmother's soup needs saffron and two lemons." in shown
    assert shown.startswith(f"{CUT} The weather")
    assert shown.endswith(f". {CUT}")
    assert len(shown) <= LONGEST


def test_without_words_the_passage_that_means_most_is_shown_else_the_beginning() -> None:
    text = " ".join(FILLER)
    assert "on day 0 was" in excerpt(text, ())
    third = passages(text)[2]
    assert excerpt(text, (), 2) == f"{CUT} {third} {CUT}"
    assert excerpt(text, (), 10_000) == excerpt(text, ())


def test_a_shared_word_outweighs_the_meaning() -> None:
    text = " ".join([*FILLER[:5], "The key is under the mat.", *FILLER[5:]])
    assert "under the mat" in excerpt(text, query_terms("key"), 3)


def test_a_sentence_that_never_ends_is_cut_at_a_word() -> None:
    shown = excerpt("wordy " * 500, ())
    assert shown.endswith(f"wordy {CUT}")
    assert len(shown) <= LONGEST


@given(anything, st.lists(st.text(max_size=6), max_size=3), st.none() | st.integers(0, 60))
def test_an_excerpt_is_bounded_and_taken_from_the_text(text: str, asked: list[str], part: int | None) -> None:
    shown = excerpt(text, asked, part)
    assert len(shown) <= LONGEST
    bare = shown.removeprefix(f"{CUT} ").removesuffix(f" {CUT}") if len(text.strip()) > WHOLE_CHARS else shown
    assert "".join(bare.split()) in "".join(text.split())
    assert bool(shown) == bool(text.strip())
