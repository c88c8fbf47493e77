"""When the things happened that messages tell of: "yesterday", "on Friday", "in May" as stretches of time.

They are read once, against when the message was said, and kept beside its row. A question that names a time looks
among them as among the times at which messages were said.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from offbook.log.audit_chain import micros
from offbook.model.sentences import parts
from offbook.search.index.records import Records
from offbook.search.times import read_times
from offbook.search.times.words import NAMES_A_TIME

EVENT: Final = np.dtype([("start", "<i8"), ("end", "<i8"), ("row", "<u4"), ("spare", "<u4")])
Event = tuple[int, int]
"""Microseconds since 1970, from and up to."""
MOST_EVENTS = 4
"""Of one message: what names more is a calendar."""
READ_CHARS = 2_000
LEAST_SHARE = 0.02
"""Of what is told of: "in May" tells of the 3rd of May, "this year" does not."""


def told_events(text: str, said_at: datetime) -> list[Event]:
    """The stretches of time that the message names. Only sentences with a word of time are read: reading is slow."""
    sentences = [one for one in parts(text[:READ_CHARS]) if NAMES_A_TIME.search(one.lower())]
    if not sentences:
        return []
    ranges = read_times("\n".join(sentences), said_at).ranges
    found = [(micros(one.start), micros(one.end)) for one in ranges if one.start and one.end]
    return list(dict.fromkeys(found))[:MOST_EVENTS]


class Events:
    """One thread appends; any may read."""

    def __init__(self, folder: Path, count: int) -> None:
        self._events = Records(folder / "events", EVENT, count)

    @property
    def count(self) -> int:
        return self._events.count

    def view(self) -> NDArray[Any]:
        return self._events.view()

    def append(self, first_row: int, events: Sequence[Sequence[Event]]) -> None:
        """`events`: of each of the rows from `first_row` on."""
        block = np.array(
            [(start, end, first_row + at, 0) for at, some in enumerate(events) for start, end in some], EVENT
        )
        if len(block):
            self._events.append(block)

    def within(self, start: float, end: float, rows: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Those of the first `rows` rows that tell of this time, and how much of what each tells of lies in it."""
        view = self._events.view()
        found = view[(view["start"] < end) & (view["end"] > start) & (view["row"] < rows)]
        inside = np.minimum(found["end"], end) - np.maximum(found["start"], start)
        shares = inside / np.maximum(found["end"] - found["start"], 1)
        is_told = shares >= LEAST_SHARE
        return found["row"][is_told].astype(np.int64), shares[is_told]

    def sync(self) -> None:
        self._events.sync()

    def close(self) -> None:
        self._events.close()
