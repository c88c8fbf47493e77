"""Everything an agent has as records, in one order, a page at a time.

    agent ─▶ each session as it was made: itself, its messages with the marks between them ─▶ summaries ─▶ lessons

A page is read when it is asked for and nothing is kept of it, so an export may take as long as it likes while others
write. What comes after a page was read is in a later page or in none.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from offbook.ingest.entries import check, in_utc
from offbook.ingest.scope import checked_key
from offbook.log.reading import LogReader
from offbook.log.store import ANY_SEQ, CROSS, Store
from offbook.model.errors import InvalidInput, StoreCorrupt, WrongShape
from offbook.model.lesson import lesson_id
from offbook.model.record import (
    LARGEST_COUNT,
    AgentRecord,
    ExportPage,
    LessonRecord,
    MarkRecord,
    MessageRecord,
    Record,
    RecordedSpan,
    SessionRecord,
    SummaryRecord,
    lesson_record,
    name_of,
    summary_record,
)
from offbook.model.summary import SourceSpan, Summary
from offbook.model.types import MAX_AGENT_BYTES, MAX_KEY_BYTES, LoggedMessage, Mark, Scope, Session

MOST_BYTES = 4_000_000
"""Of a page; a single message may have more."""
READ_AT_ONCE = 200

Position = Annotated[int, Meta(ge=0, le=LARGEST_COUNT)]


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """What was given last: of which kind, its name, and within a session how many messages and marks."""

    kind: Literal["agent", "session", "summary", "lesson"]
    name: str = ""
    seq: Position = 0
    marks: Position = 0


Found = AsyncIterator[tuple[Record, Cursor]]
_cursor = msgspec.json.Decoder(Cursor)


class RecordPages:
    def __init__(self, store: Store, reader: LogReader) -> None:
        self._store = store
        self._reader = reader

    async def page(self, agent_id: str, after: str | None, limit: int) -> ExportPage:
        records: list[Record] = []
        last, size = None, 0
        async for record, cursor in self._from(agent_id, None if after is None else _read(after)):
            size += len(msgspec.json.encode(record))
            if records and (len(records) == limit or size > MOST_BYTES):
                return ExportPage(agent_id=agent_id, records=records, next=last)
            records.append(record)
            last = msgspec.json.encode(cursor).decode()
        return ExportPage(agent_id=agent_id, records=records)

    async def _from(self, agent_id: str, cursor: Cursor | None) -> Found:
        if cursor is None:
            note = await self._store.agent_note(agent_id, CROSS)
            consent = None if note is None else note == "on"
            cursor = Cursor("agent")
            yield AgentRecord(agent_id=agent_id, cross_search=consent), cursor
        if cursor.kind in ("agent", "session"):
            async for found in self._sessions(agent_id, cursor):
                yield found
            cursor = Cursor("summary")
        if cursor.kind == "summary":
            async for found in self._summaries(agent_id, cursor.name or None):
                yield found
            cursor = Cursor("lesson")
        async for found in self._lessons(agent_id, cursor.seq):
            yield found

    # ── sessions ──

    async def _sessions(self, agent_id: str, cursor: Cursor) -> Found:
        key = cursor.name if cursor.kind == "session" else None
        if key is not None:
            begun = await self._store.session(Scope(agent_id=agent_id, session_id=key))
            if begun is None:
                raise _not_ours(cursor.name)
            async for found in self._within(agent_id, begun, cursor.seq, cursor.marks):
                yield found
        while page := await self._store.sessions_after(agent_id, after=key):
            for session in page:
                yield _session_record(session), Cursor("session", session.session_id)
                async for found in self._within(agent_id, session, 0, 0):
                    yield found
            key = page[-1].session_id

    async def _within(self, agent_id: str, session: Session, seq: int, marks_given: int) -> Found:
        scope = Scope(agent_id=agent_id, session_id=session.session_id)
        pins = await self._pins(scope)
        marks = (await self._store.marks(scope, limit=ANY_SEQ))[marks_given:]
        while page := await self._store.messages(scope, after_seq=seq, limit=READ_AT_ONCE):
            for logged in page:
                while marks and marks[0].seq <= seq:
                    marks_given += 1
                    yield _mark_record(scope, marks.pop(0)), Cursor("session", scope.session_id, seq, marks_given)
                seq = logged.seq
                record = await self._message_record(scope, logged, pins.get(seq))
                yield record, Cursor("session", scope.session_id, seq, marks_given)
        for mark in marks:
            if mark.seq <= seq:  # what came since lies after messages that are not in this export
                marks_given += 1
                yield _mark_record(scope, mark), Cursor("session", scope.session_id, seq, marks_given)

    async def _message_record(self, scope: Scope, logged: LoggedMessage, pinned: int | None) -> MessageRecord:
        message, missing = await self._reader.read(scope, logged)
        return MessageRecord(
            session_id=scope.session_id,
            seq=logged.seq,
            message=message,
            noise=logged.entry.noise,
            redactions=logged.entry.redactions,
            pinned=pinned,
            missing_parts=missing,
        )

    async def _pins(self, scope: Scope) -> dict[int, int]:
        """Of the session's pinned messages: the how-manieth of all the agent's pins each was."""
        own = await self._store.pinned(scope.agent_id, limit=ANY_SEQ, session_id=scope.session_id)
        if not own:
            return {}
        everything = await self._store.pinned(scope.agent_id, limit=ANY_SEQ)
        order = {place: number for number, place in enumerate(reversed(everything), 1)}
        placed = await self._store.messages_at(scope.agent_id, own)
        return {each.logged.seq: order[each.place] for each in placed if each.place in order}

    # ── what was made of them ──

    async def _summaries(self, agent_id: str, after: str | None) -> Found:
        if after is not None and await self._store.summary(agent_id, after) is None:
            raise _not_ours(after)
        while page := await self._store.summaries_after(agent_id, after=after, limit=READ_AT_ONCE):
            for summary in page:
                yield await self._summary_record(agent_id, summary), Cursor("summary", summary.id)
            after = page[-1].id

    async def _summary_record(self, agent_id: str, summary: Summary) -> SummaryRecord:
        return summary_record(summary, [await self._span(agent_id, span) for span in summary.draft.spans])

    async def _span(self, agent_id: str, span: SourceSpan) -> RecordedSpan:
        scope = Scope(agent_id=agent_id, session_id=span.session_id)
        first, last = await ends_of(self._store, scope, span.first_seq, span.last_seq)
        if first is None or last is None:
            raise StoreCorrupt(f"messages of session {span.session_id!r} are missing: `offbook doctor` finds which")
        return RecordedSpan(
            session_id=span.session_id,
            first_seq=span.first_seq,
            last_seq=span.last_seq,
            first_at=first.message.ts or first.received_at,
            last_at=last.message.ts or last.received_at,
            forgotten=await self._store.forgotten_in(scope, first_seq=span.first_seq, last_seq=span.last_seq),
        )

    async def _lessons(self, agent_id: str, number: int) -> Found:
        newest = await self._store.lessons(agent_id, limit=1)
        last = int(newest[0].id.rpartition("-")[2]) if newest else 0
        while number < last:
            number += 1
            lesson = await self._store.lesson(agent_id, lesson_id(number))
            if lesson is not None:
                yield lesson_record(lesson), Cursor("lesson", seq=number)


async def ends_of(
    store: Store, scope: Scope, first_seq: int, last_seq: int
) -> tuple[LoggedMessage | None, LoggedMessage | None]:
    """The first and the last message of a stretch; None for what is not there."""

    async def at(seq: int) -> LoggedMessage | None:
        page: Sequence[LoggedMessage] = await store.messages(scope, after_seq=seq - 1, limit=1)
        return page[0] if page and page[0].seq == seq else None

    return await at(first_seq), await at(last_seq)


def _session_record(session: Session) -> SessionRecord:
    return SessionRecord(
        session_id=session.session_id,
        started_at=session.started_at,
        parent_session_id=session.parent_session_id,
        ended_at=session.ended_at,
        end_reason=session.end_reason,
    )


def _mark_record(scope: Scope, mark: Mark) -> MarkRecord:
    return MarkRecord(session_id=scope.session_id, seq=mark.seq, kind=mark.kind, at=mark.at, reason=mark.reason)


def _read(after: str) -> Cursor:
    try:
        return _cursor.decode(after)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise _not_ours(after) from None


def _not_ours(after: str) -> WrongShape:
    return WrongShape(f"`after` is {after!r}: give the `next` of the page before")


# ── Whether records can be stored and given back. Pure: what cannot refuses the whole request ──


def checked(records: Sequence[Record]) -> list[Record]:
    """The same, their times in UTC."""
    found = []
    for record in records:
        try:
            found.append(_checked(record))
        except InvalidInput as error:
            raise WrongShape(f"{name_of(record)}: {error.detail}") from None
    return found


def _checked(record: Record) -> Record:
    match record:
        case AgentRecord():
            checked_key(record.agent_id, "agentId", MAX_AGENT_BYTES)
            return record
        case SessionRecord():
            _key(record.session_id)
            if record.parent_session_id is not None:
                checked_key(record.parent_session_id, "parentSessionId", MAX_KEY_BYTES)
            return msgspec.structs.replace(
                record, started_at=in_utc(record.started_at, "startedAt"), ended_at=_or_none(record.ended_at, "endedAt")
            )
        case MessageRecord():
            _key(record.session_id)
            return msgspec.structs.replace(record, message=check(record.message))
        case MarkRecord():
            _key(record.session_id)
            return msgspec.structs.replace(record, at=in_utc(record.at, "at"))
        case SummaryRecord():
            return msgspec.structs.replace(
                record,
                spans=[_span(span) for span in record.spans],
                first_at=in_utc(record.first_at, "firstAt"),
                last_at=in_utc(record.last_at, "lastAt"),
            )
        case LessonRecord():
            sources = [msgspec.structs.replace(each, at=in_utc(each.at, "at")) for each in record.sources]
            for source in sources:
                _key(source.session_id)
            return msgspec.structs.replace(
                record,
                sources=sources,
                first_seen=in_utc(record.first_seen, "firstSeen"),
                last_seen=in_utc(record.last_seen, "lastSeen"),
            )


def _span(span: RecordedSpan) -> RecordedSpan:
    _key(span.session_id)
    return msgspec.structs.replace(
        span, first_at=in_utc(span.first_at, "firstAt"), last_at=in_utc(span.last_at, "lastAt")
    )


def _key(session_id: str) -> None:
    checked_key(session_id, "sessionId", MAX_KEY_BYTES)


def _or_none(moment: datetime | None, field: str) -> datetime | None:
    return None if moment is None else in_utc(moment, field)
