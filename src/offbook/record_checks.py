"""Whether records can be stored and given back. Pure: what cannot refuses the whole request, and nothing is changed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from offbook.errors import InvalidInput, WrongShape
from offbook.ingest import check, in_utc
from offbook.records import (
    AgentRecord,
    LessonRecord,
    MarkRecord,
    MessageRecord,
    Record,
    RecordedSpan,
    SessionRecord,
    SummaryRecord,
    name_of,
)
from offbook.scope import checked_key
from offbook.types import MAX_AGENT_BYTES, MAX_KEY_BYTES


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
