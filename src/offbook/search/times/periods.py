"""The calendar around the moment of asking, in the asker's own time.

Nothing here knows words of a language. A day that does not exist (30 February, 9,000 years ago) raises `ValueError`
or `OverflowError`; `DOES_NOT_EXIST` names both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Literal, NamedTuple

DOES_NOT_EXIST = (ValueError, OverflowError)

Unit = Literal["minute", "hour", "day", "week", "month", "year"]
Third = Literal["early", "mid", "late"]

AGO_MARGIN_DAYS: dict[Unit, int] = {"week": 5, "month": 20, "year": 240}
"""How far from the day itself "two weeks ago" reaches: half the unit for its rounding, the rest for a bad memory.
One unit ago never reaches today."""
DAYS_COUNTED_EXACTLY = 3
"""Up to "three days ago" people count; from four on, a day either way."""
CLOCK_SLACK = timedelta(minutes=1)
"""Two machines' clocks differ: "in the last hour" reaches a little past the asking."""
YEARS_TO_TRY = 9
"""29 February can be eight years away (1896 to 1904)."""


class Period(NamedTuple):
    """From `start` up to and without `end`: local time, without its zone. `fold` is kept."""

    start: datetime
    end: datetime


InYear = Callable[[int], Period]


def days(first: date, count: int = 1) -> Period:
    start = datetime.combine(first, time())
    return Period(start, start + timedelta(days=count))


def week_of(day: date) -> Period:
    """Monday to Sunday."""
    return days(day - timedelta(days=day.weekday()), 7)


def months(year: int, number: int, count: int = 1) -> Period:
    first = date(year, number, 1)
    return Period(days(first).start, days(month_shifted(first, count)).start)


def years(first: int, count: int = 1) -> Period:
    return months(first, 1, 12 * count)


