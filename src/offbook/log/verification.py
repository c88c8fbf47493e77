"""Is everything as it was written? Walks the whole audit chain and every message it vouches for. Offline work."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated

import msgspec
from msgspec import Meta

from offbook.log.audit_chain import (
    GENESIS,
    batch_hash,
    chain_faults,
    counts_with,
    event_hash,
    fingerprint,
    message_hash,
)
from offbook.log.erasure import forgotten
from offbook.log.store import Blobs, ExaminedMessage, Store
from offbook.model.content import replace, text_of
from offbook.model.errors import StoreCorrupt, StoreError
from offbook.model.receipt import FORGOTTEN, ForgottenSpan
from offbook.model.status import Counts
from offbook.model.types import LOST, SALVAGE, AuditEvent, AuditHead, Entry, Fault, LoggedMessage, Scope, Value

EVENTS_AT_A_TIME = 2_000
MESSAGES_AT_A_TIME = 200
MESSAGES_COMPARED_AT_A_TIME = 1_000
"""How many messages' hashes are compared with the chain in one go; more only where one event stored more."""
ALL_SESSIONS = 2**31

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


async def verify(
    store: Store, agent_id: str, *, blobs: Blobs | None = None, progress: Callable[[int], None] = lambda events: None
) -> AsyncIterator[Fault]:
    """Every fault of one agent's chain and log, each with its place; with `blobs`, of its large parts as well.
    `progress` is told how many events are done."""
    chain = _Chain(agent_id)
    log = _Log(store, agent_id, blobs, chain)
    try:
        chain.noted, chain.noted_counts = await store.noted_counts(agent_id)
    except StoreCorrupt as error:
        yield Fault(what=error.detail, agent_id=agent_id)
    while rows := await store.examined_audit_events(agent_id, after_seq=chain.head.seq, limit=EVENTS_AT_A_TIME):
        stretches: list[StoredSpan] = []
        for row in rows:
            for fault in chain.take(row, stretches):
                yield fault
        for batch in _batches(stretches):
            async for fault in log.compare(batch):
                yield fault
        progress(len(rows))
    for fault in chain.end_faults():
        yield fault
    async for fault in log.rest():
        yield fault


def _batches(stretches: Iterable[StoredSpan]) -> Iterator[list[StoredSpan]]:
    batch: list[StoredSpan] = []
    messages = 0
    for stretch in stretches:
        messages += stretch.stored.accepted if stretch.stored else 0
        if batch and messages > MESSAGES_COMPARED_AT_A_TIME:
            yield batch
            batch, messages = [], stretch.stored.accepted if stretch.stored else 0
        batch.append(stretch)
    if batch:
        yield batch


# ── the chain ─────────────────────────────────────────────────────────────────────────────────


class _Chain:
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
        self._lost_events: list[int] = []
        """What stands for a lost one. The event that vouches for it comes later."""
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
            self._lost_events.append(row.seq)
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
        for seq in self._lost_events:
            if not any(first <= seq <= last for first, last in told):
                yield self._fault("audit event is lost, and no salvage says so", seq)
        if self.head.seq < self.noted.seq:
            what = f"the chain ends at event {self.head.seq}, but {self.noted.seq} was noted"
            yield self._fault(f"{what}: events at the end are missing", self.head.seq + 1)
        elif self.noted == GENESIS and self.noted_counts not in (None, Counts()):
            yield self._fault("counts are noted, but no audit event they were noted with", None)

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


# ── the log ───────────────────────────────────────────────────────────────────────────────────


@dataclass
class _Walk:
    """How far one session has been walked."""

    scope: Scope
    vouched: int = 0
    """The last message that the chain vouches for."""
    looked_at: int = 0
    chars: int | None = 0
    """Of the session, through `looked_at`; None where that is not known."""
    is_doubtful: bool = False
    """An event was altered, so it is not known which messages the chain vouches for since."""

    def fault(self, what: str, seq: int) -> Fault:
        return Fault(what=what, agent_id=self.scope.agent_id, session_id=self.scope.session_id, seq=seq)


