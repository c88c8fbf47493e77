"""Days as a summary writes them: `[8 May 2023]` where a day begins.

A day is that of the message's own time, in the zone it is given in.
"""

from __future__ import annotations

import re
from datetime import date

MONTH_NAMES = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)

_HEADING = re.compile(rf"\[(\d{{1,2}}) ({'|'.join(MONTH_NAMES)})(?: (\d{{1,4}}))?\]")


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
