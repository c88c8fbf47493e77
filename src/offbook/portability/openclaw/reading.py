"""The messages of a session, one after the other, as they will be sent."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial

from offbook.portability.conversations import Conversation, Damage, Damaged, Ready
from offbook.portability.openclaw.catalogue import Session
from offbook.portability.openclaw.events import Event
from offbook.portability.openclaw.mapping import AFTER_LATEST, EARLIEST, iso, wire_message


def conversation_of(session: Session) -> Conversation:
    return Conversation(session.agent_id, session.key, session.size_bytes, partial(messages, session))


def messages(session: Session, damaged: Damaged) -> Iterator[Ready]:
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
