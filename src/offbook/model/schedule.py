"""When a task of maintenance is due: decisions over a clock that only goes forward.

The clock on the wall may jump; what is due goes by the monotonic one. All times are its seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

Key = TypeVar("Key")

RETRY_SECONDS = (5.0, 30.0)
"""After the first failure in a row and the second; after more it waits for its usual turn."""
SHOWN_AFTER = len(RETRY_SECONDS) + 1
"""Failures in a row after which it is not a passing trouble any more."""


def next_turn(at: float, *, every: float, failures: int, is_done: bool) -> float:
    """When a task is to run again that ran just now, at `at`. `failures`: in a row, this one with it."""
    if failures:
        wait = RETRY_SECONDS[failures - 1] if failures < SHOWN_AFTER else every
        return at + min(wait, every)
    return at + every if is_done else at


def due(turns: Mapping[Key, float], at: float) -> list[Key]:
    """Those whose turn has come, and first who has waited longest; of two alike, who was named first."""
    return sorted((key for key, turn in turns.items() if turn <= at), key=turns.__getitem__)


def pause(turns: Mapping[Key, float], at: float, *, longest: float) -> float:
    """Seconds until the next turn, and no more than `longest`: until then there may be new agents."""
    return min(max(0.0, min(turns.values(), default=at + longest) - at), longest)
