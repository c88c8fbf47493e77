"""What the writer keeps in memory of an agent and of a session, and how it is had from the file."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import apsw
import msgspec

from offbook.audit import GENESIS, batch_hash, micros
from offbook.store.sqlite import reads
from offbook.store.sqlite.places import MOST_MESSAGES, place_of
from offbook.types import AuditDraft, AuditHead, Conflict, Counts, Entry


@dataclass
class AgentRow:
    agent: int
    name: str
    audit: AuditHead
    counts: Counts
    noted_seq: int


@dataclass
class SessionRow:
    session: int
    is_new: bool
    last_seq: int
    last_at: int
    chars: int


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


def agent_row(connection: apsw.Connection, name: str) -> AgentRow:
    connection.execute(
        "INSERT INTO agents (name, noted_hash) VALUES (?, ?) ON CONFLICT (name) DO NOTHING", (name, GENESIS.hash)
    )
    return AgentRow(
        agent=connection.execute("SELECT agent FROM agents WHERE name = ?", (name,)).get,
        name=name,
        audit=reads.audit_head(connection, name),
        counts=reads.counts(connection, name),
        noted_seq=reads.noted_audit_head(connection, name).seq,
    )


def session_row(connection: apsw.Connection, agent: AgentRow, key: str, started_at: datetime) -> SessionRow:
    connection.execute(
        "INSERT INTO sessions (agent, key, started_at) VALUES (?,?,?) ON CONFLICT (agent, key) DO NOTHING",
        (agent.agent, key, micros(started_at)),
    )
    is_new = bool(connection.changes())
    session = connection.execute("SELECT session FROM sessions WHERE agent = ? AND key = ?", (agent.agent, key)).get
    newest = connection.execute(
        "SELECT seq, ts, chars_through FROM messages WHERE place BETWEEN ? AND ? ORDER BY place DESC LIMIT 1",
        (place_of(session, 0), place_of(session, MOST_MESSAGES)),
    ).fetchone()
    last_seq, last_at, chars = newest or (0, micros(started_at), 0)
    return SessionRow(session=session, is_new=is_new, last_seq=last_seq, last_at=last_at, chars=chars)


def with_outcome(event: AuditDraft, session: SessionRow, stored: Stored) -> AuditDraft:
    """The event says what was stored, where, and the hash that vouches for it; never the text. Counts that are
    nothing are left out."""
    redactions = Counter[str]()
    for entry in stored.accepted:
        redactions.update(entry.redactions)
    outcome: dict[str, Any] = {
        "opened": int(session.is_new),
        "duplicates": stored.duplicates,
        "chars": sum(entry.chars for entry in stored.accepted),
        "noise": sum(entry.noise is not None for entry in stored.accepted),
        "blobs": sum(len(entry.blobs) for entry in stored.accepted),
        "redactions": dict(redactions),
        "conflicts": [{"id": conflict.id, "seq": conflict.seq} for conflict in stored.conflicts],
    }
    details = {**event.details, **{name: value for name, value in outcome.items() if value}}
    if stored.accepted:
        details |= {
            "accepted": len(stored.accepted),
            "firstSeq": stored.accepted_seqs[0],
            "lastSeq": stored.accepted_seqs[-1],
            "hash": batch_hash(stored.hashes),
        }
    return msgspec.structs.replace(event, details=details)
