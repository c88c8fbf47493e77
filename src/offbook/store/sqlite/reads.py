"""Reading: one function for each question a store is asked, over a connection that only reads."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any

import apsw
import msgspec

from offbook.audit import GENESIS, counts_with, moment
from offbook.store.sqlite.places import MOST_MESSAGES, place_of
from offbook.types import (
    AuditEvent,
    AuditHead,
    BlobRef,
    Capture,
    Content,
    Counts,
    Entry,
    Fault,
    LoggedMessage,
    Mark,
    Message,
    Scope,
    Session,
)

_MESSAGE_COLUMNS = """m.seq, m.id, m.role, m.content, m.ts, m.received_at, m.name, m.tool_call_id, m.model, m.origin,
       m.meta, m.noise, m.redactions, m.blobs, m.chars, m.fingerprint, m.hash"""
_SESSION_COLUMNS = """s.session, s.key, a.name, s.generation, s.started_at, s.ended_at, s.end_reason, s.ended_seq"""
_EVENT_COLUMNS = "e.seq, a.name, e.at, e.verb, e.actor, e.session, e.details, e.previous, e.hash"

ALL = -1
"""SQLite's own word for no limit."""

_counts = msgspec.json.Decoder(Counts)
_content = msgspec.json.Decoder(Content)
_object = msgspec.json.Decoder(dict[str, Any])
_redactions = msgspec.json.Decoder(dict[str, int])
_blobs = msgspec.json.Decoder(list[BlobRef])


def messages(connection: apsw.Connection, scope: Scope, after_seq: int, limit: int) -> list[LoggedMessage]:
    return _stretch(connection, scope, after_seq + 1, MOST_MESSAGES, "ASC", limit)


def messages_before(connection: apsw.Connection, scope: Scope, before_seq: int, limit: int) -> list[LoggedMessage]:
    return _stretch(connection, scope, 1, min(before_seq - 1, MOST_MESSAGES), "DESC", limit)


def _stretch(
    connection: apsw.Connection, scope: Scope, first_seq: int, last_seq: int, order: str, limit: int
) -> list[LoggedMessage]:
    found = connection.execute(
        "SELECT s.session FROM sessions s JOIN agents a ON a.agent = s.agent WHERE a.name = ? AND s.key = ?",
        (scope.agent_id, scope.session_id),
    ).get
    if found is None or first_seq > last_seq:
        return []
    rows = connection.execute(
        f"SELECT {_MESSAGE_COLUMNS} FROM messages m WHERE m.place BETWEEN ? AND ? "  # noqa: S608
        f"ORDER BY m.place {order} LIMIT ?",
        (place_of(found, first_seq), place_of(found, last_seq), limit),
    )
    return [_logged(row) for row in rows]


def session(connection: apsw.Connection, scope: Scope) -> Session | None:
    row = connection.execute(
        f"SELECT {_SESSION_COLUMNS} FROM sessions s JOIN agents a ON a.agent = s.agent "  # noqa: S608
        "WHERE a.name = ? AND s.key = ?",
        (scope.agent_id, scope.session_id),
    ).fetchone()
    return _session(connection, row) if row else None


def sessions(connection: apsw.Connection, agent_id: str, limit: int) -> list[Session]:
    """By noted activity, with those touched since the note before them."""
    rows = connection.execute(
        f"SELECT {_SESSION_COLUMNS} FROM sessions s JOIN agents a ON a.agent = s.agent "  # noqa: S608
        "WHERE a.name = ? ORDER BY s.touched DESC, s.session DESC LIMIT ?",
        (agent_id, limit),
    ).fetchall()
    noted = [_session(connection, row) for row in rows]
    since = audit_events(connection, agent_id, None, noted_audit_head(connection, agent_id).seq, ALL, newest_first=True)
    keys = dict.fromkeys(event.session_id for event in reversed(since) if touches(event))
    fresh = [session(connection, Scope(agent_id=agent_id, session_id=key)) for key in keys if key is not None]
    merged = {one.session_id: one for one in (*fresh, *noted) if one is not None}
    return list(merged.values())[:limit]


def touches(event: AuditEvent) -> bool:
    return "accepted" in event.details or event.verb.startswith("hooks/")


def marks(connection: apsw.Connection, scope: Scope, limit: int) -> list[Mark]:
    rows = connection.execute(
        "SELECT k.kind, k.at, k.seq, k.reason FROM marks k JOIN sessions s ON s.session = k.session "
        "JOIN agents a ON a.agent = s.agent WHERE a.name = ? AND s.key = ? ORDER BY k.mark DESC LIMIT ?",
        (scope.agent_id, scope.session_id, limit),
    ).fetchall()
    return [Mark(kind=row[0], at=moment(row[1]), seq=row[2], reason=row[3]) for row in reversed(rows)]


def agents(connection: apsw.Connection) -> list[str]:
    return [row[0] for row in connection.execute("SELECT name FROM agents ORDER BY name")]


