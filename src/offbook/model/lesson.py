"""The nouns of lessons: what was learnt from what was said, how sure that is, and where it was said."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from offbook.model.types import Moment, SessionId, Sparse, Value

LessonKind = Literal["decision", "correction", "preference", "procedure", "fact"]
LessonStatus = Literal["learnt", "accepted", "edited", "rejected"]
"""`learnt` by itself; the others by a person. What a person has judged is never changed by the background."""
Verdict = Literal["accept", "edit", "reject"]
Confidence = Annotated[float, Meta(ge=0, le=1)]

LESSONS_SESSION = "offbook:lessons"
"""The session of each agent that holds what a person wrote in the place of a lesson: news, so it is in the log."""
LESSON_ORIGIN = "lesson"
"""Of those messages: the agent keeps them as its own notes."""
PAGE_FIELDS = ("id", "kind", "status", "confidence", "first_seen", "last_seen", "times", "learnt_by")
"""Every page of a lesson in the wiki begins with these."""


class LessonSource(Value, frozen=True):
    """A message that says it."""

    session_id: SessionId
    seq: Annotated[int, Meta(ge=1)]
    at: Moment


class LessonDraft(Sparse, frozen=True):
    """What was learnt, before it has a number. `key` says what it is about: two of one key and kind are one lesson."""

    kind: LessonKind
    text: str
    key: str
    confidence: Confidence
    first_seen: datetime
    last_seen: datetime
    times: int
    places: list[int]
    """Of its sources, in the store: the oldest and the newest of them, where there are many."""
    learnt_by: str = "quoted"
    """`quoted`: a sentence word for word; or the model that wrote it. `rules` is of the first version."""
    about: str | None = None
    """The person, project or thing."""


class Lesson(Sparse, frozen=True):
    """A lesson as it is kept and shown."""

    id: str
    agent_id: str
    kind: LessonKind
    text: str
    status: LessonStatus
    confidence: Confidence = msgspec.field()
    first_seen: datetime
    last_seen: datetime
    times: int = msgspec.field()
    """How often it was said."""
    sources: list[LessonSource] = msgspec.field()
    learnt_by: str = msgspec.field()
    about: str | None = None
    learnt_text: str | None = None
    """What it said before a person edited it."""
    replaced_by: str | None = None
    """The lesson that took its place, where it no longer holds."""
    key: str = ""


class LessonPage(Sparse, frozen=True):
    agent_id: str
    lessons: list[Lesson] = msgspec.field()
    counts: dict[str, int] = msgspec.field()
    """By status, of all the agent's."""
    next: str | None = None


def lesson_id(number: int) -> str:
    return f"lesson-{number:04d}"