def month_shifted(day: date, count: int) -> date:
    """The same day `count` months on, or the last one of a shorter month."""
    year, number = divmod(day.year * 12 + day.month - 1 + count, 12)
    following = date(year + number // 11, (number + 1) % 12 + 1, 1)
    return date(year, number + 1, min(day.day, (following - timedelta(days=1)).day))


def together(first: Period, last: Period) -> Period:
    return Period(min(first.start, last.start), max(first.end, last.end))


def third_of(period: Period, third: Third) -> Period:
    """Ten days of a month, four months of a year. A period of less than a week stays whole."""
    length = (period.end - period.start).days
    if length < 7:
        return period
    first, second = (period.start + timedelta(days=length // 3 * count) for count in (1, 2))
    return {
        "early": Period(period.start, first),
        "mid": Period(first, second),
        "late": Period(second, period.end),
    }[third]


def blurred(period: Period) -> Period:
    """A third of its length more on either side, a day at the least."""
    margin = timedelta(days=max(1, (period.end - period.start).days // 3))
    return Period(period.start - margin, period.end + margin)


def part_of_day(day: date, part: str) -> Period:
    """The night is the one that begins on that day."""
    first_hour, last_hour = {"morning": (4, 12), "afternoon": (12, 18), "evening": (17, 24), "night": (18, 30)}[part]
    midnight = datetime.combine(day, time())
    return Period(midnight + timedelta(hours=first_hour), midnight + timedelta(hours=last_hour))


class Asking(NamedTuple):
    """The moment of asking, and where the asker's days begin and end."""

    at: datetime
    zone: tzinfo
    newest: datetime | None = None
    """When the newest message was said: no date without a year is after it."""

    @property
    def now(self) -> datetime:
        return self.moment(timedelta())

    @property
    def today(self) -> date:
        return self.now.date()

    def moment(self, offset: timedelta) -> datetime:
        """Local time that long from the asking; hours are counted in UTC, so a change of clocks adds none."""
        return self.local(self.at.astimezone(UTC) + offset)

    def local(self, at: datetime) -> datetime:
        return at.astimezone(self.zone).replace(tzinfo=None)

    def in_utc(self, local: datetime) -> datetime:
        return local.replace(tzinfo=self.zone).astimezone(UTC)

    def day(self, offset: int) -> Period:
        return days(self.today + timedelta(days=offset))

    def week(self, offset: int) -> Period:
        return week_of(self.today + timedelta(weeks=offset))

    def month(self, offset: int) -> Period:
        first = month_shifted(self.today.replace(day=1), offset)
        return months(first.year, first.month)

    def quarter(self, offset: int) -> Period:
        first = month_shifted(self.today.replace(day=1), 3 * offset - (self.today.month - 1) % 3)
        return months(first.year, first.month, 3)

    def year(self, offset: int) -> Period:
        return years(self.today.year + offset)

    def weekday(self, number: int, *, before_today: bool = False) -> date:
        """The most recent such day (Monday is 0), today included unless `before_today`."""
        back = (self.today.weekday() - number) % 7
        return self.today - timedelta(days=7 if before_today and back == 0 else back)

    def next_weekday(self, number: int) -> date:
        return self.today + timedelta(days=(number - self.today.weekday() - 1) % 7 + 1)

    def weekend(self, offset: int) -> Period:
        """Saturday and Sunday: 0 the most recent that has begun, -1 the last that is over, 1 the next to begin."""
        saturday = self.weekday(5)
        if offset > 0:
            return days(saturday + timedelta(weeks=1), 2)
        is_over = self.today - saturday > timedelta(days=1)
        return days(saturday if is_over or offset == 0 else saturday - timedelta(weeks=1), 2)

    def ago(self, fewest: int, most: int, unit: Unit) -> Period:
        return Period(self._around(most, unit).start, self._around(fewest, unit).end)

    def _around(self, count: int, unit: Unit) -> Period:
        if unit in ("minute", "hour"):
            elapsed = timedelta(minutes=count * (60 if unit == "hour" else 1))
            margin = max(elapsed / 4, timedelta(minutes=30 if unit == "hour" else 5))
            return Period(self.moment(-elapsed - margin), self.moment(-elapsed + margin))
        margin_days = AGO_MARGIN_DAYS.get(unit, int(count > DAYS_COUNTED_EXACTLY))
        return days(self._back(count, unit) - timedelta(days=margin_days), 2 * margin_days + 1)

    def past(self, count: int, unit: Unit) -> Period:
        """The last `count` of them up to now: from the beginning of the day that long ago to the end of today."""
        if unit in ("minute", "hour"):
            elapsed = timedelta(minutes=count * (60 if unit == "hour" else 1))
            return Period(self.moment(-elapsed), self.moment(CLOCK_SLACK))
        return Period(days(self._back(count, unit)).start, self.day(0).end)

    def _back(self, count: int, unit: Unit) -> date:
        if unit in ("month", "year"):
            return month_shifted(self.today, -count * (12 if unit == "year" else 1))
        return self.today - timedelta(days=count * (7 if unit == "week" else 1))

    def recent(self, in_year: InYear) -> Period:
        """The most recent that had begun when the newest was said: in a memory that ends last year, "May" is none of
        this year's."""
        newest = self.now if self.newest is None else self.local(min(self.at, self.newest))
        return _first(in_year, self._years(-1, newest), lambda period: period.start <= newest)

    def over(self, in_year: InYear) -> Period:
        """The most recent that is over: what "last" means."""
        return _first(in_year, self._years(-1), lambda period: period.end <= self.day(0).start)

    def coming(self, in_year: InYear) -> Period:
        return _first(in_year, self._years(1), lambda period: period.start > self.now)

    def _years(self, step: int, since: datetime | None = None) -> Iterable[int]:
        # One year ahead too: a season or a feast may begin in the year before its own.
        first = (since or self.now).year - step
        return range(first, first + step * (YEARS_TO_TRY + 1), step)


def latest_before(in_year: InYear, end: Period) -> Period:
    """The latest that begins no later than `end` does."""
    first = end.start.year
    return _first(in_year, range(first, first - YEARS_TO_TRY, -1), lambda period: period.start <= end.start)


def first_after(in_year: InYear, start: Period) -> Period:
    first = start.start.year
    return _first(in_year, range(first, first + YEARS_TO_TRY), lambda period: period.start >= start.start)


def _first(in_year: InYear, candidates: Iterable[int], is_wanted: Callable[[Period], bool]) -> Period:
    for year in candidates:
        try:
            period = in_year(year)
        except ValueError:  # 29 February
            continue
        if is_wanted(period):
            return period
    raise ValueError("no such day")