def counts(connection: apsw.Connection, agent_id: str) -> Counts:
    """The noted counts and what has come since: never more events than the writer lets the note fall behind."""
    row = connection.execute("SELECT counts, noted_seq FROM agents WHERE name = ?", (agent_id,)).fetchone()
    if row is None:
        return Counts()
    since = audit_events(connection, agent_id, None, row[1], ALL, newest_first=False)
    return reduce(counts_with, since, _counts.decode(row[0]))


def captures(connection: apsw.Connection, agent_id: str) -> list[Capture]:
    rows = connection.execute(
        "SELECT c.client, c.sent, c.through, c.received, c.last_seen FROM captures c "
        "JOIN agents a ON a.agent = c.agent WHERE a.name = ? ORDER BY c.client",
        (agent_id,),
    )
    return [
        Capture(
            client=client,
            sent=sent,
            received=received,
            missing=through - received,
            waiting=sent - through,
            last_seen=moment(last_seen),
        )
        for client, sent, through, received, last_seen in rows
    ]


def audit_head(connection: apsw.Connection, agent_id: str) -> AuditHead:
    row = connection.execute(
        "SELECT e.seq, e.hash FROM audit e WHERE e.agent = (SELECT agent FROM agents WHERE name = ?) "
        "ORDER BY e.seq DESC LIMIT 1",
        (agent_id,),
    ).fetchone()
    return AuditHead(seq=row[0], hash=row[1]) if row else GENESIS


def noted_audit_head(connection: apsw.Connection, agent_id: str) -> AuditHead:
    row = connection.execute("SELECT noted_seq, noted_hash FROM agents WHERE name = ?", (agent_id,)).fetchone()
    return AuditHead(seq=row[0], hash=row[1]) if row else GENESIS


def audit_events(
    connection: apsw.Connection,
    agent_id: str,
    session_id: str | None,
    after_seq: int,
    limit: int,
    newest_first: bool,
) -> list[AuditEvent]:
    of_session = "AND e.session = ?" if session_id is not None else ""
    order = "DESC" if newest_first else "ASC"
    named = (session_id,) if session_id is not None else ()
    rows = connection.execute(
        f"SELECT {_EVENT_COLUMNS} FROM audit e JOIN agents a ON a.agent = e.agent "  # noqa: S608
        f"WHERE a.name = ? {of_session} AND e.seq > ? ORDER BY e.seq {order} LIMIT ?",
        (agent_id, *named, after_seq, limit),
    )
    events = [_event(row) for row in rows]
    return events[::-1] if newest_first else events


def answers(connection: apsw.Connection) -> bool:
    return connection.execute("SELECT 1 FROM installation LIMIT 1").get is not None


def installation_key(connection: apsw.Connection) -> bytes:
    return bytes(connection.execute("SELECT value FROM installation WHERE name = 'key'").get)


def integrity_faults(connection: apsw.Connection) -> Iterator[Fault]:
    for (line,) in connection.execute("PRAGMA integrity_check(100)"):
        if line != "ok":
            yield Fault(what=f"integrity check: {line}")
    for table, row_id, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        yield Fault(what=f"row {row_id} of {table} points to a row of {parent} that is not there")


def _logged(row: tuple[Any, ...]) -> LoggedMessage:
    (seq, id_, role, content, ts, received_at, name, tool_call_id, model, origin) = row[:10]
    (meta, noise, redactions, blobs, chars, fingerprint, hash_) = row[10:]
    return LoggedMessage(
        seq=seq,
        received_at=moment(received_at),
        entry=Entry(
            message=Message(
                role=role,
                content=_content.decode(content),
                id=id_,
                ts=moment(ts),
                name=name,
                tool_call_id=tool_call_id,
                model=model,
                origin=origin,
                meta=None if meta is None else _object.decode(meta),
            ),
            noise=noise,
            redactions={} if redactions is None else _redactions.decode(redactions),
            blobs=[] if blobs is None else _blobs.decode(blobs),
            chars=chars,
            fingerprint=fingerprint,
        ),
        hash=hash_,
    )


def _session(connection: apsw.Connection, row: tuple[Any, ...]) -> Session:
    (number, key, agent, generation, started_at, ended_at, end_reason, ended_seq) = row
    newest = connection.execute(
        "SELECT seq, ts, chars_through FROM messages WHERE place BETWEEN ? AND ? ORDER BY place DESC LIMIT 1",
        (place_of(number, 0), place_of(number, MOST_MESSAGES)),
    ).fetchone()
    last_seq, last_at, chars = newest or (0, started_at, 0)
    is_ended = ended_at is not None and ended_seq == last_seq
    return Session(
        session_id=key,
        agent_id=agent,
        last_seq=last_seq,
        chars=chars,
        generation=generation,
        started_at=moment(started_at),
        last_at=moment(last_at),
        ended_at=moment(ended_at) if is_ended else None,
        end_reason=end_reason if is_ended else None,
    )


def _event(row: tuple[Any, ...]) -> AuditEvent:
    (seq, agent, at, verb, actor, session_id, details, previous, hash_) = row
    return AuditEvent(
        seq=seq,
        agent_id=agent,
        at=moment(at),
        verb=verb,
        actor=actor,
        session_id=session_id,
        details=_object.decode(details),
        previous=previous,
        hash=hash_,
    )
