"""Admitting what another installation exported. Part of the ledger: in the writer thread, inside its transaction.

Everything has its place already, so nothing is put anywhere else: what is there stays, what does not fit is refused and
says why, and the same thing given twice is there once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

import msgspec

from offbook.log.audit_chain import micros
from offbook.log.sql import lesson_reads, reads, summary_reads
from offbook.log.sql.connection import Connection
from offbook.log.sql.recall_reads import agent_number
from offbook.log.sql.row_ids import MOST_MESSAGES, place_of
from offbook.log.sql.rows import AgentRow, LedgerPart, SessionRow, Stored, with_outcome
from offbook.log.sql.summary_writes import to_be_read_again
from offbook.log.store import PARENT_NOTE
from offbook.model.lesson import Lesson, LessonSource, lesson_id
from offbook.model.receipt import FORGOTTEN
from offbook.model.record import (
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
from offbook.model.summary import Summary
from offbook.model.types import AuditDraft, AuditEvent, Entry, Mark, Scope, now

_PIN = "INSERT INTO holds (place, agent, pin) VALUES (?,?,?)"
_COUNT_PINS = """
INSERT INTO hold_counts (agent, pinned) VALUES (?,?) ON CONFLICT (agent) DO UPDATE SET
    pinned = hold_counts.pinned + excluded.pinned
"""
_SAME_MARK = (
    "SELECT 1 FROM marks WHERE session = ? AND seq = ? AND at = ? AND kind = ? "
    "AND (reason IS NOT DISTINCT FROM ? OR reason IS NULL)"
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
    def __init__(self, connection: Connection, steps: Steps) -> None:
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


# ── Admitting lessons that another installation exported. Part of the ledger: in the writer th ──

_INSERT = "INSERT INTO lessons (agent, number, kind, status, last_seen, data) VALUES (?,?,?,?,?,?) RETURNING lesson"
_SAID_THERE = "SELECT noise FROM messages WHERE place = ? AND ts = ?"


class _SourceRow(NamedTuple):
    """A message that says it."""

    place: int
    is_forgotten: bool


class AdmitLessonLedger(LedgerPart):
    def lessons(self, agent_id: str, lessons: Sequence[Lesson], event: AuditDraft) -> list[Admission]:
        agent = self._agent(agent_id)
        taken, known = self._there(agent)
        admissions: list[Admission] = []
        news: list[tuple[Lesson, int, list[int]]] = []
        named: dict[str, str] = {}
        """What each is called here."""
        for lesson in lessons:
            number = lesson_reads.number_in(lesson.id)
            said = [found for source in lesson.sources if (found := self._said(agent_id, source)) is not None]
            same = known.get((lesson.kind, lesson.key))
            if same is not None:
                named[lesson.id] = lesson_id(same)
                admissions.append(THERE)
            elif number is None:
                admissions.append(Admission(refused=f"{lesson.id!r} is no lesson's id"))
            elif any(each.is_forgotten for each in said):
                admissions.append(Admission(refused="a message it was learnt from was forgotten here"))
            elif lesson.sources and not said:
                admissions.append(Admission(refused="the messages it was learnt from are not here"))
            else:
                number = number if number not in taken else max(taken) + 1
                taken.add(number)
                known[lesson.kind, lesson.key] = number
                named[lesson.id] = lesson_id(number)
                news.append((lesson, number, [each.place for each in said]))
                admissions.append(TAKEN)
        for lesson, number, places in news:
            self._add(agent, lesson, number, places, named)
        if news:
            details = event.details | {"lessons": len(news)}
            self._chain(agent, msgspec.structs.replace(event, details=details), now())
        return admissions

    def _there(self, agent: AgentRow) -> tuple[set[int], dict[tuple[str, str], int]]:
        """All numbers that are given out, and those of lessons by kind and key."""
        taken: set[int] = set()
        known: dict[tuple[str, str], int] = {}
        for part in lesson_reads.lesson_parts(self._connection, agent.agent):
            taken.add(part.number)
            if part.key is not None:
                known[part.kind, part.key] = part.number
        return taken, known

    def _said(self, agent_id: str, source: LessonSource) -> _SourceRow | None:
        """None where it was not said here."""
        scope = Scope(agent_id=agent_id, session_id=source.session_id)
        session = reads.session_number(self._connection, scope)
        if session is None or source.seq > LARGEST_SEQ:
            return None
        place = place_of(session, source.seq)
        row = self._connection.execute(_SAID_THERE, (place, micros(source.at))).fetchone()
        return None if row is None else _SourceRow(place, row[0] == FORGOTTEN)

    def _add(self, agent: AgentRow, lesson: Lesson, number: int, places: Sequence[int], named: dict[str, str]) -> None:
        kept = msgspec.structs.replace(
            lesson,
            id=lesson_id(number),
            agent_id=agent.name,
            sources=[],
            replaced_by=None if lesson.replaced_by is None else named.get(lesson.replaced_by, lesson.replaced_by),
        )
        with to_be_read_again("a lesson"):
            data = msgspec.json.encode(kept).decode()
            lesson_reads.lesson_decoder.decode(data)
        row = self._connection.execute(
            _INSERT, (agent.agent, number, kept.kind, kept.status, micros(kept.last_seen), data)
        ).get
        self._connection.executemany(
            "INSERT INTO lesson_sources (lesson, place) VALUES (?,?) ON CONFLICT DO NOTHING",
            [(row, place) for place in places],
        )


# ── Reading what an export needs beyond what others ask for ──

_MADE_AFTER = "SELECT summary FROM summaries WHERE agent = ? AND level = ? AND summary > ? ORDER BY summary LIMIT ?"


def forgotten_in(connection: Connection, scope: Scope, first_seq: int, last_seq: int) -> int:
    session = reads.session_number(connection, scope)
    if session is None:
        return 0
    bounds = place_of(session, min(first_seq, MOST_MESSAGES)), place_of(session, min(last_seq, MOST_MESSAGES))
    found: int = connection.execute(
        "SELECT count(*) FROM messages WHERE place BETWEEN ? AND ? AND noise = ?", (*bounds, FORGOTTEN)
    ).get
    return found


def summaries_after(connection: Connection, agent_id: str, after: str | None, limit: int) -> list[Summary]:
    agent = agent_number(connection, agent_id)
    last = 0 if after is None else summary_reads.summary_number(connection, agent, after)
    if agent is None or last is None:
        return []
    limit = max(limit, 0)
    found = [
        number
        for level in summary_reads.LEVELS
        for (number,) in connection.execute(_MADE_AFTER, (agent, level, last, limit))
    ]
    return summary_reads.summaries_at(connection, agent_id, sorted(found)[:limit])
