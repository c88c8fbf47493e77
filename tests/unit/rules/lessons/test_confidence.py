from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from offbook.rules.lessons.fold import MOST, confidence_at, confidence_of
from tests.unit.rules.lessons.lessons import DAY, NOON

strengths = st.lists(st.floats(0, 1), min_size=1, max_size=8)
ages = st.timedeltas(timedelta(), timedelta(days=4_000))


def test_each_saying_takes_away_a_share_of_the_doubt() -> None:
    assert confidence_of([0.75]) == 0.75
    assert confidence_of([0.75, 0.5]) == 0.875
    assert confidence_of([0.5], before=0.75) == 0.875


@given(strengths, st.floats(0, 1))
def test_said_once_more_it_is_never_less_sure(some: list[float], more: float) -> None:
    assert 0 <= confidence_of(some) <= confidence_of([*some, more]) <= MOST


@given(strengths, st.integers(0, 7))
def test_in_which_pieces_it_is_learnt_does_not_matter(some: list[float], at: int) -> None:
    in_pieces = confidence_of(some[at:], confidence_of(some[:at])) if some[at:] else confidence_of(some)
    assert abs(in_pieces - confidence_of(some)) < 0.001
    assert confidence_of(some[::-1]) == confidence_of(some)


@given(st.floats(0, 1), ages, ages, st.booleans())
def test_it_fades_and_never_grows_by_itself(confidence: float, one: timedelta, other: timedelta, against: bool) -> None:
    sooner, later = sorted((one, other))
    now = confidence_at(confidence, NOON, NOON + later, is_spoken_against=against)
    assert 0 <= now <= confidence_at(confidence, NOON, NOON + sooner, is_spoken_against=against) <= confidence
    assert confidence_at(confidence, NOON, NOON + later, is_spoken_against=True) <= confidence_at(
        confidence, NOON, NOON + later
    )


def test_a_clock_that_went_back_makes_nothing_surer() -> None:
    assert confidence_at(0.7, NOON, NOON - 400 * DAY) == 0.7


def test_said_once_it_is_forgotten_after_a_year_and_two_months_said_twice_it_stays() -> None:
    once, twice = confidence_of([0.7]), confidence_of([0.7, 0.7])
    assert confidence_at(once, NOON, NOON + 400 * DAY) >= 0.6 > confidence_at(once, NOON, NOON + 430 * DAY)
    assert confidence_at(twice, NOON, NOON + 4_000 * DAY) >= 0.6
