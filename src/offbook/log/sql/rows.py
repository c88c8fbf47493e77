"""What the writer keeps in memory of an agent and of a session, and how it is had from the file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from offbook.log.audit_chain import GENESIS, batch_hash, micros
from offbook.log.sql import audit_reads, reads
from offbook.log.sql.connection import Connection
from offbook.log.sql.row_ids import ALL, MOST_MESSAGES, place_of
from offbook.model.status import Counts
from offbook.model.types import AuditDraft, AuditEvent, AuditHead, Conflict, Entry


@dataclass
class AgentRow:
    agent: int
    name: str
    audit: AuditHead
    counts: Counts
    noted_seq: int
    uncounted: list[AuditEvent] = field(default_factory=list)
    """Events that `counts` does not hold yet."""


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

    def note_new(self, entry: Entry, seq: int, row_hash: bytes) -> None:
        self.seqs.append(seq)
        self.accepted.append(entry)
        self.accepted_seqs.append(seq)
        self.hashes.append(row_hash)

    def note_known(self, entry: Entry, seq: int, fingerprint: bytes) -> None:
        self.seqs.append(seq)
        if fingerprint != entry.fingerprint:
            self.conflicts.append(Conflict(id=entry.message.id or "", seq=seq))

    @property
    def duplicates(self) -> int:
        return len(self.seqs) - len(self.accepted)


def agent_row(connection: Connection, name: str) -> AgentRow:
    agent = connection.execute("SELECT agent FROM agents WHERE name = ?", (name,)).get
    if agent is None:
        inserted = "INSERT INTO agents (name, noted_hash) VALUES (?, ?) RETURNING agent"
        agent = connection.execute(inserted, (name, GENESIS.hash)).get
    return AgentRow(
        agent=agent,
        name=name,
        audit=audit_reads.audit_head(connection, name),
        counts=reads.counts(connection, name),
        noted_seq=audit_reads.noted_audit_head(connection, name).seq,
    )


def touched_since_note(connection: Connection, agent: AgentRow) -> list[int]:
    """Sessions whose activity is in the chain but not in their rows, in the order of it."""
    events = audit_reads.audit_events(connection, agent.name, None, agent.noted_seq, ALL, newest_first=False)
    keys = dict.fromkeys(event.session_id for event in reversed(events) if reads.touches(event))
    numbers = (
        connection.execute("SELECT session FROM sessions WHERE agent = ? AND key = ?", (agent.agent, key)).get
        for key in reversed(keys)
    )
    return [number for number in numbers if number is not None]


def session_row(connection: Connection, agent: AgentRow, key: str, started_at: datetime) -> SessionRow:
    session = connection.execute("SELECT session FROM sessions WHERE agent = ? AND key = ?", (agent.agent, key)).get
    is_new = session is None
    if is_new:
        inserted = "INSERT INTO sessions (agent, key, started_at) VALUES (?,?,?) RETURNING session"
        session = connection.execute(inserted, (agent.agent, key, micros(started_at))).get
    newest = connection.execute(
        "SELECT seq, ts, chars_through FROM messages WHERE place BETWEEN ? AND ? ORDER BY place DESC LIMIT 1",
        (place_of(session, 0), place_of(session, MOST_MESSAGES)),
    ).fetchone()
    last_seq, last_at, chars = newest or (0, micros(started_at), 0)
    return SessionRow(session=session, is_new=is_new, last_seq=last_seq, last_at=last_at, chars=chars)


def with_outcome(event: AuditDraft, session: SessionRow, stored: Stored) -> AuditDraft:
    """The event says what was stored, where, and the hash that vouches for it; never the text. Counts that are
    nothing are left out."""
    details = dict(event.details)
    if stored.accepted:
        details |= {
            "accepted": len(stored.accepted),
            "chars": sum([entry.chars for entry in stored.accepted]),
            "firstSeq": stored.accepted_seqs[0],
            "lastSeq": stored.accepted_seqs[-1],
            "hash": batch_hash(stored.hashes),
        }
    for name, value in _rarities(session, stored):
        if value:
            details[name] = value
    return msgspec.structs.replace(event, details=details)


def _rarities(session: SessionRow, stored: Stored) -> Iterator[tuple[str, Any]]:
    """What most events have nothing of."""
    yield "opened", int(session.is_new)
    yield "duplicates", stored.duplicates
    for entry in stored.accepted:
        if entry.noise or entry.blobs or entry.redactions:
            yield "noise", sum(entry.noise is not None for entry in stored.accepted)
            yield "blobs", sum(len(entry.blobs) for entry in stored.accepted)
            yield "redactions", dict(sum((Counter(entry.redactions) for entry in stored.accepted), Counter[str]()))
            break
    yield "conflicts", [{"id": conflict.id, "seq": conflict.seq} for conflict in stored.conflicts]


class LedgerPart:
    """What writes for the ledger, in its thread and transactions."""

    def __init__(
        self,
        connection: Connection,
        *,
        agent: Callable[[str], AgentRow],
        chain: Callable[[AgentRow, AuditDraft, datetime], AuditEvent],
        check: Callable[[str], None],
    ) -> None:
        """They are the ledger's: the row of an agent, one more event in its chain, and the check that this node may
        write for an agent, for what needs no row of it."""
        self._connection = connection
        self._agent = agent
        self._chain = chain
        self._check = check
