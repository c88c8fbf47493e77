"""Reading the record: one function for each question a store is asked, over a connection that only reads."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import reduce
from typing import Any

import msgspec

from offbook.log.audit_chain import GENESIS, counts_with, moment
from offbook.log.sql.audit_reads import audit_events, noted_audit_head
from offbook.log.sql.connection import DAMAGED, NO_SUCH_TABLE, UNREADABLE, Connection, only_row, reading, unreadable
from offbook.log.sql.row_ids import ALL, MOST_MESSAGES, place_of
from offbook.log.store import PARENT_NOTE, ExaminedMessage
from offbook.model.status import Capture, Counts
from offbook.model.types import (
    AuditEvent,
    AuditHead,
    BlobRef,
    Content,
    Entry,
    Fault,
    LoggedMessage,
    Mark,
    Message,
    Scope,
    Session,
)

MESSAGE_COLUMNS = """m.seq, m.id, m.role, m.content, m.ts, m.received_at, m.name, m.tool_call_id, m.model, m.origin,
       m.meta, m.noise, m.redactions, m.blobs, m.chars, m.fingerprint, m.hash, m.chars_through, m.place, m.session"""
_SESSION_COLUMNS = """s.session, s.key, a.name, s.generation, s.started_at, s.ended_at, s.end_reason, s.ended_seq"""
_MESSAGES_BETWEEN = f"""
SELECT {MESSAGE_COLUMNS} FROM messages m WHERE m.place BETWEEN ? AND ? ORDER BY m.place {{order}} LIMIT ?
"""  # noqa: S608
_MESSAGE_AT = f"SELECT {MESSAGE_COLUMNS} FROM messages m WHERE m.place = ?"  # noqa: S608
_AS_IT_STANDS = str.maketrans({one: f"!{one}" for one in "!%_"})
"""For LIKE with `ESCAPE '!'`."""
_OF_IDS = "SELECT id, place FROM messages WHERE session = ? AND id IN (SELECT value FROM json_each(?))"

_counts = msgspec.json.Decoder(Counts)
_content = msgspec.json.Decoder(Content)
_object = msgspec.json.Decoder(dict[str, Any])
_redactions = msgspec.json.Decoder(dict[str, int])
_blobs = msgspec.json.Decoder(list[BlobRef])


# ── the log ──


def messages(connection: Connection, scope: Scope, after_seq: int, limit: int) -> list[LoggedMessage]:
    number = session_number(connection, scope)
    return span_of(connection, scope, number, after_seq + 1, MOST_MESSAGES, "ASC", limit)


def messages_before(connection: Connection, scope: Scope, before_seq: int, limit: int) -> list[LoggedMessage]:
    number = session_number(connection, scope)
    return span_of(connection, scope, number, 1, min(before_seq - 1, MOST_MESSAGES), "DESC", limit)


def missing(connection: Connection, scope: Scope, ids: Sequence[str]) -> list[str]:
    known = {id_ for id_, _ in _of_ids(connection, scope, ids)}
    return [id_ for id_ in dict.fromkeys(ids) if id_ not in known]


def places_of(connection: Connection, scope: Scope, ids: Sequence[str]) -> list[int]:
    return sorted(place for _, place in _of_ids(connection, scope, ids))


def _of_ids(connection: Connection, scope: Scope, ids: Sequence[str]) -> list[tuple[str, int]]:
    """As one JSON text: the statement is the same however many they are."""
    bindings = (session_number(connection, scope), msgspec.json.encode(list(dict.fromkeys(ids))).decode())
    with reading(f"the message ids of session {scope.session_id!r} of agent {scope.agent_id!r}"):
        return list(connection.execute(_OF_IDS, bindings))


def span_of(
    connection: Connection, scope: Scope, number: int | None, first_seq: int, last_seq: int, order: str, limit: int
) -> list[LoggedMessage]:
    """Of the session with this number; nothing where there is none."""
    if number is None or first_seq > last_seq:
        return []
    bounds = (place_of(number, first_seq), place_of(number, last_seq), limit)
    try:
        return [logged_message(row) for row in connection.execute(_MESSAGES_BETWEEN.format(order=order), bounds)]
    except UNREADABLE:
        # Which of them it was is not known here.
        return [message_at(connection, scope, place) for place in _places(connection, order, bounds)]


def examined_messages(
    connection: Connection, scope: Scope, after_seq: int, limit: int
) -> list[ExaminedMessage | Fault]:
    number = session_number(connection, scope)
    if number is None or after_seq >= MOST_MESSAGES:
        return []
    bounds = (place_of(number, after_seq + 1), place_of(number, MOST_MESSAGES), limit)
    try:
        return [_examined(row, scope) for row in connection.execute(_MESSAGES_BETWEEN.format(order="ASC"), bounds)]
    except UNREADABLE:
        return [_examined_at(connection, scope, place) for place in _places(connection, "ASC", bounds)]


def session_number(connection: Connection, scope: Scope) -> int | None:
    found: int | None = connection.execute(
        "SELECT s.session FROM sessions s JOIN agents a ON a.agent = s.agent WHERE a.name = ? AND s.key = ?",
        (scope.agent_id, scope.session_id),
    ).get
    return found


def _places(connection: Connection, order: str, bounds: tuple[int, int, int]) -> list[int]:
    query = f"SELECT place FROM messages WHERE place BETWEEN ? AND ? ORDER BY place {order} LIMIT ?"  # noqa: S608
    return [int(row[0]) for row in connection.execute(query, bounds)]


def message_at(connection: Connection, scope: Scope, place: int) -> LoggedMessage:
    with reading(f"message {_seq_of(place)} of session {scope.session_id!r} of agent {scope.agent_id!r}"):
        return logged_message(only_row(connection, _MESSAGE_AT, (place,)))


def _examined_at(connection: Connection, scope: Scope, place: int) -> ExaminedMessage | Fault:
    try:
        return _examined(only_row(connection, _MESSAGE_AT, (place,)), scope)
    except DAMAGED as error:
        return Fault(
            what=unreadable("message", error),
            agent_id=scope.agent_id,
            session_id=scope.session_id,
            seq=_seq_of(place),
        )


def _seq_of(place: int) -> int:
    return place & MOST_MESSAGES


# ── sessions ──


def session(connection: Connection, scope: Scope) -> Session | None:
    with reading(f"session {scope.session_id!r} of agent {scope.agent_id!r}"):
        row = _session_row(connection, scope)
        return _session(connection, row) if row else None


def _session_row(connection: Connection, scope: Scope) -> Any:
    return connection.execute(
        f"SELECT {_SESSION_COLUMNS} FROM sessions s JOIN agents a ON a.agent = s.agent "  # noqa: S608
        "WHERE a.name = ? AND s.key = ?",
        (scope.agent_id, scope.session_id),
    ).fetchone()


def session_and_newest(connection: Connection, scope: Scope, limit: int) -> tuple[Session | None, list[LoggedMessage]]:
    with reading(f"session {scope.session_id!r} of agent {scope.agent_id!r}"):
        row = _session_row(connection, scope)
        if row is None:
            return None, []
        found = _session(connection, row)
    return found, span_of(connection, scope, row[0], 1, MOST_MESSAGES, "DESC", limit)


def sessions(connection: Connection, agent_id: str, limit: int, matching: str = "") -> list[Session]:
    """By noted activity, with those touched since the note before them."""
    wanted = _lower(matching)
    with reading(f"a session of agent {agent_id!r}"):
        rows = connection.execute(
            f"SELECT {_SESSION_COLUMNS} FROM sessions s JOIN agents a ON a.agent = s.agent "  # noqa: S608
            "WHERE a.name = ? AND lower(s.key) LIKE ? ESCAPE '!' ORDER BY s.touched DESC, s.session DESC LIMIT ?",
            (agent_id, f"%{wanted.translate(_AS_IT_STANDS)}%", limit),
        ).fetchall()
    noted = []
    for row in rows:
        with reading(f"session {row[1]!r} of agent {agent_id!r}"):
            noted.append(_session(connection, row))
    since = audit_events(connection, agent_id, None, noted_audit_head(connection, agent_id).seq, ALL, newest_first=True)
    keys = dict.fromkeys(event.session_id for event in reversed(since) if touches(event))
    named = [key for key in keys if key is not None and wanted in _lower(key)]
    fresh = [session(connection, Scope(agent_id=agent_id, session_id=key)) for key in named]
    merged = {one.session_id: one for one in (*fresh, *noted) if one is not None}
    return list(merged.values())[:limit]


def _lower(text: str) -> str:
    """As `lower` does it in SQL: of the letters of ASCII only."""
    return text.encode().lower().decode()


def touches(event: AuditEvent) -> bool:
    return "accepted" in event.details or event.verb.startswith("hooks/")


def parent_session(connection: Connection, number: int) -> str | None:
    """None also where it cannot be read, or where the store is older than notes of a session: nothing depends on it."""
    with suppress(NO_SUCH_TABLE, *DAMAGED):
        found: str | None = connection.execute(
            "SELECT value FROM session_notes WHERE session = ? AND name = ?", (number, PARENT_NOTE)
        ).get
        return found
    return None


def marks(connection: Connection, scope: Scope, limit: int) -> list[Mark]:
    with reading(f"a mark of session {scope.session_id!r} of agent {scope.agent_id!r}"):
        rows = connection.execute(
            "SELECT k.kind, k.at, k.seq, k.reason FROM marks k JOIN sessions s ON s.session = k.session "
            "JOIN agents a ON a.agent = s.agent WHERE a.name = ? AND s.key = ? ORDER BY k.mark DESC LIMIT ?",
            (scope.agent_id, scope.session_id, limit),
        ).fetchall()
        return [Mark(kind=row[0], at=moment(row[1]), seq=row[2], reason=row[3]) for row in reversed(rows)]


# ── what is known of an agent ──


def agents(connection: Connection) -> list[str]:
    with reading("the name of an agent"):
        return [row[0] for row in connection.execute("SELECT name FROM agents ORDER BY name")]


def counts(connection: Connection, agent_id: str) -> Counts:
    """The noted counts and what has come since: never more events than the writer lets the note fall behind."""
    noted, so_far = noted_counts(connection, agent_id)
    since = audit_events(connection, agent_id, None, noted.seq, ALL, newest_first=False)
    with reading(f"what the newest audit events of agent {agent_id!r} count"):
        return reduce(counts_with, since, so_far)


def noted_counts(connection: Connection, agent_id: str) -> tuple[AuditHead, Counts]:
    with reading(f"the counts noted of agent {agent_id!r}"):
        row = connection.execute(
            "SELECT noted_seq, noted_hash, counts FROM agents WHERE name = ?", (agent_id,)
        ).fetchone()
        return (AuditHead(seq=row[0], hash=row[1]), _counts.decode(row[2])) if row else (GENESIS, Counts())


def captures(connection: Connection, agent_id: str) -> list[Capture]:
    with reading(f"a capture of agent {agent_id!r}"):
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


# ── care ──


def answers(connection: Connection) -> bool:
    return connection.execute("SELECT 1 FROM installation LIMIT 1").get is not None


def installation_key(connection: Connection) -> bytes:
    with reading("the installation's key"):
        return bytes(connection.execute("SELECT value FROM installation WHERE name = 'key'").get)


# ── rows ──


def logged_message(row: tuple[Any, ...]) -> LoggedMessage:
    (seq, id_, role, content, ts, received_at, name, tool_call_id, model, origin) = row[:10]
    (meta, noise, redactions, blobs, chars, fingerprint, hash_) = row[10:17]
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


def _examined(row: tuple[Any, ...], scope: Scope) -> ExaminedMessage | Fault:
    chars_through, place, number = row[17:]
    if place != place_of(number, row[0]):
        return Fault(
            what="message was moved: its row names another session or number",
            agent_id=scope.agent_id,
            session_id=scope.session_id,
            seq=_seq_of(place),
        )
    return ExaminedMessage(logged=logged_message(row), chars_through=chars_through)


def _session(connection: Connection, row: tuple[Any, ...]) -> Session:
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
        parent_session_id=parent_session(connection, number),
    )
