"""From what was found to what is told of it: each hit with what was said beside it, as an exchange (D1, D8)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from offbook.content import render, text_of
from offbook.continuity.recall_section import Ranked
from offbook.continuity.telling import Recalled
from offbook.deadline import Deadline
from offbook.entries import MemoryEntry, PlacedMessage
from offbook.errors import StoreError
from offbook.protocols import Blobs, Store
from offbook.retrieval.identity import place_named
from offbook.retrieval.injection import FALLBACK_SCORE
from offbook.retrieval.substance import is_boilerplate, is_denial
from offbook.retrieval.whole import readable, whole_text
from offbook.types import LoggedMessage, Message, Scope

NEARBY = 4
"""Messages looked at on either side: between a question and its answer there may be calls and their results."""
LEAST_SECONDS = 0.02
"""With less than this left, what a hit was said beside is left out."""
SAME_EXCHANGE = timedelta(hours=2)
"""What is said later answers something else."""


class Beside(NamedTuple):
    """What a hit was said beside, and which message that is."""

    text: str
    seq: int


class Exchanges:
    def __init__(self, store: Store, blobs: Blobs) -> None:
        self._store = store
        self._blobs = blobs

    async def told_of(
        self, agent_id: str, entries: Sequence[MemoryEntry], said_chars: int, deadline: Deadline
    ) -> list[Ranked]:
        """The same as `of` where there is time for it; else each entry alone."""
        if entries and deadline.left > LEAST_SECONDS:
            told = await deadline.get("exchanges", self.of(agent_id, entries, said_chars))
            if told is not None:
                return told
        return [Ranked(bare(entry), rank) for rank, entry in in_order_of_time(entries)]

    async def of(self, agent_id: str, entries: Sequence[MemoryEntry], said_chars: int) -> list[Ranked]:
        """The entries, given best first, in order of time. Two that belong to one exchange are told together."""
        own = [entry for entry in entries if entry.agent_id == agent_id]
        messages = await self._messages(agent_id, own)
        besides = await asyncio.gather(*(self._beside(agent_id, entry, messages.get(entry.id)) for entry in own))
        beside = dict(zip((entry.id for entry in own), besides, strict=True))
        hits = {(entry.session_id, entry.span.first_seq): entry for entry in own}
        ranks = {entry.id: rank for rank, entry in enumerate(entries)}
        told: list[Ranked] = []
        told_beside: set[str] = set()
        for rank, entry in in_order_of_time(entries):
            if entry.id in told_beside:
                continue
            before, after = beside.get(entry.id, (None, None))
            also = hits.get((entry.session_id, after.seq)) if after else None
            also = also if also is not None and not (also.why and also.why.replaces) else None
            if also is not None:
                told_beside.add(also.id)
            one = self._recalled(entry, messages.get(entry.id), before, after, said_chars)
            best = min(rank, ranks[also.id]) if also is not None else rank
            told.append(Ranked(one, best, (also.id,) if also is not None else ()))
        return told

    async def _messages(self, agent_id: str, entries: Sequence[MemoryEntry]) -> dict[str, Message]:
        places = {place: entry.id for entry in entries if (place := place_named(entry.id)) is not None}
        placed = await readable(self._store, agent_id, list(places))
        return {places[one.place]: await self._whole(agent_id, one) for one in placed}

    async def _whole(self, agent_id: str, placed: PlacedMessage) -> Message:
        return await whole_text(self._blobs, agent_id, placed) or placed.logged.message

    async def _beside(
        self, agent_id: str, entry: MemoryEntry, message: Message | None
    ) -> tuple[Beside | None, Beside | None]:
        """What they had said before an answer of the agent's, or what it answered to theirs."""
        if message is None or message.role not in ("user", "assistant") or entry.score == FALLBACK_SCORE:
            return None, None
        seq = entry.span.first_seq
        scope = Scope(agent_id=agent_id, session_id=entry.session_id)
        after_seq = seq if message.role == "user" else max(0, seq - NEARBY - 1)
        try:
            page = await self._store.messages(scope, after_seq=after_seq, limit=NEARBY)
        except StoreError:
            return None, None
        page = [one for one in page if abs((one.message.ts or one.received_at) - entry.ts) <= SAME_EXCHANGE]
        if message.role == "user":
            return None, _answer(page)
        return _question([one for one in page if one.seq < seq]), None

    def _recalled(
        self,
        entry: MemoryEntry,
        message: Message | None,
        before: Beside | None,
        after: Beside | None,
        said_chars: int,
    ) -> Recalled:
        if message is None:
            return bare(entry)
        whole = render(message)
        return Recalled(
            entry=entry,
            role=message.role,
            speaker=message.name,
            said=whole if len(whole) <= said_chars else entry.text,
            before=before.text if before else "",
            after=after.text if after else "",
            is_newest=entry.score == FALLBACK_SCORE,
        )


def in_order_of_time(entries: Sequence[MemoryEntry]) -> list[tuple[int, MemoryEntry]]:
    """With the place of each in the ranking."""
    return sorted(enumerate(entries), key=lambda pair: (pair[1].ts, pair[1].session_id, pair[1].span.first_seq))


def bare(entry: MemoryEntry) -> Recalled:
    """An entry alone: where there is no time for more, or the message is another agent's."""
    role = next((one for one in ("assistant", "tool", "system") if entry.origin.startswith(one)), "user")
    return Recalled(entry=entry, role=role, is_newest=entry.score == FALLBACK_SCORE)


def _answer(page: Sequence[LoggedMessage]) -> Beside | None:
    for one in page:
        if one.message.role == "user":
            return None
        if one.message.role == "assistant" and one.entry.noise is None:
            text = text_of(one.message.content).strip()
            if text and not is_denial(text, "assistant") and not is_boilerplate(text):
                return Beside(text, one.seq)
    return None


def _question(page: Sequence[LoggedMessage]) -> Beside | None:
    for one in reversed(page):
        if one.message.role == "user" and one.entry.noise is None and one.message.origin in (None, "", "user"):
            text = text_of(one.message.content).strip()
            return Beside(text, one.seq) if text else None
    return None
