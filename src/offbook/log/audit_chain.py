"""The audit chain: every event carries the hash of the one before it, per agent.

Pure functions. The formula is part of the data format (anyone can verify a chain with it), so it is
written out here field by field and never derived from a class:

    event hash   = SHA-256(JSON [1, agentId, seq, atMicros, verb, actor, sessionId, details, previous])
    message hash = SHA-256(JSON [1, seq, receivedMicros, id, role, content, tsMicros, name, toolCallId, model,
                                 origin, meta, noise, blobs, redactions])

JSON here is compact, UTF-8, with sorted keys. An `onMessage` event holds the hash of the hashes of the
messages it stored, so the chain vouches for the log as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import blake2b, sha256
from typing import Any

import msgspec

from offbook.model.status import Counts
from offbook.model.types import LOST, AuditDraft, AuditEvent, AuditHead, Entry, Fault, Message

FORMULA = 1
GENESIS = AuditHead(seq=0, hash="0" * 64)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_canonical = msgspec.json.Encoder(order="deterministic")


def micros(moment: datetime) -> int:
    """Microseconds since 1970; integers all the way, so nothing is lost to floats."""
    return (moment - _EPOCH) // _MICROSECOND


def moment(at_micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=at_micros)


def seal(agent_id: str, draft: AuditDraft, head: AuditHead, at: datetime) -> AuditEvent:
    """Give a draft its place after `head`."""
    event = AuditEvent(
        seq=head.seq + 1,
        agent_id=agent_id,
        at=at,
        verb=draft.verb,
        actor=draft.actor,
        session_id=draft.session_id,
        details=draft.details,
        previous=head.hash,
        hash="",
    )
    return msgspec.structs.replace(event, hash=event_hash(event))


def event_hash(event: AuditEvent) -> str:
    fields = [
        FORMULA,
        event.agent_id,
        event.seq,
        micros(event.at),
        event.verb,
        event.actor,
        event.session_id,
        event.details,
        event.previous,
    ]
    return sha256(_canonical.encode(fields)).hexdigest()


def message_hash(seq: int, received_at: datetime, entry: Entry) -> bytes:
    message = entry.message
    fields: list[Any] = [
        FORMULA,
        seq,
        micros(received_at),
        message.id,
        message.role,
        message.content,
        micros(message.ts) if message.ts else None,
        message.name,
        message.tool_call_id,
        message.model,
        message.origin,
        message.meta,
        entry.noise,
        entry.blobs,
        entry.redactions,
    ]
    return sha256(_canonical.encode(fields)).digest()


def batch_hash(message_hashes: Iterable[bytes]) -> str:
    return sha256(b"".join(message_hashes)).hexdigest()


def stand_ins_hash(event_hashes: Iterable[str]) -> str:
    """Over what stands for lost events, in their order: each of them has the hash of the lost one, not its own."""
    return sha256("".join(event_hashes).encode()).hexdigest()


def counts_with(counts: Counts, event: AuditEvent) -> Counts:
    """An agent's counts after one more event: they are a fold over its chain, and can be had again from it."""
    details = event.details
    return Counts(
        messages=counts.messages + details.get("accepted", 0),
        # What was shown (a context) has its characters in its event, too; only what was stored is counted.
        chars=counts.chars + (details.get("chars", 0) if "accepted" in details else 0),
        sessions=counts.sessions + details.get("opened", 0),
        noise=counts.noise + details.get("noise", 0),
        duplicates=counts.duplicates + details.get("duplicates", 0),
        conflicts=counts.conflicts + len(details.get("conflicts", ())),
        redactions=counts.redactions + sum(details.get("redactions", {}).values()),
        blobs=counts.blobs + details.get("blobs", 0),
        audit_events=event.seq,
    )


def end_is_whole(events: Sequence[AuditEvent], noted: AuditHead) -> bool:
    """Whether the newest events of a chain are unbroken and reach the head that was noted apart from it."""
    first = events[0]
    before = GENESIS if first.seq == 1 else AuditHead(seq=first.seq - 1, hash=first.previous)
    if any(chain_faults(events, before)) or events[-1].seq < noted.seq:
        return False
    return noted.seq < first.seq or events[noted.seq - first.seq].hash == noted.hash


def chain_faults(events: Iterable[AuditEvent], head: AuditHead) -> Iterator[Fault]:
    """What is wrong in a contiguous stretch of one agent's chain that should follow `head`. What stands for a lost
    event has the hash of that one; that something vouches for it is for who walks the whole chain."""
    for event in events:
        if event.seq != head.seq + 1:
            yield Fault(
                what=f"audit events {head.seq + 1} to {event.seq - 1} are missing",
                agent_id=event.agent_id,
                seq=head.seq + 1,
            )
        elif event.previous != head.hash:
            yield Fault(what="audit event does not continue the one before it", agent_id=event.agent_id, seq=event.seq)
        if event.verb != LOST and event_hash(event) != event.hash:
            yield Fault(what="audit event was altered after it was written", agent_id=event.agent_id, seq=event.seq)
        head = AuditHead(seq=event.seq, hash=event.hash)


_canonical = msgspec.json.Encoder(order="deterministic")


def fingerprint(message: Message) -> bytes:
    """Tells a retry from another message under the same id; time and meta may differ between two captures of one."""
    fields = [message.role, message.content, message.name, message.tool_call_id]
    return blake2b(_canonical.encode(fields), digest_size=16).digest()
