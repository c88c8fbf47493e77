"""The log of one agent, message by message, for whoever goes through all of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import structlog

from offbook.log.store import Store
from offbook.model.errors import StoreCorrupt
from offbook.model.memory_entry import Arrivals, PlacedMessage
from offbook.model.receipt import FORGOTTEN
from offbook.model.types import Session

PAGE = 500

log = structlog.get_logger("offbook.projections")


async def next_arrivals(store: Store, agent_id: str, *, after_event: int, limit: int, by: str) -> Arrivals:
    """What came next, for the projection that follows it. Where something is damaged one event at a time up to that,
    which is passed over: `doctor` tells of it."""
    try:
        return await store.arrivals(agent_id, after_event=after_event, limit=limit)
    except StoreCorrupt as error:
        try:
            return await store.arrivals(agent_id, after_event=after_event, limit=1)
        except StoreCorrupt:
            damaged = after_event + 1
            log.error("passed over", action=f"{by}.damage", agent=agent_id, seq=damaged, detail=error.detail)
            return Arrivals(through_event=damaged, messages=[], is_end=False)


async def arrivals_of(store: Store, agent_id: str, *, after_event: int = 0) -> AsyncIterator[Arrivals]:
    """All that came, or what came after an event, in pages. Grows with history."""
    after, is_end = after_event, False
    while not is_end:
        arrivals = await store.arrivals(agent_id, after_event=after, limit=PAGE)
        after, is_end = arrivals.through_event, arrivals.is_end
        yield arrivals


async def living_messages(store: Store, agent_id: str) -> AsyncIterator[PlacedMessage]:
    """Every message that was not forgotten."""
    async for arrivals in arrivals_of(store, agent_id):
        for placed in arrivals.messages:
            if placed.logged.entry.noise != FORGOTTEN:
                yield placed


async def sessions_of(store: Store, agent_id: str) -> AsyncIterator[Session]:
    after: str | None = None
    while page := await store.sessions_after(agent_id, after=after):
        for session in page:
            yield session
        after = page[-1].session_id
