"""Makers of what was said and what is known, for these tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from offbook.log.audit_chain import fingerprint
from offbook.model.lesson import Lesson, LessonDraft, LessonSource, lesson_id
from offbook.model.memory_entry import PlacedMessage
from offbook.model.types import Entry, LoggedMessage, Message
from offbook.rules.lessons.reader import LessonMention, said_in

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def placed(
    text: str, seq: int = 1, *, at: datetime = NOON, noise: str | None = None, session: str = "chat", **fields: Any
) -> PlacedMessage:
    message = Message(**{"role": "user", "content": text, "ts": at, **fields})
    entry = Entry(message=message, chars=len(text), noise=noise, fingerprint=fingerprint(message))
    logged = LoggedMessage(seq=seq, received_at=at, entry=entry)
    return PlacedMessage(place=1000 + seq, session=1, session_id=session, logged=logged)


def said(text: str, seq: int = 1, *, at: datetime | None = None, **fields: Any) -> list[LessonMention]:
    return said_in(placed(text, seq, at=at or NOON + seq * DAY, **fields))


def kept(
    drafts: list[LessonDraft], known: list[Lesson], sayings: list[LessonMention], replaced: dict[str, str]
) -> list[Lesson]:
    """What a store would hold after that: a few lines of what `tests/contract` holds the real ones to."""
    there = {(one.kind, one.key): one for one in known}
    places = {one.place: LessonSource(session_id=one.session_id, seq=one.seq, at=one.at) for one in sayings}
    for draft in drafts:
        old = there.get((draft.kind, draft.key))
        sources = {(one.session_id, one.seq): one for one in (old.sources if old else [])}
        sources |= {(places[at].session_id, places[at].seq): places[at] for at in draft.places}
        is_again = old is not None and draft.last_seen > old.last_seen
        there[draft.kind, draft.key] = Lesson(
            id=old.id if old else lesson_id(len(there) + 1),
            agent_id="main",
            kind=draft.kind,
            text=draft.text,
            status="learnt",
            confidence=draft.confidence,
            first_seen=draft.first_seen,
            last_seen=draft.last_seen,
            times=max(draft.times, len(sources)),
            sources=list(sources.values()),
            learnt_by=draft.learnt_by,
            about=draft.about,
            key=draft.key,
            replaced_by=None if old is None or is_again else old.replaced_by,
        )
    by_key = {one.key: one.id for one in there.values()}
    found = []
    for one in there.values():
        new = replaced.get(one.id)
        found.append(one if new is None else Lesson(**{**fields_of(one), "replaced_by": by_key[new]}))
    return found


def fields_of(one: Lesson) -> dict[str, Any]:
    return {name: getattr(one, name) for name in one.__struct_fields__}
