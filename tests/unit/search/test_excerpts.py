from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.search.results import CUT, EXCERPT_CHARS, WHOLE_CHARS, excerpt, passages
from offbook.search.words import query_terms

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


CODE = "The password is xylograph quokka40000."


@pytest.mark.parametrize("chars", [700, 740, 760, 5_000, 26_000, 28_800, 30_000, 40_000, 400_000])
def test_the_words_asked_for_are_shown_however_long_the_text(chars: int) -> None:
    head = (" ".join(FILLER) * 120)[:chars].rsplit(".", 1)[0] + "."
    for text in (f"{head} {CODE}", f"{head} {CODE} {head}", f"{CODE} {head}"):
        shown = excerpt(text, query_terms("quokka40000"))
        assert CODE in shown
        assert len(shown) <= LONGEST
        assert shown.startswith(CUT) == (len(text) > WHOLE_CHARS and not text.startswith(shown[:40]))
        assert shown.endswith(CUT) == (len(text) > WHOLE_CHARS and not text.endswith(shown[-40:]))


def test_in_a_long_text_the_rare_word_goes_before_the_common_one() -> None:
    text = " ".join([*FILLER * 20, CODE, *FILLER * 20])
    assert CODE in excerpt(text, query_terms("weather valley quokka40000"))
    assert "on day 0 was" in excerpt(text, query_terms("weather"))


def test_in_a_long_text_that_says_none_of_the_words_the_passage_that_means_most_is_shown() -> None:
    text = " ".join(FILLER * 20)
    assert excerpt(text, query_terms("saffron"), 2) == f"{CUT} {passages(text)[2]} {CUT}"
    assert excerpt(text, query_terms("saffron")).startswith("The weather on day 0")


def test_of_a_long_text_in_another_script() -> None:
    text = "今天天气很好，我们去了公园。" * 3_000 + "密码是水獭四万。" + "今天天气很好，我们去了公园。" * 3_000
    assert "密码是水獭四万。" in excerpt(text, query_terms("水獭"))


@given(st.text("ab .!\n猫", min_size=30, max_size=60), st.lists(st.sampled_from(["a", "ab", "b", "猫"]), max_size=2))
def test_an_excerpt_of_a_very_long_text_is_bounded_and_taken_from_it(piece: str, asked: list[str]) -> None:
    text = piece * 1_200
    shown = excerpt(text, asked)
    assert len(shown) <= LONGEST
    bare = shown.removeprefix(f"{CUT} ").removesuffix(f" {CUT}")
    assert len(text.strip()) <= WHOLE_CHARS or "".join(bare.split()) in "".join(text.split())
