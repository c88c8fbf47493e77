"""Hot, warm and cold in numbers, and the offload of what is too much to be hot (A8, A9). Nothing is deleted."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from offbook.audit import micros, moment
from offbook.entries import Hold
from offbook.lifecycle.offload import OFFLOADED, offloaded_through
from offbook.lifecycle.tiers import hot_until, tier_of, to_offload
from offbook.protocols import Store
from offbook.settings import Settings, Ttl
from offbook.types import AuditDraft, Tiers, now

if TYPE_CHECKING:
    from offbook.retrieval.index.agent_index import AgentIndex

MOST_HOURS = 100_000_000
"""Eleven thousand years: longer than there are dates."""
AGER = "offbook"
"""The actor of the audit event: nobody asked for it."""
MOST_HELD = 10_000
"""Pinned or lately retrieved messages that are looked at one by one; more than that are counted by age."""


async def tiers(store: Store, agent_id: str, index: AgentIndex, ttl: Ttl) -> Tiers:
    """How many messages are in each tier now. Does not grow with history: arrivals are in order of time."""
    import numpy as np

    at = now()
    offloaded = await _offloaded(store, agent_id, at)
    arrived = index.rows.view()["arrived"]
    base = _hours(min(ttl.base_hours, ttl.max_hours))
    cooled = int(np.searchsorted(arrived, micros(_before(at, base)), "right"))
    chilled = int(np.searchsorted(arrived, micros(_before(_before(at, base), _hours(ttl.max_hours))), "right"))
    if offloaded is not None:
        gone = int(np.searchsorted(arrived, micros(offloaded), "right"))
        cooled, chilled = max(cooled, gone), max(chilled, gone)
    count = {"hot": len(arrived) - cooled, "warm": cooled - chilled, "cold": chilled}
    for row, hold in await _held(store, agent_id, index, at, ttl):
        when = moment(int(arrived[row]))
        is_gone = offloaded is not None and when <= offloaded
        plain = tier_of(when, 0, is_pinned=False, is_offloaded=is_gone, ttl=ttl, at=at)
        held = tier_of(when, hold.retrievals, is_pinned=hold.pinned, is_offloaded=is_gone, ttl=ttl, at=at)
        count[plain] -= 1
        count[held] += 1
    return Tiers(**{tier: max(0, number) for tier, number in count.items()})


async def offload(store: Store, agent_id: str, index: AgentIndex, settings: Settings) -> int:
    """Send the oldest hot messages to cold storage where there are too many; returns how many."""
    import numpy as np

    at = now()
    ttl = settings.ttl
    gone = await offloaded_through(store, agent_id)
    if gone is not None and gone > at:
        await store.set_agent_note(agent_id, OFFLOADED, at.isoformat(), None)
        gone = at
    since = _before(at, _hours(ttl.max_hours))
    if gone is not None:
        since = max(since, gone)
    arrived = index.rows.view()["arrived"]
    first = int(np.searchsorted(arrived, micros(since), "right"))
    recent = np.array(arrived[first:])
    is_hot = recent > micros(_before(at, _hours(min(ttl.base_hours, ttl.max_hours))))
    is_pinned = np.zeros(len(recent), bool)
    pinned_before = 0
    for row, hold in await _held(store, agent_id, index, at, ttl):
        if row >= first:
            is_pinned[row - first] = hold.pinned
            is_hot[row - first] = hold.pinned or at < hot_until(moment(int(arrived[row])), hold.retrievals, ttl)
        else:
            pinned_before += hold.pinned
    hot = int(is_hot.sum()) + pinned_before
    movable = np.sort(recent[is_hot & ~is_pinned]).tolist()
    moved = to_offload(movable, hot=hot, threshold=settings.prune_threshold, keep=settings.prune_keep)
    if not moved:
        return 0
    through = moment(movable[moved - 1]).isoformat()
    event = AuditDraft(verb="offload", actor=AGER, details={"moved": moved, "through": through, "hot": hot})
    await store.set_agent_note(agent_id, OFFLOADED, through, event)
    return moved


async def _offloaded(store: Store, agent_id: str, at: datetime) -> datetime | None:
    """Never after now: a clock that was wrong for a while does not make cold what is yet to come. `offload`
    mends the note."""
    through = await offloaded_through(store, agent_id)
    return None if through is None else min(through, at)


async def _held(store: Store, agent_id: str, index: AgentIndex, at: datetime, ttl: Ttl) -> list[tuple[int, Hold]]:
    """The rows that are pinned, or were retrieved so lately that it may count."""
    since = _before(_before(at, _hours(ttl.max_hours)), _hours(ttl.max_hours))
    lately = dict(await store.retrieved_since(agent_id, since, limit=MOST_HELD))
    pinned = await store.pinned(agent_id, limit=MOST_HELD)
    lately |= await store.holds(agent_id, [place for place in pinned if place not in lately])
    rows = index.rows.find(list(lately))
    return [(int(row), hold) for row, hold in zip(rows, lately.values(), strict=True) if row >= 0]


def _hours(hours: float) -> timedelta:
    """Settings may name any number of hours."""
    return timedelta(hours=min(hours, MOST_HOURS))


def _before(at: datetime, span: timedelta) -> datetime:
    """Time begins somewhere."""
    try:
        return max(at - span, moment(0))
    except OverflowError:
        return moment(0)