class _Log:
    """One agent's messages, compared with the chain and each with itself."""

    def __init__(self, store: Store, agent_id: str, blobs: Blobs | None, chain: _Chain) -> None:
        self._store = store
        self._agent_id = agent_id
        self._blobs = blobs
        self._chain = chain
        self._erased: list[tuple[str, int]] = []
        """Messages that say they were forgotten. The event that vouches for it comes later in the chain."""
        self._lost: list[tuple[str, int, Fault]] = []
        """Messages that say they are lost, and what is told of their event where no salvage vouches for it."""
        self._walks: dict[str, _Walk] = {}

    async def compare(self, stretches: list[StoredSpan]) -> AsyncIterator[Fault]:
        by_session: dict[str, list[StoredSpan]] = {}
        for stretch in stretches:
            by_session.setdefault(stretch.session_id, []).append(stretch)
        for session_id, of_session in by_session.items():
            walk = self._walk(session_id)
            for fault in _order_faults(walk, of_session):
                yield fault
            for run in _runs(of_session):
                async for fault in self._run_faults(walk, run):
                    yield fault

    async def rest(self) -> AsyncIterator[Fault]:
        """Messages that no event stored, and those that were emptied without one that says so."""
        for session_id, seq in self._erased:
            if not self._chain.is_forgotten(session_id, seq):
                yield self._walk(session_id).fault("message was emptied, and no audit event says it was forgotten", seq)
        untold = [fault for session_id, seq, fault in self._lost if not self._chain.is_lost(session_id, seq)]
        for fault in {(fault.session_id, fault.seq): fault for fault in untold}.values():
            yield fault
        try:
            for session in await self._store.sessions(self._agent_id, limit=ALL_SESSIONS):
                self._walk(session.session_id)
        except StoreCorrupt as error:
            yield Fault(what=error.detail, agent_id=self._agent_id)
        for walk in self._walks.values():
            if walk.is_doubtful:
                async for row in self._rows(walk.scope, walk.looked_at + 1, None):
                    async for fault in self._row_faults(walk, row):
                        yield fault
            else:
                for row in await self._store.examined_messages(walk.scope, after_seq=walk.vouched, limit=1):
                    yield walk.fault("message that no audit event vouches for", _seq_of(row))

    def _walk(self, session_id: str) -> _Walk:
        if session_id not in self._walks:
            self._walks[session_id] = _Walk(Scope(agent_id=self._agent_id, session_id=session_id))
        return self._walks[session_id]

    async def _run_faults(self, walk: _Walk, run: list[tuple[int, StoredDetails]]) -> AsyncIterator[Fault]:
        first_seq, last_seq = run[0][1].first_seq, run[-1][1].last_seq
        hashes: dict[int, bytes | None] = {}
        lost: list[int] = []
        async for row in self._rows(walk.scope, min(first_seq, walk.looked_at + 1), last_seq):
            seq = _seq_of(row)
            if seq >= first_seq:
                hashes[seq] = None if isinstance(row, Fault) else row.logged.hash
                if isinstance(row, ExaminedMessage) and row.logged.entry.noise == LOST:
                    lost.append(seq)
            if seq > walk.looked_at:
                async for fault in self._row_faults(walk, row):
                    yield fault
        for event_seq, stored in run:
            stood_in = [seq for seq in lost if stored.first_seq <= seq <= stored.last_seq]
            for fault in _span_faults(walk, event_seq, stored, hashes):
                if stood_in:
                    self._lost += [(walk.scope.session_id, seq, fault) for seq in stood_in]
                else:
                    yield fault

    async def _rows(self, scope: Scope, first_seq: int, last_seq: int | None) -> AsyncIterator[ExaminedMessage | Fault]:
        after = first_seq - 1
        while last_seq is None or after < last_seq:
            limit = MESSAGES_AT_A_TIME if last_seq is None else min(MESSAGES_AT_A_TIME, last_seq - after)
            page = await self._store.examined_messages(scope, after_seq=after, limit=limit)
            for row in page:
                after = _seq_of(row)
                if last_seq is None or after <= last_seq:
                    yield row
            if len(page) < limit:
                break

    async def _row_faults(self, walk: _Walk, row: ExaminedMessage | Fault) -> AsyncIterator[Fault]:
        seq = _seq_of(row)
        chars_before = walk.chars if seq == walk.looked_at + 1 else None
        walk.looked_at, walk.chars = seq, None
        if isinstance(row, Fault):
            yield row
            return
        logged = row.logged
        if logged.entry.noise == FORGOTTEN and not _is_as_hashed(logged):
            walk.chars = row.chars_through
            self._erased.append((walk.scope.session_id, seq))
            if forgotten(logged.message) != logged.message:
                yield walk.fault("message was altered after it was forgotten", seq)
            return
        if not _is_as_hashed(logged):
            yield walk.fault("message was altered after it was written", seq)
            return
        chars = _chars(logged.entry)
        walk.chars = row.chars_through if chars_before is None else chars_before + chars
        if logged.entry.fingerprint != fingerprint(logged.message):
            yield walk.fault("the fingerprint of the message was altered", seq)
        if logged.entry.chars != chars:
            yield walk.fault(f"the message is noted with {logged.entry.chars} characters, and has {chars}", seq)
        if row.chars_through != walk.chars:
            what = f"the session is noted with {row.chars_through} characters up to this message, and has {walk.chars}"
            yield walk.fault(what, seq)
        async for fault in self._large_part_faults(walk, logged):
            yield fault

    async def _large_part_faults(self, walk: _Walk, logged: LoggedMessage) -> AsyncIterator[Fault]:
        if self._blobs is None:
            return
        for reference in logged.entry.blobs:
            try:
                await self._blobs.get(self._agent_id, reference.sha256)
            except StoreError as error:
                yield walk.fault(f"a large part of the message is not what it was: {error.detail}", logged.seq)


