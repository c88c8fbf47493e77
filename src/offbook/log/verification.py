"""Is everything as it was written? Walks the whole audit chain and every message it vouches for. Offline work."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass

from offbook.log.audit_chain import batch_hash, fingerprint, message_hash
from offbook.log.erasure import forgotten
from offbook.log.store import Blobs, ExaminedMessage, Store
from offbook.log.verified_chain import NOT_AS_WRITTEN, Chain, StoredDetails, StoredSpan
from offbook.model.content import replace, text_of
from offbook.model.errors import StoreCorrupt, StoreError
from offbook.model.receipt import FORGOTTEN
from offbook.model.types import LOST, SALVAGE, AuditEvent, Entry, Fault, LoggedMessage, Scope

EVENTS_AT_A_TIME = 2_000
MESSAGES_AT_A_TIME = 200
MESSAGES_COMPARED_AT_A_TIME = 1_000
"""How many messages' hashes are compared with the chain in one go; more only where one event stored more."""
ALL_SESSIONS = 2**31
SALVAGES_TOLD = 20
LARGE_PART = "a large part of the message is not what it was"


async def verify(
    store: Store, agent_id: str, *, blobs: Blobs | None = None, progress: Callable[[int], None] = lambda events: None
) -> AsyncIterator[Fault]:
    """Every fault of one agent's chain and log, each with its place; with `blobs`, of its large parts as well.
    `progress` is told how many events are done."""
    chain = Chain(agent_id)
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


async def salvages(store: Store, agent_id: str) -> list[AuditEvent]:
    """The newest events that say what was lost to damage: no fault, since the chain tells of it."""
    return await store.newest_audit_events(agent_id, verbs=(SALVAGE,), limit=SALVAGES_TOLD)


def salvage_told(event: AuditEvent) -> str:
    counts = [
        f"{number:,} {what if number == 1 else what + 's'}"
        for what, name in (("message", "lostMessages"), ("audit event", "lostEvents"))
        if (number := event.details.get(name))
    ]
    lost = f"{' and '.join(counts)} lost" if counts else "nothing of the log lost"
    return f"the damaged file was salvaged on {event.at:%Y-%m-%d}: {lost} (event {event.seq:,} names them)"


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

    def __init__(self, store: Store, agent_id: str, blobs: Blobs | None, chain: Chain) -> None:
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
        chars = chars_of(logged.entry)
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
                yield walk.fault(f"{LARGE_PART}: {error.detail}", logged.seq)


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


def chars_of(entry: Entry) -> int:
    """Of the whole message: how long its large parts are is in the references to them."""
    if not entry.blobs:
        return len(text_of(entry.message.content))
    try:
        return len(text_of(replace(entry.message.content, {tuple(ref.path): " " * ref.chars for ref in entry.blobs})))
    except NOT_AS_WRITTEN:
        return -1
