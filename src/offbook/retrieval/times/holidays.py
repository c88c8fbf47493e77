"""Days that have a name, year by year."""

from __future__ import annotations

from datetime import date, timedelta

from offbook.retrieval.times.periods import InYear, Period, days, months


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
