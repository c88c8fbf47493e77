"""English dates of the calendar: "7 May 2023", "in May", "summer 2022", "Christmas".

A word that is also something else (a verb, a name, a number) names the words it must stand behind; `relations` looks
for them.
"""

from __future__ import annotations

import re
from datetime import date, timedelta

from offbook.search.times.periods import Asking, InYear, Period, days, months, together, week_of, years
from offbook.search.times.values import Date, Rule, Text
from offbook.search.times.words import (
    AFTER_A_VERB,
    BOUNDS,
    COUNTED_NOUNS,
    MONTH,
    MONTHS,
    NAME_MONTHS,
    NOT_DAYS_BEFORE,
    OFFSETS,
    ORDINALS,
    SHORT_MONTHS,
    VERB_MONTHS,
    WEEKDAY,
    WEEKS_OF_MONTH,
    WHICH,
    YEAR,
    any_of,
    whole_words,
)

# ── Days that have a name, year by year ──


def fixed(month: int, day: int, count: int = 1) -> InYear:
    return lambda year: days(date(year, month, day), count)


def season(first_month: int) -> InYear:
    """Three months as the meteorologists of the northern half count. Winter belongs to the year it begins in."""
    return lambda year: months(year, first_month, 3)


def thanksgiving(year: int) -> Period:
    """The fourth Thursday of November."""
    first = date(year, 11, 1)
    return days(first + timedelta(days=(3 - first.weekday()) % 7 + 21))


