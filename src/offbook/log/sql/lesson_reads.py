"""Reading lessons.

A lesson's own number in the file rises as they are made; its id (`lesson-0007`) counts those of one agent. Ids are
looked up under their agent, so those of another agent are unknown here. One that was forgotten keeps its row and
nothing else: nobody is shown it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import msgspec

from offbook.log.audit_chain import moment
from offbook.log.sql.connection import UNREADABLE, Connection, only_row, unreadable
from offbook.log.sql.recall_reads import agent_number, own_sessions
from offbook.log.sql.row_ids import LARGEST_NUMBER, askable, session_of
from offbook.model.errors import StoreCorrupt
from offbook.model.lesson import Lesson, LessonKind, LessonSource, LessonStatus, lesson_id
from offbook.model.plain_names import number_behind

FORGOTTEN = "forgotten"
"""The status of a row that has nothing to show. No lesson has it."""
SOURCES_AT_EACH_END = 25
"""Of a lesson that was said more often than twice as many times, the oldest and the newest are shown."""

_SOURCES = """
SELECT s.place, m.seq, m.ts FROM (
    SELECT place FROM (SELECT place FROM lesson_sources WHERE lesson = ? ORDER BY place LIMIT ?) oldest
    UNION
    SELECT place FROM (SELECT place FROM lesson_sources WHERE lesson = ? ORDER BY place DESC LIMIT ?) newest
) s JOIN messages m ON m.place = s.place ORDER BY m.ts, s.place
"""

lesson_decoder = msgspec.json.Decoder(Lesson)


class _PartOfLesson(msgspec.Struct, rename="camel"):
    """See `LessonPart`."""

    key: str = ""
    replaced_by: str | None = None


_part_of_lesson = msgspec.json.Decoder(_PartOfLesson)


def lessons(
    connection: Connection,
    agent_id: str,
    kind: LessonKind | None,
    statuses: Sequence[LessonStatus] | None,
    before: str | None,
    limit: int,
) -> list[Lesson]:
    below = LARGEST_NUMBER if before is None else number_in(before)
    if below is None:
        return []
    query = "SELECT lesson, number FROM lessons WHERE agent = ? AND number < ? AND status <> ?"
    asked: list[int | str | None] = [agent_number(connection, agent_id), below, FORGOTTEN]
    if kind is not None:
        query += " AND kind = ?"
        asked.append(kind)
    if statuses is not None:
        query += f" AND status IN ({','.join('?' * len(statuses))})"
        asked += statuses
    with connection:  # of one moment: one of them may be forgotten meanwhile
        rows = list(connection.execute(f"{query} ORDER BY number DESC LIMIT ?", (*asked, max(limit, 0))))
        found = _lessons(connection, agent_id, rows)
    return found  # noqa: RET504 - for mypy the block may end without


def lesson(connection: Connection, agent_id: str, id_: str) -> Lesson | None:
    with connection:
        row = connection.execute(
            "SELECT lesson, number FROM lessons WHERE agent = ? AND number = ? AND status <> ?",
            (agent_number(connection, agent_id), number_in(id_), FORGOTTEN),
        ).fetchone()
        found = _lessons(connection, agent_id, [row] if row else [])
    return found[0] if found else None


def standing_lessons(connection: Connection, agent_id: str, ids: Sequence[str]) -> set[str]:
    """Those of them that nobody has rejected and nothing has taken the place of."""
    numbers = [number for id_ in ids if (number := number_in(id_)) is not None]
    parts = lesson_parts(connection, agent_number(connection, agent_id), numbers)
    return {
        lesson_id(part.number)
        for part in parts
        if part.key is not None and part.status != "rejected" and part.replaced_by is None
    }


def lesson_places(connection: Connection, agent_id: str, id_: str) -> list[int]:
    rows = connection.execute(
        "SELECT p.place FROM lesson_sources p JOIN lessons l ON l.lesson = p.lesson "
        "WHERE l.agent = ? AND l.number = ? AND l.status <> ? ORDER BY p.place",
        (agent_number(connection, agent_id), number_in(id_), FORGOTTEN),
    )
    return [place for (place,) in rows]


def lessons_at(connection: Connection, agent_id: str, places: Sequence[int]) -> list[Lesson]:
    with connection:
        rows = connection.execute(
            "SELECT DISTINCT l.lesson, l.number FROM lesson_sources p JOIN lessons l ON l.lesson = p.lesson "
            "WHERE p.place IN (SELECT CAST(value AS BIGINT) FROM json_each(?)) AND l.agent = ? AND l.status <> ? "
            "ORDER BY l.number",
            (msgspec.json.encode(askable(places)).decode(), agent_number(connection, agent_id), FORGOTTEN),
        )
        found = _lessons(connection, agent_id, list(rows))
    return found  # noqa: RET504 - for mypy the block may end without


def lessons_keyed(connection: Connection, agent_id: str, keys: Collection[str]) -> list[Lesson]:
    with connection:
        parts = lesson_parts(connection, agent_number(connection, agent_id))
        found = _lessons(connection, agent_id, [(part.row, part.number) for part in parts if part.key in keys])
    return found  # noqa: RET504 - for mypy the block may end without


def lesson_counts(connection: Connection, agent_id: str) -> dict[str, int]:
    return dict(
        connection.execute(
            "SELECT status, count(*) FROM lessons WHERE agent = ? AND status <> ? GROUP BY status ORDER BY status",
            (agent_number(connection, agent_id), FORGOTTEN),
        )
    )


def number_in(id_: str) -> int | None:
    """The agent's own number of a lesson, from its id; None for what no lesson is called."""
    number = number_behind("lesson-", id_)
    # More zeros than it was given out with name nothing.
    return number if number is not None and lesson_id(number) == id_ else None


