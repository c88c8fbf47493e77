"""The pages of days: which messages they hold, and those written that are not what the log has."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import structlog

from offbook.log.reading import with_parts
from offbook.log.store import Blobs, Store
from offbook.model.errors import StoreCorrupt
from offbook.model.lesson import LESSONS_SESSION
from offbook.model.memory_entry import Arrivals, PlacedMessage
from offbook.model.types import Fault, LoggedMessage, Message, Scope
from offbook.projections.threads import to_the_end
from offbook.projections.wiki.day_page import (
    LARGEST_INLINE_BYTES,
    UNREADABLE_TEXT,
    Shown,
    day_page,
    log_file,
    said_at,
    shown,
)
from offbook.projections.wiki.files import AgentFolder, written
from offbook.projections.wiki.state import PageSpan, WikiState
from offbook.statements.turns import Turn, read_turn

MESSAGES_AT_A_TIME = 200
READINGS_AT_A_TIME = 10
"""Of an audit chain in which little is said."""
READ_AT_A_TIME = 200

log = structlog.get_logger("offbook.projections")


class LogPages:
    def __init__(self, store: Store, blobs: Blobs) -> None:
        self._store = store
        self._blobs = blobs

    async def follow(self, state: WikiState) -> tuple[int, bool]:
        """Give what arrived its pages; returns how many messages, and whether that was all."""
        taken, is_end = 0, False
        for _ in range(READINGS_AT_A_TIME):
            arrivals = await self.arrivals(state.agent_id, state.through_event, MESSAGES_AT_A_TIME - taken)
            if arrivals.through_event != state.through_event:
                turns = await to_the_end(_turns, arrivals.messages)
                # All at once: whoever is cancelled leaves the state as it was.
                hash_there = await event_hash(self._store, state.agent_id, arrivals.through_event)
                for placed, turn in zip(arrivals.messages, turns, strict=True):
                    state.take(placed, turn)
                state.through_event, state.through_hash = arrivals.through_event, hash_there
            taken += len(arrivals.messages)
            is_end = arrivals.is_end
            if is_end or taken >= MESSAGES_AT_A_TIME:
                break
        return taken, is_end

    async def arrivals(self, agent_id: str, after: int, limit: int) -> Arrivals:
        """Where something is damaged one event at a time up to that, which is passed over: `doctor` tells of it."""
        try:
            return await self._store.arrivals(agent_id, after_event=after, limit=limit)
        except StoreCorrupt as error:
            try:
                return await self._store.arrivals(agent_id, after_event=after, limit=1)
            except StoreCorrupt:
                log.error("passed over", action="wiki.damage", agent=agent_id, seq=after + 1, detail=error.detail)
                return Arrivals(through_event=after + 1, messages=[], is_end=False)

    async def write(self, state: WikiState, folder: AgentFolder, day: str, number: int) -> tuple[bool, int]:
        """One page, whole; returns whether it had to be written, and how many messages were read for it."""
        part = state.days[day][number - 1]
        messages = [each for stretch in part.stretches async for each in self._messages(state, stretch)]
        path = folder.logs / log_file(state.agent_id, day, number)
        titles = {stretch.session: state.title(stretch.session) for stretch in part.stretches}

        def work() -> bool:
            return written(path, day_page(state.agent_id, day, number, messages, titles), folder.wiki)

        is_new = await to_the_end(work)
        state.unwritten.discard((day, number))
        return is_new, len(messages)

    async def shown(self, agent_id: str, session: int, session_id: str, logged: LoggedMessage) -> Shown:
        return shown(session, session_id, logged, await self._whole(agent_id, logged))

    async def _messages(self, state: WikiState, stretch: PageSpan) -> AsyncIterator[Shown]:
        session_id = state.sessions[stretch.session].session_id
        scope = Scope(agent_id=state.agent_id, session_id=session_id)
        seq = stretch.first_seq - 1
        while seq < stretch.last_seq:
            page = await self._read(scope, seq, min(READ_AT_A_TIME, stretch.last_seq - seq))
            if not page:
                return
            for logged in page:
                if isinstance(logged, Fault):
                    seq = logged.seq or seq + 1
                    yield Shown(
                        session=stretch.session, session_id=session_id, seq=seq, role="unknown", text=UNREADABLE_TEXT
                    )
                else:
                    seq = logged.seq
                    yield await self.shown(state.agent_id, stretch.session, session_id, logged)

    async def _read(self, scope: Scope, after_seq: int, limit: int) -> list[LoggedMessage | Fault]:
        """A message that is damaged keeps none of the others back."""
        try:
            return list(await self._store.messages(scope, after_seq=after_seq, limit=limit))
        except StoreCorrupt:
            found = await self._store.examined_messages(scope, after_seq=after_seq, limit=limit)
            return [each if isinstance(each, Fault) else each.logged for each in found]

    async def _whole(self, agent_id: str, logged: LoggedMessage) -> Message | None:
        """With those of its texts that lie outside the log and are small."""
        small = [ref for ref in logged.entry.blobs if not ref.is_binary and ref.bytes <= LARGEST_INLINE_BYTES]
        if not small:
            return None
        return (await with_parts(self._blobs, agent_id, logged, small))[0]


def _turns(messages: Sequence[PlacedMessage]) -> list[Turn | None]:
    """As they are read for what they speak of: what the user says, but for what was written into lessons."""
    return [_turn(each.logged) if each.session_id != LESSONS_SESSION else None for each in messages]


def _turn(logged: LoggedMessage) -> Turn | None:
    is_noise = logged.entry.noise is not None
    if logged.message.role != "user" or is_noise:
        return None
    return read_turn(logged.seq, said_at(logged), logged.message, is_noise=is_noise)


async def event_hash(store: Store, agent_id: str, seq: int) -> str:
    """Empty where the chain does not reach it, or where it cannot be read."""
    try:
        events = await store.audit_events(agent_id, after_seq=seq - 1, limit=1)
    except StoreCorrupt:
        return ""
    return events[0].hash if events and events[0].seq == seq else ""
