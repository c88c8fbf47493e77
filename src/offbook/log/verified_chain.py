"""One agent's audit chain, walked from its beginning: what is wrong with it, and what it vouches for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec
from msgspec import Meta

from offbook.log.audit_chain import GENESIS, chain_faults, counts_with, event_hash, stand_ins_hash
from offbook.model.receipt import ForgottenSpan
from offbook.model.status import Counts
from offbook.model.types import LOST, SALVAGE, AuditEvent, AuditHead, Fault, Value

UNKNOWN_HASH = ""
NOT_AS_WRITTEN = (TypeError, ValueError, OverflowError, RecursionError, LookupError, AttributeError)
"""What computing a hash or a sum anew raises over values that were never written like this."""

Seq = Annotated[int, Meta(ge=1)]


class StoredDetails(msgspec.Struct, frozen=True, rename="camel"):
    """Of an event's details: what it says it stored."""

    accepted: Seq
    first_seq: Seq
    last_seq: Seq
    hash: str


class StoredSpan(Value, frozen=True):
    """Messages of one session that one event stored, and the hash it gave for them; None: what it stored is not
    known."""

    session_id: str
    event_seq: int
    stored: StoredDetails | None


class Chain:
    """One agent's chain, as far as it has been walked."""

    def __init__(self, agent_id: str) -> None:
        self.agent_id = agent_id
        self.head = GENESIS
        self.noted = GENESIS
        self.noted_counts: Counts | None = None
        self._counts: Counts | None = Counts()
        """None after an event that cannot be counted."""
        self._forgotten: dict[str, list[tuple[int, int]]] = {}
        """The stretches of each session that sound events say were forgotten."""
        self._lost: dict[str, list[tuple[int, int]]] = {}
        """The same of what a salvage says was lost."""
        self._stand_ins: dict[int, str] = {}
        """What stands for a lost event, and its own hash. The event that vouches for it comes later."""
        self.salvages: list[AuditEvent] = []

    def take(self, row: AuditEvent | Fault, stretches: list[StoredSpan]) -> Iterator[Fault]:
        if isinstance(row, Fault):
            yield row
            self._counts = None
            self.head = AuditHead(seq=row.seq or self.head.seq + 1, hash=UNKNOWN_HASH)
            return
        if self.head.hash == UNKNOWN_HASH:
            self.head = AuditHead(seq=self.head.seq, hash=row.previous)
        faults, is_sound = _chain_faults(row, self.head)
        yield from faults
        if row.seq == self.noted.seq and row.hash != self.noted.hash:
            yield self._fault("audit event is not the one that was noted", row.seq)
        self._count(row, is_countable=not faults)
        if row.seq == self.noted.seq and self._counts and self.noted_counts not in (None, self._counts):
            yield self._fault("the counts noted with this audit event are not those of the chain", row.seq)
        self.head = AuditHead(seq=row.seq, hash=row.hash)
        if row.verb == LOST:
            self._stand_ins[row.seq] = _own_hash(row)
        if is_sound and row.verb == "forget":
            _note_spans(self._forgotten, row.details.get("spans", []))
        if is_sound and row.verb == SALVAGE:
            self.salvages.append(row)
            _note_spans(self._lost, row.details.get("spans", []))
            _note_spans(self._forgotten, row.details.get("emptied", []))
        if row.session_id is not None and (not is_sound or row.details.get("accepted")):
            stored = _stored(row) if is_sound else None
            if is_sound and stored is None:
                yield self._fault("audit event does not say which messages it stored", row.seq)
            stretches.append(StoredSpan(session_id=row.session_id, event_seq=row.seq, stored=stored))

    def end_faults(self) -> Iterator[Fault]:
        told = [run for event in self.salvages for run in _runs_in(event.details.get("events", []))]
        for seq in self._stand_ins:
            if not any(first <= seq <= last for first, last in told):
                yield self._fault("audit event is lost, and no salvage says so", seq)
        yield from self._stand_in_faults()
        if self.head.seq < self.noted.seq:
            what = f"the chain ends at event {self.head.seq}, but {self.noted.seq} was noted"
            yield self._fault(f"{what}: events at the end are missing", self.head.seq + 1)
        elif self.noted == GENESIS and self.noted_counts not in (None, Counts()):
            yield self._fault("counts are noted, but no audit event they were noted with", None)

    def _stand_in_faults(self) -> Iterator[Fault]:
        """The newest salvage vouches for all of them; an older one for some that may have been lost again since."""
        if self.salvages and (vouched := self.salvages[-1].details.get("standIns")) is not None:
            seq = self.salvages[-1].seq
            if stand_ins_hash(own for at, own in self._stand_ins.items() if at < seq) != vouched:
                yield self._fault("what stands for lost audit events is not what the salvage put there", seq)

    def is_forgotten(self, session_id: str, seq: int) -> bool:
        return any(first <= seq <= last for first, last in self._forgotten.get(session_id, ()))

    def is_lost(self, session_id: str, seq: int) -> bool:
        return any(first <= seq <= last for first, last in self._lost.get(session_id, ()))

    def _count(self, event: AuditEvent, *, is_countable: bool) -> None:
        try:
            self._counts = counts_with(self._counts, event) if self._counts and is_countable else None
        except NOT_AS_WRITTEN:
            self._counts = None

    def _fault(self, what: str, seq: int | None) -> Fault:
        return Fault(what=what, agent_id=self.agent_id, seq=seq)


def _own_hash(event: AuditEvent) -> str:
    try:
        return event_hash(event)
    except NOT_AS_WRITTEN:
        return UNKNOWN_HASH


def _note_spans(noted: dict[str, list[tuple[int, int]]], found: object) -> None:
    try:
        spans = msgspec.convert(found, list[ForgottenSpan])
    except msgspec.ValidationError:
        return
    for span in spans:
        noted.setdefault(span.session_id, []).append((span.first_seq, span.last_seq))


def _runs_in(found: object) -> list[tuple[int, int]]:
    try:
        return msgspec.convert(found, list[tuple[int, int]])
    except msgspec.ValidationError:
        return []


def _chain_faults(event: AuditEvent, head: AuditHead) -> tuple[list[Fault], bool]:
    """The faults, and whether the event itself is as it was written, whatever is wrong before it."""
    try:
        faults = list(chain_faults([event], head))
        return faults, not faults or event.verb == LOST or event_hash(event) == event.hash
    except NOT_AS_WRITTEN:
        what = "audit event was altered after it was written"
        return [Fault(what=what, agent_id=event.agent_id, seq=event.seq)], False


def _stored(event: AuditEvent) -> StoredDetails | None:
    try:
        stored = msgspec.convert(event.details, StoredDetails)
    except msgspec.ValidationError:
        return None
    return stored if stored.last_seq - stored.first_seq + 1 == stored.accepted else None
