"""Days as a summary writes them: `[8 May 2023]` where a day begins, and dates for `yesterday` and `last month`.

A day is that of the message's own time, in the zone it is given in.
"""

from __future__ import annotations

import re
from datetime import date, timedelta

from offbook.context.telegraph_words import MONTHS

MONTH_NAMES = tuple(month.capitalize() for month in MONTHS)

_RELATIVE = re.compile(
    r"\b(before |after |like (?:it was )?(?:just |only )?)?"
    r"(?:(yesterday|tomorrow)|(last|next) (month|year)|(\d|two|three|four|five) days ago)\b",
    re.IGNORECASE,
)
_SIGNS = ("esterday", "omorrow", "ast month", "ast year", "ext month", "ext year", "days ago")
"""One of these is in every such phrase, and looking for them is many times as fast."""
_SMALL_NUMBERS = {"two": 2, "three": 3, "four": 4, "five": 5}
_HEADING = re.compile(rf"\[(\d{{1,2}}) ({'|'.join(MONTH_NAMES)})(?: (\d{{1,4}}))?\]")


def with_dates(line: str, day: date) -> str:
    """Words that mean another day later are replaced by the day they meant."""
    if not any(sign in line for sign in _SIGNS):
        return line
    try:
        return _RELATIVE.sub(lambda match: _resolved(match, day), line)
    except (OverflowError, ValueError):  # the first or the last day there is
        return line


def _resolved(match: re.Match[str], day: date) -> str:
    more, named, side, unit, ago = match.groups()
    if more and (named or more.lower().startswith("like")):  # the day before yesterday; like it was yesterday
        return match[0]
    return (more or "") + _moment(day, named, side, unit, ago)


def _moment(day: date, named: str | None, side: str | None, unit: str | None, ago: str | None) -> str:
    if ago:
        return day_text(day - timedelta(days=_SMALL_NUMBERS.get(ago.lower()) or int(ago)), day)
    if named:
        return day_text(day + timedelta(days=1 if named.lower() == "tomorrow" else -1), day)
    step = 1 if side and side.lower() == "next" else -1
    return str(day.year + step) if unit and unit.lower() == "year" else MONTH_NAMES[(day.month - 1 + step) % 12]


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
