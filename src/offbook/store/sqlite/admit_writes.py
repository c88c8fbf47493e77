"""Admitting what another installation exported. Part of the ledger: in the writer thread, inside its transaction.

Everything has its place already, so nothing is put anywhere else: what is there stays, what does not fit is refused and
says why, and the same thing given twice is there once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

import apsw
import msgspec

from offbook.audit import micros
from offbook.erasures import FORGOTTEN
from offbook.protocols import PARENT_NOTE
from offbook.records import (
    ANOTHER_IN_ITS_PLACE,
    FOLLOWS_REFUSED,
    LARGEST_SEQ,
    TAKEN,
    THERE,
    WITHOUT_SESSION,
    Admission,
    Followed,
    PlacedEntry,
    SessionOpening,
    SessionPart,
    behind_a_gap,
    behind_a_stranger,
    mark_behind_the_end,
    with_an_id_of_another,
)
from offbook.store.sqlite import reads
from offbook.store.sqlite.places import place_of
from offbook.store.sqlite.rows import AgentRow, SessionRow, Stored, with_outcome
from offbook.types import AuditDraft, AuditEvent, Entry, Mark, Scope, now

_PIN = "INSERT INTO holds (place, agent, pin) VALUES (?,?,?)"
_COUNT_PINS = """
INSERT INTO hold_counts (agent, pinned) VALUES (?,?) ON CONFLICT (agent) DO UPDATE SET pinned = pinned + excluded.pinned
"""
_SAME_MARK = (
    "SELECT 1 FROM marks WHERE session = ? AND seq = ? AND at = ? AND kind = ? AND (reason IS ? OR reason IS NULL)"
)
"""Without a reason here: it was forgotten."""
_KEEP_NOTE = "INSERT INTO session_notes (session, name, value) VALUES (?,?,?) ON CONFLICT (session, name) DO NOTHING"


class Steps(NamedTuple):
    """The ledger's own, for whoever writes into the log."""

    agent: Callable[[str], AgentRow]
    session: Callable[[Scope, AgentRow, datetime], SessionRow]
    insert: Callable[[SessionRow, Entry, datetime], bytes | None]
    add_mark: Callable[[SessionRow, Mark], None]
    chain: Callable[[AgentRow, AuditDraft, datetime], AuditEvent]


@dataclass
class _Admitting:
    """One session while its parts are admitted."""

    scope: Scope
    agent: AgentRow
    received_at: datetime
    session: SessionRow | None
    through: int = 0
    """The last message that is known to be the same here as there: only what follows it may be added."""
    is_refused: bool = False
    marks: int = 0
    pins: int = 0
    stored: Stored = field(default_factory=Stored)


class AdmitLedger:
    def __init__(self, connection: apsw.Connection, steps: Steps) -> None:
        self._connection = connection
        self._steps = steps

    def session(self, scope: Scope, parts: Sequence[SessionPart], event: AuditDraft) -> list[Admission]:
        agent, received_at = self._steps.agent(scope.agent_id), now()
        is_there = reads.session_number(self._connection, scope) is not None
        session = self._steps.session(scope, agent, received_at) if is_there else None
        admitting = _Admitting(scope, agent, received_at, session)
        admissions = [self._part(admitting, part) for part in parts]
        if admitting.session is not None and any(admission.is_taken for admission in admissions):
            self._record(admitting, admitting.session, event)
        return admissions

    def _record(self, admitting: _Admitting, session: SessionRow, event: AuditDraft) -> None:
        if admitting.pins:
            self._connection.execute(_COUNT_PINS, (admitting.agent.agent, admitting.pins))
        counts = {name: count for name, count in (("marks", admitting.marks), ("pins", admitting.pins)) if count}
        event = msgspec.structs.replace(event, details=event.details | counts)
        self._steps.chain(admitting.agent, with_outcome(event, session, admitting.stored), admitting.received_at)
        session.is_new = False

    # ── one part ──

    def _part(self, admitting: _Admitting, part: SessionPart) -> Admission:
        if isinstance(part, SessionOpening):
            return self._opening(admitting, part)
        if isinstance(part, Followed):
            return self._followed(admitting, part)
        if admitting.is_refused:
            return Admission(refused=FOLLOWS_REFUSED)
        if admitting.session is None:
            admitting.is_refused = True
            return WITHOUT_SESSION
        if isinstance(part, Mark):
            # What the same messages were marked with elsewhere is no reason to refuse the messages.
            return self._mark(admitting, admitting.session, part)
        admission = self._entry(admitting, admitting.session, part)
        admitting.is_refused = admission.refused is not None
        return admission

    def _opening(self, admitting: _Admitting, part: SessionOpening) -> Admission:
        is_new = admitting.session is None
        session = self._steps.session(admitting.scope, admitting.agent, part.started_at)
        admitting.session = session
        if part.parent_session_id is not None:
            self._connection.execute(_KEEP_NOTE, (session.session, PARENT_NOTE, part.parent_session_id))
        return TAKEN if is_new else THERE

    def _followed(self, admitting: _Admitting, part: Followed) -> Admission:
        """Where it is another one, what comes next is refused."""
        if admitting.session is not None:
            place = place_of(admitting.session.session, part.seq)
            ts = self._connection.execute("SELECT ts FROM messages WHERE place = ?", (place,)).get
            admitting.through = part.seq if ts == micros(part.at) else 0
        return THERE

    def _entry(self, admitting: _Admitting, session: SessionRow, part: PlacedEntry) -> Admission:
        if part.seq > session.last_seq + 1:
            return behind_a_gap(session.last_seq)
        if part.seq <= session.last_seq:
            if not self._is_same(session, part):
                return ANOTHER_IN_ITS_PLACE
            admitting.through = part.seq
            return THERE
        if admitting.through != part.seq - 1:
            return behind_a_stranger(part.seq - 1)
        row_hash = self._steps.insert(session, part.entry, admitting.received_at)
        if row_hash is None:
            return with_an_id_of_another(part.entry.message.id)
        admitting.through = part.seq
        admitting.stored.note_new(part.entry, part.seq, row_hash)
        if part.pinned is not None:
            place = place_of(session.session, part.seq)
            self._connection.execute(_PIN, (place, admitting.agent.agent, part.pinned))
            admitting.pins += 1
        return TAKEN

    def _is_same(self, session: SessionRow, part: PlacedEntry) -> bool:
        """Of one that was forgotten, here or there, only its place, role and time are left to compare."""
        row = self._connection.execute(
            "SELECT fingerprint, noise, role, ts FROM messages WHERE place = ?",
            (place_of(session.session, part.seq),),
        ).fetchone()
        if row is None:
            return False
        fingerprint, noise, role, ts = row
        if fingerprint == part.entry.fingerprint:
            return True
        message = part.entry.message
        is_forgotten = FORGOTTEN in (noise, part.entry.noise)
        return is_forgotten and message.ts is not None and (role, ts) == (message.role, micros(message.ts))

    def _mark(self, admitting: _Admitting, session: SessionRow, mark: Mark) -> Admission:
        same = (session.session, min(mark.seq, LARGEST_SEQ), micros(mark.at), mark.kind, mark.reason)
        if self._connection.execute(_SAME_MARK, same).fetchone() is not None:
            return THERE
        if mark.seq != session.last_seq or admitting.through != mark.seq:
            return mark_behind_the_end(mark.seq, session.last_seq)
        self._steps.add_mark(session, mark)
        admitting.marks += 1
        return TAKEN
