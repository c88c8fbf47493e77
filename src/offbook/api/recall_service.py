"""How the verbs of recall come about: whose memory may be read, what is recorded of it, what is meant by a pin
or a link."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

import msgspec

from offbook.api.background import Background
from offbook.api.surroundings import TurnSearch
from offbook.context.intent import RetrievalBudget
from offbook.ingest.entries import in_utc
from offbook.ingest.scope import checked_session, checked_text
from offbook.ingest.secret_scan import redact_text
from offbook.log.store import ANY_SEQ, CROSS, Store
from offbook.model.content import own_text, render, without_stand_ins
from offbook.model.errors import WrongShape
from offbook.model.memory_entry import (
    TAKEN_BACK,
    CrossSearch,
    Depth,
    MemoryEntry,
    Pinned,
    PlacedMessage,
    Reach,
    Recollection,
    Unlinked,
)
from offbook.model.settings import Settings
from offbook.model.types import EMBEDDED, AuditDraft, Caller, Scope, session_event
from offbook.projections.lesson_corrections import restore_uncorrected
from offbook.search.ask import Ask
from offbook.search.injection import FALLBACK_SCORE, LEAST_SHOWN, chosen, fallback, probable
from offbook.search.resolve import RETRACTED
from offbook.search.results import Lead
from offbook.search.words import entry_id, place_named, query_terms

MOST_PINNED = 1_000
"""By one keyword or session: more than that is no selection."""
ENOUGH_TERMS = 3
RECENT_CHARS = 300
SAID_BEFORE_LOOKED_AT = 8
MOST_CROSSED = 16
"""Agents searched at once."""
MOST_CROSSED_IN_A_TURN = 3
"""A turn has a deadline."""
NEWEST_LOOKED_AT = (16, 128)
"""For something that was said: tools may have given much since, and the agent may have the first of them before its
eyes."""


class RecallService:
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
        limit: int = 5,
        reach: Reach = "agent",
        at: datetime | None = None,
        include_superseded: bool = False,
        explain: bool = False,
        preview: bool = False,
        depth: Depth | None = None,
        by: Caller = EMBEDDED,
    ) -> Recollection:
        """What was said that answers the query, best first, from this session, this agent, or all that may be read.

        `at`: as it was known then. What was corrected since gives way to the correction, and says so. With `preview` no
        retrieval is counted. With `depth` deep the first ones are read once more by a model.
        """
        if not query.strip():
            raise WrongShape("`query` is empty: say what is to be recalled")
        checked_text(query, "query")
        if limit < 1:
            raise WrongShape(f"`limit` is {limit}: ask for at least 1 entry")
        at = in_utc(at, "at") if at is not None else None
        others, closed = await self._others(scope.agent_id, by) if reach == "all" else ([], [])
        if len(others) > MOST_CROSSED:
            closed = [f"cross-agent: {MOST_CROSSED} of {len(others)} other agents were searched"]
        query = self.redacted(scope.agent_id, query)
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
        search = self._background.deep_recall if depth == "deep" else self._background.recall
        with self._background.runner.answering():
            found, shown = await search(ask)
        details: dict[str, Any] = {
            "query": sha256(query.encode()).hexdigest(),
            "scope": reach,
            "entries": [entry.id for entry in found.entries],
        }
        if at is not None:
            details["at"] = at.isoformat()
        details |= ({"preview": True} if preview else {}) | ({"depth": depth} if depth == "deep" else {})
        for agent_id, places in shown.items():
            if agent_id != scope.agent_id and places:
                # Whose memory was read can see by whom.
                seen = {"by": scope.agent_id, "entries": [entry_id(place) for place in places]}
                await self._store.recalled(
                    agent_id,
                    [] if preview else places,
                    AuditDraft(verb="recall", actor=by.name, details={"scope": "all", **seen}),
                )
        event = AuditDraft(verb="recall", actor=by.name, session_id=scope.session_id, details=details)
        await self._store.recalled(scope.agent_id, [] if preview else shown.get(scope.agent_id, []), event)
        notes = closed
        if reach == "session" and not found.entries:
            notes = ["scope: nothing in this session; `scope: agent` searches the agent's other sessions too"]
        return msgspec.structs.replace(found, degraded=[*found.degraded, *notes])

    async def search_for_turn(
        self,
        scope: Scope,
        prompt: str,
        retrieval: RetrievalBudget,
        *,
        budget: int,
        is_visible: Callable[[int], bool] = lambda seq: False,
        prompt_seq: int = 0,
        seconds: float | None = None,
        stands_alone: bool = False,
        falls_back: bool = False,
        by: Caller,
    ) -> TurnSearch:
        """What comes to mind before a turn (A2, A3, A5, D6). Nothing is recorded here: the turn does that.

        What the agent has before its eyes (`is_visible`: messages of the session) comes to mind only where little else
        does, and never for being the newest. With `stands_alone` the prompt means something without what was said
        before it. With `falls_back` the newest is told where nothing else comes to mind (A3).
        """

        def qualifying(leads: Sequence[Lead]) -> list[Lead]:
            if retrieval.min_score is not None:
                return chosen(leads, budget=budget, min_score=retrieval.min_score, keep=retrieval.keep)
            return probable(leads, budget=budget, least_probability=retrieval.min_probability, keep=retrieval.keep)

        def is_seen(lead: Lead) -> bool:
            return lead.placed.session_id == scope.session_id and is_visible(lead.placed.logged.seq)

        def is_asked(lead: Lead) -> bool:
            return _is_prompt(lead, scope, prompt, prompt_seq)

        def choose(leads: Sequence[Lead]) -> list[Lead]:
            seen = [lead for lead in leads if is_seen(lead) and not is_asked(lead)]
            unseen = [lead for lead in leads if not is_seen(lead) and not is_asked(lead)]
            shown = qualifying(unseen)
            if len(shown) < LEAST_SHOWN:
                shown += qualifying(seen)[: LEAST_SHOWN - len(shown)]
            return shown if retrieval.min_score is None else [lead for lead in leads if lead in shown]

        others = (await self._others(scope.agent_id, by))[0] if await self._is_open(scope.agent_id) else []
        ask = Ask(
            scope=scope,
            query=prompt if stands_alone else await self._expanded(scope, prompt, prompt_seq),
            limit=retrieval.limit,
            explain=True,
            prefers_hot=True,
            only_said=True,
            seconds=seconds,
            others=tuple(others[:MOST_CROSSED_IN_A_TURN]),
        )
        messages: dict[str, PlacedMessage] = {}

        def choose_and_keep(leads: Sequence[Lead]) -> list[Lead]:
            shown = choose(leads)
            messages.update({entry_id(lead.placed.place): lead.placed for lead in shown})
            return shown

        found, _ = await self._background.recall(ask, choose_and_keep)
        if found.entries or not falls_back:
            return TurnSearch(found.entries, found.degraded, messages)
        newest = await self._newest(scope, lambda one: is_seen(one) or is_asked(one), budget)
        return TurnSearch(newest, found.degraded)

    def anticipate(self, agent_id: str, prompt: str) -> None:
        """`search_for_turn` is about to be asked for this."""
        if len(query_terms(prompt)) >= ENOUGH_TERMS:
            self._background.recall.anticipate(agent_id, prompt)

    async def _expanded(self, scope: Scope, prompt: str, prompt_seq: int) -> str:
        """A prompt of a word or two means something only with what was said before it."""
        if len(query_terms(prompt)) >= ENOUGH_TERMS:
            return prompt
        before = await self._store.messages_before(scope, before_seq=prompt_seq or ANY_SEQ, limit=SAID_BEFORE_LOOKED_AT)
        said = next(
            (one for one in before if one.entry.noise is None and one.message.role in ("user", "assistant")), None
        )
        text = own_text(said.message.content)[-RECENT_CHARS:] if said else ""
        return f"{prompt}\n{text}" if text else prompt

    async def _newest(self, scope: Scope, is_left_out: Callable[[Lead], bool], budget: int) -> list[MemoryEntry]:
        """A3: marked, so that nobody takes them for an answer. What was said, not what a tool gave."""
        for looked_at in NEWEST_LOOKED_AT:
            places = await self._background.search_index.newest(scope.agent_id, looked_at)
            found = await self._newest_of(scope, places, is_left_out, budget)
            if found or len(places) < looked_at:
                return found
        return []

    async def _newest_of(
        self, scope: Scope, newest: Sequence[int], is_left_out: Callable[[Lead], bool], budget: int
    ) -> list[MemoryEntry]:
        def choose(leads: Sequence[Lead]) -> list[Lead]:
            said = [lead for lead in leads if _is_said(lead) and not is_left_out(lead)]
            return fallback(said, budget=budget)

        # What was replaced or taken back does not come to mind, nor do the words that took it back.
        links = await self._store.supersessions(scope.agent_id, newest)
        links = [link for link in links if link.kind != TAKEN_BACK]
        gone = {link.old_place for link in links} | {link.new_place for link in links if link.kind == RETRACTED}
        found = await self._background.recall.entries_at(
            scope, [place for place in newest if place not in gone], choose
        )
        return [msgspec.structs.replace(entry, score=FALLBACK_SCORE, found_by=["recency"]) for entry in found]

    async def record_retrieval(
        self,
        scope: Scope,
        verb: str,
        entries: Sequence[MemoryEntry],
        details: dict[str, Any],
        by: Caller,
        *,
        counts: bool,
    ) -> None:
        """One event for who asked, and one for each other agent whose memory was read. With `counts`, one retrieval of
        each entry."""
        for agent_id in sorted({entry.agent_id for entry in entries} - {scope.agent_id}):
            seen = [entry for entry in entries if entry.agent_id == agent_id]
            read_by_other = {"by": scope.agent_id, "entries": [one.id for one in seen]}
            event = AuditDraft(verb=verb, actor=by.name, details=read_by_other)
            await self._store.recalled(agent_id, _places(seen) if counts else [], event)
        own = [entry for entry in entries if entry.agent_id == scope.agent_id]
        await self._store.recalled(
            scope.agent_id, _places(own) if counts else [], session_event(verb, by, scope, details)
        )

    def redacted(self, agent_id: str, text: str) -> str:
        """As messages are before they are stored: a secret in a query goes to no model and comes back in no answer."""
        redaction = self._settings.for_agent(agent_id).redaction
        return redact_text(text, with_personal_numbers=redaction.personal_numbers)[0] if redaction.enabled else text

    # ── pins ──

    async def pin(
        self,
        agent_id: str,
        *,
        keyword: str | None = None,
        session_id: str | None = None,
        entry_ids: Sequence[str] | None = None,
        message_ids: Sequence[str] | None = None,
        pinned: bool = True,
        by: Caller = EMBEDDED,
    ) -> Pinned:
        """Keep entries hot for ever, or (`pinned` false) let them age again: those named, those of a session or with
        these message ids in it, those that hold a keyword."""
        if keyword is None and session_id is None and entry_ids is None:
            raise WrongShape("say what is meant: `entryIds`, `sessionId` or `keyword`")
        if keyword is not None:
            checked_text(keyword, "keyword")
        checked_session(session_id)
        if message_ids is not None:
            if session_id is None or entry_ids is not None:
                raise WrongShape("`messageIds` are those of a session: say which in `sessionId`, and no `entryIds`")
            named = await self._store.places_of(Scope(agent_id=agent_id, session_id=session_id), message_ids)
            places = await self._among(agent_id, named, keyword, None)
        elif entry_ids is not None:
            places = await self._among(agent_id, [place_of_entry(name) for name in entry_ids], keyword, session_id)
        elif pinned:
            places = await self._selected(agent_id, keyword, session_id)
        else:
            pins = await self._store.pinned(agent_id, limit=10 * MOST_PINNED)
            places = await self._among(agent_id, pins, keyword, session_id)
        details: dict[str, Any] = {"asked": len(places)}
        event = AuditDraft(verb="pin" if pinned else "unpin", actor=by.name, session_id=session_id, details=details)
        changed = await self._store.pin(agent_id, places, pinned=pinned, event=event)
        return Pinned(changed=len(changed), entry_ids=[entry_id(place) for place in changed])

    async def _selected(self, agent_id: str, keyword: str | None, session_id: str | None) -> list[int]:
        session = await self._store.session_number(agent_id, session_id) if session_id is not None else None
        if session_id is not None and session is None:
            return []
        places = await self._background.search_index.matching(agent_id, keyword, session, MOST_PINNED)
        return await self._among(agent_id, places, keyword, None)

    async def _among(self, agent_id: str, places: list[int], keyword: str | None, session_id: str | None) -> list[int]:
        """Of these, where more is said: those it is true of."""
        if keyword is None and session_id is None:
            return places
        found = await self._store.messages_at(agent_id, places)
        return [
            placed.place
            for placed in found
            if (session_id is None or placed.session_id == session_id) and (keyword is None or _holds(placed, keyword))
        ]

    # ── links ──

    async def unlink(
        self, agent_id: str, entry_id: str, *, by_id: str | None = None, by: Caller = EMBEDDED
    ) -> Unlinked:
        """Take back that a later message replaced an earlier one, or may be about the same. Lessons that had given way
        with it hold again, also where an attempt before this one stopped halfway."""
        old_place, new_place = place_of_entry(entry_id), None if by_id is None else place_of_entry(by_id)
        details: dict[str, Any] = {"entries": [entry_id] if by_id is None else [entry_id, by_id]}
        event = AuditDraft(verb="unlink", actor=by.name, details=details)
        changed = await self._store.unlink(agent_id, old_place, new_place, event)
        await restore_uncorrected(self._store, agent_id, old_place)
        if not changed:
            await self._store.record(agent_id, msgspec.structs.replace(event, details=details | {"changed": 0}))
        return Unlinked(changed=changed)

    # ── across agents ──

    async def cross(self, agent_id: str, *, enabled: bool | None = None, by: Caller = EMBEDDED) -> CrossSearch:
        """Open the agent's memory and that of other agents to each other, close it, or only say how it is."""
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
            if name != agent_id and by.may_act_for(name) and self._is_here(name) and await self._is_open(name)
        ]
        return open_ones, [] if open_ones else ["cross-agent: no other agent has opened its memory"]

    def _is_here(self, agent_id: str) -> bool:
        """Of several nodes this one has it: of others' agents it keeps no index."""
        return self._store.owners is None or self._store.owners.epoch(agent_id) is not None

    async def _is_open(self, agent_id: str) -> bool:
        note = await self._store.agent_note(agent_id, CROSS)
        return self._settings.for_agent(agent_id).cross_search_enabled if note is None else note == "on"


def _is_said(lead: Lead) -> bool:
    """By the user or the agent, whatever the host says of where it came from."""
    return lead.origin in ("user", "assistant") and lead.placed.logged.message.role != "system"


def _is_prompt(lead: Lead, scope: Scope, prompt: str, prompt_seq: int) -> bool:
    """The prompt itself may be in the log already, and may have been asked before: neither answers it."""
    if lead.placed.session_id != scope.session_id:
        return False
    said = lead.placed.logged
    return said.seq == prompt_seq or render(said.message).split() == prompt.split()


def _places(entries: Sequence[MemoryEntry]) -> list[int]:
    return [place for entry in entries if (place := place_named(entry.id)) is not None]


def place_of_entry(name: str) -> int:
    place = place_named(name)
    if place is None:
        raise WrongShape(f"{name!r} is no entry's id: take it from the `id` of what `recall` answered")
    return place


def _holds(placed: PlacedMessage, keyword: str) -> bool:
    return keyword.casefold() in without_stand_ins(render(placed.logged.message)).casefold()
