"""Reading lessons.

A lesson's own number in the file rises as they are made; its id (`lesson-0007`) counts those of one agent. Ids are
looked up under their agent, so those of another agent are unknown here. One that was forgotten keeps its row and
nothing else: nobody is shown it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import apsw
import msgspec

from offbook.log.audit_chain import moment
from offbook.log.sqlite.connection import UNREADABLE, only_row, unreadable
from offbook.log.sqlite.recall_reads import agent_number, own_sessions
from offbook.log.sqlite.row_ids import LARGEST_NUMBER, session_of
from offbook.model.errors import StoreCorrupt
from offbook.model.lesson import Lesson, LessonKind, LessonSource, LessonStatus, lesson_id
from offbook.model.plain_names import number_behind

FORGOTTEN = "forgotten"
"""The status of a row that has nothing to show. No lesson has it."""
SOURCES_AT_EACH_END = 25
"""Of a lesson that was said more often than twice as many times, the oldest and the newest are shown."""

_SOURCES = """
SELECT s.place, m.seq, m.ts FROM (
    SELECT place FROM (SELECT place FROM lesson_sources WHERE lesson = :lesson ORDER BY place LIMIT :most)
    UNION
    SELECT place FROM (SELECT place FROM lesson_sources WHERE lesson = :lesson ORDER BY place DESC LIMIT :most)
) s JOIN messages m ON m.place = s.place ORDER BY m.ts, s.place
"""

lesson_decoder = msgspec.json.Decoder(Lesson)


def lessons(
    connection: apsw.Connection,
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
        found = [_lesson(connection, agent_id, *row) for row in rows]
    return found  # noqa: RET504 - for mypy the block may end without


def lesson(connection: apsw.Connection, agent_id: str, id_: str) -> Lesson | None:
    with connection:
        row = connection.execute(
            "SELECT lesson, number FROM lessons WHERE agent = ? AND number = ? AND status <> ?",
            (agent_number(connection, agent_id), number_in(id_), FORGOTTEN),
        ).fetchone()
        found = None if row is None else _lesson(connection, agent_id, *row)
    return found  # noqa: RET504 - for mypy the block may end without


def lesson_places(connection: apsw.Connection, agent_id: str, id_: str) -> list[int]:
    rows = connection.execute(
        "SELECT p.place FROM lesson_sources p JOIN lessons l ON l.lesson = p.lesson "
        "WHERE l.agent = ? AND l.number = ? AND l.status <> ? ORDER BY p.place",
        (agent_number(connection, agent_id), number_in(id_), FORGOTTEN),
    )
    return [place for (place,) in rows]


def lessons_at(connection: apsw.Connection, agent_id: str, places: Sequence[int]) -> list[Lesson]:
    with connection:
        rows = connection.execute(
            "SELECT DISTINCT l.lesson, l.number FROM lesson_sources p JOIN lessons l ON l.lesson = p.lesson "
            "WHERE p.place IN (SELECT value FROM json_each(?)) AND l.agent = ? AND l.status <> ? ORDER BY l.number",
            (msgspec.json.encode(list(places)).decode(), agent_number(connection, agent_id), FORGOTTEN),
        )
        found = [_lesson(connection, agent_id, *row) for row in list(rows)]
    return found  # noqa: RET504 - for mypy the block may end without


def lesson_counts(connection: apsw.Connection, agent_id: str) -> dict[str, int]:
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


def sources(connection: apsw.Connection, agent_id: str, row: int) -> list[LessonSource]:
    """The oldest and the newest in the order of the log, shown by when they were said."""
    found = list(connection.execute(_SOURCES, {"lesson": row, "most": SOURCES_AT_EACH_END}))
    keys = own_sessions(connection, agent_id, [place for place, _, _ in found])
    return [
        LessonSource(session_id=keys[session_of(place)], seq=seq, at=moment(ts))
        for place, seq, ts in found
        if session_of(place) in keys
    ]


def _lesson(connection: apsw.Connection, agent_id: str, row: int, number: int) -> Lesson:
    with reading_lesson(f"{lesson_id(number)} of agent {agent_id!r}"):
        (data,) = only_row(connection, "SELECT data FROM lessons WHERE lesson = ?", (row,))
        return msgspec.structs.replace(lesson_decoder.decode(data), sources=sources(connection, agent_id, row))


@contextmanager
def reading_lesson(what: str) -> Iterator[None]:
    try:
        yield
    except UNREADABLE as error:
        # The audit chain knows nothing of lessons, so it is the doctor who finds the others.
        raise StoreCorrupt(f"{unreadable(what, error)}: `offbook doctor` finds what else is damaged") from error
