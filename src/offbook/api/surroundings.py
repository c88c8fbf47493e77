"""From what was found to what is told of it: each hit with what was said beside it, as an exchange (D1, D8)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from offbook.context.prompt_text import Recalled
from offbook.context.recall_section import Ranked
from offbook.log.store import Blobs, Store
from offbook.model.content import own_text, render
from offbook.model.deadline import Deadline
from offbook.model.memory_entry import TAKEN_BACK, MemoryEntry, PlacedMessage
from offbook.model.types import LoggedMessage, Message
from offbook.search.injection import FALLBACK_SCORE
from offbook.search.resolve import PARTLY, RETRACTED
from offbook.search.substance import is_boilerplate, is_denial
from offbook.search.whole_messages import readable, whole_text
from offbook.search.words import place_named
from offbook.statements.clauses import Span, left_of, spans_of

NEARBY = 6
"""Messages looked at on either side: between a question and its answer there may be calls and their results."""
LEAST_SECONDS = 0.02
"""With less than this left, what a hit was said beside is left out."""
SAME_EXCHANGE = timedelta(hours=2)
"""What is said later answers something else."""


READ_CHARS = 6_000
"""Of a longer message only the excerpt that was found is told."""


class TurnSearch(NamedTuple):
    """What came to mind, best first, and what was unavailable."""

    entries: list[MemoryEntry]
    degraded: list[str]
    messages: Mapping[str, PlacedMessage] = {}
    """By the id of the entry, where it was read already."""


NOTHING_FOUND = TurnSearch([], [])


class Neighbour(NamedTuple):
    """What a hit was said beside, and which message that is."""

    text: str
    seq: int
    speaker: str | None = None
    is_theirs: bool = False
    """It was said before an answer of the agent's, which is the hit."""


class Surroundings:
    def __init__(self, store: Store, blobs: Blobs) -> None:
        self._store = store
        self._blobs = blobs

    async def with_surroundings(self, agent_id: str, found: TurnSearch, deadline: Deadline) -> list[Ranked]:
        """The same as `of` where there is time for it; else each entry alone."""
        if found.entries and deadline.left > LEAST_SECONDS:
            ranked = await deadline.get("exchanges", self.of(agent_id, found))
            if ranked is not None:
                return ranked
        return [Ranked(bare(entry), rank) for rank, entry in in_order_of_time(found.entries)]

    async def of(self, agent_id: str, found: TurnSearch) -> list[Ranked]:
        """The entries, given best first, in order of time. Two that belong to one exchange are told together.

        What was replaced or taken back since is not told beside anything, and what the agent said to something that
        was taken back is not told at all.
        """
        entries = found.entries
        own = [entry for entry in entries if entry.agent_id == agent_id]
        messages = await self._messages(agent_id, own, found.messages)
        beside = await self._beside(agent_id, own, messages)
        replaced = await self._replaced(agent_id, own, beside)
        left = await self._left(agent_id, own)
        hits = {(entry.session_id, entry.span.first_seq): entry for entry in own}
        ranks = {entry.id: rank for rank, entry in enumerate(entries)}
        ranked: list[Ranked] = []
        shown_beside: set[tuple[str, int]] = set()
        is_shown: set[str] = {
            entry_id for entry_id, kind in replaced.items() if kind == RETRACTED and beside[entry_id].is_theirs
        }
        for rank, entry in in_order_of_time(entries):
            if entry.id in is_shown:
                continue
            by = beside.get(entry.id) if entry.id not in replaced and entry.id not in left else None
            by = by if by is not None and _is_to_be_shown(by, entry, hits, shown_beside) else None
            also = hits.get((entry.session_id, by.seq)) if by and not by.is_theirs else None
            if also is not None and (also.id in is_shown or (also.why and also.why.replaces)):
                also = None
            shown_beside |= {(entry.session_id, by.seq)} if by is not None else set()
            is_shown.update(one.id for one in (entry, also) if one is not None)
            one = self._recalled(entry, messages.get(entry.id), by, left.get(entry.id))
            best = min(rank, ranks[also.id]) if also is not None else rank
            ranked.append(Ranked(one, best, (also.id,) if also is not None else ()))
        return ranked

    async def _replaced(
        self, agent_id: str, entries: Sequence[MemoryEntry], beside: Mapping[str, Neighbour]
    ) -> dict[str, str]:
        """Of which entries that which they were said beside no longer holds, all or in part, and how it came about."""
        places: dict[int, str] = {}
        for entry in entries:
            place, one = place_named(entry.id), beside.get(entry.id)
            if place is not None and one is not None:
                places[place + one.seq - entry.span.first_seq] = entry.id
        links = await self._store.supersessions(agent_id, list(places)) if places else []
        return {
            places[link.old_place]: link.kind for link in links if link.old_place in places and link.kind != TAKEN_BACK
        }

    async def _left(self, agent_id: str, entries: Sequence[MemoryEntry]) -> dict[str, str]:
        """Of which entries a part no longer holds, and what of them does. Not where nobody knows which part: that is
        told as corrected since."""
        corrected = [(place_named(entry.id), entry.id) for entry in entries if entry.superseded_by is not None]
        places = {place: entry_id for place, entry_id in corrected if place is not None}
        if not places:
            return {}
        spans: dict[int, list[list[Span]]] = {}
        for link in await self._store.supersessions(agent_id, list(places)):
            if link.old_place in places and link.kind != TAKEN_BACK:
                spans.setdefault(link.old_place, []).append(spans_of(link.note) if link.kind == PARTLY else [])
        known = {place: [span for each in some for span in each] for place, some in spans.items() if all(some)}
        placed = await readable(self._store, agent_id, list(known))
        texts = {one.place: left_of(own_text(one.logged.message.content), known[one.place]) for one in placed}
        return {places[place]: text for place, text in texts.items() if text and len(text) <= READ_CHARS}

    async def _messages(
        self, agent_id: str, entries: Sequence[MemoryEntry], known: Mapping[str, PlacedMessage]
    ) -> dict[str, Message]:
        places = {place: entry.id for entry in entries if (place := place_named(entry.id)) is not None}
        unread = [place for place, entry_id in places.items() if entry_id not in known]
        placed = [known[entry.id] for entry in entries if entry.id in known]
        placed += await readable(self._store, agent_id, unread) if unread else []
        return {places[one.place]: await self._whole(agent_id, one) for one in placed}

    async def _whole(self, agent_id: str, placed: PlacedMessage) -> Message:
        return await whole_text(self._blobs, agent_id, placed) or placed.logged.message

    async def _beside(
        self, agent_id: str, entries: Sequence[MemoryEntry], messages: Mapping[str, Message]
    ) -> dict[str, Neighbour]:
        """What they had said before an answer of the agent's, or what it answered to theirs."""
        places: dict[str, range] = {}
        for entry in entries:
            place, message = place_named(entry.id), messages.get(entry.id)
            if place is None or message is None or entry.score == FALLBACK_SCORE:
                continue
            if message.role == "user":
                places[entry.id] = range(place + 1, place + 1 + NEARBY)
            elif message.role == "assistant":
                places[entry.id] = range(place - min(NEARBY, entry.span.first_seq - 1), place)
        wanted = list(dict.fromkeys(place for near in places.values() for place in near))
        logged = {one.place: one.logged for one in await readable(self._store, agent_id, wanted)} if wanted else {}
        found: dict[str, Neighbour] = {}
        for entry in entries:
            if entry.id not in places:
                continue
            page = [logged[place] for place in places[entry.id] if place in logged]
            page = [one for one in page if abs((one.message.ts or one.received_at) - entry.ts) <= SAME_EXCHANGE]
            beside = _answer(page) if messages[entry.id].role == "user" else _question(page) if page else None
            if beside is not None:
                found[entry.id] = beside
        return found

    def _recalled(
        self, entry: MemoryEntry, message: Message | None, beside: Neighbour | None, left: str | None
    ) -> Recalled:
        if message is None:
            return bare(entry)
        if left is not None:
            return Recalled(msgspec.structs.replace(entry, superseded_by=None), message.role, message.name, said=left)
        whole = render(message)
        is_theirs = beside is not None and beside.is_theirs
        return Recalled(
            entry=entry,
            role=message.role,
            speaker=message.name,
            said=whole if len(whole) <= READ_CHARS else entry.text,
            before=beside.text if beside and is_theirs else "",
            asker=beside.speaker if beside and is_theirs else None,
            after=beside.text if beside and not is_theirs else "",
            is_newest=entry.score == FALLBACK_SCORE,
        )


