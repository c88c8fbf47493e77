"""How the verbs of recall come about: whose memory may be read, what is recorded of it, what is meant by a pin."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

import msgspec

from offbook.content import render
from offbook.entries import CrossSearch, Pinned, PlacedMessage, Reach, Recollection
from offbook.errors import WrongShape
from offbook.protocols import Store
from offbook.retrieval.identity import entry_id, place_named
from offbook.retrieval.recall import Ask
from offbook.settings import Settings
from offbook.types import AuditDraft, Caller, Scope
from offbook.worker.background import Background

CROSS = "cross-search"
"""The agent's note of its consent: `on` or `off`; without one the setting `crossSearchEnabled` decides."""
MOST_PINNED = 1_000
"""By one keyword or session: more than that is no selection."""
MOST_CROSSED = 16
"""Agents searched at once."""


class Recollections:
    def __init__(self, store: Store, settings: Settings, background: Background) -> None:
        self._store = store
        self._settings = settings
        self._background = background

    # ── recall ──

    async def recall(
        self,
        scope: Scope,
        query: str,
        *,
        limit: int,
        reach: Reach,
        at: datetime | None,
        include_superseded: bool,
        explain: bool,
        by: Caller,
    ) -> Recollection:
        others, closed = await self._others(scope.agent_id, by) if reach == "all" else ([], [])
        ask = Ask(
            scope=scope,
            query=query,
            limit=limit,
            reach=reach,
            at=at,
            include_superseded=include_superseded,
            explain=explain,
            others=tuple(others[:MOST_CROSSED]),
        )
        found, shown = await self._background.recall(ask)
        details: dict[str, Any] = {
            "query": sha256(query.encode()).hexdigest(),
            "scope": reach,
            "entries": [entry.id for entry in found.entries],
        }
        if at is not None:
            details["at"] = at.isoformat()
        for agent_id, places in shown.items():
            if agent_id != scope.agent_id and places:
                # Whose memory was read can see by whom.
                seen = {"by": scope.agent_id, "entries": [entry_id(place) for place in places]}
                await self._store.recalled(
                    agent_id, places, AuditDraft(verb="recall", actor=by.name, details={"scope": "all", **seen})
                )
        event = AuditDraft(verb="recall", actor=by.name, session_id=scope.session_id, details=details)
        await self._store.recalled(scope.agent_id, shown.get(scope.agent_id, []), event)
        notes = closed
        if reach == "session" and not found.entries:
            notes = ["scope: nothing in this session; `scope: agent` searches the agent's other sessions too"]
        return msgspec.structs.replace(found, degraded=[*found.degraded, *notes])

    # ── pins ──

    async def pin(
        self,
        agent_id: str,
        *,
        keyword: str | None,
        session_id: str | None,
        entry_ids: Sequence[str] | None,
        pinned: bool,
        by: Caller,
    ) -> Pinned:
        if entry_ids is not None:
            places = [_place(name) for name in entry_ids]
        elif pinned:
            places = await self._meant(agent_id, keyword, session_id)
        else:
            places = await self._meant_of_pinned(agent_id, keyword, session_id)
        details: dict[str, Any] = {"asked": len(places)}
        event = AuditDraft(verb="pin" if pinned else "unpin", actor=by.name, session_id=session_id, details=details)
        changed = await self._store.pin(agent_id, places, pinned=pinned, event=event)
        return Pinned(changed=len(changed), entry_ids=[entry_id(place) for place in changed])

    async def _meant(self, agent_id: str, keyword: str | None, session_id: str | None) -> list[int]:
        session = await self._store.session_numbers(agent_id, session_id) if session_id is not None else None
        if session_id is not None and session is None:
            return []
        places = await self._background.places(agent_id, keyword, session, MOST_PINNED)
        if keyword is None:
            return places
        found = await self._store.messages_at(agent_id, places)
        return [placed.place for placed in found if _holds(placed, keyword)]

    async def _meant_of_pinned(self, agent_id: str, keyword: str | None, session_id: str | None) -> list[int]:
        found = await self._store.messages_at(agent_id, await self._store.pinned(agent_id, limit=10 * MOST_PINNED))
        return [
            placed.place
            for placed in found
            if (session_id is None or placed.session_id == session_id) and (keyword is None or _holds(placed, keyword))
        ]

    # ── across agents ──

    async def cross(self, agent_id: str, *, enabled: bool | None, by: Caller) -> CrossSearch:
        event = AuditDraft(verb="cross", actor=by.name, details={} if enabled is None else {"enabled": enabled})
        if enabled is None:
            await self._store.record(agent_id, event)
        else:
            await self._store.set_agent_note(agent_id, CROSS, "on" if enabled else "off", event)
        others, _ = await self._others(agent_id, by)
        return CrossSearch(enabled=await self._is_open(agent_id), agents=others)

    async def _others(self, agent_id: str, by: Caller) -> tuple[list[str], list[str]]:
        """The agents whose memory may be read besides its own, and what is to be said where there are none.

        Both sides have to agree: an agent that is closed neither reads nor is read.
        """
        if not await self._is_open(agent_id):
            return [], ["cross-agent: switched off for this agent; `offbook cross on` opens it"]
        by_setting = [name for name, own in self._settings.agents.items() if own.cross_search_enabled]
        known = await self._store.agents()
        named = (
            known
            if self._settings.cross_search_enabled
            else [*await self._store.agents_with_note(CROSS, "on"), *(name for name in by_setting if name in known)]
        )
        open_ones = [
            name
            for name in dict.fromkeys(named)
            if name != agent_id and by.may_act_for(name) and await self._is_open(name)
        ]
        return open_ones, [] if open_ones else ["cross-agent: no other agent has opened its memory"]

    async def _is_open(self, agent_id: str) -> bool:
        note = await self._store.agent_note(agent_id, CROSS)
        return self._settings.for_agent(agent_id).cross_search_enabled if note is None else note == "on"


def _place(name: str) -> int:
    place = place_named(name)
    if place is None:
        raise WrongShape(f"{name!r} is no entry's id: take it from the `id` of what `recall` answered")
    return place


def _holds(placed: PlacedMessage, keyword: str) -> bool:
    return keyword.casefold() in render(placed.logged.message).casefold()
