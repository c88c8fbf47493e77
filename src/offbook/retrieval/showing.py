"""What is shown of what was found: entries, and how they came about."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from offbook.content import render
from offbook.entries import Explained, Hold, MemoryEntry, PlacedMessage, Replaced, Why
from offbook.lifecycle.offload import offloaded_through
from offbook.lifecycle.tiers import tier_of
from offbook.protocols import Store
from offbook.retrieval.asked import Ask, Found
from offbook.retrieval.excerpts import excerpt
from offbook.retrieval.identity import entry_id
from offbook.retrieval.query import read_query
from offbook.retrieval.settling import Standing
from offbook.retrieval.times import QueryTimes
from offbook.settings import Ttl
from offbook.types import Span

if TYPE_CHECKING:
    from offbook.retrieval.ranking import Hit

REPLACED_CHARS = 200
MIDDLING, SPREAD = 4.0, 2.5
"""The score shown as 0.5, and how fast it goes to 0 and 1 from there. Only the order means anything."""


async def entries_of(
    store: Store, ttl: Ttl, ask: Ask, found: Found, chosen: Sequence[Standing], at: datetime
) -> list[MemoryEntry]:
    """What stands, with its text, its tier and why it was found."""
    agent_id = found.agent_id
    places = [one.place for one in chosen]
    beside = [place for one in chosen for place in one.replaces]
    if not places:
        return []
    at_places, holds, offloaded = await asyncio.gather(
        store.messages_at(agent_id, [*places, *beside]),
        store.holds(agent_id, places),
        offloaded_through(store, agent_id),
    )
    messages = {placed.place: placed for placed in at_places}
    entries = []
    for one in chosen:
        placed = messages.get(one.place)
        if placed is None:
            continue
        hold, hit = holds.get(one.place, Hold()), found.hits.get(one.place)
        arrived = placed.logged.received_at
        message = placed.logged.message
        found_by = [*(hit.found_by if hit else ["correction"]), *(["pin"] if hold.pinned else [])]
        entries.append(
            MemoryEntry(
                id=entry_id(one.place),
                agent_id=agent_id,
                session_id=placed.session_id,
                text=excerpt(render(message), found.ranking.words, hit.part if hit else None),
                ts=message.ts or arrived,
                score=squashed(one.score),
                found_by=found_by,
                span=Span(first_seq=placed.logged.seq, last_seq=placed.logged.seq),
                tier=tier_of(
                    arrived,
                    hold.retrievals,
                    is_pinned=hold.pinned,
                    is_offloaded=offloaded is not None and arrived <= offloaded,
                    ttl=ttl,
                    at=at,
                ),
                pinned=hold.pinned,
                origin=message.origin or message.role,
                superseded_by=None if one.superseded_by is None else entry_id(one.superseded_by),
                why=_why(ask, found, one, hit, messages),
            )
        )
    return entries


def squashed(score: float) -> float:
    """A score between 0 and 1 that keeps the order."""
    return round(1 / (1 + math.exp(-max(-40.0, min(40.0, (score - MIDDLING) / SPREAD)))), 6)


def _why(ask: Ask, found: Found, one: Standing, hit: Hit | None, messages: dict[int, PlacedMessage]) -> Why | None:
    replaces = [
        Replaced(
            id=entry_id(place),
            text=excerpt(render(messages[place].logged.message), ())[:REPLACED_CHARS],
            ts=messages[place].logged.message.ts or messages[place].logged.received_at,
        )
        for place in one.replaces
        if place in messages
    ]
    if not ask.explain:
        return Why(replaces=replaces) if replaces else None
    return Why(
        replaces=replaces,
        speaker=messages[one.place].logged.message.name,
        similarity=None if hit is None or hit.similarity is None else round(hit.similarity, 4),
        ranks=hit.ranks if hit else {},
        evidence={name: round(value, 3) for name, value in hit.evidence.items()} if hit else {},
    )


def explained_by(ask: Ask, times: QueryTimes, found: Sequence[Found]) -> Explained:
    return Explained(
        query=read_query(ask.query).text,
        looked_for=list(dict.fromkeys(word for one in found for word in one.ranking.words)),
        times=[one.phrase for one in times.ranges] + [one.phrase for one in times.bounds],
        recipes={one.agent_id: one.ranking.recipe for one in found},
        looked_at=sum(one.ranking.looked_at for one in found),
        left_out=[left for one in found for left in one.left_out],
    )
