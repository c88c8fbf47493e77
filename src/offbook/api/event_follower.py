"""What happens to an agent's memory, as it happens: the end of its audit chain, for whoever watches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from offbook.api.followers import Followers
from offbook.log.store import Store
from offbook.model.status import Happened
from offbook.model.types import AuditDraft, Caller
from offbook.projections.runner import Runner

LOOK_SECONDS = 0.4
"""Between two looks at the end of the chain: one read of one row."""
EVENTS_AT_ONCE = 500
READS = frozenset({"audit", "status", "config", "log", "missing", "summaries", "sessions", "activity", "entries"})
READS |= {
    "topics",
    "anchors",
    "state",
    "lessons",
    "replay",
    "expand",
    "getCompressedContext",
    "forget/verify",
    "export",
}
"""Verbs that change nothing. Whoever watches asks them because of what is told here: it would never end."""


class EventFollower:
    def __init__(self, store: Store, runner: Runner, followers: Followers) -> None:
        self._store = store
        self._runner = runner
        self._followers = followers

    async def follow(self, agent_id: str, *, after: int | None, by: Caller) -> AsyncGenerator[Happened, None]:
        """What happens after event `after`, or from now on, look by look, also where it was nothing. Ends when the
        provider stops. One audit event says that somebody watches."""
        await self._store.record(agent_id, AuditDraft(verb="audit", actor=by.name, details={"follows": True}))
        seq = (await self._store.audit_head(agent_id)).seq if after is None else after
        while not self._followers.is_stopping:
            events = await self._store.audit_events(agent_id, after_seq=seq, limit=EVENTS_AT_ONCE)
            seq = events[-1].seq if events else seq
            shown = [event for event in events if event.verb not in READS]
            yield Happened(seq=seq, events=shown, backlog=self._runner.backlog(frozenset({agent_id})))
            await asyncio.sleep(LOOK_SECONDS)
