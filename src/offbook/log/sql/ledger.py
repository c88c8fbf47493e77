"""What the writer knows of agents and sessions while it writes, and the writes themselves.

Runs in the writer thread only, inside a transaction. A session's state is read from its newest message and
an agent's from its newest audit event, once, then kept in memory. What is noted beside the log (an agent's
counts, a session's activity) is written back now and then: each page a commit touches costs time, and reads
add what has come since the note. After a rollback `forget` drops the lot.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime
from functools import reduce
from typing import Any

import msgspec

from offbook.log.alignment import LOG_FOR_EACH_GIVEN, unsaved
from offbook.log.audit_chain import counts_with, message_hash, micros, moment, seal
from offbook.log.sql import reads
from offbook.log.sql.admission import AdmitLedger, AdmitLessonLedger, Steps
from offbook.log.sql.connection import Connection
from offbook.log.sql.erase_writes import EraseLedger
from offbook.log.sql.lesson_writes import LessonLedger
from offbook.log.sql.recall_writes import RecallLedger
from offbook.log.sql.row_ids import place_of
from offbook.log.sql.rows import (
    AgentRow,
    SessionRow,
    Stored,
    agent_row,
    session_row,
    touched_since_note,
    with_outcome,
)
from offbook.log.sql.summary_writes import CompressionLedger
from offbook.log.sql.turns import TurnLedger
from offbook.log.store import PARENT_NOTE
from offbook.model.errors import StoreCorrupt
from offbook.model.status import CaptureClaim
from offbook.model.types import (
    COMMAND,
    AuditDraft,
    AuditEvent,
    AuditHead,
    Entry,
    Mark,
    Receipt,
    Scope,
    SessionGaps,
    now,
)

MOST_ROWS_KEPT = 10_000
"""Agents and sessions kept in memory between transactions (about 10 MB at the most)."""
NOTE_SECONDS = 1.0
NOTE_EVENTS = 256
"""How far the notes may fall behind. A read adds up as many events at the most."""

_sorted_json = msgspec.json.Encoder(order="deterministic")
_as_it_came = msgspec.json.Encoder()

_INSERT_MESSAGE = """
INSERT INTO messages (place, session, seq, id, role, content, ts, received_at, name, tool_call_id, model, origin,
                      meta, noise, redactions, blobs, chars, chars_through, fingerprint, hash)
VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)
ON CONFLICT (session, id) WHERE id IS NOT NULL DO NOTHING
"""
_INSERT_EVENT = """
INSERT INTO audit (agent, seq, at, verb, actor, session, details, previous, hash) VALUES (?,?,?,?,?,?,?,?,?)
"""


_RECONCILE = """
INSERT INTO captures (agent, client, sent, through, received, last_seen) VALUES (?,?,?,?,?,?)
ON CONFLICT (agent, client) DO UPDATE SET
    sent = CASE WHEN excluded.sent > captures.sent THEN excluded.sent ELSE captures.sent END,
    received = captures.received + CASE
        WHEN excluded.through <= captures.through THEN 0
        WHEN excluded.through - excluded.received >= captures.through THEN excluded.received
        ELSE excluded.through - captures.through END,
    through = CASE WHEN excluded.through > captures.through THEN excluded.through ELSE captures.through END,
    last_seen = excluded.last_seen
