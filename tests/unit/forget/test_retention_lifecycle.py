from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.forget.retention_rule import LEAST_LEAP, MOST_LEAP, SET_BACK, SETTLED_AFTER, Clock, kept_from, looked

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
DAY, YEAR = timedelta(days=1), timedelta(days=365)
STEADY = Clock(since=NOON - 9 * DAY, last=NOON - DAY)

moments = st.datetimes(min_value=datetime(2000, 1, 1), max_value=datetime(2100, 1, 1), timezones=st.just(UTC))
days = st.integers(min_value=1, max_value=5_000)
clocks = st.builds(
    lambda last, age, left: Clock(since=last - age, last=last, left=left),
    moments,
    st.timedeltas(min_value=timedelta(), max_value=10 * YEAR),
    st.none() | moments,
)


def test_by_a_clock_that_goes_on_what_is_older_than_the_days_goes() -> None:
    assert looked(STEADY, None, NOON, 365).before == NOON - YEAR
    assert looked(STEADY, NOON - DAY, NOON, 365).before == NOON - YEAR


def test_the_first_look_only_notes_the_time() -> None:
    look = looked(None, None, NOON, 365)
    assert (look.clock, look.before, look.is_waiting_for) == (Clock(since=NOON, last=NOON), None, None)
    assert looked(look.clock, None, NOON + DAY, 365).before == NOON + DAY - YEAR


@pytest.mark.parametrize("leap", [400 * DAY, 40 * YEAR, MOST_LEAP + DAY, -400 * DAY, -2 * DAY])
def test_by_a_clock_that_leaps_nothing_goes_until_a_day_later(leap: timedelta) -> None:
    """But for what was too old before it leapt. It is told where it was set back, and where no machine is off so long."""
    at, clock = NOON + leap, STEADY
    by_the_last_look = STEADY.last - YEAR if leap > DAY else None
    for later in (timedelta(), timedelta(seconds=35), timedelta(hours=20)):
        look = looked(clock, None, at + later, 365)
        assert look.before == (None if later else by_the_last_look)
        assert look.is_waiting_for == (None if leap == MOST_LEAP + DAY else at + SETTLED_AFTER)
        assert look.clock.left == STEADY.last
        clock = look.clock
    after = looked(clock, None, at + DAY, 365)
    assert (after.before, after.is_waiting_for) == (at + DAY - YEAR, None)


@pytest.mark.parametrize(("days", "every"), [(30, 7 * DAY), (365, 30 * DAY), (3, 2 * DAY), (1, 7 * DAY)])
def test_a_machine_that_is_on_now_and_then_forgets_one_time_later(days: int, every: timedelta) -> None:
    clock = looked(None, NOON - every, NOON, days).clock
    for number in range(1, 9):
        at = NOON + number * every
        look = looked(clock, at - every, at, days)
        assert (look.before, look.is_waiting_for) == (clock.last - timedelta(days=days), None)
        look = looked(look.clock, at - every, at + timedelta(hours=2), days)
        assert (look.before, look.is_waiting_for) == (None, None)
        clock = look.clock


def test_a_clock_that_is_set_right_again_goes_on_where_events_vouch_for_it() -> None:
    wrong = looked(STEADY, None, NOON + 400 * DAY, 365).clock
    look = looked(wrong, NOON - DAY, NOON + DAY / 24, 365)
    assert look.before == NOON + DAY / 24 - YEAR


@pytest.mark.parametrize("off", [timedelta(days=2, hours=15), MOST_LEAP])
def test_a_machine_that_is_off_over_a_weekend_goes_on_as_usual(off: timedelta) -> None:
    assert looked(STEADY, None, STEADY.last + off, 30).before is not None


def test_an_event_that_is_long_ago_vouches_for_nothing() -> None:
    assert looked(None, NOON - YEAR, NOON, 365).clock.since == NOON
    assert looked(STEADY, NOON - YEAR, NOON, 365).before is not None, "nobody said anything, but it was looked at"


@given(st.none() | clocks, st.none() | moments, moments, days)
def test_nothing_goes_that_came_since_the_last_look_nor_what_is_younger(
    seen: Clock | None, heard: datetime | None, at: datetime, days: int
) -> None:
    look = looked(seen, heard, at, days)
    if look.before is not None:
        assert seen is not None
        assert look.before <= seen.last
        assert look.before <= at - timedelta(days=days)
    assert look.clock.last == at


@given(clocks, moments, days)
def test_by_a_leap_ahead_goes_what_was_too_old_before_and_by_one_back_nothing(
    seen: Clock, at: datetime, days: int
) -> None:
    before = looked(seen, None, at, days).before
    if at - seen.last > MOST_LEAP:
        assert before == seen.last - timedelta(days=days)
    elif at - seen.last < -SET_BACK:
        assert before is None


@given(st.none() | clocks, moments, days, st.lists(st.timedeltas(DAY, LEAST_LEAP), min_size=2, max_size=5))
def test_whatever_was_it_goes_on_by_itself_a_day_after_the_clock_does(
    seen: Clock | None, at: datetime, days: int, steps: list[timedelta]
) -> None:
    clock = looked(seen, None, at, days).clock
    for step in steps:
        at += step
        last, (clock, before) = clock.last, looked(clock, None, at, days)
        assert before == min(last, at - timedelta(days=days))


@given(clocks, moments, days)
def test_looked_at_twice_it_is_the_same(seen: Clock, at: datetime, days: int) -> None:
    once = looked(seen, None, at, days)
    again = looked(once.clock, None, at, days)
    assert again.clock == once.clock
    assert again.before is None or again.before == once.before


@pytest.mark.parametrize(
    ("said_at", "latest", "begins"),
    [
        (None, None, NOON),
        (NOON - YEAR, None, NOON),  # imported
        (NOON + timedelta(hours=9), None, NOON + timedelta(hours=9)),  # another zone
        (NOON + 70 * YEAR, None, NOON + DAY),  # the host's clock was wrong
        (NOON, NOON + YEAR, NOON + YEAR),  # ours was set back when it came
        (NOON, NOON - YEAR, NOON),
    ],
)
def test_when_the_days_of_a_message_begin(said_at: datetime | None, latest: datetime | None, begins: datetime) -> None:
    assert kept_from(said_at, NOON, latest) == begins


@given(st.none() | moments, moments, st.none() | moments)
def test_its_days_never_begin_before_it_came_nor_much_later(
    said_at: datetime | None, received_at: datetime, latest: datetime | None
) -> None:
    received = max(received_at, latest or received_at)
    assert received <= kept_from(said_at, received_at, latest) <= received + DAY
