"""English times counted from the asking, and weekdays: "two weeks ago", "the past month", "last Tuesday"."""

from __future__ import annotations

import re
from datetime import timedelta

from offbook.search.times.periods import Asking, Period, Unit, days, part_of_day
from offbook.search.times.values import Date, Rule, Text
from offbook.search.times.words import (
    BOUNDS,
    COUNT,
    COUNTS,
    NOT_DAYS_BEFORE,
    OFFSETS,
    SHORT_WEEKDAYS,
    UNIT,
    UNITS,
    WEEKDAY,
    WEEKDAYS,
    WHICH,
    any_of,
    whole_words,
)

RECENT_DAYS = 14
JUST_NOW_MINUTES = 60
_DAY_CUES = BOUNDS | {"on", "from", "of", "part"}


def _counts(words: str) -> tuple[int, int]:
    words = " ".join(words.split())
    return COUNTS[words] if words in COUNTS else (int(words), int(words))


def _ago(found: re.Match[str], asking: Asking, _: Text) -> Date:
    (fewest, most), (unit, size) = _counts(found[2]), UNITS[found[3]]
    return Date(asking.ago(fewest * size, most * size, unit), is_exact=fewest == most and not found[1])


def _long_ago(found: re.Match[str], asking: Asking, text: Text) -> Date | None:
    """Without a count: one to ten of them."""
    if text.behind(found.start(), 2).strip(" ")[-1:].isdigit():
        return None  # 1.5 years ago
    unit: Unit = UNITS[found[1]][0] if found[1] else "month" if found[2] else "year"
    return Date(asking.ago(1, 10, unit), is_exact=False)


def _past(found: re.Match[str], asking: Asking, text: Text) -> Date | None:
    preposition, article, which, count, word, plural = found.groups()
    if count is None:
        # "Last week" is the one before this; "the past week" and "in the last week" end now.
        is_rolling = which == "past" or (which == "last" and article is not None and preposition is not None)
        if not is_rolling or plural or word == "day" or text.word_after(found.end()) == "of":
            return None
    (fewest, most), (unit, size) = _counts(count) if count else (1, 1), UNITS[word]
    return Date(asking.past(most * size, unit), is_exact=fewest == most)


def _before_last(found: re.Match[str], asking: Asking, text: Text) -> Date | None:
    if not text.is_closed(found.end()):
        return None
    return Date({"week": asking.week, "month": asking.month, "year": asking.year}[found[1]](-2))


def _calendar_unit(found: re.Match[str], asking: Asking, _: Text) -> Date:
    earlier, words, unit, possessive = found.groups()
    offset = OFFSETS[" ".join(words.split())]
    if unit == "weekend":
        # In the middle of a week "this weekend" may as well be the one to come.
        is_doubtful = words == "this" and asking.today.weekday() < 5
        return Date(asking.weekend(offset), is_exact=not is_doubtful, is_possessive=bool(possessive))
    period = {"week": asking.week, "month": asking.month, "quarter": asking.quarter, "year": asking.year}[unit](offset)
    if earlier:
        today = asking.day(0)
        period = Period(period.start, today.end) if earlier.startswith("earlier") else Period(today.start, period.end)
    return Date(period, is_possessive=bool(possessive))


def _the_weekend(_: re.Match[str], asking: Asking, __: Text) -> Date:
    return Date(asking.weekend(0))


_DAY_WORDS = {"the day before yesterday": -2, "day before yesterday": -2, "yesterday": -1, "today": 0, "tomorrow": 1}
_DAY_WORDS |= {"the day after tomorrow": 2, "day after tomorrow": 2, "earlier today": 0, "later today": 0}


def _day_word(found: re.Match[str], asking: Asking, _: Text) -> Date:
    word, part, possessive = found.groups()
    period = asking.day(_DAY_WORDS[" ".join(word.split())])
    return Date(part_of_day(period.start.date(), part) if part else period, is_possessive=bool(possessive))


def _part_of_today(found: re.Match[str], asking: Asking, _: Text) -> Date:
    which, part, possessive = found.groups()
    day = asking.today - timedelta(days=which == "last")
    return Date(part_of_day(day, part or "night"), is_possessive=bool(possessive))


def _recently(_: re.Match[str], asking: Asking, __: Text) -> Date:
    return Date(asking.past(RECENT_DAYS, "day"), is_exact=False)


def _just_now(_: re.Match[str], asking: Asking, __: Text) -> Date:
    return Date(asking.past(JUST_NOW_MINUTES, "minute"), is_exact=False)


# ── weekdays ──────────────────────────────────────────────────────────────────────────────────


def _weekday(found: re.Match[str], asking: Asking, text: Text) -> Date | None:
    which, word, part, of_week, possessive = found.groups()
    which = " ".join(which.split()) if which else None
    if text.word_before(found.start()) in NOT_DAYS_BEFORE or text.plain.startswith(".com", found.end()):
        return None
    number = WEEKDAYS[word] if word in WEEKDAYS else SHORT_WEEKDAYS[word]
    if of_week:
        day = asking.week(OFFSETS[of_week]).start.date() + timedelta(days=number)
    elif which == "next":
        day = asking.next_weekday(number)
    else:
        day = asking.weekday(number, before_today=which is not None and which != "this")
    stands_alone = which or of_week or part or (word in WEEKDAYS and (possessive or text.is_closed(found.end())))
    return Date(
        part_of_day(day, part) if part else days(day),
        is_exact=which != "this" or day == asking.today,
        cues=None if stands_alone else _DAY_CUES,
        is_possessive=bool(possessive),
    )


def _weekday_of_week(found: re.Match[str], asking: Asking, _: Text) -> Date:
    first = asking.week(OFFSETS[found[1]]).start.date()
    return Date(days(first + timedelta(days=WEEKDAYS[found[2]])))


_PART = r"(?: (morning|afternoon|evening|night))?"
_ABOUT = "about |around |roughly |approximately |some |almost |nearly |over "
_OVER = "in|over|during|within|for|from"
_DAY = rf"{WEEKDAY}|{any_of(SHORT_WEEKDAYS)}"
RULES: tuple[Rule, ...] = (
    (whole_words(rf"({_ABOUT})?({COUNT}) ({UNIT})s? (?:ago|back)"), _ago),
    (whole_words(rf"({UNIT})s ago|ages ago|(?:a )?long time ago|long ago|(a while|some time) (?:ago|back)"), _long_ago),
    (whole_words(rf"(?:({_OVER}) )?(the )?(?:these |this )?(last|past|previous) (?:({COUNT}) )?({UNIT})(s)?"), _past),
    (whole_words(r"(?:the )?(week|month|year) before last"), _before_last),
    (whole_words(rf"(last|this|next) week,? (?:on )?({WEEKDAY})"), _weekday_of_week),
    (
        whole_words(rf"(?:({WHICH}) )?({_DAY}){_PART}(?:,? (?:of )?(last|this|next) week)?('s)?"),
        _weekday,
    ),
    (whole_words(rf"(earlier |later )?({WHICH}) (week|weekend|month|quarter|year)('s)?"), _calendar_unit),
    (whole_words(r"the weekend(?! of )"), _the_weekend),
    (whole_words(rf"({any_of(_DAY_WORDS)}){_PART}('s)?"), _day_word),
    (whole_words(r"(?:earlier )?(?:(last|this) (morning|afternoon|evening|night)|tonight)('s)?"), _part_of_today),
    (whole_words(r"recently|lately|the other (?:day|night|week|evening)"), _recently),
    (whole_words(r"just now|a (?:moment|second) ago|moments ago"), _just_now),
)
