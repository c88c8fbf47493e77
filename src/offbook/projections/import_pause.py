"""Agents whose memory is being imported: nothing is made of it until all of it is there.

Noted in the store, so that it also holds after a kill: whoever imports again soon finds everything as they left it. It
ends by itself, should nobody come back.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from offbook.log.store import Store
from offbook.model.types import now

HOLD_SECONDS = 600.0
"""After the last that was imported: time enough to start again what broke off."""
NOTE = "importing-until"
IMPORTED, PENDING = "imported-at", "pending"
"""The note of when an import ended and what was to be made of it was made: what was told before is told anew."""


class ImportPause:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def hold(self, agent_id: str) -> None:
        until = now() + timedelta(seconds=HOLD_SECONDS)
        await self._store.set_agent_note(agent_id, NOTE, until.isoformat(), None)

    async def release(self, agent_id: str) -> None:
        await self._store.set_agent_note(agent_id, NOTE, None, None)
        await self._store.set_agent_note(agent_id, IMPORTED, PENDING, None)

    async def note_end(self, agent_id: str) -> None:
        """What was imported, if anything was, is summarised and learnt from by now."""
        if await self._store.agent_note(agent_id, IMPORTED) == PENDING:
            await self._store.set_agent_note(agent_id, IMPORTED, now().isoformat(), None)
            self._store.versions.changed(agent_id, "imports")

    async def seconds(self, agent_id: str) -> float:
        """How long the agent is still to be left alone; 0 where it is not."""
        note = await self._store.agent_note(agent_id, NOTE)
        return 0.0 if note is None else seconds_left(note, now())


def seconds_left(note: str, at: datetime) -> float:
    """A clock that jumps back makes no longer hold than there ever is."""
    try:
        left = (datetime.fromisoformat(note) - at).total_seconds()
    except (ValueError, TypeError):
        return 0.0
    return left if 0 < left <= HOLD_SECONDS else 0.0
