"""Whether the provider is asked at all: after trouble requests do not wait for it for a while."""

from __future__ import annotations

import time
from collections import OrderedDict

import structlog

from offbook.model.errors import ProviderUnavailable

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


# ── Which models take no request of ours: theirs are not tried with memory for a while. No I/O ──

MOST_IN_A_ROW = 2
"""One refusal may be an accident of the API's own."""
REFUSED_SECONDS = 300.0
"""A model's template may be mended, and then it is served anew under the same name."""
MOST_MODELS = 256


class Refusals:
    def __init__(self) -> None:
        self._in_a_row: OrderedDict[str, int] = OrderedDict()
        self._until: dict[str, float] = {}

    def is_on(self, model: str) -> bool:
        return time.monotonic() < self._until.get(model, 0.0)

    def taken(self, model: str) -> None:
        """A request with something added was answered."""
        self._in_a_row.pop(model, None)
        self._until.pop(model, None)

    def refused(self, model: str) -> bool:
        """It was refused, and answered as it came. Whether the model is left alone from now on."""
        count = self._in_a_row.pop(model, 0) + 1
        self._in_a_row[model] = count
        if count >= MOST_IN_A_ROW:
            self._until[model] = time.monotonic() + REFUSED_SECONDS
        while len(self._in_a_row) > MOST_MODELS:
            oldest, _ = self._in_a_row.popitem(last=False)
            self._until.pop(oldest, None)
        return count >= MOST_IN_A_ROW
