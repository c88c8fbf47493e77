"""How a host learns that something was forgotten for good. Pure."""

from __future__ import annotations

from typing import NamedTuple


class Counted(NamedTuple):
    forgets: int
    """To be compared with what the next turn says."""
    is_more: bool
    """Something was forgotten since the turn before: what a host keeps, and that turn itself, may still show it."""


def counted(known: int | None, told: int | None) -> Counted:
    """`told` is what a turn says of `forgets`, `known` what was counted before, None at the first.

    A provider that does not count, or not yet, says nothing; an agent is counted from its first time on.
    """
    if known is None:
        return Counted(told or 0, is_more=False)
    forgets = known if told is None else told
    return Counted(forgets, is_more=forgets != known)
