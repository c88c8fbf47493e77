from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.log.audit_chain import micros, moment
from offbook.log.tiers import (
    BEGINNING_OF_TIME,
    END_OF_TIME,
    Offload,
    OffloadedThrough,
    after,
    cooling,
    count_by_age,
    earlier,
    hot_until,
    offload_decision,
    ordered_runs,
    parsed_note,
    tier_of,
    written_note,
)
from offbook.model.memory_entry import Hold
from offbook.model.settings import Settings
from offbook.model.settings.sections import Ttl
from offbook.model.types import Tier

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
TTL = Ttl()
WARMTH: dict[Tier, int] = {"hot": 2, "warm": 1, "cold": 0}

moments = st.datetimes(min_value=datetime(1901, 1, 1), max_value=datetime(8999, 12, 31), timezones=st.just(UTC))
hours = st.floats(min_value=0, allow_nan=False, allow_infinity=True)
ttls = st.builds(Ttl, base_hours=hours, bump_hours=hours, max_hours=hours)
retrievals = st.integers(min_value=0, max_value=10**9)
limits = st.integers(min_value=0, max_value=40)


def tier(
    arrived_at: datetime, at: datetime, retrievals: int = 0, ttl: Ttl = TTL, *, is_offloaded: bool = False, **held: Any
) -> Tier:
    return tier_of(arrived_at, Hold(retrievals=retrievals, **held), is_offloaded=is_offloaded, ttl=ttl, at=at)


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
    assert tier(NOON, NOON, is_offloaded=True, pinned=True) == "hot"


@pytest.mark.parametrize(("after_hours", "times", "expected"), [(1.9, 1, "warm"), (2, 1, "cold"), (11.9, 6, "warm")])
@pytest.mark.parametrize("is_offloaded", [False, True])
def test_what_is_cold_is_warm_again_for_a_while_after_a_retrieval(
    after_hours: float, times: int, expected: Tier, is_offloaded: bool
) -> None:
    year_ago = NOON - timedelta(days=365)
    at = NOON + timedelta(hours=after_hours)
    assert tier(year_ago, NOON, is_offloaded=is_offloaded) == "cold"
    assert tier(year_ago, at, times, retrieved_at=NOON, is_offloaded=is_offloaded) == expected
    assert tier(year_ago, NOON + timedelta(hours=48), 10**9, retrieved_at=NOON) == "cold"


@given(moments, moments, retrievals, ttls, st.booleans())
def test_what_is_pinned_is_hot_at_any_time(
    arrived_at: datetime, at: datetime, times: int, ttl: Ttl, is_offloaded: bool
) -> None:
    assert tier(arrived_at, at, times, ttl, pinned=True, is_offloaded=is_offloaded) == "hot"


@given(moments, moments, retrievals, ttls, st.booleans(), st.booleans())
def test_everything_is_in_exactly_one_tier_whatever_the_clock_says(
    arrived_at: datetime, at: datetime, times: int, ttl: Ttl, is_pinned: bool, is_offloaded: bool
) -> None:
    assert tier(arrived_at, at, times, ttl, pinned=is_pinned, is_offloaded=is_offloaded) in WARMTH


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


def of_one_moment(count: int, pinned: int = 0, **limits: int) -> Offload:
    """Of a batch: all of it arrived at once."""
    return offload_decision(
        np.full(count, AT, np.int64),
        np.arange(1, count + 1, dtype=np.int64),
        np.full(count, AT + HOUR, np.int64),
        np.arange(count) < pinned,
        offloaded=None,
        at=AT + 1,
        **limits,
    )


def test_over_the_threshold_the_oldest_go_until_as_many_are_left_as_are_kept() -> None:
    settings = Settings()
    limits = {"threshold": settings.prune_threshold, "keep": settings.prune_keep}
    assert of_one_moment(500, **limits) == Offload(0, None, 500)
    assert of_one_moment(600, **limits) == Offload(200, OffloadedThrough(AT, 200), 600)
    assert of_one_moment(10, pinned=3, threshold=8, keep=6) == Offload(4, OffloadedThrough(AT, 7), 10)
    assert of_one_moment(4, pinned=4, threshold=2, keep=1) == Offload(0, None, 4)


