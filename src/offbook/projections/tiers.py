"""Hot, warm and cold: the offload of what is too much to be hot, and the tiers in numbers (A8, A9). Nothing is deleted.

What is decided is decided in `log.tiers`; here is read what that needs, and written what comes of it.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import structlog

from offbook.log.audit_chain import GENESIS, micros, moment
from offbook.log.store import Store
from offbook.log.tiers import (
    OFFLOADED,
    OffloadedThrough,
    after,
    cooling,
    count_by_age,
    earlier,
    hot_until,
    offload_decision,
    offloaded_through,
    ordered_runs,
    tier_of,
    written_note,
)
from offbook.model.memory_entry import Hold
from offbook.model.settings import Settings
from offbook.model.settings.sections import Ttl
from offbook.model.status import Tiers
from offbook.model.types import AuditDraft, AuditHead, now
from offbook.projections.base import Batch, Erased, Finding, Progress, Removal
from offbook.projections.indexes import Indexes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from offbook.search.index.agent_index import AgentIndex

AGER = "offbook"
"""The actor of the audit event: nobody asked for it."""
MOST_HELD = 10_000
"""Pinned or lately retrieved messages that are looked at one by one; more than that are counted by age."""

log = structlog.get_logger("offbook.maintenance")

_stretches: WeakKeyDictionary[AgentIndex, tuple[int, list[int]]] = WeakKeyDictionary()
"""Of each index how many of its rows were looked at, and what was found."""


class TierOffload:
    """Sends to cold storage what is too much to be hot."""

    name = "tiers"

    def __init__(self, store: Store, indexes: Indexes, settings: Settings) -> None:
        self._store = store
        self._indexes = indexes
        self._settings = settings
        self._settled_at: dict[str, AuditHead] = {}
        """Where an agent's chain ended when nothing was to go: time alone makes nothing hot."""

    async def advance(self, batch: Batch) -> Progress:
        agent_id = batch.agent_id
        head = await self._store.audit_head(agent_id)
        if self._settled_at.get(agent_id, GENESIS) == head:
            return Progress(is_idle=True)
        async with self._indexes.following(agent_id, seconds=batch.seconds, is_patient=True) as (index, has_all):
            if not has_all:
                return Progress(is_done=False)
            moved = await offload(self._store, agent_id, index, self._settings.for_agent(agent_id))
        if not moved:
            self._settled_at[agent_id] = head
            return Progress()
        log.info("offloaded", action="memory.offload", agent=agent_id, moved=moved)
        return Progress(did={"offloaded": moved})

    async def forget(self, _erased: Erased) -> Removal:
        """It knows times, no words."""
        return Removal()

    async def rebuild(self, agent_id: str) -> None:
        """What was offloaded stays so: it is an event of its time. What is due by now is done."""
        self._settled_at.pop(agent_id, None)

    async def check(self, agent_id: str, erased: Erased | None = None) -> list[Finding]:
        if erased is not None:
            return []
        self._store.let_go(agent_id)  # what lies there is looked at
        note = await self._store.agent_note(agent_id, OFFLOADED)
        through = await offloaded_through(self._store, agent_id)
        if note is None or (through is not None and through.arrived <= micros(now())):
            return []
        return [Finding("tiers", "the time up to which messages were offloaded cannot be right")]


async def tiers(store: Store, agent_id: str, index: AgentIndex, ttl: Ttl) -> Tiers:
    """How many messages are in each tier now. Does not grow with history: arrivals are in order of time, but where
    the clock was set back."""
    at = now()
    gone = await _offloaded(store, agent_id, at)
    held = await _held(store, agent_id, index, at, ttl)
    arrived, places, starts = _arrivals(index)
    cooled, chilled = cooling(at, ttl)
    count = count_by_age(arrived, places, starts, cooled=micros(cooled), chilled=micros(chilled), offloaded=gone)
    for row, hold in held:
        if row >= len(arrived):
            continue  # it came while the store was asked
        when = moment(int(arrived[row]))
        is_gone = gone is not None and gone.covers(int(arrived[row]), int(places[row]))
        count[tier_of(when, Hold(), is_offloaded=is_gone, ttl=ttl, at=at)] -= 1
        count[tier_of(when, hold, is_offloaded=is_gone, ttl=ttl, at=at)] += 1
    return Tiers(hot=count["hot"], warm=count["warm"], cold=count["cold"])


