"""Which models take no request of ours: theirs are not tried with memory for a while. No I/O here."""

from __future__ import annotations

import time
from collections import OrderedDict

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
