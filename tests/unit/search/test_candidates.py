from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from offbook.search.candidates import (
    ALL_UP_TO,
    MOST_CANDIDATES,
    MOST_WORDS,
    SAMPLE,
    RetrieverHits,
    by_meaning,
    by_text,
    known_words,
    matching_rows,
    ordinary,
    pool,
)
from offbook.search.index.agent_index import AgentIndex
from offbook.search.words import query_terms
from tests.unit.search.index.sayings import said
from tests.unit.search.small_index import small_index, unit, vectors_of

NOTHING = np.empty(0, np.int64)
TEXTS = [
    "the cat sleeps",
    "the dog barks at the cat",
    "a fish",
    "the boat and the cat and the fish",
    "nothing of interest",
    "a whale",
]


@pytest.fixture(params=["fresh", "committed", "half"])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AgentIndex]:
    """The same messages, known to the text index or not yet."""
    messages = [said(place, text, session=1 + place % 2) for place, text in enumerate(TEXTS, 1)]
    vectors = {place: unit(1, place) for place in range(1, 5)}
    first = 3 if request.param == "half" else 6
    opened = small_index(tmp_path / "index", messages[:first], vectors)
    if request.param != "fresh":
        opened.commit("")
    if messages[first:]:
        opened.take(messages[first:], 2)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentIndex]:
    """Two thousand messages, four to an episode."""
    messages = [
        said(row + 1, f"word{row % 50} and number{row}", session=1 + row // 4, minutes=row) for row in range(2_000)
    ]
    opened = small_index(tmp_path_factory.mktemp("long") / "index", messages, {1: unit(1), 2_000: unit(0, 1)})
    opened.commit("")
    yield opened
    opened.close()


# ── words ──


def test_words_that_nobody_said_are_left_out(index: AgentIndex) -> None:
    words = known_words(index, ["cat", "unicorn", "whale"], 6)
    assert words.terms == ["cat", "whale"]
    assert words.idf[1] > words.idf[0] > 0


def test_of_many_words_the_rarest_are_looked_for_in_their_order(long: AgentIndex) -> None:
    asked = [*(f"word{number}" for number in range(50)), *(f"number{row}" for row in range(20))]
    words = known_words(long, asked, 2_000)
    assert len(words.terms) == MOST_WORDS
    assert words.terms[-20:] == asked[-20:]
    assert words.terms[:12] == asked[:12]


# ── retrievers ──


def test_what_says_more_of_the_words_comes_first(index: AgentIndex) -> None:
    words = known_words(index, query_terms("cat and fish"), 6)
    found = by_text(index, words, 6, session=None, is_open=None).tolist()
    assert set(found) == {0, 1, 2, 3}
    assert len(found) == 4
    assert by_text(index, known_words(index, [], 6), 6, session=None, is_open=None).tolist() == []


def test_only_a_session_or_what_is_open(index: AgentIndex) -> None:
    words = known_words(index, ["cat"], 6)
    assert sorted(by_text(index, words, 6, session=1, is_open=None).tolist()) == [1, 3]
    assert sorted(by_text(index, words, 6, session=2, is_open=None).tolist()) == [0]
    is_open = np.array([True, False, True, True, True, True])
    assert sorted(by_text(index, words, 6, session=None, is_open=is_open).tolist()) == [0, 3]
    assert sorted(by_text(index, known_words(index, ["cat"], 2), 2, session=None, is_open=None).tolist()) == [0, 1]


def test_the_nearest_first(index: AgentIndex) -> None:
    vectors = vectors_of(index)
    expected = [0, 1, 2, 3] if vectors is not None and vectors.count == 4 else [0, 1, 2]
    assert by_meaning(vectors, unit(1), index.rows.count, None).tolist() == expected
    assert by_meaning(
        vectors, unit(1), index.rows.count, np.array([False, True, True, False, True, True])
    ).tolist() == [1, 2]
    assert by_meaning(vectors, None, index.rows.count, None).tolist() == []
    assert by_meaning(None, unit(1), index.rows.count, None).tolist() == []


# ── the pool ──


def test_of_few_all_are_looked_at(index: AgentIndex) -> None:
    assert pool(index, RetrieverHits(NOTHING, NOTHING), 6, None).candidates.tolist() == [0, 1, 2, 3, 4, 5]
    is_open = np.array([False, True, False, True, False, False])
    assert pool(index, RetrieverHits(NOTHING, NOTHING), 6, is_open).candidates.tolist() == [1, 3]


def test_of_many_the_hits_and_their_episodes(long: AgentIndex) -> None:
    pooled = pool(long, RetrieverHits(by_text=np.array([101]), by_meaning=np.array([1_999, 50])), 2_000, None)
    assert pooled.candidates.tolist() == [48, 49, 50, 51, 100, 101, 102, 103, 1_996, 1_997, 1_998, 1_999]
    assert set(pooled.members.tolist()) == set(pooled.candidates.tolist())


def test_what_is_closed_is_in_no_pool(long: AgentIndex) -> None:
    is_open = np.arange(2_000) % 2 == 0
    pooled = pool(long, RetrieverHits(by_text=np.array([100]), by_meaning=NOTHING), 2_000, is_open)
    assert pooled.candidates.tolist() == [100, 102]
    few = np.arange(2_000) < ALL_UP_TO
    assert len(pool(long, RetrieverHits(NOTHING, NOTHING), 2_000, few).candidates) == ALL_UP_TO


def test_a_pool_is_bounded_and_has_each_once(long: AgentIndex) -> None:
    everything = np.arange(2_000)
    pooled = pool(long, RetrieverHits(by_text=everything, by_meaning=everything[::-1]), 2_000, None)
    assert len(pooled.candidates) <= MOST_CANDIDATES
    assert len(np.unique(pooled.candidates)) == len(pooled.candidates)
    # The best of both are in it, in turns.
    assert {0, 1, 1_998, 1_999} <= set(pooled.candidates.tolist())


def test_what_is_ordinary_is_measured_once(long: AgentIndex) -> None:
    first = ordinary(long, vectors_of(long), 2_000)
    assert ordinary(long, vectors_of(long), 2_000) is first
    assert ordinary(long, vectors_of(long), 2_001) is first
    assert ordinary(long, None, 2_000) is not first
    assert len(first._here) == SAMPLE


# ── by keyword ──


@pytest.mark.parametrize(
    ("keyword", "rows"),
    [
        ("cat", [0, 1, 3]),
        ("Cats", [0, 1, 3]),
        ("cat fish", [3]),
        ("cat unicorn", []),
        ("unicorn", []),
        ("the", []),
        ("!!!", []),
        (" ", []),
    ],
)
def test_the_rows_of_a_keyword_hold_all_its_words(index: AgentIndex, keyword: str, rows: list[int]) -> None:
    assert matching_rows(index, keyword, None, 100).tolist() == rows


def test_the_newest_rows_of_a_keyword_or_a_session(index: AgentIndex) -> None:
    assert matching_rows(index, "cat", None, 2).tolist() == [1, 3]
    assert matching_rows(index, "cat", 1, 100).tolist() == [1, 3]
    assert matching_rows(index, None, 2, 100).tolist() == [0, 2, 4]
    assert matching_rows(index, None, 2, 2).tolist() == [2, 4]
    assert matching_rows(index, None, 9, 100).tolist() == []


def test_a_keyword_of_many_words(long: AgentIndex) -> None:
    words = " ".join(f"thing{number}" for number in range(MOST_WORDS + 8))
    long.take([said(5_000, words)], 9)
    assert matching_rows(long, words, None, 100).tolist() == [2_000]


def test_what_the_host_told_the_agent_is_not_meant_by_a_keyword_or_a_session(tmp_path: Path) -> None:
    messages = [said(1, "the cat sleeps"), said(2, "you are a cat", role="system"), said(3, "a cat again")]
    opened = small_index(tmp_path / "index", messages)
    for _ in range(2):
        assert matching_rows(opened, "cat", None, 100).tolist() == [0, 2]
        assert matching_rows(opened, "cat", None, 1).tolist() == [2]
        assert matching_rows(opened, None, 1, 100).tolist() == [0, 2]
        opened.commit("")
    opened.close()
