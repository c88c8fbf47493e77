"""Hot, warm or cold: a function of when a message arrived, how often it was retrieved, and what time it is (A8, A9).

A tier says where to look first and never whether something exists. So no clock, however it jumps, makes anything
vanish: the worst it can do is to call something hot or cold too early.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from offbook.log.store import Store
from offbook.model.settings.sections import Ttl
from offbook.model.types import Tier

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


BEGINNING_OF_TIME = datetime.min.replace(tzinfo=UTC)
END_OF_TIME = datetime.max.replace(tzinfo=UTC)


class Offload(NamedTuple):
    """What goes to cold storage: how many, and through which arrival; of how many that are hot."""

    moved: int
    through: int | None
    hot: int


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


def cooling(at: datetime, ttl: Ttl) -> tuple[datetime, datetime]:
    """What arrived by the first moment and was never retrieved is hot no more at `at`; by the second, cold."""
    cooled = earlier(at, min(ttl.base_hours, ttl.max_hours))
    return cooled, earlier(cooled, ttl.max_hours)


def count_by_age(
    arrived: NDArray[np.int64], starts: Sequence[int], *, cooled: int, chilled: int, offloaded_through: int | None
) -> dict[Tier, int]:
    """How many of these arrivals are in each tier by their age alone; each is in exactly one.

    `starts` are those of `stretches`, so that a long history is not read.
    """
    chilled = chilled if offloaded_through is None else max(chilled, offloaded_through)
    cooled = max(cooled, chilled)
    are_cool, are_cold = _count_through(arrived, starts, cooled), _count_through(arrived, starts, chilled)
    return {"hot": len(arrived) - are_cool, "warm": are_cool - are_cold, "cold": are_cold}


def offload_decision(
    arrived: NDArray[np.int64],
    cools_at: NDArray[np.int64],
    is_pinned: NDArray[np.bool_],
    *,
    offloaded_through: int | None,
    at: int,
    threshold: int,
    keep: int,
) -> Offload:
    """Whether there are too many hot messages, and which of them go then: the oldest, and no more than needed.

    Of each message when it arrived, until when it is hot, and whether it is pinned, in any order. A pinned one is hot,
    whatever the clock says, and never goes. One of the future (the clock jumped back) is hot, and stays: what is cold
    is said by a moment, and that is never after now.
    """
    import numpy as np

    gone = None if offloaded_through is None else min(offloaded_through, at)
    is_hot = at < cools_at
    if gone is not None:
        is_hot &= arrived > gone
    is_hot |= is_pinned
    hot = int(np.count_nonzero(is_hot))
    movable: list[int] = np.sort(arrived[is_hot & ~is_pinned & (arrived <= at)]).tolist()
    moved = to_offload(movable, hot=hot, threshold=threshold, keep=keep)
    return Offload(moved=moved, through=movable[moved - 1] if moved else None, hot=hot)


def to_offload(movable: Sequence[int], *, hot: int, threshold: int, keep: int) -> int:
    """Where more than `threshold` are hot, how many of the movable ones (not pinned) go to cold storage until `keep`
    are left: the oldest first. `movable` says when each arrived, in order.

    What arrived at once goes at once: where not all of it may go, it stays.
    """
    if hot <= threshold:
        return 0
    going = min(max(0, hot - keep), len(movable))
    return going if going == len(movable) else bisect_left(movable, movable[going])


def ordered_runs(arrived: NDArray[np.int64], *, known: Sequence[int] = (), through: int = 0) -> list[int]:
    """Where a stretch begins in which arrivals are in order of time: a new one wherever the clock was set back.

    `known` are those of the first `through` arrivals, which are not looked at again.
    """
    import numpy as np

    begins = list(known)
    if through == 0 and len(arrived):
        begins.append(0)
    first = max(1, through)
    begins += (np.flatnonzero(arrived[first:] < arrived[first - 1 : -1]) + first).tolist()
    return begins


def after(arrived: NDArray[np.int64], starts: Sequence[int], moment: int) -> NDArray[np.intp]:
    """Which of them arrived after the moment."""
    import numpy as np

    found = [
        np.arange(begin + int(np.searchsorted(arrived[begin:end], moment, "right")), end, dtype=np.intp)
        for begin, end in pairwise([*starts, len(arrived)])
    ]
    return np.concatenate(found) if found else np.empty(0, np.intp)


def earlier(moment: datetime, hours: float) -> datetime:
    """Settings may name any number of hours; time has a beginning."""
    past = moment - BEGINNING_OF_TIME
    return moment - timedelta(hours=hours) if hours < past / timedelta(hours=1) else BEGINNING_OF_TIME


def _count_through(arrived: NDArray[np.int64], starts: Sequence[int], moment: int) -> int:
    import numpy as np

    return sum(
        int(np.searchsorted(arrived[begin:end], moment, "right")) for begin, end in pairwise([*starts, len(arrived)])
    )


def _later(moment: datetime, hours: float) -> datetime:
    """Settings may name any number of hours; time ends with the year 9999."""
    left = END_OF_TIME - moment
    return moment + timedelta(hours=hours) if hours < left / timedelta(hours=1) else END_OF_TIME


# ── How far an agent's memory has gone to cold storage (A9): a moment, since it is always the  ──

OFFLOADED = "offloaded-through"
"""The agent's note."""


async def offloaded_through(store: Store, agent_id: str) -> datetime | None:
    """Whatever arrived by then, and is not pinned, is cold."""
    note = await store.agent_note(agent_id, OFFLOADED)
    try:
        return None if note is None else datetime.fromisoformat(note)
    except ValueError:
        return None
