"""Hot, warm or cold: a function of when a message arrived, how often it was retrieved, and what time it is (A8, A9).

A tier says where to look first and never whether something exists. So no clock, however it jumps, makes anything
vanish: the worst it can do is to call something hot or cold too early.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from offbook.log.audit_chain import micros, moment
from offbook.log.store import Store
from offbook.model.memory_entry import Hold
from offbook.model.settings.sections import Ttl
from offbook.model.types import Tier

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


BEGINNING_OF_TIME = datetime.min.replace(tzinfo=UTC)
END_OF_TIME = datetime.max.replace(tzinfo=UTC)


LAST_PLACE = (1 << 63) - 1


class OffloadedThrough(NamedTuple):
    """Whatever arrived by then, in microseconds, and is not pinned, is cold. Of what arrived at that very moment, as
    the messages of one batch do, only what lies up to that place."""

    arrived: int
    place: int = LAST_PLACE

    def covers(self, arrived: int, place: int) -> bool:
        return (arrived, place) <= self

    def not_after(self, at: int) -> OffloadedThrough:
        """A clock that was wrong for a while does not make cold what is yet to come."""
        return self if self.arrived <= at else OffloadedThrough(at)


class Offload(NamedTuple):
    """What goes to cold storage: how many, and through which; of how many that are hot."""

    moved: int
    through: OffloadedThrough | None
    hot: int


def hot_until(arrived_at: datetime, retrievals: int, ttl: Ttl) -> datetime:
    """Each retrieval keeps it hot a while longer, up to a limit."""
    earned = ttl.bump_hours * retrievals if retrievals else 0.0
    return _later(arrived_at, min(ttl.base_hours + earned, ttl.max_hours))


def tier_of(arrived_at: datetime, hold: Hold, *, is_offloaded: bool, ttl: Ttl, at: datetime) -> Tier:
    """A pin outweighs everything. Warm lasts as long again as anything may stay hot. What is cold is warm again for a
    while after a retrieval, the longer the more there were. An arrival in the future (the clock jumped back) is hot."""
    if hold.pinned:
        return "hot"
    if not is_offloaded:
        cools_at = hot_until(arrived_at, hold.retrievals, ttl)
        if at < cools_at:
            return "hot"
        if at < _later(cools_at, ttl.max_hours):
            return "warm"
    return "warm" if at < warm_again_until(hold, ttl) else "cold"


def warm_again_until(hold: Hold, ttl: Ttl) -> datetime:
    """What each retrieval earns, counted from the last one."""
    if not hold.retrievals or hold.retrieved_at is None:
        return BEGINNING_OF_TIME
    return _later(hold.retrieved_at, min(ttl.bump_hours * hold.retrievals, ttl.max_hours))


def cooling(at: datetime, ttl: Ttl) -> tuple[datetime, datetime]:
    """What arrived by the first moment and was never retrieved is hot no more at `at`; by the second, cold."""
    cooled = earlier(at, min(ttl.base_hours, ttl.max_hours))
    return cooled, earlier(cooled, ttl.max_hours)


def count_by_age(
    arrived: NDArray[np.int64],
    places: NDArray[np.int64],
    starts: Sequence[int],
    *,
    cooled: int,
    chilled: int,
    offloaded: OffloadedThrough | None,
) -> dict[Tier, int]:
    """How many of these arrivals are in each tier by their age alone; each is in exactly one.

    `starts` are those of `ordered_runs`, so that a long history is not read.
    """
    cooled = max(cooled, chilled)
    are_cool, are_cold = _count_through(arrived, starts, cooled), _count_through(arrived, starts, chilled)
    if offloaded is not None and offloaded.arrived > chilled:
        are_cold = _count_through(arrived, starts, offloaded.arrived) - _spared(arrived, places, starts, offloaded)
        are_cool = are_cool if offloaded.arrived <= cooled else are_cold
    return {"hot": len(arrived) - are_cool, "warm": are_cool - are_cold, "cold": are_cold}


def offload_decision(
    arrived: NDArray[np.int64],
    places: NDArray[np.int64],
    cools_at: NDArray[np.int64],
    is_pinned: NDArray[np.bool_],
    *,
    offloaded: OffloadedThrough | None,
    at: int,
    threshold: int,
    keep: int,
) -> Offload:
    """Whether there are too many hot messages, and which of them go then: the oldest, and no more than needed.

    Of each message when it arrived, where it lies, until when it is hot, and whether it is pinned, in any order. A
    pinned one is hot, whatever the clock says, and never goes. One of the future (the clock jumped back) is hot, and
    stays: what is cold is said by a moment, and that is never after now.
    """
    import numpy as np

    is_hot = at < cools_at
    if offloaded is not None:
        gone = offloaded.not_after(at)
        is_hot &= (arrived > gone.arrived) | ((arrived == gone.arrived) & (places > gone.place))
    is_hot |= is_pinned
    hot = int(np.count_nonzero(is_hot))
    movable = np.flatnonzero(is_hot & ~is_pinned & (arrived <= at))
    moved = min(max(0, hot - keep), len(movable)) if hot > threshold else 0
    if not moved:
        return Offload(moved=0, through=None, hot=hot)
    last = movable[np.lexsort((places[movable], arrived[movable]))][moved - 1]
    return Offload(moved=moved, through=OffloadedThrough(int(arrived[last]), int(places[last])), hot=hot)


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


def after(arrived: NDArray[np.int64], starts: Sequence[int], through: int) -> NDArray[np.intp]:
    """Which of them arrived after the moment."""
    import numpy as np

    found = [
        np.arange(begin + int(np.searchsorted(arrived[begin:end], through, "right")), end, dtype=np.intp)
        for begin, end in pairwise([*starts, len(arrived)])
    ]
    return np.concatenate(found) if found else np.empty(0, np.intp)


def earlier(when: datetime, hours: float) -> datetime:
    """Settings may name any number of hours; time has a beginning."""
    past = when - BEGINNING_OF_TIME
    return when - timedelta(hours=hours) if hours < past / timedelta(hours=1) else BEGINNING_OF_TIME


def _count_through(arrived: NDArray[np.int64], starts: Sequence[int], through: int) -> int:
    import numpy as np

    return sum(
        int(np.searchsorted(arrived[begin:end], through, "right")) for begin, end in pairwise([*starts, len(arrived)])
    )


def _spared(
    arrived: NDArray[np.int64], places: NDArray[np.int64], starts: Sequence[int], offloaded: OffloadedThrough
) -> int:
    """How many of those that arrived at the very moment lie behind the place, and stay."""
    import numpy as np

    spared = 0
    for begin, end in pairwise([*starts, len(arrived)]):
        first, last = (
            begin + int(np.searchsorted(arrived[begin:end], offloaded.arrived, s)) for s in ("left", "right")
        )
        spared += int(np.count_nonzero(places[first:last] > offloaded.place))
    return spared


def _later(when: datetime, hours: float) -> datetime:
    """Settings may name any number of hours; time ends with the year 9999."""
    left = END_OF_TIME - when
    return when + timedelta(hours=hours) if hours < left / timedelta(hours=1) else END_OF_TIME


# ── How far an agent's memory has gone to cold storage (A9): a moment, since it is always the  ──

OFFLOADED = "offloaded-through"
"""The agent's note."""


async def offloaded_through(store: Store, agent_id: str) -> OffloadedThrough | None:
    note = await store.agent_note(agent_id, OFFLOADED)
    return None if note is None else parsed_note(note)


def written_note(through: OffloadedThrough) -> str:
    """A moment, and of that moment the last place, where not all of it went."""
    when = moment(through.arrived).isoformat()
    return when if through.place == LAST_PLACE else f"{when} {through.place}"


def parsed_note(note: str) -> OffloadedThrough | None:
    """None for a note that cannot be read."""
    when, _, place = note.partition(" ")
    try:
        return OffloadedThrough(micros(datetime.fromisoformat(when)), int(place) if place else LAST_PLACE)
    except (ValueError, TypeError):
        return None
