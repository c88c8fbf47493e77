"""The log and its chain after some of both was lost: a stand-in in each place, and an event that names them.

A lost event left its hash in the one after it, so the chain still holds together. What it stored is known from the
events of the session around it. Part of `salvage`: inside its transaction.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple

import apsw
import msgspec

from offbook.log.audit_chain import (
    GENESIS,
    batch_hash,
    counts_with,
    event_hash,
    fingerprint,
    message_hash,
    micros,
    moment,
    seal,
    stand_ins_hash,
)
from offbook.log.sql import reads
from offbook.log.sql.audit_reads import audit_events
from offbook.log.sql.row_ids import ALL, MOST_MESSAGES, place_of
from offbook.log.sqlite.pages import Row
from offbook.log.sqlite.salvaged_names import message_hashes, name_sessions, newest_named
from offbook.model.receipt import FORGOTTEN, ForgottenSpan
from offbook.model.status import Counts
from offbook.model.types import LOST, SALVAGE, AuditDraft, AuditEvent, AuditHead, Entry, Message, now

LOST_TEXT = "[This message is lost: the database file was damaged where it stood.]"
ACTOR = "offbook"
MOST_EVENTS_AT_THE_END = 100_000
"""That a note may tell of beyond the last event: more is a damaged note."""
MOST_LOST = 1_000_000
"""Messages of one session."""

_sorted_json = msgspec.json.Encoder(order="deterministic")


class AgentLoss(NamedTuple):
    """What an agent has lost."""

    agent_id: str
    messages: int
    events: int
    spans: list[ForgottenSpan]
    """The messages."""
    event_spans: list[list[int]]
    """The first and the last of each run of events."""


@dataclass
class _Stretch:
    """Messages of a session that no event left vouches for."""

    session: int
    key: str
    first_seq: int
    last_seq: int


@dataclass
class _Sessions:
    """Of one agent."""

    numbers: dict[str, int]
    last_seq: dict[str, int] = field(default_factory=dict)
    """The last message that an event left vouches for."""
    last_event: dict[str, int] = field(default_factory=dict)


def restored_chain(
    connection: apsw.Connection, indexed: Mapping[str, Sequence[Row]], noted: Mapping[int, int], kept_as: str
) -> list[AgentLoss]:
    """`indexed`: what indexes say of sessions and messages. `noted`: by agent, the last event that was noted of it."""
    name_sessions(connection, indexed.get("sessions", ()))
    newest = newest_named(indexed.get("messages", ()))
    agents: Any = connection.execute("SELECT agent, name FROM agents ORDER BY agent").fetchall()
    return [_restored(connection, agent, name, noted.get(agent, 0), newest, kept_as) for agent, name in agents]


# ── one agent ──


def _restored(
    connection: apsw.Connection, agent: int, name: str, noted_seq: int, newest: Mapping[int, int], kept_as: str
) -> AgentLoss:
    events = {event.seq: event for event in audit_events(connection, name, None, 0, ALL, newest_first=False)}
    rows: Any = connection.execute("SELECT key, session FROM sessions WHERE agent = ?", (agent,)).fetchall()
    sessions = _Sessions(dict(rows))
    last = max(events, default=0)
    end = noted_seq if last < noted_seq <= last + MOST_EVENTS_AT_THE_END else last
    free = [seq for seq in range(1, end + 1) if seq not in events]
    placed = _placed(connection, sessions, events, free, end, newest)
    lost_messages = _fill_sessions(connection, sessions)
    lost_events = sorted({*free, *placed})
    chain = _with_stand_ins(connection, name, events, lost_events, placed)
    details = _details(connection, agent, chain, len(lost_messages), len(lost_events), kept_as)
    head = chain[-1] if chain else None
    before = GENESIS if head is None else AuditHead(seq=head.seq, hash=head.hash)
    told = seal(name, AuditDraft(verb=SALVAGE, actor=ACTOR, details=details), before, now())
    for event in [*(event for event in chain if event.seq not in events), told]:
        _insert_event(connection, agent, event)
    counts = reduce(counts_with, [*chain, told], Counts())
    connection.execute(
        "UPDATE agents SET counts = ?, noted_seq = ?, noted_hash = ? WHERE agent = ?",
        (_sorted_json.encode(counts).decode(), told.seq, told.hash, agent),
    )
    spans = _spans(lost_messages)
    return AgentLoss(name, len(lost_messages), len(lost_events), spans, _runs(lost_events))


def _placed(
    connection: apsw.Connection,
    sessions: _Sessions,
    events: Mapping[int, AuditEvent],
    lost: Sequence[int],
    end: int,
    newest: Mapping[int, int],
) -> dict[int, _Stretch]:
    """By the lost event that stored them: the stretches that no event left vouches for."""
    free = list(lost)
    placed: dict[int, _Stretch] = {}

    def place(key: str, first: int, last: int, before: int | None) -> None:
        at = bisect_right(free, sessions.last_event.get(key, 0))
        found: int | None = None
        if at < len(free) and (before is None or free[at] < before):
            found = free.pop(at)
        elif before is None:
            found = max(end, *placed, 0) + 1
        if found is not None:
            placed[found] = _Stretch(sessions.numbers[key], key, first, last)

    for seq in sorted(events):
        event = events[seq]
        stored = event.details
        if event.session_id is None or not stored.get("accepted"):
            continue
        expected = sessions.last_seq.get(event.session_id, 0) + 1
        if stored["firstSeq"] > expected:
            place(event.session_id, expected, stored["firstSeq"] - 1, seq)
        sessions.last_seq[event.session_id] = stored["lastSeq"]
        sessions.last_event[event.session_id] = seq
    for key, session in sessions.numbers.items():
        there: int | None = connection.execute(
            "SELECT max(seq) FROM messages WHERE place BETWEEN ? AND ?",
            (place_of(session, 1), place_of(session, MOST_MESSAGES)),
        ).get
        last = max(there or 0, newest.get(session, 0))
        if last > sessions.last_seq.get(key, 0):
            place(key, sessions.last_seq.get(key, 0) + 1, last, None)
            sessions.last_seq[key] = last
    return placed


# ── messages ──


def _fill_sessions(connection: apsw.Connection, sessions: _Sessions) -> list[tuple[str, int]]:
    """A stand-in for each message that is not there; session and number of each."""
    lost: list[tuple[str, int]] = []
    for key, session in sessions.numbers.items():
        there = {seq for seq, _ in message_hashes(connection, session, 1, MOST_MESSAGES)}
        last = sessions.last_seq.get(key, 0)
        if last - len(there) > MOST_LOST:
            last = max(there, default=0)  # an event may claim any number of messages
        missing = [seq for seq in range(1, last + 1) if seq not in there]
        for seq in missing:
            _stand_in(connection, session, seq)
        lost += [(key, seq) for seq in missing]
        connection.execute(
            "UPDATE messages SET chars_through = through.chars FROM "
            "(SELECT place, sum(chars) OVER (ORDER BY place) AS chars FROM messages WHERE place BETWEEN ?1 AND ?2) "
            "AS through WHERE messages.place = through.place AND chars_through <> through.chars",
            (place_of(session, 1), place_of(session, MOST_MESSAGES)),
        )
    return lost


def _stand_in(connection: apsw.Connection, session: int, seq: int) -> None:
    """As old as the message before it, else as the session."""
    row: Any = connection.execute(
        "SELECT ts, received_at FROM messages WHERE place BETWEEN ? AND ? ORDER BY place DESC LIMIT 1",
        (place_of(session, 1), place_of(session, seq)),
    ).fetchone()
    if row is None:
        began = connection.execute("SELECT started_at FROM sessions WHERE session = ?", (session,)).get
        row = (began, began)
    said_at, received_at = row
    message = Message(role="system", content=LOST_TEXT, ts=moment(said_at))
    entry = Entry(message=message, noise=LOST, chars=len(LOST_TEXT), fingerprint=fingerprint(message))
    connection.execute(
        "INSERT INTO messages (place, session, seq, role, content, ts, received_at, noise, chars, chars_through, "
        "fingerprint, hash) VALUES (?,?,?,?,?,?,?,?,?,0,?,?)",
        (
            place_of(session, seq),
            session,
            seq,
            message.role,
            _sorted_json.encode(message.content).decode(),
            said_at,
            received_at,
            LOST,
            entry.chars,
            entry.fingerprint,
            message_hash(seq, moment(received_at), entry),
        ),
    )


# ── events ──


def _with_stand_ins(
    connection: apsw.Connection,
    name: str,
    events: Mapping[int, AuditEvent],
    lost: Sequence[int],
    placed: Mapping[int, _Stretch],
) -> list[AuditEvent]:
    """The whole chain. The last of a run has the hash that the event after it continues."""
    chain: list[AuditEvent] = []
    head, at = GENESIS, next((events[seq].at for seq in sorted(events)), now())
    for seq in sorted({*events, *lost}):
        event = events.get(seq)
        if event is None:
            stretch = placed.get(seq)
            event = AuditEvent(
                seq=seq,
                agent_id=name,
                at=at,
                verb=LOST,
                actor=ACTOR,
                session_id=stretch.key if stretch else None,
                details=_stored(connection, stretch) if stretch else {},
                previous=head.hash,
                hash="",
            )
            after = events.get(seq + 1)
            event = msgspec.structs.replace(event, hash=event_hash(event) if after is None else after.previous)
        head, at = AuditHead(seq=seq, hash=event.hash), event.at
        chain.append(event)
    return chain


def _stored(connection: apsw.Connection, stretch: _Stretch) -> dict[str, Any]:
    """As the event that is lost had it, but for what was counted only there."""
    bounds = place_of(stretch.session, stretch.first_seq), place_of(stretch.session, stretch.last_seq)
    rows = [
        reads.logged_message(row)
        for row in connection.execute(
            f"SELECT {reads.MESSAGE_COLUMNS} FROM messages m WHERE m.place BETWEEN ? AND ? ORDER BY m.place",  # noqa: S608
            bounds,
        )
    ]
    details: dict[str, Any] = {
        "accepted": len(rows),
        "chars": sum(row.entry.chars for row in rows),
        "firstSeq": stretch.first_seq,
        "lastSeq": stretch.last_seq,
        "hash": batch_hash(row.hash for row in rows),
        "opened": int(stretch.first_seq == 1),
        "noise": sum(row.entry.noise is not None for row in rows),
        "blobs": sum(len(row.entry.blobs) for row in rows),
    }
    return {key: value for key, value in details.items() if value}


def _insert_event(connection: apsw.Connection, agent: int, event: AuditEvent) -> None:
    connection.execute(
        "INSERT INTO audit (agent, seq, at, verb, actor, session, details, previous, hash) VALUES (?,?,?,?,?,?,?,?,?)",
        (
            agent,
            event.seq,
            micros(event.at),
            event.verb,
            event.actor,
            event.session_id,
            _sorted_json.encode(event.details).decode(),
            event.previous,
            event.hash,
        ),
    )


def _details(
    connection: apsw.Connection,
    agent: int,
    chain: Iterable[AuditEvent],
    lost_messages: int,
    lost_events: int,
    kept_as: str,
) -> dict[str, Any]:
    """What was lost before is named again: the event that said so may be among the lost. `emptied`: messages that were
    forgotten, for the same reason."""
    stand_ins = [event for event in chain if event.verb == LOST]
    details: dict[str, Any] = {
        "lostMessages": lost_messages,
        "lostEvents": lost_events,
        "kept": kept_as,
        "spans": _spans_of(connection, agent, LOST),
    }
    if stand_ins:
        details["events"] = _runs(event.seq for event in stand_ins)
        details["standIns"] = stand_ins_hash(map(event_hash, stand_ins))
        details["emptied"] = _spans_of(connection, agent, FORGOTTEN)
    return {name: value for name, value in details.items() if value != []}


def _spans_of(connection: apsw.Connection, agent: int, noise: str) -> Any:
    rows: Any = connection.execute(
        "SELECT s.key, m.seq FROM messages m JOIN sessions s ON s.session = m.session "
        "WHERE s.agent = ? AND m.noise = ?",
        (agent, noise),
    ).fetchall()
    return msgspec.to_builtins(_spans(rows))


def _spans(messages: Iterable[tuple[str, int]]) -> list[ForgottenSpan]:
    by_session: dict[str, list[int]] = {}
    for key, seq in sorted(messages):
        by_session.setdefault(key, []).append(seq)
    return [
        ForgottenSpan(session_id=key, first_seq=first, last_seq=last)
        for key, seqs in by_session.items()
        for first, last in _runs(seqs)
    ]


def _runs(numbers: Iterable[int]) -> list[list[int]]:
    """Numbers that follow each other, as the first and the last."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return runs
