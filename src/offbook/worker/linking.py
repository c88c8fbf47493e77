"""What a new message replaces is noted when it arrives, with both ends linked (D5).

Few messages correct or restate anything; for those few, what they may replace is looked up: the last turns of
the session, and what says the same words in any other.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from offbook.content import text_of
from offbook.continuity.supersede import Earlier, correction_in, facts_in, may_restate, superseded_by
from offbook.entries import PlacedMessage, Supersession
from offbook.errors import StoreCorrupt
from offbook.protocols import Store
from offbook.retrieval.words import query_terms
from offbook.types import AuditDraft

if TYPE_CHECKING:
    from offbook.retrieval.index.agent_index import AgentIndex
    from offbook.retrieval.index.rows import Said

TURNS_BACK = 30
ELSEWHERE = 60
"""Messages of other sessions that are compared, those with most words in common."""
LINKER = "offbook"
"""The actor of the audit event: nobody asked for it."""


class Telling(NamedTuple):
    """What a message states or corrects: the words to look for, and the kind of link."""

    looked_for: str
    kind: str


class Linker:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def link(
        self, agent_id: str, index: AgentIndex, messages: Sequence[PlacedMessage], said: Sequence[Said]
    ) -> None:
        for at, telling in await asyncio.to_thread(_telling, said):
            await self._link(agent_id, index, messages[at], said[at], telling)

    async def _link(self, agent_id: str, index: AgentIndex, placed: PlacedMessage, one: Said, telling: Telling) -> None:
        places = await asyncio.to_thread(_comparable, index, placed.place, telling.looked_for)
        candidates = await self._readable(agent_id, places)
        replaced = await asyncio.to_thread(_replaced, placed, one, candidates)
        kind = telling.kind
        links = [Supersession(old_place=old, new_place=placed.place, kind=kind, at=one.ts) for old in replaced]
        if links:
            event = AuditDraft(
                verb="supersede",
                actor=LINKER,
                session_id=placed.session_id,
                details={"seq": placed.logged.seq, "replaced": len(links), "kind": kind},
            )
            await self._store.supersede(agent_id, links, event)

    async def _readable(self, agent_id: str, places: Sequence[int]) -> list[PlacedMessage]:
        """What is damaged cannot be compared, and keeps nothing else from being."""
        try:
            return await self._store.messages_at(agent_id, places)
        except StoreCorrupt:
            found: list[PlacedMessage] = []
            for place in places:
                with contextlib.suppress(StoreCorrupt):
                    found += await self._store.messages_at(agent_id, [place])
            return found


# ── in threads: to read two hundred messages for what they state takes longer than an answer may wait ──


def _telling(said: Sequence[Said]) -> list[tuple[int, Telling]]:
    """Those that state or correct something, by their index."""
    found: list[tuple[int, Telling]] = []
    for at, one in enumerate(said):
        facts = facts_in(one.text, one.role, one.speaker)
        correction = correction_in(one.text, one.role)
        restates = may_restate(one.text, one.role)
        if facts or correction or restates:
            looked_for = [fact.about for fact in facts] + ([one.text] if restates else [])
            looked_for += [correction.target, correction.old] if correction else []
            found.append((at, Telling(" ".join(looked_for), correction.kind if correction else "restate")))
    return found


def _comparable(index: AgentIndex, place: int, looked_for: str) -> list[int]:
    """The places of what it may replace."""
    row = int(index.rows.find([place])[0])
    return _before_in_session(index, row) + _elsewhere(index, row, looked_for)


def _replaced(placed: PlacedMessage, one: Said, candidates: Sequence[PlacedMessage]) -> list[int]:
    earlier = [_earlier(placed, candidate) for candidate in candidates]
    return [candidates[at].place for at in superseded_by(one.text, one.role, one.speaker, earlier)]


def _before_in_session(index: AgentIndex, row: int) -> list[int]:
    view = index.rows.view()
    places: list[int] = []
    while (row := int(view["previous"][row])) >= 0 and len(places) < TURNS_BACK:
        places.append(int(view["place"][row]))
    return places


def _elsewhere(index: AgentIndex, row: int, looked_for: str) -> list[int]:
    """What shares most words with it, of what came before it in other sessions."""
    from offbook.retrieval.candidates import by_text, known_words

    words = known_words(index, query_terms(looked_for.replace("|", " ")), row)
    found = by_text(index, words, row, session=None, is_open=None)[:ELSEWHERE]
    view = index.rows.view()
    return [int(one["place"]) for one in view[found] if one["session"] != view["session"][row]]


def _earlier(placed: PlacedMessage, candidate: PlacedMessage) -> Earlier:
    message = candidate.logged.message
    text = text_of(message.content)
    is_same = candidate.session == placed.session
    return Earlier(
        text=text,
        role=message.role,
        speaker=message.name or "",
        is_same_session=is_same,
        turns_ago=placed.logged.seq - candidate.logged.seq if is_same else None,
        facts=tuple(facts_in(text, message.role, message.name or "")),
    )
