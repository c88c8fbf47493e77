from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.model.settings.sections import TokenBudget
from offbook.models.tokens import chunk_tokens
from offbook.search.injection import (
    FALLBACK_CHARS,
    FALLBACK_ENTRIES,
    FIRST_RANKS,
    FURTHER_CHARS,
    LEAST_SHOWN,
    NEARLY,
    budget_tokens,
    chosen,
    fallback,
    probable,
    recall_limit,
)

PLENTY = 100_000


class Candidate(NamedTuple):
    id: str
    chars: int
    similarity: float | None
    is_by_text: bool = False
    probability: float = 0.0

    @property
    def most_probability(self) -> float:
        return self.probability + 0.1


def candidate(name: str, similarity: float | None = 0.9, chars: int = 100, *, by_text: bool = False) -> Candidate:
    return Candidate(id=name, chars=chars, similarity=similarity, is_by_text=by_text)


def ids(shown: Sequence[Candidate]) -> list[str]:
    return [one.id for one in shown]


# ── A5: the budget ──


@pytest.mark.parametrize(
    ("current", "window", "budget"),
    [
        (0, None, 37_600),
        (100_000, None, 17_600),
        (188_000, None, 2_000),
        (500_000, None, 2_000),
        (0, 32_000, 4_000),
        (0, 1, 2_000),
        (178_001, None, 2_000),
        (177_997, None, 2_000),
        (150_001, None, 7_599),
    ],
)
def test_a_share_of_what_is_left_and_never_less_than_the_minimum(current: int, window: int | None, budget: int) -> None:
    assert budget_tokens(TokenBudget(), current_tokens=current, context_window=window) == budget


# ── what is likely to matter ──


def test_the_likeliest_come_to_mind_first_and_nobody_that_is_unlikely() -> None:
    found = [
        Candidate(name, 400, None, probability=likely)
        for name, likely in (("a", 0.3), ("b", 0.03), ("c", 0.6), ("d", 0.11))
    ]
    assert ids(probable(found, budget=PLENTY, least_probability=0.1, keep=5)) == ["c", "a", "d"]
    assert ids(probable(found, budget=2 * chunk_tokens(400), least_probability=0.1, keep=5)) == ["c", "a"]
    assert ids(probable(found, budget=PLENTY, least_probability=0.1, keep=1)) == ["c"]
    assert probable(found, budget=PLENTY, least_probability=0.7, keep=5) == []


def test_what_is_less_likely_comes_only_with_what_is_likely_and_where_that_leaves_room() -> None:
    less = Candidate("b", 400, None, probability=0.05)
    assert probable([less], budget=PLENTY, least_probability=0.1, keep=5) == []
    likely = Candidate("a", 400, None, probability=0.3)
    assert ids(probable([less, likely], budget=PLENTY, least_probability=0.1, keep=5)) == ["a", "b"]
    assert ids(probable([less, likely], budget=PLENTY, least_probability=0.1, keep=1)) == ["a"]
    long = Candidate("c", FURTHER_CHARS, None, probability=0.3)
    assert ids(probable([less, long], budget=PLENTY, least_probability=0.1, keep=5)) == ["c"]


# ── A2, D6: what is shown by the documents' rule ──


@pytest.mark.parametrize(
    ("candidates", "shown"),
    [
        ([], []),
        # Nothing is similar enough: nothing at all, the fallback's turn.
        ([candidate("a", 0.39), candidate("b", 0.1)], []),
        ([candidate("a", 0.4)], ["a"]),
        # One is: the next best makes up the two.
        ([candidate("a", 0.1), candidate("b", 0.9), candidate("c", 0.2)], ["b", "a"]),
        # Two are: nobody else.
        ([candidate("a", 0.5), candidate("b", 0.9), candidate("c", 0.2)], ["a", "b"]),
        # The order is recall's, not that of the cosines.
        ([candidate("a", 0.5), candidate("b", 0.9), candidate("c", 0.7)], ["a", "b", "c"]),
        # Without a vector sharing words has to do.
        ([candidate("a", None, by_text=True), candidate("b", None)], ["a", "b"]),
        ([candidate("a", None), candidate("b", None)], []),
        # A cosine that is too low is one, whatever the words.
        ([candidate("a", 0.1, by_text=True)], []),
        # Six are similar, five are kept.
        ([candidate(name) for name in "abcdef"], ["a", "b", "c", "d", "e"]),
        # What does not fit is passed over for what does.
        ([candidate("a", chars=10_000_000), candidate("b")], ["b"]),
    ],
)
def test_what_comes_to_mind(candidates: list[Candidate], shown: list[str]) -> None:
    assert ids(chosen(candidates, budget=PLENTY, min_score=0.4, keep=5)) == shown