async def offload(store: Store, agent_id: str, index: AgentIndex, settings: Settings) -> int:
    """Send the oldest hot messages to cold storage where there are too many; returns how many."""
    import numpy as np

    at = now()
    ttl = settings.ttl
    gone = await offloaded_through(store, agent_id)
    if gone is not None and gone.arrived > micros(at):
        gone = gone.not_after(micros(at))
        await store.set_agent_note(agent_id, OFFLOADED, written_note(gone), None)
    held = await _held(store, agent_id, index, at, ttl)
    arrived, places, starts = _arrivals(index)
    held = [(row, hold) for row, hold in held if row < len(arrived)]
    # Whatever arrived before that is hot only where it is pinned.
    recent = after(arrived, starts, micros(earlier(at, ttl.max_hours)))
    pinned = [row for row, hold in held if hold.pinned]
    rows = np.union1d(recent, np.array(pinned, np.intp))
    cools_at = _plainly_cools_at(arrived[rows], at, ttl)
    for row, hold in held:
        place = int(np.searchsorted(rows, row))
        if place < len(rows) and rows[place] == row:
            cools_at[place] = micros(hot_until(moment(int(arrived[row])), hold.retrievals, ttl))
    decided = offload_decision(
        arrived[rows],
        places[rows],
        cools_at,
        np.isin(rows, pinned),
        offloaded=gone,
        at=micros(at),
        threshold=settings.prune_threshold,
        keep=settings.prune_keep,
    )
    if decided.through is None:
        return 0
    through = written_note(decided.through)
    details = {"moved": decided.moved, "through": through, "hot": decided.hot}
    await store.set_agent_note(agent_id, OFFLOADED, through, AuditDraft(verb="offload", actor=AGER, details=details))
    return decided.moved


def _arrivals(index: AgentIndex) -> tuple[NDArray[np.int64], NDArray[np.int64], list[int]]:
    """When each arrived, where it lies, and where the stretches begin in which they are in order of time."""
    view = index.rows.view()
    arrived = view["arrived"]
    through, known = _stretches.get(index, (0, []))
    if through > len(arrived):  # it was made anew
        through, known = 0, []
    starts = ordered_runs(arrived, known=known, through=through)
    _stretches[index] = (len(arrived), starts)
    return arrived, view["place"], starts


def _plainly_cools_at(arrived: NDArray[np.int64], at: datetime, ttl: Ttl) -> NDArray[np.int64]:
    """Of what was never retrieved only whether it is hot at `at` matters here, not since when or until when."""
    import numpy as np

    cooled, _ = cooling(at, ttl)
    return np.where(arrived > micros(cooled), micros(at) + 1, micros(at))


async def _offloaded(store: Store, agent_id: str, at: datetime) -> OffloadedThrough | None:
    """Never after now. `offload` mends the note."""
    through = await offloaded_through(store, agent_id)
    return None if through is None else through.not_after(micros(at))


async def _held(store: Store, agent_id: str, index: AgentIndex, at: datetime, ttl: Ttl) -> list[tuple[int, Hold]]:
    """The rows that are pinned, or were retrieved so lately that it may count."""
    since = earlier(earlier(at, ttl.max_hours), ttl.max_hours)
    lately = dict(await store.retrieved_since(agent_id, since, limit=MOST_HELD))
    pinned = await store.pinned(agent_id, limit=MOST_HELD)
    lately |= await store.holds(agent_id, [place for place in pinned if place not in lately])
    rows = index.rows.find(list(lately))
    return [(int(row), hold) for row, hold in zip(rows, lately.values(), strict=True) if row >= 0]
