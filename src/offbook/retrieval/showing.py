"""What is shown of what was found: entries, and how they came about."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from offbook.content import is_result, render, text_of
from offbook.entries import Explained, Hold, MemoryEntry, PlacedMessage, Replaced, Why
from offbook.lifecycle.tiers import tier_of
from offbook.protocols import Blobs, Store
from offbook.retrieval.asked import Ask, Found
from offbook.retrieval.excerpts import EXCERPT_CHARS, excerpt
from offbook.retrieval.identity import entry_id
from offbook.retrieval.query import read_query
from offbook.retrieval.settling import Standing
from offbook.retrieval.times import QueryTimes
from offbook.retrieval.whole import is_large, large_chars, readable, whole_text
from offbook.settings import Ttl
from offbook.types import Message, Span

if TYPE_CHECKING:
    from offbook.retrieval.ranking import Hit

CHARS_AT_ONCE = 20_000
"""Of messages: reading more than this would hold up whoever else is being served."""
LARGEST_CUT_CHARS, LARGEST_CUT_IN_A_TURN_CHARS = 32_000_000, 1_000_000
"""Of all that one answer shows something of, read one after the other: of more than that the beginning is shown. A turn
has a deadline, and without its recall nothing comes to mind."""
MIDDLING, SPREAD = 4.0, 2.5
"""The score shown as 0.5, and how fast it goes to 0 and 1 from there. Only the order means anything."""


@dataclass(frozen=True, eq=False)
class Lead:
    """Something that stands, and may be shown. What is told of it is made when it is asked for: of a long message that
    takes a while, and most leads come to nothing."""

    found: Found
    standing: Standing
    messages: Mapping[int, PlacedMessage]
    """Its own, and those that it replaces."""
    whole: Message | None
    """Its own with its large texts, where it has any that are not too large to be kept until somebody asks."""
    cut: str | None = None
    """What is shown of one that is too large, once it is chosen."""

    @property
    def placed(self) -> PlacedMessage:
        return self.messages[self.standing.place]

    @property
    def hit(self) -> Hit | None:
        """None where it was not found itself but replaced what was."""
        return self.found.hits.get(self.standing.place)

    @cached_property
    def text(self) -> str:
        return self.cut if self.cut is not None else self.shown_of(self.whole or self.placed.logged.message)

    def shown_of(self, message: Message) -> str:
        return excerpt(render(message), self.found.ranking.words, self.hit.part if self.hit else None)

    @property
    def is_uncut(self) -> bool:
        """Too large to be looked into for anybody who may not show it."""
        return self.cut is None and is_large(self.placed)

    @property
    def chars(self) -> int:
        return EXCERPT_CHARS if self.is_uncut else len(self.text)

    @property
    def similarity(self) -> float | None:
        """As it is told; None where there is none, and where it stands in for what was found: it answers as well."""
        return None if self._stands_in or self.hit is None else _rounded(self.hit.similarity)

    @property
    def is_by_text(self) -> bool:
        return self._stands_in or (self.hit is not None and "text" in self.hit.found_by)

    @property
    def origin(self) -> str:
        return origin_of(self.placed.logged.message)

    @property
    def _stands_in(self) -> bool:
        return self.hit is None or any(place in self.messages for place in self.standing.replaces)


Choose = Callable[[Sequence[Lead]], Sequence[Lead]]
"""Of these, best first, the ones to show."""


async def leads_of(store: Store, blobs: Blobs, found: Found, chosen: Sequence[Standing]) -> list[Lead]:
    """Of what stands. What cannot be read is left out."""
    if not chosen:
        return []
    agent_id = found.agent_id
    places = [place for one in chosen for place in (one.place, *one.replaces)]
    messages = {one.place: one for one in await readable(store, agent_id, places)}
    wholes = {one.place: whole for one in messages.values() if (whole := await whole_text(blobs, agent_id, one))}
    return [Lead(found, one, messages, wholes.get(one.place)) for one in chosen if one.place in messages]


async def told(
    blobs: Blobs, leads: Sequence[Lead], choose: Choose, ask: Ask, ttl_of: Callable[[str], Ttl], at: datetime
) -> list[MemoryEntry]:
    """Those that are chosen, with their text, their tier and why they were found."""
    chars = sum(lead.placed.logged.entry.chars for lead in leads)
    is_heavy = chars > CHARS_AT_ONCE or any(lead.whole is not None for lead in leads)
    chosen = await asyncio.to_thread(choose, leads) if is_heavy else choose(leads)
    shown: list[Lead] = []
    left = LARGEST_CUT_CHARS if ask.seconds is None else LARGEST_CUT_IN_A_TURN_CHARS
    for lead in chosen:
        large = large_chars(lead.placed) if lead.is_uncut else 0
        shown.append(await _cut(blobs, lead, large) if 0 < large <= left else lead)
        left -= large if large <= left else 0

    def tell() -> list[MemoryEntry]:
        return [_entry(ask, lead, ttl_of(lead.found.agent_id), at) for lead in shown]

    return await asyncio.to_thread(tell) if is_heavy else tell()


async def _cut(blobs: Blobs, lead: Lead, chars: int) -> Lead:
    whole = await whole_text(blobs, lead.found.agent_id, lead.placed, most_chars=chars)
    return replace(lead, cut=await asyncio.to_thread(lead.shown_of, whole)) if whole else lead


def _entry(ask: Ask, lead: Lead, ttl: Ttl, at: datetime) -> MemoryEntry:
    found, one, placed, hit = lead.found, lead.standing, lead.placed, lead.hit
    message, arrived = placed.logged.message, placed.logged.received_at
    hold, offloaded = found.holds.get(one.place, Hold()), found.offloaded
    return MemoryEntry(
        id=entry_id(one.place),
        agent_id=found.agent_id,
        session_id=placed.session_id,
        text=lead.text,
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
        origin=lead.origin,
        superseded_by=None if one.superseded_by is None else entry_id(one.superseded_by),
        why=_why(ask, one, hit, lead.messages),
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
        similarity=_rounded(hit.similarity) if hit else None,
        ranks=hit.ranks if hit else {},
        evidence={name: round(value, 3) for name, value in hit.evidence.items()} if hit else {},
    )


def _rounded(similarity: float | None) -> float | None:
    return None if similarity is None else round(similarity, 4)


def explained_by(ask: Ask, times: QueryTimes, found: Sequence[Found]) -> Explained:
    return Explained(
        query=read_query(ask.query).text,
        looked_for=list(dict.fromkeys(word for one in found for word in one.ranking.words)),
        times=[one.phrase for one in times.ranges] + [one.phrase for one in times.bounds],
        recipes={one.agent_id: one.ranking.recipe for one in found},
        looked_at=sum(one.ranking.looked_at for one in found),
        left_out=[left for one in found for left in one.left_out],
    )