def test_a_note_is_read_as_it_was_written_also_an_older_one() -> None:
    for through in (OffloadedThrough(AT), OffloadedThrough(AT, 7 << 32 | 5)):
        assert parsed_note(written_note(through)) == through
    assert parsed_note(NOON.isoformat()) == OffloadedThrough(AT)
    assert parsed_note("yesterday") is parsed_note(f"{NOON.isoformat()} here") is None


class Said(NamedTuple):
    """One message, as far as tiers go."""

    arrived: int
    retrievals: int
    is_pinned: bool


AT = micros(NOON)
HOUR = 3_600_000_000
END_MICROS = micros(END_OF_TIME)
instants = st.one_of(
    st.integers(min_value=-60, max_value=60).map(lambda hours: AT + hours * HOUR),
    st.sampled_from([AT, AT - 6 * HOUR, AT - 6 * HOUR + 1, AT - 48 * HOUR, micros(BEGINNING_OF_TIME), 0]),
    st.integers(min_value=micros(BEGINNING_OF_TIME), max_value=micros(END_OF_TIME)),
)
sayings = st.lists(st.builds(Said, instants, st.integers(min_value=0, max_value=30), st.booleans()), max_size=40)
notes = st.none() | st.builds(OffloadedThrough, instants, st.integers(min_value=0, max_value=41))
clocks = instants


def decided(
    said: list[Said],
    ttl: Ttl,
    gone: OffloadedThrough | None,
    at: int,
    threshold: int,
    keep: int,
    places: list[int] | None = None,
) -> Offload:
    return offload_decision(
        np.array([one.arrived for one in said], np.int64),
        np.arange(1, len(said) + 1, dtype=np.int64) if places is None else np.array(places, np.int64),
        np.array([micros(hot_until(moment(one.arrived), one.retrievals, ttl)) for one in said], np.int64),
        np.array([one.is_pinned for one in said], np.bool_),
        offloaded=gone,
        at=at,
        threshold=threshold,
        keep=keep,
    )


def tiers_of(said: Iterable[Said], ttl: Ttl, gone: OffloadedThrough | None, at: int) -> list[Tier]:
    through = None if gone is None else gone.not_after(at)
    return [
        tier_of(
            moment(one.arrived),
            Hold(retrievals=one.retrievals, pinned=one.is_pinned),
            is_offloaded=through is not None and through.covers(one.arrived, place),
            ttl=ttl,
            at=moment(at),
        )
        for place, one in enumerate(said, 1)
    ]


@given(sayings, ttls, notes, clocks, limits, limits)
def test_an_offload_takes_the_oldest_no_more_than_needed_and_nothing_pinned(
    said: list[Said], ttl: Ttl, gone: OffloadedThrough | None, at: int, threshold: int, keep: int
) -> None:
    before = tiers_of(said, ttl, gone, at)
    made = decided(said, ttl, gone, at, threshold, keep)
    assert made.hot == before.count("hot")
    now_gone = gone if made.through is None else made.through
    later = tiers_of(said, ttl, now_gone, at)
    # What was warm by its age before may be cold with them.
    moved = [one for one, was, is_ in zip(said, before, later, strict=True) if was == "hot" != is_]
    assert len(moved) == made.moved
    assert not any(one.is_pinned for one in moved)
    movable = [one for one, was in zip(said, before, strict=True) if was == "hot" and one.arrived <= at]
    movable = [one for one in movable if not one.is_pinned]
    assert made.moved == (min(max(0, made.hot - keep), len(movable)) if made.hot > threshold else 0)
    staying = [one.arrived for one, is_ in zip(said, later, strict=True) if is_ == "hot" and not one.is_pinned]
    assert not moved or max(one.arrived for one in moved) <= min(staying, default=END_MICROS)
    assert made.through is None or made.through.arrived <= at
    assert made.through is None or gone is None or made.through > gone.not_after(at)


