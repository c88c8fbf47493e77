"""What a new message replaces is noted when it arrives, with both ends linked (D5).

Few messages correct or restate anything; for those few, what they may replace is looked up: the last turns of
the session, and what says the same words in any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from offbook.content import text_of
from offbook.continuity.supersede import Earlier, correction_in, facts_in, superseded_by
from offbook.entries import PlacedMessage, Supersession
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


class Linker:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def link(
        self, agent_id: str, index: AgentIndex, messages: Sequence[PlacedMessage], said: Sequence[Said]
    ) -> None:
        for placed, one in zip(messages, said, strict=True):
            facts = facts_in(one.text, one.role, one.speaker)
            correction = correction_in(one.text, one.role)
            if facts or correction:
                looked_for = [fact.about for fact in facts]
                looked_for += [correction.target, correction.old] if correction else []
                kind = correction.kind if correction else "restate"
                await self._link(agent_id, index, placed, one, " ".join(looked_for), kind)

    async def _link(
        self, agent_id: str, index: AgentIndex, placed: PlacedMessage, one: Said, looked_for: str, kind: str
    ) -> None:
        row = int(index.rows.find([placed.place])[0])
        places = _before_in_session(index, row) + _elsewhere(index, row, looked_for)
        candidates = await self._store.messages_at(agent_id, places)
        earlier = [_earlier(placed, candidate) for candidate in candidates]
        replaced = superseded_by(one.text, one.role, one.speaker, earlier)
        links = [
            Supersession(old_place=candidates[at].place, new_place=placed.place, kind=kind, at=one.ts)
            for at in replaced
        ]
        if links:
            event = AuditDraft(
                verb="supersede",
                actor=LINKER,
                session_id=placed.session_id,
                details={"seq": placed.logged.seq, "replaced": len(links), "kind": kind},
            )
            await self._store.supersede(agent_id, links, event)


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