class LessonPart(NamedTuple):
    """What is looked for among many."""

    row: int
    number: int
    kind: str
    status: str
    key: str | None
    """None where it was forgotten or cannot be read."""
    replaced_by: str | None


def lesson_parts(connection: Connection, agent: int | None, numbers: Sequence[int] | None = None) -> list[LessonPart]:
    """Of all lessons of the agent, or of those with these numbers, in order."""
    query = "SELECT lesson, number, kind, status, {data} FROM lessons WHERE agent = ?"
    asked: list[int | str | None] = [agent]
    if numbers is not None:
        query += " AND number IN (SELECT CAST(value AS BIGINT) FROM json_each(?))"
        asked.append(msgspec.json.encode(askable(numbers)).decode())
    query += " ORDER BY number"
    try:
        rows = connection.execute(query.format(data="data"), asked).fetchall()
    except UNREADABLE:
        # Which of them it was is not known here.
        rows = connection.execute(query.format(data="NULL"), asked).fetchall()
    return [_lesson_part(connection, *row) for row in rows]


def _lesson_part(connection: Connection, row: int, number: int, kind: str, status: str, data: str | None) -> LessonPart:
    key, replaced_by = None, None
    try:
        if status != FORGOTTEN:
            if data is None:
                (data,) = only_row(connection, "SELECT data FROM lessons WHERE lesson = ?", (row,))
            kept = _part_of_lesson.decode(data or "")
            key, replaced_by = kept.key, kept.replaced_by
    except UNREADABLE:
        key = None
    return LessonPart(row, number, kind, status, key, replaced_by)


def sources(connection: Connection, agent_id: str, row: int) -> list[LessonSource]:
    """The oldest and the newest in the order of the log, shown by when they were said."""
    places = _places(connection, row)
    return _told(places, own_sessions(connection, agent_id, [place for place, _, _ in places]))


def _places(connection: Connection, row: int) -> list[tuple[int, int, int]]:
    return list(connection.execute(_SOURCES, (row, SOURCES_AT_EACH_END) * 2))


def _told(places: Sequence[tuple[int, int, int]], sessions: Mapping[int, str]) -> list[LessonSource]:
    return [
        LessonSource(session_id=sessions[session_of(place)], seq=seq, at=moment(ts))
        for place, seq, ts in places
        if session_of(place) in sessions
    ]


def _lessons(connection: Connection, agent_id: str, rows: Sequence[tuple[int, int]]) -> list[Lesson]:
    bare: list[Lesson] = []
    places: list[list[tuple[int, int, int]]] = []
    for row, number in rows:
        with reading_lesson(f"{lesson_id(number)} of agent {agent_id!r}"):
            (data,) = only_row(connection, "SELECT data FROM lessons WHERE lesson = ?", (row,))
            bare.append(lesson_decoder.decode(data))
            places.append(_places(connection, row))
    with reading_lesson(f"where a lesson of agent {agent_id!r} was said"):
        sessions = own_sessions(connection, agent_id, {place for some in places for place, _, _ in some})
        told = [_told(some, sessions) for some in places]
    return [msgspec.structs.replace(one, sources=some) for one, some in zip(bare, told, strict=True)]


@contextmanager
def reading_lesson(what: str) -> Iterator[None]:
    try:
        yield
    except UNREADABLE as error:
        # The audit chain knows nothing of lessons, so it is the doctor who finds the others.
        raise StoreCorrupt(f"{unreadable(what, error)}: `offbook doctor` finds what else is damaged") from error
