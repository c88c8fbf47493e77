from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from offbook.audit import micros
from offbook.retrieval.evidence import FEATURES, Evidence
from offbook.retrieval.index.agent_index import AgentIndex
from offbook.retrieval.index.rows import BOILERPLATE, DENIAL, MEMORY_QUESTION, ROW, TOOL, USER, Said
from offbook.retrieval.query import read_query
from offbook.retrieval.ranking import (
    ABOUT_THE_SAME,
    DAY,
    EQUAL_SCORES,
    IN_TIME,
    NEAR_TIME,
    SAME,
    Look,
    Ranking,
    newer_first,
    once_each,
    rank,
    substantial,
    timely,
    weighed,
)
from offbook.retrieval.recipes import CHAT, Recipe
from offbook.retrieval.words import query_terms
from tests.unit.retrieval.index.sayings import NOON, said
from tests.unit.retrieval.small_index import small_index, unit, vectors_of

NOON_MICROS = micros(NOON)
UNLIKE = 0.0


def alike(size: int, *pairs: tuple[int, int, float]) -> NDArray[np.float32]:
    likeness = np.eye(size, dtype=np.float32)
    for one, other, how in pairs:
        likeness[one, other] = likeness[other, one] = how
    return likeness


# ── the recipe's sum ──


def test_a_recipe_is_a_weighted_sum() -> None:
    features = {name: np.zeros(2) for name in FEATURES}
    features["meaning"], features["words"] = np.array([1.0, 2.0]), np.array([3.0, -1.0])
    evidence = Evidence(np.arange(2), features, np.zeros(2, np.float32), np.ones(2, bool))
    assert weighed(evidence, Recipe(name="x", meaning=0.5, words=2.0)).tolist() == [6.5, -1.0]
    assert weighed(evidence, Recipe(name="x")).tolist() == [0.0, 0.0]


# ── time ──


def test_what_was_said_then_and_a_little_what_was_said_soon_after() -> None:
    ts = np.array([-2, -0.5, 0, 0.5, 1, 2.5, 3, 9]) * DAY
    day = (0.0, float(DAY))
    assert timely(ts, [(day, True)]).tolist() == [0, NEAR_TIME, IN_TIME, IN_TIME, NEAR_TIME, NEAR_TIME, 0, 0]
    assert timely(ts, [(day, False)]).tolist() == [0, 1, NEAR_TIME, NEAR_TIME, 1, 1, 0, 0]
    assert timely(ts, []).tolist() == [0.0] * 8


def test_a_stretch_may_be_open_and_the_best_of_several_counts() -> None:
    ts = np.array([-5, 0, 5]) * DAY
    assert timely(ts, [((-np.inf, 0.0), True)]).tolist() == [IN_TIME, 0, 0]
    assert timely(ts, [((0.0, np.inf), True)]).tolist() == [0, IN_TIME, IN_TIME]
    both = [((-np.inf, 0.0), False), ((0.0, float(DAY)), True)]
    assert timely(ts, both).tolist() == [NEAR_TIME, IN_TIME, 0]


# ── substance ──


def test_what_says_nothing_stands_behind() -> None:
    rows = np.zeros(6, ROW)
    rows["flags"] = [0, DENIAL, MEMORY_QUESTION, BOILERPLATE, DENIAL | BOILERPLATE, 0]
    rows["role"] = [USER] * 5 + [TOOL]
    plain, denial, question, boilerplate, both, tool = substantial(rows).tolist()
    assert plain == 0
    assert denial == question < boilerplate < tool < 0
    assert both == denial + boilerplate


# ── equals: newer first ──


def test_of_two_about_the_same_the_newer_goes_first_if_they_score_the_same() -> None:
    scores, ts = np.array([5.0, 4.8, 4.7]), np.array([1, 3, 2])
    moved = newer_first(scores, ts, alike(3, (0, 1, 0.85), (0, 2, UNLIKE)))
    assert moved.tolist() == [5.0, pytest.approx(5.0, abs=1e-4), 4.7]
    assert moved[1] > moved[0]


