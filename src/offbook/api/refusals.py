"""The log of requests that were refused. Whoever goes on asking must not be able to fill the disk with it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

import structlog

from offbook.model.errors import OffbookError

LOGGED_A_MINUTE = 10
"""Of each reason, one by one."""

log = structlog.get_logger("offbook.http")


class RefusalLog:
    """The first refusals of a minute, by reason, and at its end how many more there were. All of them are in the
    metrics."""

    def __init__(self, later: Callable[[float, Callable[[], None]], object] | None = None) -> None:
        """`later` calls a function after so many seconds; the loop does it, unless told otherwise."""
        self._later = later
        self._counts: Counter[tuple[str, int]] = Counter()

    def refused(self, error: OffbookError, asked: str) -> None:
        """`asked`: the verb, or the path where there is none."""
        if not self._counts:
            (self._later or asyncio.get_running_loop().call_later)(60.0, self.end_minute)
        reason = (error.slug, error.status)
        self._counts[reason] += 1
        if self._counts[reason] <= LOGGED_A_MINUTE:
            log.info("refused", action="request.refuse", verb=asked, status=error.status, detail=error.detail)

    def end_minute(self) -> None:
        """Also at a stop."""
        counts, self._counts = self._counts, Counter()
        for (reason, status), count in counts.items():
            if count > LOGGED_A_MINUTE:
                more = count - LOGGED_A_MINUTE
                log.warning("more were refused", action="request.refusals", reason=reason, status=status, more=more)
