"""The verbs for whoever looks at an agent's memory as a whole: sessions, days, entries by name."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

import msgspec

from offbook.api.background import Background
from offbook.api.recall_service import place_of_entry
from offbook.log.store import Store
from offbook.model.lesson import LESSONS_SESSION
from offbook.model.overview import Activity, Day, EntryList, SessionPage, SessionView
from offbook.model.settings import Settings
from offbook.model.types import EMBEDDED, AuditDraft, Caller, Scope, Session
from offbook.models.tokens import CHARS_PER_TOKEN

DAYS_KEPT_SECONDS = 30.0
"""Counting the days reads every message of the agent: not for each page that is opened."""


class _KeptDays(NamedTuple):
    made_at: float
    version: tuple[int, ...]
    since: date
    days: list[Day]


class OverviewService:
    def __init__(self, store: Store, settings: Settings, background: Background) -> None:
        self._store = store
        self._settings = settings
        self._background = background
        self._days: dict[str, _KeptDays] = {}

    async def sessions(
        self,
        agent_id: str,
        *,
        after: int = 0,
        limit: int = 50,
        matching: str = "",
        session_id: str | None = None,
        by: Caller = EMBEDDED,
    ) -> SessionPage:
        """The agent's sessions, the one last written to first, each with about what its context takes."""
        if session_id is None:
            # One more than is shown, and one for the session of lessons, where nobody talked.
            found = await self._store.sessions(agent_id, limit=after + limit + 2, matching=matching)
            found = [session for session in found if session.session_id != LESSONS_SESSION]
        else:
            one = await self._store.session(Scope(agent_id=agent_id, session_id=session_id))
            found = [] if one is None else [one]
        counts = await self._store.counts(agent_id)
        lessons = await self._store.session(Scope(agent_id=agent_id, session_id=LESSONS_SESSION))
        shown = found[after : after + limit]
        await self._store.record(agent_id, AuditDraft(verb="sessions", actor=by.name, details={"sessions": len(shown)}))
        return SessionPage(
            sessions=[await self._view(session) for session in shown],
            total=counts.sessions - (lessons is not None),
            next=after + limit if len(found) > after + limit else None,
        )

    async def _view(self, session: Session) -> SessionView:
        scope = Scope(agent_id=session.agent_id, session_id=session.session_id)
        settings = self._settings.for_agent(session.agent_id)
        window, tokens = settings.token_budget.context_window, session.chars // CHARS_PER_TOKEN
        handed = await self._background.slots.handed(scope, session)
        if handed is not None:
            since = await self._background.reader.chars_after(scope, handed.last_seq)
            window, tokens = handed.context_window or window, handed.tokens_after + since // CHARS_PER_TOKEN
        return SessionView(
            **msgspec.structs.asdict(session),
            context_tokens=tokens,
            context_window=window,
            swap_at_tokens=int(window * settings.memory.compaction.threshold),
        )

    async def activity(self, agent_id: str, *, days: int = 366, by: Caller = EMBEDDED) -> Activity:
        """What was said on each of the last `days`, and what models were used."""
        await self._store.record(agent_id, AuditDraft(verb="activity", actor=by.name, details={"days": days}))
        since = datetime.now(UTC).date() - timedelta(days=days - 1)
        # What was forgotten is gone at once; what a model cost is there at once.
        version = self._store.versions.of(agent_id, "erased", "summaries", "texts")
        kept = self._days.get(agent_id)
        is_fresh = kept is not None and time.monotonic() - kept.made_at <= DAYS_KEPT_SECONDS
        if kept is None or not is_fresh or kept.version != version or kept.since > since:
            found = await self._store.activity(agent_id, since=since)
            kept = self._days[agent_id] = _KeptDays(time.monotonic(), version, since, found)
        return Activity(agent_id=agent_id, days=[one for one in kept.days if one.day >= since.isoformat()])

    async def entries(
        self,
        agent_id: str,
        *,
        entry_ids: Sequence[str] | None = None,
        limit: int = 100,
        by: Caller = EMBEDDED,
    ) -> EntryList:
        """Entries by their ids; without any, those that are pinned, the one pinned last first. Counts as no
        retrieval."""
        if entry_ids is None:
            places = await self._store.pinned(agent_id, limit=limit)
        else:
            places = [place_of_entry(name) for name in entry_ids][:limit]
        scope = Scope(agent_id=agent_id, session_id=LESSONS_SESSION)
        found = await self._background.recall.entries_at(scope, places)
        shown = [msgspec.structs.replace(entry, found_by=["pin"] if entry.pinned else []) for entry in found]
        details = {"entries": [entry.id for entry in shown]}
        await self._store.record(agent_id, AuditDraft(verb="entries", actor=by.name, details=details))
        return EntryList(entries=shown)
