from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.context.time_text import ago, day_of_heading, heading, heading_chars, span_text

AT = datetime(2026, 11, 15, 14, 0, tzinfo=UTC)  # a Sunday
zones = st.sampled_from(
    [
        UTC,
        timezone(timedelta(hours=14)),
        timezone(timedelta(hours=-12)),
        ZoneInfo("Europe/Berlin"),
        ZoneInfo("Asia/Tokyo"),
    ]
)
moments = st.datetimes(timezones=zones)


@pytest.mark.parametrize(
    ("passed", "expected"),
    [
        (timedelta(0), "just now"),
        (timedelta(seconds=119), "just now"),
        (timedelta(minutes=2), "2 minutes ago"),
        (timedelta(minutes=20), "20 minutes ago"),
        (timedelta(minutes=59, seconds=29), "59 minutes ago"),
        (timedelta(minutes=59, seconds=45), "an hour ago"),
        (timedelta(minutes=89), "an hour ago"),
        (timedelta(minutes=91), "2 hours ago"),
        (timedelta(hours=3), "3 hours ago"),
        (timedelta(hours=13), "13 hours ago"),
        (timedelta(hours=15), "15 hours ago"),
        (timedelta(hours=23), "23 hours ago"),
        (timedelta(hours=24), "yesterday"),
        (timedelta(hours=35), "yesterday"),
        (timedelta(hours=37), "2 days ago"),
        (timedelta(days=6), "6 days ago"),
        (timedelta(days=7), "a week ago"),
        (timedelta(days=11), "2 weeks ago"),
        (timedelta(days=21), "3 weeks ago"),
        (timedelta(days=29), "4 weeks ago"),
        (timedelta(days=30), "a month ago"),
        (timedelta(days=61), "2 months ago"),
        (timedelta(days=340), "11 months ago"),
        (timedelta(days=365), "a year ago"),
        (timedelta(days=400), "a year ago"),
        (timedelta(days=401), "in October 2025"),
        (timedelta(days=920), "in May 2024"),
        (timedelta(seconds=-59), "just now"),
        (timedelta(seconds=-61), "on 15 November 2026"),
        (timedelta(days=-169), "on 3 May 2027"),
    ],
)
def test_time_as_a_person_says_it(passed: timedelta, expected: str) -> None:
    assert ago(AT - passed, AT) == expected


def test_where_one_lives_changes_nothing() -> None:
    """Nobody has told us: so it goes by the time that passed."""
    then = datetime(2026, 11, 13, 23, 30, tzinfo=UTC)
    assert ago(then, AT) == ago(then, AT.astimezone(ZoneInfo("Asia/Tokyo"))) == "2 days ago"


def test_the_hour_that_clocks_are_put_back_is_counted() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    assert (
        ago(datetime(2026, 10, 25, 1, 0, tzinfo=berlin), datetime(2026, 10, 25, 4, 0, tzinfo=berlin)) == "4 hours ago"
    )


@pytest.mark.parametrize(
    "zone", [timezone(timedelta(hours=14)), timezone(timedelta(hours=-12)), ZoneInfo("America/New_York")]
)
def test_the_ends_of_the_calendar(zone: timezone) -> None:
    first, last = datetime.min.replace(tzinfo=zone), datetime.max.replace(tzinfo=zone)
    assert ago(first, AT) == "in January 1" or ago(first, AT).startswith("in December")
    assert re.fullmatch(r"on \d+ \w+ \d+", ago(last, AT))
    assert ago(first.replace(tzinfo=UTC), last) == "in January 1"
    assert ago(first, first) == ago(last, last) == "just now"


@given(moments, moments)
def test_any_two_moments(then: datetime, at: datetime) -> None:
    said = ago(then, at)
    assert re.fullmatch(
        r"just now|yesterday|(?:an?|\d+) (?:minute|hour|day|week|month|year)s? ago|in \w+ \d+|on \d+ \w+ \d+", said
    )
    assert not re.search(r"\b[01] \w+ ago", said)


@given(st.floats(min_value=0, max_value=4e8), st.floats(min_value=0, max_value=4e8))
def test_what_is_longer_ago_is_never_told_as_nearer(one: float, other: float) -> None:
    sizes = {"minute": 1, "hour": 60, "day": 1440, "week": 10080, "month": 43000, "year": 500000}

    def minutes(said: str) -> int:
        if said.startswith("in "):
            return 10**7
        if said in ("just now", "yesterday"):
            return {"just now": 0, "yesterday": 1439}[said]
        count, unit, _ = said.split()
        return (1 if count in ("a", "an") else int(count)) * sizes[unit.removesuffix("s")]

    near, far = sorted((one, other))
    assert minutes(ago(AT - timedelta(seconds=near), AT)) <= minutes(ago(AT - timedelta(seconds=far), AT))


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-5, "less than a minute"),
        (math.nan, "less than a minute"),
        (59, "less than a minute"),
        (60, "a minute"),
        (2400, "40 minutes"),
        (3590, "an hour"),
        (7200, "2 hours"),
        (23 * 3600 + 1799, "23 hours"),
        (24 * 3600, "a day"),
        (3 * 86400, "3 days"),
        (14 * 86400, "2 weeks"),
        (61 * 86400, "2 months"),
        (5 * 365.25 * 86400, "5 years"),
    ],
)
def test_a_duration(seconds: float, expected: str) -> None:
    assert span_text(seconds) == expected


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_any_duration(seconds: float) -> None:
    assert re.fullmatch(r"less than a minute|an? [a-z]+|(?:[2-9]|\d{2,}) [a-z]+s", span_text(seconds))


# ── days ──


@given(st.dates(), st.dates() | st.none())
def test_a_heading_is_read_as_it_was_written(day: date, before: date | None) -> None:
    text = heading(day, before)
    assert len(text) == heading_chars(day, before)
    assert day_of_heading(text, before) == day


@pytest.mark.parametrize("line", ["[8 May]", "[31 February 2023]", "[note]", "8 May 2023", "They: [8 May 2023]"])
def test_other_lines_are_no_headings(line: str) -> None:
    assert day_of_heading(line, None) is None
