"""Reading the audit chain: its heads, and its events from either end."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from offbook.log.audit_chain import GENESIS, micros, moment
from offbook.log.sql.connection import DAMAGED, UNREADABLE, Connection, only_row, reading, unreadable
from offbook.log.sql.row_ids import LARGEST_NUMBER
from offbook.model.types import AuditEvent, AuditHead, Fault

_EVENT_COLUMNS = "e.seq, a.name, e.at, e.verb, e.actor, e.session, e.details, e.previous, e.hash"
_EVENT_AT = f"SELECT {_EVENT_COLUMNS} FROM audit e JOIN agents a ON a.agent = e.agent WHERE a.name = ? AND e.seq = ?"  # noqa: S608

UNINDEXED_VERB = "onMessage"
"""The one that comes with every message pays for no index; it is never far to seek."""

_details = msgspec.json.Decoder(dict[str, Any])


def audit_head(connection: Connection, agent_id: str) -> AuditHead:
    with reading(f"the newest audit event of agent {agent_id!r}"):
        row = connection.execute(
            "SELECT e.seq, e.hash FROM audit e WHERE e.agent = (SELECT agent FROM agents WHERE name = ?) "
            "ORDER BY e.seq DESC LIMIT 1",
            (agent_id,),
        ).fetchone()
        return AuditHead(seq=row[0], hash=row[1]) if row else GENESIS


def noted_audit_head(connection: Connection, agent_id: str) -> AuditHead:
    with reading(f"the audit head noted of agent {agent_id!r}"):
        row = connection.execute("SELECT noted_seq, noted_hash FROM agents WHERE name = ?", (agent_id,)).fetchone()
        return AuditHead(seq=row[0], hash=row[1]) if row else GENESIS


def audit_events(
    connection: Connection,
    agent_id: str,
    session_id: str | None,
    after_seq: int,
    limit: int,
    newest_first: bool,
) -> list[AuditEvent]:
    """Oldest first, whichever of them were asked for first."""
    events = _found(connection, agent_id, *_events_after(agent_id, session_id, after_seq, limit, newest_first))
    return events[::-1] if newest_first else events


def newest_audit_events(
    connection: Connection,
    agent_id: str,
    session_id: str | None,
    limit: int,
    before_seq: int | None,
    verbs: Sequence[str] | None,
    until: datetime | None,
) -> list[AuditEvent]:
    """Oldest first. Of a session the newest of each verb, then the newest of those: the others are not looked at."""
    before = LARGEST_NUMBER if before_seq is None else min(before_seq, LARGEST_NUMBER)
    through = LARGEST_NUMBER if until is None else micros(until)
    asked: list[Sequence[str] | None] = [verbs]
    if verbs is not None and session_id is not None:
        asked = [[verb] for verb in dict.fromkeys(verbs)]
    questions = [_events_before(agent_id, session_id, before, each, through, limit) for each in asked]
    found = [event for which, bounds in questions for event in _found(connection, agent_id, which, bounds)]
    found.sort(key=lambda event: event.seq, reverse=True)
    return (found[:limit] if limit >= 0 else found)[::-1]


def examined_audit_events(
    connection: Connection, agent_id: str, after_seq: int, limit: int
) -> list[AuditEvent | Fault]:
    which, bounds = _events_after(agent_id, None, after_seq, limit, newest_first=False)
    try:
        return [event_of(row) for row in connection.execute(f"SELECT {_EVENT_COLUMNS} {which}", bounds)]
    except UNREADABLE:
        return [_examined_event_at(connection, agent_id, seq) for seq in _event_seqs(connection, which, bounds)]


def _events_after(
    agent_id: str, session_id: str | None, after_seq: int, limit: int, newest_first: bool
) -> tuple[str, tuple[str | int, ...]]:
    order = "DESC" if newest_first else "ASC"
    if session_id is None:
        which = "FROM audit e JOIN agents a ON a.agent = e.agent WHERE a.name = ? AND e.seq > ?"
        return f"{which} ORDER BY e.seq {order} LIMIT ?", (agent_id, after_seq, limit)
    # Left to itself SQLite takes the primary key, and the time grows with the history of all sessions.
    which = "FROM agents a JOIN audit e INDEXED BY audit_by_session ON e.agent = a.agent"
    which += " WHERE a.name = ? AND e.session = ? AND e.seq > ?"
    return f"{which} ORDER BY e.seq {order} LIMIT ?", (agent_id, session_id, after_seq, limit)


def _events_before(
    agent_id: str, session_id: str | None, before_seq: int, verbs: Sequence[str] | None, through: int, limit: int
) -> tuple[str, tuple[str | int, ...]]:
    """The newest first. The verbs of a session one by one, as its index has them in order only so."""
    which, bindings = "FROM audit e JOIN agents a ON a.agent = e.agent WHERE a.name = ?", [agent_id]
    if session_id is not None:
        index = "audit_by_session" if verbs is None or UNINDEXED_VERB in verbs else "audit_by_verb"
        which = f"FROM agents a JOIN audit e INDEXED BY {index} ON e.agent = a.agent WHERE a.name = ? AND e.session = ?"
        which += "" if index == "audit_by_session" else f" AND e.verb <> '{UNINDEXED_VERB}'"  # as the index says
        bindings.append(session_id)
    if verbs is not None:
        which += f" AND e.verb IN ({','.join('?' * len(verbs))})"
        bindings += verbs
    which += " AND e.seq < ? AND e.at <= ? ORDER BY e.seq DESC LIMIT ?"
    return which, (*bindings, before_seq, through, limit)


def _found(connection: Connection, agent_id: str, which: str, bounds: tuple[str | int, ...]) -> list[AuditEvent]:
    try:
        return [event_of(row) for row in connection.execute(f"SELECT {_EVENT_COLUMNS} {which}", bounds)]
    except UNREADABLE:
        # Which of them it was is not known here.
        return [_event_at(connection, agent_id, seq) for seq in _event_seqs(connection, which, bounds)]


def _event_seqs(connection: Connection, which: str, bounds: tuple[str | int, ...]) -> list[int]:
    rows: list[tuple[Any, ...]] = connection.execute(f"SELECT e.seq {which}", bounds).fetchall()
    return [seq for (seq,) in rows]


def _event_at(connection: Connection, agent_id: str, seq: int) -> AuditEvent:
    with reading(f"audit event {seq} of agent {agent_id!r}"):
        return event_of(only_row(connection, _EVENT_AT, (agent_id, seq)))


def _examined_event_at(connection: Connection, agent_id: str, seq: int) -> AuditEvent | Fault:
    try:
        return event_of(only_row(connection, _EVENT_AT, (agent_id, seq)))
    except DAMAGED as error:
        return Fault(what=unreadable("audit event", error), agent_id=agent_id, seq=seq)


def event_of(row: tuple[Any, ...]) -> AuditEvent:
    (seq, agent, at, verb, actor, session_id, details, previous, hash_) = row
    return AuditEvent(
        seq=seq,
        agent_id=agent,
        at=moment(at),
        verb=verb,
        actor=actor,
        session_id=session_id,
        details=_details.decode(details),
        previous=previous,
        hash=hash_,
    )
