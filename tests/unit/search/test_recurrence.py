"""Which conversations they come back to."""

from __future__ import annotations

import numpy as np
import pytest

from offbook.search import recurrence
from offbook.search.index.rows import ROW
from offbook.search.recurrence import DAY_MICROSECONDS, recurring

DIMENSIONS = 8


class Said:
    """Rows and vectors in one: messages of sessions, each about one of a few matters."""

    def __init__(self, messages: list[tuple[int, int, int]]) -> None:
        self.count = len(messages)
        self._view = np.zeros(self.count, ROW)
        self._vectors = np.zeros((self.count, DIMENSIONS), np.float32)
        for at, (session, day, matter) in enumerate(messages):
            self._view[at]["place"], self._view[at]["session"] = session << 32 | at + 1, session
            self._view[at]["ts"] = day * DAY_MICROSECONDS
            if matter >= 0:
                self._vectors[at, matter] = 1.0

    def view(self) -> np.ndarray:
        return self._view

    def find(self, places: list[int]) -> np.ndarray:
        known = {int(place): at for at, place in enumerate(self._view["place"])}
        return np.array([known.get(place, -1) for place in places], np.int64)

    def means(self, rows: np.ndarray) -> np.ndarray:
        return self._vectors[rows]

    def recurring(self, *at: int) -> list[bool]:
        return recurring(self, self, [int(self._view["place"][one]) if one >= 0 else 7 for one in at])  # type: ignore[arg-type]


def test_what_three_others_were_about_recurs_and_what_was_said_once_does_not() -> None:
    said = Said([(1, 1, 0), (2, 1, 0), (3, 2, 0), (4, 3, 0), (5, 3, 1), (6, 3, 2), (6, 3, 2)])
    assert said.recurring(0, 3, 4, 5, 6) == [True, True, False, False, False]


def test_a_session_that_never_ends_is_a_conversation_a_day() -> None:
    said = Said([(1, day, 0) for day in range(4)] + [(1, 9, 3), (1, 9, 3), (1, 9, 3), (1, 9, 3)])
    assert said.recurring(0, 4) == [True, False]


def test_where_nobody_can_tell_it_recurs() -> None:
    assert Said([(1, 1, 0), (2, 1, 1), (3, 1, 2), (4, 1, 3)]).recurring(0, 3) == [True, True]
    many = Said([(number, 1, number % 3) for number in range(1, 12)] + [(20, 1, -1)])
    assert many.recurring(11, -1) == [True, True]  # it has no vector; it is not there
    assert many.recurring() == []


def test_only_the_newest_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recurrence, "MOST_ROWS", 6)
    said = Said([(1, 1, 5), *((number, 1, number % 5) for number in range(2, 10))])
    assert said.recurring(0, 8) == [True, False]
