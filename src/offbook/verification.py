"""Is everything as it was written? Walks the whole audit chain and every message it vouches for. Offline work."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable

from offbook.audit import GENESIS, batch_hash, chain_faults, message_hash
from offbook.protocols import Store
from offbook.types import AuditEvent, AuditHead, Fault, LoggedMessage, Scope, Value

EVENTS_AT_A_TIME = 2_000
MESSAGES_AT_A_TIME = 1_000
ALL_SESSIONS = 2**31


class Stretch(Value, frozen=True):
    """Messages of one session that one event stored, and the hash it gave for them."""

    session_id: str
    first_seq: int
    last_seq: int
    hash: str
    event_seq: int


async def verify(
    store: Store, agent_id: str, *, progress: Callable[[int], None] = lambda events: None
) -> AsyncIterator[Fault]:
    """Every fault of one agent's chain and log, each with its place. `progress` is told how many events are done."""
    noted = await store.noted_audit_head(agent_id)
    head = GENESIS
    reached: dict[str, int] = {}
    while events := await store.audit_events(agent_id, after_seq=head.seq, limit=EVENTS_AT_A_TIME):
        for fault in chain_faults(events, head):
            yield fault
        for fault in _noted_faults(agent_id, events, noted):
            yield fault
        stretches = list(_stretches(events))
        for fault in _order_faults(agent_id, stretches, reached):
            yield fault
        async for fault in _message_faults(store, agent_id, stretches):
            yield fault
        head = AuditHead(seq=events[-1].seq, hash=events[-1].hash)
        progress(len(events))
    if head.seq < noted.seq:
        yield Fault(
            what=f"the chain ends at event {head.seq}, but {noted.seq} was noted: events at the end are missing",
            agent_id=agent_id,
            seq=head.seq + 1,
        )
    async for fault in _session_faults(store, agent_id, reached):
        yield fault


def _stretches(events: Iterable[AuditEvent]) -> Iterable[Stretch]:
    for event in events:
        if event.details.get("accepted") and event.session_id is not None:
            yield Stretch(
                session_id=event.session_id,
                first_seq=int(event.details["firstSeq"]),
                last_seq=int(event.details["lastSeq"]),
                hash=str(event.details["hash"]),
                event_seq=event.seq,
            )


def _noted_faults(agent_id: str, events: Iterable[AuditEvent], noted: AuditHead) -> Iterable[Fault]:
    for event in events:
        if event.seq == noted.seq and event.hash != noted.hash:
            yield Fault(what="audit event is not the one that was noted", agent_id=agent_id, seq=event.seq)


def _order_faults(agent_id: str, stretches: Iterable[Stretch], reached: dict[str, int]) -> Iterable[Fault]:
    """The stretches of a session follow each other without a gap."""
    for stretch in stretches:
        expected = reached.get(stretch.session_id, 0) + 1
        if stretch.first_seq != expected:
            yield Fault(
                what=f"audit event {stretch.event_seq} stored from message {stretch.first_seq}, not {expected}",
                agent_id=agent_id,
                session_id=stretch.session_id,
                seq=expected,
            )
        reached[stretch.session_id] = max(stretch.last_seq, expected - 1)


async def _message_faults(store: Store, agent_id: str, stretches: list[Stretch]) -> AsyncIterator[Fault]:
    by_session: dict[str, list[Stretch]] = {}
    for stretch in stretches:
        by_session.setdefault(stretch.session_id, []).append(stretch)
    for session_id, of_session in by_session.items():
        scope = Scope(agent_id=agent_id, session_id=session_id)
        rows = await _rows(store, scope, of_session[0].first_seq, of_session[-1].last_seq)
        for seq, row in rows.items():
            if message_hash(row.seq, row.received_at, row.entry) != row.hash:
                yield Fault(
                    what="message was altered after it was written",
                    agent_id=agent_id,
                    session_id=session_id,
                    seq=seq,
                )
        for stretch in of_session:
            for fault in _stretch_faults(scope, stretch, rows):
                yield fault


async def _rows(store: Store, scope: Scope, first_seq: int, last_seq: int) -> dict[int, LoggedMessage]:
    rows: dict[int, LoggedMessage] = {}
    after = first_seq - 1
    while after < last_seq:
        page = await store.messages(scope, after_seq=after, limit=min(MESSAGES_AT_A_TIME, last_seq - after))
        rows |= {row.seq: row for row in page if row.seq <= last_seq}
        if not page:
            break
        after = page[-1].seq
    return rows


def _stretch_faults(scope: Scope, stretch: Stretch, rows: dict[int, LoggedMessage]) -> Iterable[Fault]:
    seqs = range(stretch.first_seq, stretch.last_seq + 1)
    missing = [seq for seq in seqs if seq not in rows]
    for seq in missing:
        yield Fault(what="message is missing", agent_id=scope.agent_id, session_id=scope.session_id, seq=seq)
    if not missing and batch_hash(rows[seq].hash for seq in seqs) != stretch.hash:
        yield Fault(
            what=f"messages {stretch.first_seq} to {stretch.last_seq} are not those of audit event {stretch.event_seq}",
            agent_id=scope.agent_id,
            session_id=scope.session_id,
            seq=stretch.first_seq,
        )


async def _session_faults(store: Store, agent_id: str, reached: dict[str, int]) -> AsyncIterator[Fault]:
    """Messages that no event stored, and sessions whose row disagrees with the chain."""
    for session in await store.sessions(agent_id, limit=ALL_SESSIONS):
        vouched = reached.get(session.session_id, 0)
        scope = Scope(agent_id=agent_id, session_id=session.session_id)
        extra = await store.messages(scope, after_seq=vouched, limit=1)
        if extra:
            yield Fault(
                what="message that no audit event vouches for",
                agent_id=agent_id,
                session_id=session.session_id,
                seq=extra[0].seq,
            )
