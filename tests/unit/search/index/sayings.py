"""Messages as they are indexed, made by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from offbook.model.types import Role
from offbook.search.index.rows import IndexedMessage
from offbook.search.words import terms

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def said(
    place: int, text: str = "", *, session: int = 1, minutes: float = 0, role: Role = "user", speaker: str = ""
) -> IndexedMessage:
    at = NOON + timedelta(minutes=minutes)
    return IndexedMessage(
        place=place,
        session=session,
        ts=at,
        arrived=at,
        role=role,
        speaker=speaker,
        text=text,
        terms=terms(text),
        flags=0,
    )
