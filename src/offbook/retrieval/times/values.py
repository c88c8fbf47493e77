"""What a query says about time."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from offbook.types import Value


class TimeRange(Value, frozen=True):
    """A stretch of time in UTC: from `start`, up to and without `end`. None is open."""

    start: datetime | None
    end: datetime | None
    phrase: str
    """The words of the query it came from, as written."""
    is_exact: bool = True
    """False where the words are vague ("recently", "around May"): a reason to prefer, none to leave out."""


class EventBound(Value, frozen=True):
    """Before or after something that happened, at a time the query does not say: "before the move"."""

    relation: Literal["before", "after"]
    event: str
    phrase: str


class QueryTimes(Value, frozen=True):
    """Everything a query says about time, in the order it is said."""

    ranges: tuple[TimeRange, ...] = ()
    bounds: tuple[EventBound, ...] = ()
