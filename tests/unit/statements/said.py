"""What somebody says in these tests, and makers of messages and lessons."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from offbook.log.audit_chain import fingerprint
from offbook.model.lesson import Lesson
from offbook.model.memory_entry import PlacedMessage
from offbook.model.types import Entry, LoggedMessage, Message
from offbook.statements.reading import LessonMention, kept_in

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
DAY = timedelta(days=1)

# Each is read as something to keep, by a wide margin (`test_reading` holds the classifier to it).
DATABASE = "Our production database is Postgres 16 in eu-central-1."
SERVER = "Our staging server is called kestrel and runs in Frankfurt."
BUDGET = "Our budget is strictly under 20 dollars a month."
SHORT = "I prefer short answers without bullet points."
GERMAN = "From now on, always answer me in German."
KEPT = (DATABASE, SERVER, BUDGET, SHORT, GERMAN)
# What takes the place of DATABASE, as the model reads the two (`test_relation` holds it to that).
MOVED = "We moved our production database to MySQL 8, we no longer use Postgres."


def placed(
    text: str, seq: int = 1, *, at: datetime = NOON, noise: str | None = None, session: str = "chat", **fields: Any
) -> PlacedMessage:
    message = Message(**{"role": "user", "content": text, "ts": at, **fields})
    entry = Entry(message=message, chars=len(text), noise=noise, fingerprint=fingerprint(message))
    logged = LoggedMessage(seq=seq, received_at=at, entry=entry)
    return PlacedMessage(place=1000 + seq, session=1, session_id=session, logged=logged)


def said(text: str, seq: int = 1, *, at: datetime | None = None, **fields: Any) -> list[LessonMention]:
    return kept_in(placed(text, seq, at=at or NOON + seq * DAY, **fields))


def lesson(number: int, **fields: Any) -> Lesson:
    given = {
        "id": f"lesson-{number:04d}",
        "agent_id": "main",
        "kind": "preference",
        "text": f"Number {number}.",
        "status": "learnt",
        "confidence": 0.8,
        "first_seen": NOON,
        "last_seen": NOON + number * DAY,
        "times": 1,
        "sources": [],
        "learnt_by": "quoted",
        "key": f"key {number}",
        **fields,
    }
    return Lesson(**given)
