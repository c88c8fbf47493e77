"""An entry of a transcript: a message, something else, or damage."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from offbook.client.outgoing import without_surrogates
from offbook.portability.conversations import Damage

LONGEST_EVENT_BYTES = 64 * 1024 * 1024
"""What is longer is no message anyone can send; a file of rubbish without a line's end must not fill the memory."""


class Event(NamedTuple):
    """One message as the host wrote it. `written_at` is when; what was said may have a time of its own."""

    entry_id: str
    message: dict[str, Any]
    written_at: datetime | None
    size_bytes: int
    where: str


class _Entry(msgspec.Struct):
    type: Any = None
    id: Any = None
    timestamp: Any = None
    message: Any = None


_SURROGATE = re.compile(r"\\ud[89a-f]", re.IGNORECASE)
_DECODER = msgspec.json.Decoder(_Entry)


def event_of(raw: bytes | str, where: str, own_id: str) -> Event | Damage | None:
    """None for what is no message. `own_id` is for the oldest transcripts, whose entries have none."""
    try:
        entry = _decoded(raw)
    except (ValueError, RecursionError) as error:  # msgspec's and json's own errors are ValueErrors
        return Damage(where, f"not an entry of a transcript: {error}")
    if entry.type != "message":
        return None
    if not isinstance(entry.message, dict) or not isinstance(entry.message.get("role"), str):
        return Damage(where, "a message without a role")
    entry_id = entry.id if isinstance(entry.id, str) and entry.id else own_id
    return Event(entry_id, entry.message, moment_of(entry.timestamp), len(raw), where)


def _decoded(raw: bytes | str) -> _Entry:
    try:
        return _DECODER.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = raw if isinstance(raw, str) else raw.decode()
        if not _SURROGATE.search(text):
            raise
    # The host cuts texts between the halves of a character, and JSON of JavaScript may hold such a half.
    return msgspec.convert(without_surrogates(json.loads(text)), _Entry)


def moment_of(value: Any) -> datetime | None:
    """The time of an entry, which is ISO 8601 there and milliseconds in a row."""
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None