"""


class Ledger:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._agents: dict[str, AgentRow] = {}
        self._sessions: dict[Scope, SessionRow] = {}
        self._unnoted: dict[int, AgentRow] = {}
        self._touched: dict[int, None] = {}
        self._activity = 0
        self._noted_at = 0.0
        self._events = 0
        self._unwritten: list[tuple[Any, ...]] = []
        """Rows of events: nobody reads them before the transaction's end, and together they cost one round trip."""
        self.recall = RecallLedger(connection, agent=self._agent, chain=self._chain, check=self.check)
        self.compression = CompressionLedger(connection, agent=self._agent, chain=self._chain, check=self.check)
        self.turns = TurnLedger(connection, agent=self._agent)
        self.erasing = EraseLedger(connection, agent=self._agent, chain=self._chain, check=self.check)
        self.lessons = LessonLedger(connection, agent=self._agent, chain=self._chain, check=self.check)
        self.admitting = AdmitLedger(
            connection, Steps(self._agent, self._session, self._insert, self._add_mark, self._chain)
        )
        self.admitting_lessons = AdmitLessonLedger(connection, agent=self._agent, chain=self._chain, check=self.check)

    # ── the writes ──

    def append(
        self,
        scope: Scope,
        entries: Sequence[Entry],
        event: AuditDraft,
        *,
        gaps: SessionGaps,
        claim: CaptureClaim | None,
        mark: Mark | None,
        is_context: bool = False,
    ) -> Receipt:
        received_at = now()
        agent = self._agent(scope.agent_id)
        session = self._session(scope, agent, _begun_at(entries, received_at))
        news = self._unsaved(session, entries) if is_context else entries
        stored = self._store(session, news, received_at, gaps)
        if mark is not None:
            self._add_mark(session, mark)
        if claim is not None:
            self._reconcile(agent, claim, received_at)
        self._chain(agent, with_outcome(event, session, stored), received_at)
        session.is_new = False
        return Receipt(
            accepted=len(stored.accepted),
            duplicates=stored.duplicates,
            first_seq=min(stored.seqs, default=session.last_seq + 1),
            last_seq=max(stored.seqs, default=session.last_seq),
            conflicts=stored.conflicts,
        )

    def mark(self, scope: Scope, mark: Mark, event: AuditDraft, *, parent_session_id: str | None = None) -> None:
        at = now()
        agent = self._agent(scope.agent_id)
        session = self._session(scope, agent, mark.at)
        self._add_mark(session, mark)
        if parent_session_id is not None:
            self.compression.set_session_note(scope, PARENT_NOTE, parent_session_id)
        if mark.kind == "start" and (parent := reads.parent_session(self._connection, session.session)) is not None:
            event = msgspec.structs.replace(event, details={**event.details, "parentSessionId": parent})
        self._chain(agent, with_outcome(event, session, Stored()), at)
        session.is_new = False

    def record(self, agent_id: str, event: AuditDraft) -> AuditEvent:
        return self._chain(self._agent(agent_id), event, now())

    # ── the transaction's ends ──

    def flush(self) -> None:
        """Write the events, and back the notes that have fallen behind."""
        if self._unwritten:
            self._connection.executemany(_INSERT_EVENT, self._unwritten)
            self._unwritten.clear()
        is_old = time.monotonic() - self._noted_at >= NOTE_SECONDS
        if is_old or any(agent.audit.seq - agent.noted_seq >= NOTE_EVENTS for agent in self._unnoted.values()):
            self.note()
        if len(self._agents) + len(self._sessions) > MOST_ROWS_KEPT:
            self.note()
            self.forget()

    def note(self) -> None:
        """Write back every note."""
        for agent in self._unnoted.values():
            self._note_agent(agent)
        for session in self._touched:
            # Microseconds, as long as the clock goes forward; always more than before.
            self._activity = max(self._activity + 1, micros(now()))
            self._connection.execute("UPDATE sessions SET touched = ? WHERE session = ?", (self._activity, session))
        self._unnoted.clear()
        self._touched.clear()
        self._noted_at = time.monotonic()

    def take_events(self) -> int:
        """How many audit events there are since this was asked last."""
        events, self._events = self._events, 0
        return events

    def forget(self) -> None:
        self._agents.clear()
        self._sessions.clear()
        self._unnoted.clear()
        self._touched.clear()
        self._unwritten.clear()

    # ── steps ──

    def _unsaved(self, session: SessionRow, entries: Sequence[Entry]) -> list[Entry]:
        anonymous = [entry for entry in entries if entry.message.id is None]
        rows = self._connection.execute(
            "SELECT fingerprint FROM messages WHERE place BETWEEN ? AND ? ORDER BY place DESC LIMIT ?",
            (
                place_of(session.session, 1),
                place_of(session.session, session.last_seq),
                LOG_FOR_EACH_GIVEN * len(entries),
            ),
        ).fetchall()
        logged = [row[0] for row in reversed(rows)]
        new = {id(anonymous[place]) for place in unsaved([entry.fingerprint for entry in anonymous], logged)}
        return [entry for entry in entries if entry.message.id is not None or id(entry) in new]

    def _store(self, session: SessionRow, entries: Sequence[Entry], received_at: datetime, gaps: SessionGaps) -> Stored:
        stored = Stored()
        for entry in entries:
            previous = moment(session.last_at) if session.last_seq else None
            row_hash = self._insert(session, entry, received_at)
            if row_hash is None:
                stored.note_known(entry, *self._known(session, entry))
                continue
            self._mark_gap(session, previous, entry.message.ts or received_at, gaps)
            stored.note_new(entry, session.last_seq, row_hash)
        return stored

    def _known(self, session: SessionRow, entry: Entry) -> tuple[int, bytes]:
        row: tuple[int, bytes] | None = self._connection.execute(
            "SELECT seq, fingerprint FROM messages WHERE session = ? AND id = ?", (session.session, entry.message.id)
        ).fetchone()
        if row is None:
            raise StoreCorrupt(f"the index of message ids disagrees with the log at {entry.message.id!r}")
        return row

    def _insert(self, session: SessionRow, entry: Entry, received_at: datetime) -> bytes | None:
        """The row's hash; None where the session holds a message of this id already."""
        message = entry.message
        if message.ts is None:
            entry = msgspec.structs.replace(entry, message=msgspec.structs.replace(message, ts=received_at))
        message = entry.message
        ts = micros(message.ts or received_at)
        seq = session.last_seq + 1
        row_hash = message_hash(seq, received_at, entry)
        self._connection.execute(
            _INSERT_MESSAGE,
            (
                place_of(session.session, seq),
                session.session,
                seq,
                message.id,
                message.role,
                _as_it_came.encode(message.content).decode(),
                ts,
                micros(received_at),
                message.name,
                message.tool_call_id,
                message.model,
                message.origin,
                None if message.meta is None else _as_it_came.encode(message.meta).decode(),
                entry.noise,
                _sorted_json.encode(entry.redactions).decode() if entry.redactions else None,
                _sorted_json.encode(entry.blobs).decode() if entry.blobs else None,
                entry.chars,
                session.chars + entry.chars,
                entry.fingerprint,
                row_hash,
            ),
        )
        if not self._connection.changes():
            return None
        if entry.noise == COMMAND:
            self._stay_ended(session, seq)
        session.last_seq = seq
        session.last_at = ts
        session.chars += entry.chars
        self._touch(session)
        return row_hash

    def _stay_ended(self, session: SessionRow, seq: int) -> None:
        """The command that ends a session, and the host's answer, are written behind the end: they open nothing."""
        self._connection.execute(
            "UPDATE sessions SET ended_seq = ? WHERE session = ? AND ended_at IS NOT NULL AND ended_seq = ?",
            (seq, session.session, session.last_seq),
        )

    def _mark_gap(self, session: SessionRow, earlier: datetime | None, said_at: datetime, gaps: SessionGaps) -> None:
        """Called when the first message after the silence is in: the mark lies before it."""
        kind = gaps.between(earlier, said_at)
        if kind != "continuous":
            self._insert_mark(session, session.last_seq - 1, Mark(kind=kind, at=said_at))

    def _add_mark(self, session: SessionRow, mark: Mark) -> None:
        self._insert_mark(session, session.last_seq, mark)
        if mark.kind == "start":
            self._connection.execute("UPDATE sessions SET ended_at = NULL WHERE session = ?", (session.session,))
        if mark.kind == "end":
            self._connection.execute(
                "UPDATE sessions SET ended_at = ?, end_reason = ?, ended_seq = ? WHERE session = ?",
                (micros(mark.at), mark.reason, session.last_seq, session.session),
            )
        self._touch(session)

    def _insert_mark(self, session: SessionRow, seq: int, mark: Mark) -> None:
        self._connection.execute(
            "INSERT INTO marks (session, seq, at, kind, reason) VALUES (?,?,?,?,?)",
            (session.session, seq, micros(mark.at), mark.kind, mark.reason),
        )

    def _touch(self, session: SessionRow) -> None:
        """Last touched comes last, so that the notes are written in the order of activity."""
        self._touched.pop(session.session, None)
        self._touched[session.session] = None

    def _reconcile(self, agent: AgentRow, claim: CaptureClaim, at: datetime) -> None:
        """Deliveries of one client come in order, so what is above `through` is new and the rest a retry."""
        self._connection.execute(
            _RECONCILE,
            (agent.agent, claim.client, claim.sent, claim.last, claim.last - claim.first + 1, micros(at)),
        )

    def _chain(self, agent: AgentRow, draft: AuditDraft, at: datetime) -> AuditEvent:
        event = seal(agent.name, draft, agent.audit, at)
        self._events += 1
        details = _sorted_json.encode(event.details).decode()
        row = event.seq, micros(event.at), event.verb, event.actor, event.session_id, details
        self._unwritten.append((agent.agent, *row, event.previous, event.hash))
        agent.audit = AuditHead(seq=event.seq, hash=event.hash)
        agent.uncounted.append(event)
        self._unnoted[agent.agent] = agent
        return event

    # ── rows ──

    def check(self, agent_id: str) -> None:
        """Whether this node may write for the agent. A file has one writer, so it may."""

    def _agent(self, name: str) -> AgentRow:
        known = self._agents.get(name)
        if known is None:
            known = self._agents[name] = agent_row(self._connection, name)
            # A kill or a rollback may have come before the note: those sessions are still to be noted.
            self._touched = dict.fromkeys(touched_since_note(self._connection, known)) | self._touched
        return known

    def _session(self, scope: Scope, agent: AgentRow, started_at: datetime) -> SessionRow:
        known = self._sessions.get(scope)
        if known is None:
            known = self._sessions[scope] = session_row(self._connection, agent, scope.session_id, started_at)
        return known

    def _note_agent(self, agent: AgentRow) -> None:
        agent.counts = reduce(counts_with, agent.uncounted, agent.counts)
        agent.uncounted.clear()
        self._connection.execute(
            "UPDATE agents SET counts = ?, noted_seq = ?, noted_hash = ? WHERE agent = ?",
            (_sorted_json.encode(agent.counts).decode(), agent.audit.seq, agent.audit.hash, agent.agent),
        )
        agent.noted_seq = agent.audit.seq


def _begun_at(entries: Sequence[Entry], received_at: datetime) -> datetime:
    """When the first was said: a history that is imported today did not begin today."""
    said_at = entries[0].message.ts if entries else None
    return received_at if said_at is None else min(said_at, received_at)
