"""The messages of a session, one after the other, as they will be sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

from offbook.portability.openclaw.catalogue import Session
from offbook.portability.openclaw.events import Damage, Event
from offbook.portability.openclaw.mapping import AFTER_LATEST, EARLIEST, iso, wire_message

MESSAGES_AT_A_TIME = 500
BYTES_AT_A_TIME = 4 * 1024 * 1024
"""A quarter of what a provider takes in one request by default."""


class Ready(NamedTuple):
    wire: dict[str, Any]
    at: datetime | None
    size_bytes: int
    where: str


def messages(session: Session, damaged: Callable[[Damage], None]) -> Iterator[Ready]:
    """Every message of every transcript, in the order written; one that lies in several places once."""
    seen: set[str] = set()
    for transcript in session.transcripts:
        for source in transcript.sources:
            for found in source.events():
                if isinstance(found, Damage):
                    damaged(found)
                elif found.entry_id not in seen:
                    seen.add(found.entry_id)
                    yield _ready(found, transcript.session_id)


def _ready(event: Event, session_id: str) -> Ready:
    wire = wire_message(event.entry_id, event.message, session_id)
    if "ts" not in wire and event.written_at is not None and EARLIEST <= event.written_at < AFTER_LATEST:
        wire["ts"] = iso(event.written_at)  # else it would be told as of today
    at = datetime.fromisoformat(wire["ts"]) if "ts" in wire else None
    return Ready(wire, at, event.size_bytes, event.where)


def batches(found: Iterator[Ready]) -> Iterator[list[Ready]]:
    batch: list[Ready] = []
    size = 0
    for ready in found:
        if batch and (len(batch) >= MESSAGES_AT_A_TIME or size + ready.size_bytes > BYTES_AT_A_TIME):
            yield batch
            batch, size = [], 0
        batch.append(ready)
        size += ready.size_bytes
    if batch:
        yield batch
