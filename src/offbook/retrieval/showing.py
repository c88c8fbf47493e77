"""What is shown of what was found: entries, and how they came about."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from offbook.content import is_result, render, text_of
from offbook.entries import Explained, Hold, MemoryEntry, PlacedMessage, Replaced, Why
from offbook.lifecycle.offload import offloaded_through
from offbook.lifecycle.tiers import tier_of
from offbook.protocols import Blobs, Store
from offbook.retrieval.asked import Ask, Found
from offbook.retrieval.excerpts import excerpt
from offbook.retrieval.identity import entry_id
from offbook.retrieval.query import read_query
from offbook.retrieval.settling import Standing
from offbook.retrieval.times import QueryTimes
from offbook.retrieval.whole import readable, whole_text
from offbook.settings import Ttl
from offbook.types import Message, Span

if TYPE_CHECKING:
    from offbook.retrieval.ranking import Hit

CHARS_AT_ONCE = 20_000
"""Of messages: reading more than this would hold up whoever else is being served."""
MIDDLING, SPREAD = 4.0, 2.5
"""The score shown as 0.5, and how fast it goes to 0 and 1 from there. Only the order means anything."""


async def entries_of(
    store: Store, blobs: Blobs, ttl: Ttl, ask: Ask, found: Found, chosen: Sequence[Standing], at: datetime
) -> list[MemoryEntry]:
    """What stands, with its text, its tier and why it was found. What cannot be read is left out."""
    agent_id = found.agent_id
    places = [one.place for one in chosen]
    beside = [place for one in chosen for place in one.replaces]
    if not places:
        return []
    placed, holds, offloaded = await asyncio.gather(
        readable(store, agent_id, [*places, *beside]),
        store.holds(agent_id, places),
        offloaded_through(store, agent_id),
    )
    messages = {one.place: one for one in placed}
    wholes = {one.place: whole for one in messages.values() if (whole := await whole_text(blobs, agent_id, one))}

    def shown() -> list[MemoryEntry]:
        return [
            _entry(ask, found, one, messages, wholes, holds.get(one.place, Hold()), offloaded, ttl, at)
            for one in chosen
            if one.place in messages
        ]

    chars = sum(one.logged.entry.chars for one in messages.values())
    return await asyncio.to_thread(shown) if wholes or chars > CHARS_AT_ONCE else shown()


def _entry(
    ask: Ask,
    found: Found,
    one: Standing,
    messages: Mapping[int, PlacedMessage],
    wholes: Mapping[int, Message],
    hold: Hold,
    offloaded: datetime | None,
    ttl: Ttl,
    at: datetime,
) -> MemoryEntry:
    placed, hit = messages[one.place], found.hits.get(one.place)
    message, arrived = placed.logged.message, placed.logged.received_at
    text = render(wholes.get(one.place, message))
    return MemoryEntry(
        id=entry_id(one.place),
        agent_id=found.agent_id,
        session_id=placed.session_id,
        text=excerpt(text, found.ranking.words, hit.part if hit else None),
        ts=message.ts or arrived,
        score=squashed(one.score),
        found_by=[*(hit.found_by if hit else ["correction"]), *(["pin"] if hold.pinned else [])],
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
        origin=origin_of(message),
        superseded_by=None if one.superseded_by is None else entry_id(one.superseded_by),
        why=_why(ask, one, hit, messages),
    )


def origin_of(message: Message) -> str:
    """Where it came from, as the host said, or as its blocks show: what a tool printed is a tool's, whoever sent it."""
    if message.origin:
        return message.origin
    blocks = [] if isinstance(message.content, str) else message.content
    has_result = any(is_result(block) for block in blocks)
    if not has_result or message.role == "tool":
        return message.role
    return f"{message.role}+tool" if text_of(message.content).strip() else "tool"


def squashed(score: float) -> float:
    """A score between 0 and 1 that keeps the order."""
    return round(1 / (1 + math.exp(-max(-40.0, min(40.0, (score - MIDDLING) / SPREAD)))), 6)


def _why(ask: Ask, one: Standing, hit: Hit | None, messages: Mapping[int, PlacedMessage]) -> Why | None:
    replaces = [
        Replaced(
            id=entry_id(place),
            text=excerpt(render(messages[place].logged.message), ()),
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
