from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from offbook.search.evidence import FEATURES, Evidence
from offbook.search.index.rows import BOILERPLATE, DENIAL, MEMORY_QUESTION, QUESTION, ROW, TOOL, USER
from offbook.search.weights import (
    ABOUT_THE_SAME,
    DAY,
    ECHO,
    EQUAL_SCORES,
    IN_TIME,
    NEAR_TIME,
    SAME,
    Recipe,
    echoing,
    newer_first,
    once_each,
    substantial,
    timely,
    weighed,
    without_near_duplicates_of_other_numbers,
)

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
    assert weighed(evidence, Recipe(name="x", weights={"meaning": 0.5, "words": 2.0})).tolist() == [6.5, -1.0]
    assert weighed(evidence, Recipe(name="x", weights={})).tolist() == [0.0, 0.0]


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


def test_an_earlier_question_that_asks_the_same_stands_behind() -> None:
    rows = np.zeros(4, ROW)
    rows["flags"] = [QUESTION, QUESTION, 0, QUESTION]
    similarity = np.array([ECHO + 0.1, ECHO - 0.1, ECHO + 0.1, ECHO + 0.1], np.float32)
    evidence = Evidence(np.arange(4), {}, similarity, np.array([True, True, True, False]))
    echo, *others = echoing(rows, evidence).tolist()
    assert echo < 0
    assert others == [0.0, 0.0, 0.0], "unlike it, no question, without a vector"


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


def said(ts: list[int], roles: list[int] | None = None) -> NDArray[Any]:
    rows = np.zeros(len(ts), [("ts", "i8"), ("role", "u1")])
    rows["ts"], rows["role"] = ts, roles or [0] * len(ts)
    return rows


def test_what_says_the_same_as_a_better_one_is_left_out() -> None:
    likeness = alike(4, (0, 2, 0.95), (1, 3, SAME))
    kept, stands_for = once_each(np.array([2, 1, 0, 3]), likeness, said([1, 2, 3, 4]))
    assert kept.tolist() == [2, 1, 3]
    assert stands_for == {0: 2}


def test_of_two_almost_the_same_the_newer_stands_for_both_where_one_side_said_them() -> None:
    """ "The ferry leaves at six", and a day later "… at seven"."""
    order = np.array([0, 1, 2])
    likeness = alike(3, (0, 1, 0.96), (0, 2, 0.95), (1, 2, 0.97))
    kept, stands_for = once_each(order, likeness, said([10, 20, 30]))
    assert kept.tolist() == [2]
    assert stands_for == {0: 2, 1: 2}
    kept, _ = once_each(order, likeness, said([30, 20, 10]))
    assert kept.tolist() == [0], "the older ones change nothing"
    kept, _ = once_each(order, likeness, said([10, 20, 30], roles=[0, 1, 1]))
    assert kept.tolist() == [0], "what the agent repeats is no correction"
    kept, _ = once_each(np.array([0, 1]), alike(2, (0, 1, 1.0)), said([10, 20]))
    assert kept.tolist() == [0], "the same words correct nothing"


@given(st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_each_is_kept_or_has_one_that_stands_for_it(size: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    likeness = np.maximum(np.eye(size), random.random((size, size))).astype(np.float32)
    likeness = np.maximum(likeness, likeness.T)
    order = random.permutation(size)
    kept, stands_for = once_each(order, likeness, said(random.permutation(size).tolist()))
    assert sorted([*kept.tolist(), *stands_for]) == list(range(size))
    assert set(stands_for.values()) <= set(kept.tolist())
    assert all(likeness[one, other] <= SAME for one in kept for other in kept if one != other)


def test_what_names_other_numbers_does_not_say_the_same() -> None:
    likeness = without_near_duplicates_of_other_numbers(
        alike(3, (0, 1, 0.99), (0, 2, 0.99), (1, 2, 0.5)), np.array([7, 8, 7])
    )
    assert once_each(np.arange(3), likeness, said([3, 2, 1]))[1] == {2: 0}
    assert likeness[0, 1] == pytest.approx(SAME)
    assert likeness[1, 2] == 0.5
