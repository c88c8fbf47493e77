"""How far an agent's memory has gone to cold storage (A9): a moment, since it is always the oldest that go."""

from __future__ import annotations

from datetime import datetime

from offbook.protocols import Store

OFFLOADED = "offloaded-through"
"""The agent's note."""


async def offloaded_through(store: Store, agent_id: str) -> datetime | None:
    """Whatever arrived by then, and is not pinned, is cold."""
    note = await store.agent_note(agent_id, OFFLOADED)
    try:
        return None if note is None else datetime.fromisoformat(note)
    except ValueError:
        return None
