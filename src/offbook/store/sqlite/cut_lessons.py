"""Lessons as they were before what came later, as far as that is known. Part of `point_in_time`."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import apsw
import msgspec

from offbook.audit import micros, moment
from offbook.lessons import LESSONS_SESSION, Lesson, LessonStatus, lesson_id
from offbook.store.sqlite.cut_events import History
from offbook.store.sqlite.damage import UNREADABLE
from offbook.store.sqlite.lesson_reads import FORGOTTEN
from offbook.store.sqlite.places import place_of

STATUS_OF: dict[str, LessonStatus] = {"accept": "accepted", "edit": "edited", "reject": "rejected"}

_LOSE_SOURCES = """
DELETE FROM lesson_sources WHERE lesson = ?
    AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.place = lesson_sources.place)
"""
_SAID = "SELECT count(*) FROM lesson_sources WHERE lesson = ? AND NOT (place >= ? AND place < ?)"
_LEFT = """
SELECT count(*), max(m.ts) FROM lesson_sources l JOIN messages m ON m.place = l.place WHERE l.lesson = ?
"""


def cut_lessons(connection: apsw.Connection, agent: int, history: History) -> int:
    """Those go of which no source is left; the others are as old and as often said as what is left of theirs. How many
    cannot be as they were."""
    kept: list[tuple[int, Lesson]] = []
    gone: set[str] = set()
    unclear = 0
    judged = _places_of_judgements(connection, agent)
    rows: list[tuple[Any, ...]] = connection.execute(
        "SELECT lesson, number, data FROM lessons WHERE agent = ? AND status <> ?", (agent, FORGOTTEN)
    ).fetchall()
    for row, number, data in rows:
        said: int = connection.execute(_SAID, (row, *judged)).get
        connection.execute(_LOSE_SOURCES, (row,))
        is_less = connection.changes() > 0
        said -= connection.execute(_SAID, (row, *judged)).get
        counted: list[tuple[Any, ...]] = connection.execute(_LEFT, (row,)).fetchall()
        ((left, last_said),) = counted
        if is_less and not left:
            gone.add(lesson_id(number))
            connection.execute("DELETE FROM lessons WHERE lesson = ?", (row,))
            continue
        with suppress(*UNREADABLE):  # a damaged one is left to `doctor`
            id_, lesson = lesson_id(number), msgspec.json.decode(data, type=Lesson)
            was = as_it_was(lesson, id_, unsaid=said, last_said=last_said if is_less else None, history=history)
            kept.append((row, was))
            unclear += is_unclear(id_, history)
    for row, lesson in kept:
        if lesson.replaced_by in gone:
            lesson = msgspec.structs.replace(lesson, replaced_by=None)  # noqa: PLW2901
        connection.execute(
            "UPDATE lessons SET status = ?, last_seen = ?, data = ? WHERE lesson = ?",
            (lesson.status, micros(lesson.last_seen), msgspec.json.encode(lesson).decode(), row),
        )
    return unclear


def _places_of_judgements(connection: apsw.Connection, agent: int) -> tuple[int, int]:
    """From where to where. Who judges a lesson does not say it once more."""
    session: int | None = connection.execute(
        "SELECT session FROM sessions WHERE agent = ? AND key = ?", (agent, LESSONS_SESSION)
    ).get
    return (0, 0) if session is None else (place_of(session, 0), place_of(session + 1, 0))


def is_unclear(id_: str, history: History) -> bool:
    """Of two edits only the last is kept."""
    return id_ in history.edited_later and history.verdicts.get(id_) == "edit"


def as_it_was(lesson: Lesson, id_: str, *, unsaid: int, last_said: int | None, history: History) -> Lesson:
    """`unsaid`: how many times less it had been said; `last_said`: where some of its sources are gone, when the newest
    of those left was said."""
    changes: dict[str, Any] = {}
    if unsaid:
        changes["times"] = max(1, lesson.times - unsaid)
    if last_said is not None:
        changes["last_seen"] = min(lesson.last_seen, moment(last_said))
    if id_ in history.judged_later:
        changes["status"] = STATUS_OF.get(history.verdicts.get(id_, ""), "learnt")
        if id_ in history.edited_later and not is_unclear(id_, history):
            changes |= {"text": lesson.learnt_text or lesson.text, "learnt_text": None}
    return msgspec.structs.replace(lesson, **changes)
