from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.search.stems import _IRREGULAR, roots, stem


@pytest.mark.parametrize(
    "forms",
    [
        "run running runs ran",
        "study studies studied studying",
        "move moved moving moves",
        "bake baking baked bakes",
        "box boxes boxed boxing",
        "care cares caring cared",
        "hope hoping hoped",
        "plan plans planned planning",
        "agree agrees agreed",
        "create creates created creating",
        "decide decided deciding",
        "control controlled controlling",
        "travel travelled traveling",
        "family families",
        "watch watches watched",
        "dress dresses",
        "go goes went gone going",
        "colour color colours",
        "favourite favorite",
        "organise organize organised organizing",
        "analyse analyze analysing",
        "quick quickly",
        "happy happily",
        "paint paintings painted",
        "use uses used using",
        "centre center",
        "child children",
    ],
)
def test_forms_of_one_word(forms: str) -> None:
    assert len({stem(form) for form in forms.split()}) == 1


@pytest.mark.parametrize(
    "words",
    [
        "car care",
        "hop hope",
        "plan plane",
        "even evening",
        "new news",
        "sing single",
        "organ organise",
        "red reed",
        "bus buse",
    ],
)
def test_different_words(words: str) -> None:
    assert len({stem(word) for word in words.split()}) == len(words.split())


@pytest.mark.parametrize(
    "word", ["king", "bring", "thing", "need", "speed", "bus", "paris", "glass", "v1", "café", "go", ""]
)
def test_words_that_stay(word: str) -> None:
    assert stem(word) == word


@given(st.text())
def test_a_stem_is_never_empty_nor_much_longer(word: str) -> None:
    assert bool(stem(word)) == bool(word)
    assert len(stem(word)) <= len(word) + 3


@given(st.from_regex(r"[a-z]{1,14}", fullmatch=True) | st.sampled_from(sorted(_IRREGULAR)))
def test_every_word_holds_a_root_of_its_stem(word: str) -> None:
    assert any(root in word for root in roots(stem(word)))


@pytest.mark.parametrize(
    "word", ["favourites", "neighbourhood", "organising", "analysed", "happily", "skies", "v1.2.3"]
)
def test_however_it_is_spelt(word: str) -> None:
    assert any(root in word for root in roots(stem(word)))