def easter(year: int) -> Period:
    """Good Friday to Easter Monday, by the anonymous Gregorian computus (Meeus, Astronomical Algorithms, ch. 8)."""
    century, of_century = divmod(year, 100)
    golden = year % 19
    correction = (century - (century + 8) // 25 + 1) // 3
    moon = (19 * golden + century - century // 4 - correction + 15) % 30
    weekday = (32 + 2 * (century % 4) + 2 * (of_century // 4) - moon - of_century % 4) % 7
    shift = (golden + 11 * moon + 22 * weekday) // 451
    month, day = divmod(moon + weekday - 7 * shift + 114, 31)
    return days(date(year, month, day + 1) - timedelta(days=2), 4)


SEASONS: dict[str, InYear] = {
    "spring": season(3),
    "summer": season(6),
    "autumn": season(9),
    "fall": season(9),
    "winter": season(12),
}
HOLIDAYS: dict[str, InYear] = {
    "christmas eve": fixed(12, 24),
    "christmas day": fixed(12, 25),
    "christmas": fixed(12, 24, 3),
    "xmas": fixed(12, 24, 3),
    "boxing day": fixed(12, 26),
    "new year's eve": fixed(12, 31),
    "new years eve": fixed(12, 31),
    "new year's day": fixed(1, 1),
    "new year's": fixed(1, 1),
    "new years": fixed(1, 1),
    "valentine's day": fixed(2, 14),
    "valentines day": fixed(2, 14),
    "halloween": fixed(10, 31),
    "thanksgiving": thanksgiving,
    "easter": easter,
}


_VERSION_WORDS = frozenset({"version", "v", "release", "build"})
_MONTH_CUES = BOUNDS | {"in", "back in", "during", "throughout", "from", "circa", "sometime in", "part"}
_YEAR_CUES = _MONTH_CUES | {"of", "year"}
_HOLIDAY_CUES = BOUNDS | {"on", "over", "at", "during", "in", "part"}


def _year_number(word: str, asking: Asking) -> int:
    return asking.today.year + OFFSETS[word.split(maxsplit=1)[0]] if word.endswith("year") else int(word)


def _in_some_year(in_year: InYear, year: str | None, asking: Asking) -> Date:
    if year:
        return Date(in_year(_year_number(year, asking)))
    return Date(asking.recent(in_year), in_year=in_year)


def _month_number(word: str) -> int:
    name = word.rstrip(".")
    return MONTHS[name] if name in MONTHS else SHORT_MONTHS[name]


def _is_a_day_of(word: str, found: re.Match[str], group: int, text: Text) -> bool:
    """Whether "may 7" is a day and not "may 7 people come": a capital, an ordinal, or nothing after it."""
    if word.rstrip(".") not in VERB_MONTHS or text.is_title(found.start(group)):
        return True
    said = enumerate(found[0], 1)
    is_ordinal = any(one.isdigit() and found[0].startswith(("st", "nd", "rd", "th"), at) for at, one in said)
    return is_ordinal or text.is_closed(found.end())


def _day_range(month: int, first: str, last: str) -> InYear:
    def in_year(year: int) -> Period:
        return together(days(date(year, month, _number(first))), days(date(year, month, _number(last))))

    return in_year


def _number(word: str) -> int:
    return ORDINALS[word] if word in ORDINALS else int(word.rstrip("sthndr"))


def _month_day(found: re.Match[str], asking: Asking, text: Text) -> Date | None:
    word, first, last, year = found.groups()
    if not _is_a_day_of(word, found, 1, text):
        return None
    return _in_some_year(_day_range(_month_number(word), first, last or first), year, asking)


def _day_month(found: re.Match[str], asking: Asking, text: Text) -> Date | None:
    first, last, word, year = found.groups()
    if not _is_a_day_of(word, found, 3, text):
        return None
    return _in_some_year(_day_range(_month_number(word), first, last or first), year, asking)


def _year_first(found: re.Match[str], _: Asking, text: Text) -> Date | None:
    year, month, day = found.groups()
    if text.word_before(found.start()) in _VERSION_WORDS:
        return None
    return Date(days(date(int(year), int(month), int(day))) if day else months(int(year), int(month)))


def _slashed(found: re.Match[str], asking: Asking, _: Text) -> Date | None:
    """The month first, as in the US, unless it cannot be one; between dots the day is first."""
    first, mark, second, year = int(found[1]), found[2], int(found[3]), found[4]
    if (first, second) == (24, 7) or (mark == "." and len(year or "") < 4):
        return None  # around the clock, a version
    is_day_first = first > 12 or (mark == "." and second <= 12)
    month, day = (second, first) if is_day_first else (first, second)
    if not year:
        date_ = _in_some_year(_day_range(month, str(day), str(day)), None, asking)
        return date_._replace(cues=frozenset({"on", "since", "between"}))
    return Date(days(date(int(year) + (2000 if len(year) == 2 else 0), month, day)))


def _month(found: re.Match[str], asking: Asking, text: Text) -> Date | None:
    which, word, year, possessive = found.groups()
    name = word.rstrip(".")
    after = text.word_after(found.end())
    is_hers = possessive and name in NAME_MONTHS
    if is_hers or text.word_before(found.start()) in NOT_DAYS_BEFORE or (name in VERB_MONTHS and after in AFTER_A_VERB):
        return None
    in_year = _month_in_year(_month_number(word))
    if year:
        return None if after in COUNTED_NOUNS else Date(in_year(_year_number(year, asking)))
    if which:
        is_verb = name in VERB_MONTHS and not text.is_title(found.start(2))
        if is_verb and (which == "this" or not text.is_closed(found.end())):
            return None
        return _which(which, in_year, asking)
    return Date(
        asking.recent(in_year),
        cues=_MONTH_CUES,
        in_year=in_year,
        is_name=name in NAME_MONTHS,
        is_possessive=bool(possessive),
    )


def _month_of_year(found: re.Match[str], asking: Asking, _: Text) -> Date:
    year, word = found.groups()
    return Date(months(_year_number(year, asking), _month_number(word)))


def _month_in_year(number: int) -> InYear:
    return lambda year: months(year, number)


def _which(which: str, in_year: InYear, asking: Asking) -> Date:
    period = {-1: asking.over, 0: asking.recent, 1: asking.coming}[OFFSETS[" ".join(which.split())]](in_year)
    # In February "this summer" may as well be the one to come.
    return Date(period, is_exact=which != "this" or period.end > asking.now)


def _week_of_month(found: re.Match[str], asking: Asking, _: Text) -> Date:
    week, number = WEEKS_OF_MONTH[found[1]], _month_number(found[2])

    def in_year(year: int) -> Period:
        month = months(year, number)
        first = month.end - timedelta(days=7) if week < 0 else month.start + timedelta(days=7 * week)
        return days(first.date(), 7)

    return _in_some_year(in_year, found[3], asking)


def _week_of_day(found: re.Match[str], asking: Asking, text: Text) -> Date | None:
    day = _month_day(found, asking, text)
    return day and Date(week_of(day.period.start.date()))


def _season(found: re.Match[str], asking: Asking, text: Text) -> Date | None:
    which, article, word, year = found.groups()
    in_year = SEASONS[word]
    if year:
        return Date(in_year(_year_number(year, asking)))
    if which:
        return _which(which, in_year, asking)
    if not article or not text.is_closed(found.end()):
        return None
    return Date(asking.recent(in_year), in_year=in_year)


def _holiday(found: re.Match[str], asking: Asking, text: Text) -> Date | None:
    which, word, year = found.groups()
    in_year = HOLIDAYS[" ".join(word.split())]
    if text.word_before(found.start()) in NOT_DAYS_BEFORE:
        return None
    if year:
        return Date(in_year(_year_number(year, asking)))
    if which:
        return _which(which, in_year, asking)
    # "What did I give her for Christmas": said at some other time.
    is_alone = text.is_closed(found.end()) and text.word_before(found.start()) not in _HOLIDAY_CUES
    return Date(asking.recent(in_year), not is_alone, None if is_alone else _HOLIDAY_CUES, in_year)


def _quarter(found: re.Match[str], asking: Asking, _: Text) -> Date:
    first_month = 3 * int(found[1]) - 2
    quarter = _in_some_year(lambda year: months(year, first_month, 3), found[2], asking)
    return quarter if found[2] else quarter._replace(cues=_YEAR_CUES)


def _year(found: re.Match[str], _: Asking, text: Text) -> Date | None:
    if text.word_after(found.end()) in COUNTED_NOUNS:
        return None
    return Date(years(int(found[1])), cues=_YEAR_CUES)


def _decade(found: re.Match[str], _: Asking, __: Text) -> Date:
    return Date(years(int(found[1]), 10))


def _day_of_month(found: re.Match[str], asking: Asking, text: Text) -> Date | None:
    if not text.is_closed(found.end()):
        return None
    number = int(found[1])
    # On 1 March the 30th was in January.
    for offset in (0, -1, -2):
        month = asking.month(offset)
        day = month.start + timedelta(days=number - 1)
        if day < month.end and day <= asking.now and number:
            return Date(days(day.date()))
    return None


_DAY_NUMBER = r"\d{1,2}(?:st|nd|rd|th)?"
_DAYS_OF_MONTH = rf"({_DAY_NUMBER})(?:(?:-|–| - | – | to )({_DAY_NUMBER}))?"
_OF_YEAR = rf"(?:(?:,? |,)(?:of )?({YEAR}|(?:last|this|next) year))?"
_CLOCK = r"(?:[t ]\d\d:\d\d(?::\d\d)?z?)?"
_NOT_A_NUMBER = r"(?![./,:-]?\d)"
RULES: tuple[Rule, ...] = (
    (
        whole_words(rf"(?<![0-9][-/])({YEAR})[-/.](\d{{1,2}})[-/.](\d{{1,2}}){_CLOCK}{_NOT_A_NUMBER}"),
        _year_first,
    ),
    (whole_words(rf"(?<![0-9][-/])({YEAR})-(\d\d)(){_NOT_A_NUMBER}"), _year_first),
    (whole_words(rf"(?<![/.])(\d{{1,2}})([/.])(\d{{1,2}})(?:\2({YEAR}|\d\d))?{_NOT_A_NUMBER}"), _slashed),
    (whole_words(rf"(?:the )?({any_of(WEEKS_OF_MONTH)}) week (?:of|in) ({MONTH}){_OF_YEAR}"), _week_of_month),
    (whole_words(rf"(?:the )?week of ({MONTH}) ({_DAY_NUMBER})(){_OF_YEAR}"), _week_of_day),
    (whole_words(rf"(?:(?:{WEEKDAY}),? )?({MONTH}) (?:the )?{_DAYS_OF_MONTH}{_OF_YEAR}{_NOT_A_NUMBER}"), _month_day),
    (whole_words(rf"(?:(?:{WEEKDAY}),? )?(?:the )?{_DAYS_OF_MONTH} (?:of )?({MONTH}){_OF_YEAR}"), _day_month),
    (whole_words(rf"(?:the )?({any_of(ORDINALS)})() of ({MONTH}){_OF_YEAR}"), _day_month),
    (whole_words(rf"((?:last|this|next) year),? (?:in )?({MONTH})"), _month_of_year),
    (whole_words(rf"(?:({WHICH}) )?({MONTH}){_OF_YEAR}('s)?"), _month),
    (whole_words(rf"(?:({WHICH}) |(the ))?({any_of(SEASONS)}){_OF_YEAR}"), _season),
    (whole_words(rf"(?:({WHICH}) )?({any_of(HOLIDAYS)}){_OF_YEAR}"), _holiday),
    (whole_words(rf"q([1-4]){_OF_YEAR}"), _quarter),
    (whole_words(r"the ((?:19|20)\d0)'?s"), _decade),
    (whole_words(rf"(?<![./:-])({YEAR}){_NOT_A_NUMBER}(?!%)"), _year),
    (whole_words(r"on the (\d{1,2})(?:st|nd|rd|th)"), _day_of_month),
)
