"""Where a row lies in its table. What is read together has one number in the high bits and its own in the low ones:
a message its session and its sequence number, a vector its set and its turn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")

MOST_MESSAGES = 2**32 - 1
"""In one session."""
MOST_VECTORS = 2**40 - 1
"""Ever added to one set."""
LARGEST_NUMBER = 2**63 - 1
"""That a column takes."""
ALL = LARGEST_NUMBER
"""No limit."""
PLACES_AT_A_TIME = 500
"""Asked for in one statement: well below the number of parameters that SQLite takes (32,766)."""


def place_of(session: int, seq: int) -> int:
    return session << 32 | seq


def session_of(place: int) -> int:
    return place >> 32


def vector_number(vector_set: int, turn: int) -> int:
    return vector_set << 40 | turn


def askable(places: Iterable[int]) -> list[int]:
    """Each once, in the order given, without those that no row can have."""
    return [place for place in dict.fromkeys(places) if 0 < place <= LARGEST_NUMBER]


def in_pieces(places: Sequence[T]) -> Iterator[tuple[str, Sequence[T]]]:
    """The marks for an IN list, and the places they stand for."""
    for first in range(0, len(places), PLACES_AT_A_TIME):
        piece = places[first : first + PLACES_AT_A_TIME]
        yield ",".join("?" * len(piece)), piece