@pytest.mark.parametrize(
    ("scores", "ts", "how"),
    [
        ([5.0, 5.0 - EQUAL_SCORES], [1, 2], 0.85),  # too far behind
        ([5.0, 4.9], [2, 1], 0.85),  # older
        ([5.0, 4.9], [1, 1], 0.85),  # no newer
        ([5.0, 4.9], [1, 2], ABOUT_THE_SAME - 0.01),  # about something else
    ],
)
def test_otherwise_the_scores_stay(scores: list[float], ts: list[int], how: float) -> None:
    assert newer_first(np.array(scores), np.array(ts), alike(2, (0, 1, how))).tolist() == scores


def test_of_three_the_newest_goes_first() -> None:
    likeness = alike(3, (0, 1, 0.85), (0, 2, 0.85), (1, 2, 0.85))
    moved = newer_first(np.array([5.0, 4.9, 4.8]), np.array([1, 2, 3]), likeness)
    assert np.argsort(-moved).tolist() == [2, 1, 0]


scores_and_times = st.lists(st.tuples(st.floats(-9, 9), st.integers(0, 5)), min_size=1, max_size=8)


@given(scores_and_times, st.integers(0, 2**32 - 1))
def test_nobody_falls_and_nobody_rises_above_the_best(pairs: list[tuple[float, int]], seed: int) -> None:
    size = len(pairs)
    random = np.random.default_rng(seed)
    likeness = np.maximum(np.eye(size), random.random((size, size))).astype(np.float32)
    likeness = np.maximum(likeness, likeness.T)
    scores = np.array([score for score, _ in pairs])
    moved = newer_first(scores, np.array([ts for _, ts in pairs]), likeness)
    assert (moved >= scores).all()
    assert (moved <= scores.max() + 0.001).all()


# ── once each ──


def test_what_says_the_same_as_a_better_one_is_left_out() -> None:
    likeness = alike(4, (0, 2, 0.95), (1, 3, SAME))
    kept, stands_for = once_each(np.array([2, 1, 0, 3]), likeness)
    assert kept.tolist() == [2, 1, 3]
    assert stands_for == {0: 2}


