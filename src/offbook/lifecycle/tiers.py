"""Hot, warm or cold: a function of when a message arrived, how often it was retrieved, and what time it is (A8, A9).

A tier says where to look first and never whether something exists. So no clock, however it jumps, makes anything
vanish: the worst it can do is to call something hot or cold too early.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from offbook.settings import Ttl
from offbook.types import Tier, Value

END_OF_TIME = datetime.max.replace(tzinfo=UTC)


class HotEntry(Value, frozen=True):
    place: int
    arrived_at: datetime
    is_pinned: bool = False


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


def to_offload(hot: Sequence[HotEntry], *, threshold: int, keep: int) -> list[int]:
    """Over `threshold`, the places that go to cold storage until `keep` are left: the oldest first. Pinned ones stay,
    and count."""
    if len(hot) <= threshold:
        return []
    movable = sorted((entry.arrived_at, entry.place) for entry in hot if not entry.is_pinned)
    return [place for _, place in movable[: max(0, len(hot) - keep)]]


def _later(moment: datetime, hours: float) -> datetime:
    """Settings may name any number of hours; time ends with the year 9999."""
    left = END_OF_TIME - moment
    return moment + timedelta(hours=hours) if hours < left / timedelta(hours=1) else END_OF_TIME
