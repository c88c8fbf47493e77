"""Hot, warm or cold: a function of when a message arrived, how often it was retrieved, and what time it is (A8, A9).

A tier says where to look first and never whether something exists. So no clock, however it jumps, makes anything
vanish: the worst it can do is to call something hot or cold too early.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from offbook.settings import Ttl
from offbook.types import Tier

END_OF_TIME = datetime.max.replace(tzinfo=UTC)


def hot_until(arrived_at: datetime, retrievals: int, ttl: Ttl) -> datetime:
    """Each retrieval keeps it hot a while longer, up to a limit."""
    earned = ttl.bump_hours * retrievals if retrievals else 0.0
    return _later(arrived_at, min(ttl.base_hours + earned, ttl.max_hours))


def tier_of(
    arrived_at: datetime, retrievals: int, *, is_pinned: bool, is_offloaded: bool, ttl: Ttl, at: datetime
) -> Tier:
    """A pin outweighs everything. Warm lasts as long again as anything may stay hot. An arrival in the future (the
    clock jumped back) is hot."""
    if is_pinned:
        return "hot"
    if is_offloaded:
        return "cold"
    cools_at = hot_until(arrived_at, retrievals, ttl)
    if at < cools_at:
        return "hot"
    return "warm" if at < _later(cools_at, ttl.max_hours) else "cold"


def to_offload(movable: Sequence[int], *, hot: int, threshold: int, keep: int) -> int:
    """Where more than `threshold` are hot, how many of the movable ones (not pinned) go to cold storage until `keep`
    are left: the oldest first. `movable` says when each arrived, in order.

    What arrived at once goes at once: where not all of it may go, it stays.
    """
    if hot <= threshold:
        return 0
    going = min(max(0, hot - keep), len(movable))
    return going if going == len(movable) else bisect_left(movable, movable[going])


def _later(moment: datetime, hours: float) -> datetime:
    """Settings may name any number of hours; time ends with the year 9999."""
    left = END_OF_TIME - moment
    return moment + timedelta(hours=hours) if hours < left / timedelta(hours=1) else END_OF_TIME