@given(st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_each_is_kept_or_has_one_that_stands_for_it(size: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    likeness = np.maximum(np.eye(size), random.random((size, size))).astype(np.float32)
    likeness = np.maximum(likeness, likeness.T)
    order = random.permutation(size)
    kept, stands_for = once_each(order, likeness)
    assert sorted([*kept.tolist(), *stands_for]) == list(range(size))
    assert set(stands_for.values()) <= set(kept.tolist())
    assert all(likeness[at, twin] > SAME for at, twin in stands_for.items())
    assert all(likeness[one, other] <= SAME for one in kept for other in kept if one != other)


# ── all of it ──

SAID: list[Said] = [
    said(1, "The ferry is called Aurora.", session=1),
    said(2, "I bake bread on Sundays.", session=1, minutes=1, role="assistant"),
    said(3, "My niece was sick on the ferry.", session=2, minutes=600),
    msgspec.structs.replace(said(4, "Do you remember the ferry?", session=3, minutes=1_200), flags=MEMORY_QUESTION),
    msgspec.structs.replace(
        said(5, "I have no record of a ferry.", session=3, minutes=1_201, role="assistant"), flags=DENIAL
    ),
    said(6, "The ship to the island is the Aurora.", session=4, minutes=4_000),
    said(7, "It rained.", session=4, minutes=4_001),
]
VECTORS = {
    1: unit(1, 0.1),
    2: unit(0, 0, 1),
    3: unit(0.6, 0.6),
    4: unit(1, 0.05),
    5: unit(1, 0.06),
    6: unit(1, 0.1, 0.02),
    7: unit(0, 0.1, 0, 1),
}


@pytest.fixture
def index(tmp_path: Path) -> Iterator[AgentIndex]:
    opened = small_index(tmp_path / "index", SAID, VECTORS)
    yield opened
    opened.close()


def ranked(index: AgentIndex, query: str, *, by_meaning: bool = True, **fields: object) -> Ranking:
    look = Look(
        query=read_query(query),
        terms=query_terms(query),
        vector=unit(1, 0) if by_meaning else None,
        asked_at=NOON_MICROS + 10 * DAY,
        **fields,  # type: ignore[arg-type]
    )
    return rank(index, vectors_of(index) if by_meaning else None, look)


def places(ranking: Ranking) -> list[int]:
    return [hit.place for hit in ranking.hits]


def test_the_answer_comes_before_questions_and_denials(index: AgentIndex) -> None:
    for by_meaning in (True, False):
        found = places(ranked(index, "What is the ferry called?", by_meaning=by_meaning))
        assert found[0] in (1, 6)
        assert 4 not in found[:2]
        assert 5 not in found[:3]


def test_of_two_that_say_the_same_the_newer_is_shown_and_the_other_told(index: AgentIndex) -> None:
    found = ranked(index, "ferry ship Aurora island")
    assert 6 in places(found)
    assert 1 not in places(found)
    assert {one.place: one.why for one in found.filtered}[1] == "says the same as m6"


def test_a_hit_says_why_it_was_found(index: AgentIndex) -> None:
    found = ranked(index, "ferry")
    assert found.words == ["ferri"]
    assert found.looked_at == len(SAID)
    for hit in found.hits:
        assert set(hit.found_by) == set(hit.ranks) or hit.found_by == ["setting"]
        assert all(place >= 1 for place in hit.ranks.values())
        assert set(hit.evidence) <= set(FEATURES)
    niece = next(hit for hit in found.hits if hit.place == 3)
    assert niece.similarity == pytest.approx(0.707, abs=0.01)
    assert {"text", "meaning"} == set(niece.found_by)
    scores = [hit.score for hit in found.hits]
    assert scores == sorted(scores, reverse=True)
    plain = ranked(index, "ferry", by_meaning=False)
    assert all(hit.similarity is None and hit.part is None for hit in plain.hits)


def test_only_the_session_only_by_then_and_no_more_than_the_limit(index: AgentIndex) -> None:
    assert set(places(ranked(index, "ferry", session=1))) <= {1, 2}
    assert set(places(ranked(index, "ferry", known_at=NOON_MICROS))) == {1}
    assert places(ranked(index, "ferry", known_at=NOON_MICROS - 1)) == []
    assert len(ranked(index, "ferry", limit=2).hits) == 2


def test_where_nothing_is_shared_nothing_is_a_memory_of_it(index: AgentIndex) -> None:
    assert places(ranked(index, "unicorn", by_meaning=False)) == []
    far = Look(query=read_query("unicorn"), terms=["unicorn"], vector=unit(-1), asked_at=NOON_MICROS)
    assert places(rank(index, vectors_of(index), far)) == []


def test_the_time_asked_for_decides(index: AgentIndex) -> None:
    third_day = (float(NOON_MICROS + 2 * DAY), float(NOON_MICROS + 3 * DAY))
    found = ranked(index, "unicorn", by_meaning=False, times=[(third_day, True)])
    assert set(places(found)[:2]) == {6, 7}
    assert "time" in found.hits[0].found_by


def test_before_and_after_something_that_is_itself_remembered(index: AgentIndex) -> None:
    after = ranked(index, "ferry", event_terms=[("after", query_terms("niece sick"))])
    before = ranked(index, "ferry", event_terms=[("before", query_terms("niece sick"))])
    by_time = [{hit.place: hit.evidence.get("time", 0.0) for hit in some.hits} for some in (before, after)]
    assert set(by_time[0]) == set(by_time[1])
    assert {by_time[0][place] + by_time[1][place] for place in by_time[0]} == {NEAR_TIME}
    assert ranked(index, "ferry", event_terms=[("after", ["unicorn"])]).hits


def test_an_empty_index_has_nothing(tmp_path: Path) -> None:
    index = small_index(tmp_path / "empty", [])
    assert ranked(index, "ferry").hits == []
    index.close()


def test_who_is_named_is_who_is_asked_about(tmp_path: Path) -> None:
    talk: Sequence[Said] = [
        said(1, "I went to the lake and swam.", speaker="Caroline"),
        said(2, "I went to the lake and slept.", minutes=1, speaker="Melanie"),
        said(3, "How nice.", minutes=2, speaker="Caroline"),
    ]
    index = small_index(tmp_path / "talk", talk)
    for name, place in (("Caroline", 1), ("Melanie", 2)):
        query = read_query(f"What did {name} do at the lake?", index.rows.speakers)
        look = Look(query=query, terms=["lake"], vector=None, asked_at=NOON_MICROS)
        found = rank(index, None, look)
        assert found.recipe.startswith(CHAT.name)
        assert found.hits[0].place == place
    index.close()
