"""Times as text: days as a summary writes them (`[8 May 2023]`), and how long ago something was, as a person says it.

A day is that of the message's own time, in the zone it is given in. Of what is past, only words that hold in every time
zone near the day: "this morning" would be wrong for whoever lives elsewhere than the clock does, "9 hours ago" is not.
"""

from __future__ import annotations

import math
import re
from datetime import date, datetime, timedelta

MONTH_NAMES = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)

MINUTE = 60.0
HOUR = 60 * MINUTE
DAY = 24 * HOUR
DAYS_PER_WEEK = 7
DAYS_PER_MONTH = 30.44
DAYS_PER_YEAR = 365.25

JUST_NOW_SECONDS = 2 * MINUTE
AHEAD_SECONDS = MINUTE
"""Clocks differ by that much; whatever lies further ahead is told by its date."""
WEEKS_UP_TO_DAYS = 30
A_YEAR_UP_TO_DAYS = 400
LONGEST_SECONDS = 1e12

# Up to how many seconds a duration is told in a unit, and how long the unit is. Half a unit before the next one begins,
# so that nothing is ever "60 minutes".
_UNITS = (
    (59.5 * MINUTE, MINUTE, "minute"),
    (23.5 * HOUR, HOUR, "hour"),
    (13.5 * DAY, DAY, "day"),
    (59.5 * DAY, DAYS_PER_WEEK * DAY, "week"),
    (23.5 * DAYS_PER_MONTH * DAY, DAYS_PER_MONTH * DAY, "month"),
    (math.inf, DAYS_PER_YEAR * DAY, "year"),
)
_HEADING = re.compile(rf"\[(\d{{1,2}}) ({'|'.join(MONTH_NAMES)})(?: (\d{{1,4}}))?\]")


# ── days ──


def day_text(day: date, before: date | None) -> str:
    """`8 May`, with its year where the one written before it was in another."""
    text = f"{day.day} {MONTH_NAMES[day.month - 1]}"
    return text if before is not None and before.year == day.year else f"{text} {day.year}"


def heading(day: date, before: date | None) -> str:
    return f"[{day_text(day, before)}]"


def heading_chars(day: date, before: date | None) -> int:
    """As long as `heading`, without writing it."""
    chars = 3 + (1 if day.day < 10 else 2) + len(MONTH_NAMES[day.month - 1])
    return chars if before is not None and before.year == day.year else chars + 1 + len(str(day.year))


def day_of_heading(line: str, before: date | None) -> date | None:
    """The day that a line heads, if it is a heading; its year may stand in the heading before it."""
    match = _HEADING.fullmatch(line)
    if match is None or (match[3] is None and before is None):
        return None
    year = int(match[3]) if match[3] else before.year if before else 0
    try:
        return date(year, MONTH_NAMES.index(match[2]) + 1, int(match[1]))
    except ValueError:
        return None


# ── how long ago, and how long ──


def ago(then: datetime, at: datetime) -> str:
    """When something was, seen from `at`: both with a time zone."""
    seconds = _between(then, at).total_seconds()
    there = _in_zone_of(at, then)
    if seconds < -AHEAD_SECONDS:
        return f"on {there.day} {MONTH_NAMES[there.month - 1]} {there.year}"
    if seconds < JUST_NOW_SECONDS:
        return "just now"
    if seconds < 23.5 * HOUR:
        return f"{span_text(seconds)} ago"
    # By the time that passed: which day it was depends on where one lives, which nobody has told us.
    days = _nearest(seconds / DAY)
    return "yesterday" if days == 1 else _days_ago(days, there)


def span_text(seconds: float) -> str:
    """How long something took: "40 minutes", "2 hours", "3 days"."""
    if not seconds >= MINUTE:  # a NaN as well
        return "less than a minute"
    seconds = min(seconds, LONGEST_SECONDS)
    unit, name = next((unit, name) for limit, unit, name in _UNITS if seconds < limit)
    return _counted(_nearest(seconds / unit), name)


def _days_ago(days: int, there: datetime) -> str:
    months = _nearest(days / DAYS_PER_MONTH)
    if days < DAYS_PER_WEEK:
        return f"{_counted(days, 'day')} ago"
    if days < WEEKS_UP_TO_DAYS:
        return f"{_counted(_nearest(days / DAYS_PER_WEEK), 'week')} ago"
    if months < 12:
        return f"{_counted(months, 'month')} ago"
    return "a year ago" if days <= A_YEAR_UP_TO_DAYS else f"in {MONTH_NAMES[there.month - 1]} {there.year}"


def _between(then: datetime, at: datetime) -> timedelta:
    """The time that passed. Python leaves out a change of the clocks where both have the same zone."""
    on_the_clock = at.replace(tzinfo=None) - then.replace(tzinfo=None)
    return on_the_clock - ((at.utcoffset() or timedelta()) - (then.utcoffset() or timedelta()))


def _in_zone_of(at: datetime, then: datetime) -> datetime:
    try:
        return then.astimezone(at.tzinfo)
    except (OverflowError, ValueError):  # before the year 1 or after 9999 there: its own date will do
        return then


def _nearest(number: float) -> int:
    return max(1, math.floor(number + 0.5))


def _counted(count: int, unit: str) -> str:
    if count == 1:
        return "an hour" if unit == "hour" else f"a {unit}"
    return f"{count} {unit}s"
