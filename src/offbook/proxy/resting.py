"""Whether the provider is asked at all: after trouble requests do not wait for it for a while."""

from __future__ import annotations

import time

import structlog

from offbook.errors import ProviderUnavailable

MOST_FAILED_IN_A_ROW = 3
REST_SECONDS = 5.0

log = structlog.get_logger("offbook.proxy")


class Rest:
    def __init__(self) -> None:
        self._until = 0.0
        self._failed_in_a_row = 0

    @property
    def is_on(self) -> bool:
        return time.monotonic() < self._until

    def answered(self) -> None:
        """A question was answered in time. A request that asked nothing says nothing about the provider."""
        self._failed_in_a_row = 0

    def failed(self, error: Exception) -> None:
        """A provider that is late or refuses something may do better the next time; one that is away is not asked."""
        is_away = isinstance(error, ProviderUnavailable | OSError) and not isinstance(error, TimeoutError)
        self._failed_in_a_row = MOST_FAILED_IN_A_ROW if is_away else self._failed_in_a_row + 1
        reason = "no answer in time" if isinstance(error, TimeoutError) else str(error) or repr(error)
        if self._failed_in_a_row < MOST_FAILED_IN_A_ROW:
            log.info("a request passed without memory", action="proxy.failed_once", reason=reason)
            return
        self._until = time.monotonic() + REST_SECONDS
        log.warning("requests pass without memory for now", action="proxy.rest", seconds=REST_SECONDS, reason=reason)
