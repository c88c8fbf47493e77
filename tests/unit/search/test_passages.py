from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.search.results import LONGEST_WHOLE_CHARS, MOST_PASSAGES, PASSAGE_CHARS, passages

WIDE_LIMIT = int(PASSAGE_CHARS / 2.5)
latin = st.text("abcdefg ,.!?\n", max_size=6_000)
anything = st.text(max_size=3_000) | st.text("猫犬。！ですか\n", max_size=2_000) | latin


def squeezed(text: str) -> str:
    return "".join(text.split())


def test_a_short_text_is_one_passage() -> None:
    assert passages("  Hello there!  ") == ["Hello there!"]
    assert passages("") == [""]
    assert passages("x" * LONGEST_WHOLE_CHARS) == ["x" * LONGEST_WHOLE_CHARS]


def test_passages_end_where_sentences_do() -> None:
    text = " ".join(f"This is sentence number {number}, and it says a little." for number in range(80))
    found = passages(text)
    assert len(found) > 5
    assert all(passage.startswith("This is") and passage.endswith("a little.") for passage in found)


@pytest.mark.parametrize("sentence", ["我的猫喜欢吃鱼。", "私の犬の名前はハチです。", "제 고양이 이름은 나비입니다. "])
def test_wide_scripts_have_shorter_passages_that_end_at_sentences(sentence: str) -> None:
    found = passages(sentence * 100)
    assert max(map(len, found)) <= WIDE_LIMIT
    assert all(passage[-1] in "。." for passage in found)


@given(anything)
def test_passages_are_bounded_and_cover_the_text(text: str) -> None:
    found = passages(text)
    assert 1 <= len(found) <= MOST_PASSAGES
    assert all(len(passage) <= LONGEST_WHOLE_CHARS for passage in found)
    assert len(found) == 1 or all(len(passage) <= PASSAGE_CHARS for passage in found)
    assert len(found) == 1 or all(found)
    assert squeezed("".join(found)) == squeezed(text)


def test_of_a_pasted_file_the_beginning_is_taken() -> None:
    text = "A line of a very long file.\n" * 100_000
    found = passages(text)
    assert len(found) <= MOST_PASSAGES
    assert squeezed(text).startswith(squeezed("".join(found)))
    assert len(squeezed("".join(found))) > 0.75 * MOST_PASSAGES * PASSAGE_CHARS * 0.75
