"""The log of one agent, message by message, for whoever goes through all of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

from offbook.log.store import Store
from offbook.model.memory_entry import Arrivals, PlacedMessage
from offbook.model.receipt import FORGOTTEN
from offbook.model.types import Session

PAGE = 500


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