@given(sayings, ttls, notes, clocks, limits, limits)
def test_an_offload_done_twice_changes_nothing(
    said: list[Said], ttl: Ttl, gone: OffloadedThrough | None, at: int, threshold: int, keep: int
) -> None:
    made = decided(said, ttl, gone, at, threshold, keep)
    if made.through is not None:
        assert decided(said, ttl, made.through, at, threshold, keep).moved == 0


@given(sayings, ttls, notes, st.lists(clocks, min_size=1, max_size=5), limits, limits)
def test_a_clock_that_jumps_never_moves_what_is_pinned_and_never_loses_anything(
    said: list[Said], ttl: Ttl, gone: OffloadedThrough | None, clock: list[int], threshold: int, keep: int
) -> None:
    for at in clock:
        made = decided(said, ttl, gone, at, threshold, keep)
        gone = gone if made.through is None else made.through
        tiers = tiers_of(said, ttl, gone, at)
        assert all(tier in WARMTH for tier in tiers)
        assert all(tier == "hot" for one, tier in zip(said, tiers, strict=True) if one.is_pinned)


@given(sayings, ttls, limits, limits)
def test_it_does_not_depend_on_the_order_they_come_in(said: list[Said], ttl: Ttl, threshold: int, keep: int) -> None:
    made = decided(said, ttl, None, AT, threshold, keep)
    backwards = list(range(len(said), 0, -1))
    assert decided(said[::-1], ttl, None, AT, threshold, keep, backwards) == made


# ── counting ──


@given(st.lists(instants, max_size=40), ttls, notes, clocks)
def test_counting_by_age_is_looking_at_each(
    arrivals: list[int], ttl: Ttl, gone: OffloadedThrough | None, at: int
) -> None:
    arrived = np.array(arrivals, np.int64)
    cooled, chilled = cooling(moment(at), ttl)
    count = count_by_age(
        arrived,
        np.arange(1, len(arrived) + 1, dtype=np.int64),
        ordered_runs(arrived),
        cooled=micros(cooled),
        chilled=micros(chilled),
        offloaded=None if gone is None else gone.not_after(at),
    )
    assert sum(count.values()) == len(arrivals), "each in exactly one"
    # Where time begins there is nothing before, and where it ends nothing after: the two need not agree there, nor
    # nearby, as hours in a float are that much too short or too long.
    if at < END_MICROS - HOUR and all(when > micros(BEGINNING_OF_TIME) + HOUR for when in arrivals):
        each = Counter(tiers_of([Said(when, 0, False) for when in arrivals], ttl, gone, at))
        assert count == {"hot": each["hot"], "warm": each["warm"], "cold": each["cold"]}


@given(st.lists(st.integers(min_value=-9, max_value=9), max_size=30), st.integers(min_value=0, max_value=30))
def test_stretches_are_in_order_and_found_piece_by_piece(arrivals: list[int], through: int) -> None:
    arrived = np.array(arrivals, np.int64)
    starts = ordered_runs(arrived)
    for begin, end in pairwise([*starts, len(arrivals)]):
        assert arrivals[begin:end] == sorted(arrivals[begin:end])
    assert all(arrivals[begin] < arrivals[begin - 1] for begin in starts[1:])
    known = ordered_runs(arrived[:through])
    assert ordered_runs(arrived, known=known, through=min(through, len(arrivals))) == starts
    for limit in (-10, 0, 3):
        assert sorted(after(arrived, starts, limit)) == [row for row, when in enumerate(arrivals) if when > limit]


@given(moments, hours)
def test_time_has_a_beginning(at: datetime, hours: float) -> None:
    assert BEGINNING_OF_TIME <= earlier(at, hours) <= at
