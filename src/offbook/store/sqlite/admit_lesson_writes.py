"""Admitting lessons that another installation exported. Part of the ledger: in the writer thread, in its transaction.

A lesson gets the number it had, so that whatever refers to it still does; where that is another lesson's here, it gets
the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

import apsw
import msgspec

from offbook.audit import micros
from offbook.erasures import FORGOTTEN
from offbook.lessons import Lesson, LessonSource, lesson_id
from offbook.records import LARGEST_SEQ, TAKEN, THERE, Admission
from offbook.store.sqlite import lesson_reads, reads
from offbook.store.sqlite.compression_writes import to_be_read_again
from offbook.store.sqlite.places import place_of
from offbook.store.sqlite.rows import AgentRow
from offbook.types import AuditDraft, AuditEvent, Scope, now

_INSERT = "INSERT INTO lessons (agent, number, kind, status, last_seen, data) VALUES (?,?,?,?,?,?)"
_SAID_THERE = "SELECT noise FROM messages WHERE place = ? AND ts = ?"
_KNOWN = """
SELECT number, kind, CASE WHEN status <> ? AND json_valid(data) THEN coalesce(data -> '$.key', '""') END
FROM lessons WHERE agent = ?
"""


class _Said(NamedTuple):
    """A message that says it."""

    place: int
    is_forgotten: bool


class AdmitLessonLedger:
    """`agent` and `chain` are the ledger's: the row of an agent, and one more event in its chain."""

    def __init__(
        self,
        connection: apsw.Connection,
        *,
        agent: Callable[[str], AgentRow],
        chain: Callable[[AgentRow, AuditDraft, datetime], AuditEvent],
    ) -> None:
        self._connection = connection
        self._agent = agent
        self._chain = chain

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
        for number, kind, key in self._connection.execute(_KNOWN, (lesson_reads.FORGOTTEN, agent.agent)):
            taken.add(number)
            if key is not None:
                known[kind, msgspec.json.decode(key, type=str)] = number
        return taken, known

    def _said(self, agent_id: str, source: LessonSource) -> _Said | None:
        """None where it was not said here."""
        scope = Scope(agent_id=agent_id, session_id=source.session_id)
        session = reads.session_number(self._connection, scope)
        if session is None or source.seq > LARGEST_SEQ:
            return None
        place = place_of(session, source.seq)
        row = self._connection.execute(_SAID_THERE, (place, micros(source.at))).fetchone()
        return None if row is None else _Said(place, row[0] == FORGOTTEN)

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
        self._connection.execute(_INSERT, (agent.agent, number, kept.kind, kept.status, micros(kept.last_seen), data))
        row = self._connection.last_insert_rowid()
        self._connection.executemany(
            "INSERT INTO lesson_sources (lesson, place) VALUES (?,?) ON CONFLICT DO NOTHING",
            [(row, place) for place in places],
        )
