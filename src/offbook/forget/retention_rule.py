"""What is old enough to be forgotten by rule: decisions over a clock that may be wrong.

What is forgotten so is gone for good, and a clock may leap: a battery is empty, somebody sets the wrong year. It is
believed where it has gone on for about a day without a leap, by what was written down of it. Where it leapt ahead, what
it said before is believed: a machine that is on for an hour a week leaps each time, and forgets a week late. A clock
that is wrong for more than a day is believed.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from offbook.model.types import Value

SETTLED_AFTER = timedelta(hours=23)
"""Not a whole day: it is looked at once a day, and a clock that is being set right runs a little slower or faster."""
LEAST_LEAP = timedelta(hours=36)
"""It is looked at once a day: less would be a leap each time."""
MOST_LEAP = timedelta(days=4)
"""A machine that is off over a long weekend goes on as usual."""
SHARE = 4
"""A leap that is not noticed makes at most this part of the days too few."""
SET_BACK = timedelta(hours=1)
"""As far back is no leap: it was corrected."""
LONG_OFF = timedelta(days=90)
"""Few machines are: a clock that leaps further is worth a word."""
HOST_AHEAD = timedelta(days=1)
"""As much later than it came here a message may say it was said: hosts have clocks and zones of their own."""


class Clock(Value, frozen=True):
    """What was seen of it."""

    since: datetime
    """From there it went on without a leap."""
    last: datetime
    left: datetime | None = None
    """What it said before it leapt."""


class Look(NamedTuple):
    clock: Clock
    """To be kept, for the next look."""
    before: datetime | None
    """What came before then is forgotten; None: nothing yet."""

    @property
    def is_waiting_for(self) -> datetime | None:
        """When the clock is believed again that leapt and may be wrong; None: there is nothing to be told."""
        since, last, left = self.clock.since, self.clock.last, self.clock.left
        is_odd = left is not None and not timedelta() <= since - left <= LONG_OFF
        return since + SETTLED_AFTER if is_odd and last - since < SETTLED_AFTER else None


def looked(seen: Clock | None, heard: datetime | None, at: datetime, days: int) -> Look:
    """The clock says `at`. `seen`: at the last look. `heard`: when the newest event happened, of those that are
    `SETTLED_AFTER` old or older: it vouches for the clock where nobody looked for long.

    Nothing is forgotten that came since the last look, so at the first one nothing at all: what was just said stays,
    whatever the clock says and however few the days are."""
    leap = min(MOST_LEAP, max(LEAST_LEAP, timedelta(days=days) / SHARE))
    if heard is not None and SETTLED_AFTER <= at - heard <= leap:
        clock = Clock(since=heard, last=at)
    elif seen is not None and -SET_BACK <= at - seen.last <= leap:
        clock = Clock(since=seen.since, last=at, left=seen.left)
    else:
        clock = Clock(since=at, last=at, left=None if seen is None else seen.last)
    if seen is None:
        return Look(clock, None)
    if at - clock.since >= SETTLED_AFTER:
        return Look(clock, min(seen.last, at - timedelta(days=days)))
    # Since then more time has passed than that: a clock that is ahead by mistake goes back, and then nothing goes.
    is_ahead = at - seen.last > leap
    return Look(clock, seen.last - timedelta(days=days) if is_ahead else None)


def kept_from(said_at: datetime | None, received_at: datetime, latest: datetime | None) -> datetime:
    """When the days of a message begin. Received counts, too: a history that was imported today was not kept for long.
    `latest`: what the clock had said before it came. If it said less then, it was set back, and this came later all
    the same."""
    received = received_at if latest is None else max(received_at, latest)
    return received if said_at is None else max(received, min(said_at, received + HOST_AHEAD))
