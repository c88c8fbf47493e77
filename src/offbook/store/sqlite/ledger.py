"""What the writer knows of agents and sessions while it writes, and the writes themselves.

Runs in the writer thread only, inside a transaction. Rows of agents and sessions are read once, changed
in memory and written back by `flush` just before the commit, so that a group of messages to one session
costs one update of it. After a rollback `forget` drops the lot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

import apsw
import msgspec

from offbook.audit import GENESIS, batch_hash, message_hash, micros, moment, seal
from offbook.types import (
    AuditDraft,
    AuditEvent,
    AuditHead,
    CaptureClaim,
    Conflict,
    Entry,
    Mark,
    Receipt,
    Scope,
    SessionGaps,
    now,
)

MOST_ROWS_KEPT = 10_000
"""Agents and sessions kept in memory between transactions (about 10 MB at the most)."""

_sorted_json = msgspec.json.Encoder(order="deterministic")
_as_it_came = msgspec.json.Encoder()

_INSERT_MESSAGE = """
INSERT INTO messages (session, seq, id, role, content, ts, received_at, name, tool_call_id, model, origin,
                      meta, noise, redactions, blobs, chars, fingerprint, hash)
VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)
"""
_INSERT_EVENT = """
INSERT INTO audit (agent, seq, at, verb, actor, session, details, previous, hash) VALUES (?,?,?,?,?,?,?,?,?)
"""


@dataclass
class AgentRow:
    agent: int
    name: str
    audit: AuditHead
    added: dict[str, int] = field(default_factory=dict)
    """Increments of the counters, by column, since the last flush."""

    def add(self, **increments: int) -> None:
        for column, increment in increments.items():
            if increment:
                self.added[column] = self.added.get(column, 0) + increment


@dataclass
class SessionRow:
    session: int
    last_seq: int
    last_position: int
    chars: int
    last_at: int
    ended_at: int | None
    end_reason: str | None


@dataclass
class Stored:
    """What happened to the entries of one append."""

    seqs: list[int] = field(default_factory=list)
    hashes: list[bytes] = field(default_factory=list)
    accepted: list[Entry] = field(default_factory=list)
    accepted_seqs: list[int] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)

    @property
    def duplicates(self) -> int:
        return len(self.seqs) - len(self.accepted)


class Ledger:
    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._agents: dict[str, AgentRow] = {}
        self._sessions: dict[Scope, SessionRow] = {}
        self._changed_agents: dict[int, AgentRow] = {}
        self._changed_sessions: dict[int, SessionRow] = {}

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
    ) -> Receipt:
        received_at = now()
        agent = self._agent(scope.agent_id)
        session = self._session(scope, agent, received_at)
        stored = self._store(session, entries, received_at, gaps)
        if mark is not None:
            self._add_mark(session, mark)
        if claim is not None:
            self._reconcile(agent, claim, received_at)
        agent.add(
            messages=len(stored.accepted),
            chars=sum(entry.chars for entry in stored.accepted),
            noise=sum(entry.noise is not None for entry in stored.accepted),
            redactions=sum(sum(entry.redactions.values()) for entry in stored.accepted),
            blobs=sum(len(entry.blobs) for entry in stored.accepted),
            duplicates=stored.duplicates,
            conflicts=len(stored.conflicts),
        )
        self._chain(agent, _with_outcome(event, stored), received_at)
        return Receipt(
            accepted=len(stored.accepted),
            duplicates=stored.duplicates,
            first_seq=min(stored.seqs, default=session.last_seq + 1),
            last_seq=max(stored.seqs, default=session.last_seq),
            conflicts=stored.conflicts,
        )

    def mark(self, scope: Scope, mark: Mark, event: AuditDraft) -> None:
        at = now()
        agent = self._agent(scope.agent_id)
        session = self._session(scope, agent, mark.at)
        self._add_mark(session, mark)
        self._chain(agent, event, at)

    def record(self, agent_id: str, event: AuditDraft) -> AuditEvent:
        return self._chain(self._agent(agent_id), event, now())

    # ── the transaction's ends ──

    def flush(self) -> None:
        """Write the changed rows back."""
        for agent in self._changed_agents.values():
            self._flush_agent(agent)
        for session in self._changed_sessions.values():
            self._flush_session(session)
        self._changed_agents.clear()
        self._changed_sessions.clear()
        if len(self._agents) + len(self._sessions) > MOST_ROWS_KEPT:
            self.forget()

    def forget(self) -> None:
        self._agents.clear()
        self._sessions.clear()
        self._changed_agents.clear()
        self._changed_sessions.clear()

    # ── steps ──

    def _store(self, session: SessionRow, entries: Sequence[Entry], received_at: datetime, gaps: SessionGaps) -> Stored:
        stored = Stored()
        for entry in entries:
            known = self._known(session, entry.message.id)
            if known is not None:
                seq, fingerprint = known
                stored.seqs.append(seq)
                if fingerprint != entry.fingerprint:
                    stored.conflicts.append(Conflict(id=entry.message.id or "", seq=seq))
                continue
            if not stored.accepted:
                self._mark_gap(session, entry.message.ts or received_at, gaps)
            stored.hashes.append(self._insert(session, entry, received_at))
            stored.accepted.append(entry)
            stored.accepted_seqs.append(session.last_seq)
            stored.seqs.append(session.last_seq)
        return stored

    def _known(self, session: SessionRow, message_id: str | None) -> tuple[int, bytes] | None:
        if message_id is None or session.last_seq == 0:
            return None
        row = self._connection.execute(
            "SELECT seq, fingerprint FROM messages WHERE session = ? AND id = ?",
            (session.session, message_id),
        ).fetchone()
        return (row[0], row[1]) if row else None

    def _insert(self, session: SessionRow, entry: Entry, received_at: datetime) -> bytes:
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
                entry.fingerprint,
                row_hash,
            ),
        )
        session.last_seq = seq
        session.last_position = self._connection.last_insert_rowid()
        session.chars += entry.chars
        session.last_at = ts
        session.ended_at = session.end_reason = None
        self._changed_sessions[session.session] = session
        return row_hash

    def _mark_gap(self, session: SessionRow, said_at: datetime, gaps: SessionGaps) -> None:
        earlier = moment(session.last_at) if session.last_seq else None
        kind = gaps.between(earlier, said_at)
        if kind != "continuous":
            self._add_mark(session, Mark(kind=kind, at=said_at))

    def _add_mark(self, session: SessionRow, mark: Mark) -> None:
        self._connection.execute(
            "INSERT INTO marks (session, seq, at, kind, reason) VALUES (?,?,?,?,?)",
            (session.session, session.last_seq, micros(mark.at), mark.kind, mark.reason),
        )
        if mark.kind == "end":
            session.ended_at, session.end_reason = micros(mark.at), mark.reason
            self._changed_sessions[session.session] = session

    def _reconcile(self, agent: AgentRow, claim: CaptureClaim, at: datetime) -> None:
        """Deliveries of one client come in order, so what is above `through` is new and the rest a retry."""
        self._connection.execute(
            """
            INSERT INTO captures (agent, client, sent, through, received, last_seen)
            VALUES (:agent, :client, :sent, :last, :last - :first + 1, :at)
            ON CONFLICT (agent, client) DO UPDATE SET
                sent = max(sent, :sent),
                received = received + max(0, :last - max(:first, through + 1) + 1),
                through = max(through, :last),
                last_seen = :at
            """,
            {
                "agent": agent.agent,
                "client": claim.client,
                "first": claim.first,
                "last": claim.last,
                "sent": claim.sent,
                "at": micros(at),
            },
        )

    def _chain(self, agent: AgentRow, draft: AuditDraft, at: datetime) -> AuditEvent:
        event = seal(agent.name, draft, agent.audit, at)
        self._connection.execute(
            _INSERT_EVENT,
            (
                agent.agent,
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
        agent.audit = AuditHead(seq=event.seq, hash=event.hash)
        self._changed_agents[agent.agent] = agent
        return event

    # ── rows ──

    def _agent(self, name: str) -> AgentRow:
        known = self._agents.get(name)
        if known is not None:
            return known
        self._connection.execute(
            "INSERT INTO agents (name, audit_hash) VALUES (?, ?) ON CONFLICT (name) DO NOTHING",
            (name, GENESIS.hash),
        )
        agent, seq, audit_hash = self._connection.execute(
            "SELECT agent, audit_seq, audit_hash FROM agents WHERE name = ?", (name,)
        ).fetchone()
        row = AgentRow(agent=agent, name=name, audit=AuditHead(seq=seq, hash=audit_hash))
        self._agents[name] = row
        return row

    def _session(self, scope: Scope, agent: AgentRow, started_at: datetime) -> SessionRow:
        known = self._sessions.get(scope)
        if known is not None:
            return known
        at = micros(started_at)
        self._connection.execute(
            "INSERT INTO sessions (agent, key, started_at, last_at) VALUES (?,?,?,?) "
            "ON CONFLICT (agent, key) DO NOTHING",
            (agent.agent, scope.session_id, at, at),
        )
        if self._connection.changes():
            agent.add(sessions=1)
        row = SessionRow(
            *self._connection.execute(
                "SELECT session, last_seq, last_position, chars, last_at, ended_at, end_reason "
                "FROM sessions WHERE agent = ? AND key = ?",
                (agent.agent, scope.session_id),
            ).fetchone()
        )
        self._sessions[scope] = row
        return row

    def _flush_agent(self, agent: AgentRow) -> None:
        # Column names come from the keywords of `add` above, never from outside.
        counters = "".join(f", {column} = {column} + {increment:d}" for column, increment in agent.added.items())
        self._connection.execute(
            f"UPDATE agents SET audit_seq = ?, audit_hash = ?{counters} WHERE agent = ?",  # noqa: S608
            (agent.audit.seq, agent.audit.hash, agent.agent),
        )
        agent.added.clear()

    def _flush_session(self, session: SessionRow) -> None:
        self._connection.execute(
            "UPDATE sessions SET last_seq = ?, last_position = ?, chars = ?, last_at = ?, ended_at = ?, end_reason = ? "
            "WHERE session = ?",
            (
                session.last_seq,
                session.last_position,
                session.chars,
                session.last_at,
                session.ended_at,
                session.end_reason,
                session.session,
            ),
        )


def _with_outcome(event: AuditDraft, stored: Stored) -> AuditDraft:
    """The event says what was stored, where, and the hash that vouches for it; never the text."""
    outcome: dict[str, object] = {
        **event.details,
        "accepted": len(stored.accepted),
        "duplicates": stored.duplicates,
    }
    if stored.accepted:
        outcome |= {
            "firstSeq": stored.accepted_seqs[0],
            "lastSeq": stored.accepted_seqs[-1],
            "hash": batch_hash(stored.hashes),
        }
    if stored.conflicts:
        outcome["conflicts"] = [{"id": conflict.id, "seq": conflict.seq} for conflict in stored.conflicts]
    redactions: dict[str, int] = {}
    for entry in stored.accepted:
        for kind, count in entry.redactions.items():
            redactions[kind] = redactions.get(kind, 0) + count
    if redactions:
        outcome["redactions"] = redactions
    return msgspec.structs.replace(event, details=outcome)