candidates = st.lists(
    st.builds(
        Candidate,
        id=st.uuids().map(str),
        chars=st.integers(0, 3_000),
        similarity=st.none() | st.floats(-1, 1),
        is_by_text=st.booleans(),
    ),
    max_size=20,
)


@given(candidates, st.integers(0, 5_000), st.floats(0, 1), st.integers(1, 10))
def test_never_over_budget_never_more_than_kept_and_two_where_there_are_any(
    candidates: list[Candidate], budget: int, min_score: float, keep: int
) -> None:
    shown = chosen(candidates, budget=budget, min_score=min_score, keep=keep)
    assert sum(chunk_tokens(one.chars) for one in shown) <= budget
    assert len(shown) == len(set(shown)) <= keep
    roomy = chosen(candidates, budget=10**9, min_score=min_score, keep=keep)
    assert set(shown) <= set(roomy)
    is_similar = [
        one.is_by_text
        if one.similarity is None
        else one.similarity >= min_score
        or (rank < FIRST_RANKS and one.is_by_text and one.similarity >= NEARLY * min_score)
        for rank, one in enumerate(candidates)
    ]
    if any(is_similar):
        assert len(roomy) == min(keep, max(sum(is_similar), min(LEAST_SHOWN, len(candidates))))
    else:
        assert roomy == []


def test_what_ranks_first_and_shares_words_may_be_a_little_less_similar() -> None:
    near = Candidate(id="near", chars=40, similarity=0.31, is_by_text=True)
    alike = Candidate(id="alike", chars=40, similarity=0.31)
    far = Candidate(id="far", chars=40, similarity=0.29, is_by_text=True)
    assert chosen([near], budget=PLENTY, min_score=0.4, keep=5) == [near]
    assert chosen([alike], budget=PLENTY, min_score=0.4, keep=5) == []
    assert chosen([far], budget=PLENTY, min_score=0.4, keep=5) == []
    others = [Candidate(id=str(at), chars=40, similarity=0.1) for at in range(FIRST_RANKS)]
    assert chosen([*others, near], budget=PLENTY, min_score=0.4, keep=5) == []


# ── A3: where nothing qualifies ──


def test_the_newest_one_or_two_that_say_anything() -> None:
    newest_first = [candidate("short", chars=FALLBACK_CHARS - 1), *(candidate(name) for name in "abc")]
    assert ids(fallback(newest_first, budget=PLENTY)) == ["a", "b"]
    assert ids(fallback(newest_first[:2], budget=PLENTY)) == ["a"]
    assert fallback([], budget=PLENTY) == []


@given(candidates, st.integers(0, 5_000))
def test_the_fallback_keeps_the_budget_too(candidates: list[Candidate], budget: int) -> None:
    shown = fallback(candidates, budget=budget)
    assert sum(chunk_tokens(one.chars) for one in shown) <= budget
    assert len(shown) <= FALLBACK_ENTRIES
    assert all(one.chars >= FALLBACK_CHARS for one in shown)


class Slow:
    """Its length takes a while to say."""

    def __init__(self, similarity: float) -> None:
        self.similarity, self.is_by_text, self.was_measured = similarity, False, False
        self.probability = self.most_probability = 0.0

    @property
    def chars(self) -> int:
        self.was_measured = True
        return 100


def test_only_what_may_be_shown_is_measured() -> None:
    found = [Slow(0.9 if at < 8 else 0.1) for at in range(30)]
    assert chosen(found, budget=PLENTY, min_score=0.4, keep=5) == found[:5]
    assert [one.was_measured for one in found] == [True] * 5 + [False] * 25
    newest = [Slow(0.0) for _ in range(16)]
    assert fallback(newest, budget=PLENTY) == newest[:FALLBACK_ENTRIES]
    assert [one.was_measured for one in newest] == [True] * FALLBACK_ENTRIES + [False] * (16 - FALLBACK_ENTRIES)


def test_in_a_small_window_less_than_the_budget_is_spent() -> None:
    assert recall_limit(2_000, 200_000) == 2_000
    assert recall_limit(2_000, 16_000) == 1_333
