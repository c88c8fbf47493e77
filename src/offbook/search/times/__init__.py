"""When a question is about: "last Tuesday", "in May", "two weeks ago", "before the move", relative to the asking.

A question to a memory looks back. "Tuesday" and "May" are the most recent that have begun, "last" is the most recent
that is over, and only "next" looks ahead. What is in doubt is no time: "may I", "tell May", "24/7", version 3.11.

| words | what they mean |
|---|---|
| last week, last month | the whole one before this; weeks begin on Monday |
| the past week, in the last 3 days | from the beginning of the day that long ago to the end of today |
| two weeks ago | that day and 5 days either way; of months 20, of years 240, of days 0, and 1 beyond three |
| before May, after May | up to its beginning, from its end |
| since May, by May, until May | May itself too |
| early, mid, late May | a third of it, and not exact; around May: a third more on either side, and not exact |
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo

import msgspec

from offbook.models.glossary import in_english
from offbook.search.times import english_calendar, english_relative, other_languages
from offbook.search.times.periods import Asking
from offbook.search.times.relations import FoundBound, FoundPeriod, find_bounds, relate
from offbook.search.times.reordered import reordered
from offbook.search.times.values import EventBound, QueryTimes, Text, TimeRange, find

__all__ = ["EventBound", "QueryTimes", "TimeRange", "read_times", "without_times"]

READ_CHARS = 2_000
"""A question says when in its first lines; what comes after is pasted."""

_ENGLISH = (*english_calendar.RULES, *english_relative.RULES)
_MARKS = "?!.,;:؟،"


def read_times(query: str, asked_at: datetime, zone: tzinfo = UTC, *, newest: datetime | None = None) -> QueryTimes:
    """What `query` says about time, for someone who asks at `asked_at` and whose days are those of `zone`. A date
    without a year is the last one that is not after the `newest` of what is asked about."""
    asking, text = Asking(asked_at, zone, newest), query[:READ_CHARS]
    found, english = _read(Text.of(text), asking), in_english(text)
    if found != QueryTimes() or english == text:
        return found
    # Word for word, "the morning" may be "the tomorrow".
    read = _read(Text.of(reordered(english)), asking)
    return msgspec.structs.replace(
        read, ranges=tuple(msgspec.structs.replace(one, is_exact=False) for one in read.ranges)
    )


def _read(text: Text, asking: Asking) -> QueryTimes:
    found = relate(find(_ENGLISH, asking, text), asking, text)
    found += other_languages.find_ranges(asking, text)
    found = _apart(sorted(found, key=lambda one: (one.first, -one.last)))
    bounds = find_bounds(text, found)
    ranges = [_opened(one, bounds, text).in_utc(asking, text) for one in found]
    return QueryTimes(ranges=tuple(filter(None, ranges)), bounds=tuple(one.bound for one in bounds))


def _apart(found: list[FoundPeriod]) -> list[FoundPeriod]:
    """Those that share no words with an earlier one."""
    apart: list[FoundPeriod] = []
    for one in found:
        if not apart or one.first >= apart[-1].last:
            apart.append(one)
    return apart


def _opened(found: FoundPeriod, bounds: list[FoundBound], text: Text) -> FoundPeriod:
    """The date is the event's: "before the trip in May" may be long before May."""
    if found.start is None or found.end is None:
        return found
    for one in bounds:
        if one.last <= found.first and not text.plain[one.last : found.first].strip(" "):
            is_before = one.bound.relation == "before"
            return found._replace(start=None) if is_before else found._replace(end=None)
    return found


def without_times(query: str, times: QueryTimes) -> str:
    """The query without those phrases, for embedding and text search; as it was, where nothing would be left."""
    rest = query
    for phrase in [*(one.phrase for one in times.ranges), *(one.phrase for one in times.bounds)]:
        rest = _phrase_alone(phrase).sub(" ", rest, count=1)
    if rest == query or not any(letter.isalnum() for letter in rest):
        return query
    rest = "\n".join(" ".join(line.split()) for line in rest.split("\n"))
    for mark in _MARKS:
        rest = rest.replace(f" {mark}", mark)
    return rest.lstrip(" ,;:").rstrip()


def _phrase_alone(phrase: str) -> re.Pattern[str]:
    """Not inside a longer word: "in May" is not in "in Mayfair"."""
    before = r"(?<![A-Za-z0-9])" if phrase[:1].isascii() else ""
    after = r"(?![A-Za-z0-9])" if phrase[-1:].isascii() else ""
    return re.compile(before + re.escape(phrase) + after)
