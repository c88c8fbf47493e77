from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.lifecycle.tiers import END_OF_TIME, hot_until, tier_of, to_offload
from offbook.settings import Settings, Ttl
from offbook.types import Tier

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
TTL = Ttl()
WARMTH: dict[Tier, int] = {"hot": 2, "warm": 1, "cold": 0}

moments = st.datetimes(min_value=datetime(1901, 1, 1), max_value=datetime(8999, 12, 31), timezones=st.just(UTC))
hours = st.floats(min_value=0, allow_nan=False, allow_infinity=True)
ttls = st.builds(Ttl, base_hours=hours, bump_hours=hours, max_hours=hours)
retrievals = st.integers(min_value=0, max_value=10**9)
arrivals = st.lists(st.integers(min_value=-50, max_value=50), max_size=40).map(sorted)
"""Of messages that are not pinned."""
pins = st.integers(min_value=0, max_value=40)
limits = st.integers(min_value=0, max_value=40)


def tier(arrived_at: datetime, at: datetime, retrievals: int = 0, ttl: Ttl = TTL, **facts: bool) -> Tier:
    given = {"is_pinned": False, "is_offloaded": False} | facts
    return tier_of(arrived_at, retrievals, ttl=ttl, at=at, **given)


# ── A8 ──


@pytest.mark.parametrize(("retrievals", "hours"), [(0, 6), (1, 8), (2, 10), (21, 48), (22, 48), (10**9, 48)])
def test_each_retrieval_keeps_it_hot_two_hours_longer_up_to_forty_eight(retrievals: int, hours: int) -> None:
    assert hot_until(NOON, retrievals, TTL) == NOON + timedelta(hours=hours)


@pytest.mark.parametrize(
    ("after_hours", "expected"),
    [(-1, "hot"), (0, "hot"), (5.99, "hot"), (6, "warm"), (53.99, "warm"), (54, "cold"), (10_000, "cold")],
)
def test_it_cools_from_hot_to_warm_to_cold(after_hours: float, expected: Tier) -> None:
    assert tier(NOON, NOON + timedelta(hours=after_hours)) == expected


def test_what_was_offloaded_is_cold_unless_it_is_pinned() -> None:
    assert tier(NOON, NOON, is_offloaded=True) == "cold"
    assert tier(NOON, NOON, is_offloaded=True, is_pinned=True) == "hot"


@given(moments, moments, retrievals, ttls, st.booleans())
def test_what_is_pinned_is_hot_at_any_time(
    arrived_at: datetime, at: datetime, times: int, ttl: Ttl, is_offloaded: bool
) -> None:
    assert tier(arrived_at, at, times, ttl, is_pinned=True, is_offloaded=is_offloaded) == "hot"


@given(moments, moments, retrievals, ttls, st.booleans(), st.booleans())
def test_everything_is_in_exactly_one_tier_whatever_the_clock_says(
    arrived_at: datetime, at: datetime, times: int, ttl: Ttl, is_pinned: bool, is_offloaded: bool
) -> None:
    assert tier(arrived_at, at, times, ttl, is_pinned=is_pinned, is_offloaded=is_offloaded) in WARMTH


@given(moments, moments, retrievals, ttls)
def test_an_arrival_in_the_future_is_hot(one: datetime, other: datetime, times: int, ttl: Ttl) -> None:
    at, arrived_at = sorted([one, other])
    assert at == arrived_at or tier(arrived_at, at, times, ttl) == "hot"


@given(moments, st.tuples(moments, moments), retrievals, ttls)
def test_time_only_cools_and_a_clock_that_jumps_back_only_warms(
    arrived_at: datetime, clock: tuple[datetime, datetime], times: int, ttl: Ttl
) -> None:
    earlier, later = sorted(clock)
    assert WARMTH[tier(arrived_at, earlier, times, ttl)] >= WARMTH[tier(arrived_at, later, times, ttl)]


@given(moments, moments, retrievals, ttls)
def test_a_retrieval_never_cools(arrived_at: datetime, at: datetime, times: int, ttl: Ttl) -> None:
    assert WARMTH[tier(arrived_at, at, times + 1, ttl)] >= WARMTH[tier(arrived_at, at, times, ttl)]
    assert arrived_at <= hot_until(arrived_at, times, ttl) <= hot_until(arrived_at, times + 1, ttl) <= END_OF_TIME


# ── A9 ──


def test_over_the_threshold_the_oldest_go_until_as_many_are_left_as_are_kept() -> None:
    settings = Settings()
    threshold, keep = settings.prune_threshold, settings.prune_keep
    assert to_offload(range(500), hot=500, threshold=threshold, keep=keep) == 0
    assert to_offload(range(501), hot=501, threshold=threshold, keep=keep) == 101


def test_pinned_ones_stay_and_count() -> None:
    assert to_offload(range(7), hot=10, threshold=8, keep=6) == 4
    assert to_offload([], hot=4, threshold=2, keep=1) == 0


def test_what_arrived_at_once_goes_at_once_or_stays() -> None:
    assert to_offload([5, 5, 5], hot=3, threshold=2, keep=1) == 0
    assert to_offload([4, 5, 5, 5], hot=4, threshold=2, keep=1) == 1
    assert to_offload([5, 5, 5], hot=3, threshold=2, keep=0) == 3


@given(arrivals, pins, limits, limits)
def test_offloading_leaves_what_is_kept_and_never_part_of_a_moment(
    movable: list[int], pinned: int, threshold: int, keep: int
) -> None:
    hot = len(movable) + pinned
    gone = to_offload(movable, hot=hot, threshold=threshold, keep=keep)
    if hot <= threshold:
        assert gone == 0
        return
    wanted = min(max(0, hot - keep), len(movable))
    assert gone <= wanted
    assert gone in (0, len(movable)) or movable[gone - 1] < movable[gone]
    assert len(set(movable[gone:wanted])) <= 1, "only what arrived with the first that stays is left beyond that"


@given(arrivals, pins, limits, limits)
def test_offloading_twice_moves_nothing_more(movable: list[int], pinned: int, threshold: int, keep: int) -> None:
    hot = len(movable) + pinned
    gone = to_offload(movable, hot=hot, threshold=threshold, keep=keep)
    assert to_offload(movable[gone:], hot=hot - gone, threshold=threshold, keep=keep) == 0