def _order_faults(walk: _Walk, stretches: Iterable[StoredSpan]) -> Iterator[Fault]:
    """The stretches of a session follow each other without a gap."""
    for stretch in stretches:
        stored = stretch.stored
        if stored is None:
            walk.is_doubtful = True
            continue
        expected = walk.vouched + 1
        if stored.first_seq != expected and not walk.is_doubtful:
            what = f"audit event {stretch.event_seq} stored from message {stored.first_seq}, not {expected}"
            yield walk.fault(what, expected)
        walk.vouched, walk.is_doubtful = stored.last_seq, False


def _runs(stretches: Iterable[StoredSpan]) -> Iterator[list[tuple[int, StoredDetails]]]:
    """Stretches that follow each other are read in one go."""
    run: list[tuple[int, StoredDetails]] = []
    for stretch in stretches:
        if stretch.stored is None:
            continue
        if run and stretch.stored.first_seq != run[-1][1].last_seq + 1:
            yield run
            run = []
        run.append((stretch.event_seq, stretch.stored))
    if run:
        yield run


def _span_faults(
    walk: _Walk, event_seq: int, stored: StoredDetails, hashes: dict[int, bytes | None]
) -> Iterator[Fault]:
    # An event may claim any number of messages: what is walked here is what is there.
    claimed = range(stored.first_seq, stored.last_seq + 1)
    is_more_than_there = stored.accepted > len(hashes)
    there = (
        [seq for seq in hashes if seq in claimed] if is_more_than_there else [seq for seq in claimed if seq in hashes]
    )
    missing = list(_gaps(stored.first_seq, stored.last_seq, there))
    for first, last in missing:
        yield walk.fault("message is missing" if first == last else f"messages {first} to {last} are missing", first)
    found = [each for seq in there if (each := hashes[seq]) is not None]
    if not missing and len(found) == stored.accepted and batch_hash(found) != stored.hash:
        what = f"messages {stored.first_seq} to {stored.last_seq} are not those of audit event {event_seq}"
        yield walk.fault(what, stored.first_seq)


def _gaps(first: int, last: int, there: Iterable[int]) -> Iterator[tuple[int, int]]:
    for seq in there:
        if seq > first:
            yield first, seq - 1
        first = seq + 1
    if first <= last:
        yield first, last


def _seq_of(row: ExaminedMessage | Fault) -> int:
    return (row.seq or 0) if isinstance(row, Fault) else row.logged.seq


def _is_as_hashed(logged: LoggedMessage) -> bool:
    try:
        return message_hash(logged.seq, logged.received_at, logged.entry) == logged.hash
    except NOT_AS_WRITTEN:
        return False


def _chars(entry: Entry) -> int:
    """Of the whole message: how long its large parts are is in the references to them."""
    if not entry.blobs:
        return len(text_of(entry.message.content))
    try:
        return len(text_of(replace(entry.message.content, {tuple(ref.path): " " * ref.chars for ref in entry.blobs})))
    except NOT_AS_WRITTEN:
        return -1