def _is_to_be_shown(
    by: Neighbour, entry: MemoryEntry, hits: Collection[tuple[str, int]], shown_beside: Collection[tuple[str, int]]
) -> bool:
    """Not where it is told elsewhere, or where something between the two is told by itself and has to come first."""
    place = (entry.session_id, by.seq)
    if place in shown_beside or (by.is_theirs and place in hits):
        return False
    return not any((entry.session_id, seq) in hits for seq in range(entry.span.first_seq + 1, by.seq))


def in_order_of_time(entries: Sequence[MemoryEntry]) -> list[tuple[int, MemoryEntry]]:
    """With the place of each in the ranking. Inside a session as it was said, whatever the host's clock did."""
    said_at: dict[str, datetime] = {}
    newest: dict[tuple[str, str], datetime] = {}
    for entry in sorted(entries, key=lambda entry: entry.span.first_seq):
        session = (entry.agent_id, entry.session_id)
        newest[session] = said_at[entry.id] = max(entry.ts, newest.get(session, entry.ts))
    return sorted(
        enumerate(entries), key=lambda pair: (said_at[pair[1].id], pair[1].session_id, pair[1].span.first_seq)
    )


def bare(entry: MemoryEntry) -> Recalled:
    """An entry alone: where there is no time for more, or the message is another agent's."""
    role = next((one for one in ("assistant", "tool", "system") if entry.origin.startswith(one)), "user")
    return Recalled(entry=entry, role=role, is_newest=entry.score == FALLBACK_SCORE)


def _answer(page: Sequence[LoggedMessage]) -> Neighbour | None:
    """The last thing said before they spoke again: "Let me look" comes before what was found."""
    found: Neighbour | None = None
    for one in page:
        if one.message.role == "user":
            break
        if one.message.role == "assistant" and one.entry.noise is None and _is_own(one.message):
            text = own_text(one.message.content).strip()
            if text and not is_denial(text, "assistant") and not is_boilerplate(text):
                found = Neighbour(text, one.seq, one.message.name)
    return found


def _question(page: Sequence[LoggedMessage]) -> Neighbour | None:
    for one in reversed(page):
        if one.message.role == "user" and one.entry.noise is None and _is_own(one.message):
            text = own_text(one.message.content).strip()
            return Neighbour(text, one.seq, one.message.name, is_theirs=True) if text else None
    return None


def _is_own(message: Message) -> bool:
    """Not brought from elsewhere by whoever sent it."""
    return message.origin in (None, "", message.role)
