"""The store in SQL, whatever database takes it: `SqliteStore` and `PostgresStore` add how they are reached."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator, Sequence
from datetime import date, datetime

from offbook.log.sql import (
    activity_reads,
    audit_reads,
    derived_faults,
    reads,
    recall_reads,
)
from offbook.log.sql.database import WriterT
from offbook.log.sql.derived_store import SqlDerivedStore
from offbook.log.sql.held_events import ReadEvent
from offbook.log.store import ChangeKind, ExaminedMessage
from offbook.model.memory_entry import Arrivals, Hold, HoldCounts, PlacedMessage, StoredVector, Supersession, VectorRow
from offbook.model.overview import Day
from offbook.model.status import Capture, CaptureClaim, Counts
from offbook.model.types import (
    AuditDraft,
    AuditEvent,
    AuditHead,
    Entry,
    Fault,
    LoggedMessage,
    Mark,
    Receipt,
    Scope,
    Session,
    SessionGaps,
)

MOST_LINKS_CACHED = 500
"""Of an agent, in memory; of one that has more they are read."""


class SqlStore(SqlDerivedStore[WriterT]):
    """See `offbook.log.store.Store` for what each method promises."""

    # ── the log ──

    async def append(
        self,
        scope: Scope,
        entries: Sequence[Entry],
        event: AuditDraft,
        *,
        gaps: SessionGaps,
        claim: CaptureClaim | None = None,
        mark: Mark | None = None,
        is_context: bool = False,
    ) -> Receipt:
        kinds: list[ChangeKind] = ["log"] if mark is None else ["log", "marks"]
        return await self._change(
            scope.agent_id,
            kinds,
            lambda ledger: ledger.append(
                scope, entries, event, gaps=gaps, claim=claim, mark=mark, is_context=is_context
            ),
        )

    async def messages(self, scope: Scope, *, after_seq: int = 0, limit: int = 100) -> list[LoggedMessage]:
        return await self._read(reads.messages, scope, after_seq, limit)

    async def messages_before(self, scope: Scope, *, before_seq: int, limit: int = 100) -> list[LoggedMessage]:
        return await self._read(reads.messages_before, scope, before_seq, limit)

    async def missing(self, scope: Scope, ids: Sequence[str]) -> list[str]:
        return await self._read(reads.missing, scope, ids)

    async def places_of(self, scope: Scope, ids: Sequence[str]) -> list[int]:
        return await self._read(reads.places_of, scope, ids)

    # ── sessions ──

    async def mark(self, scope: Scope, mark: Mark, event: AuditDraft, *, parent_session_id: str | None = None) -> None:
        kinds: list[ChangeKind] = ["marks", "ends"] if mark.kind == "end" else ["marks"]
        await self._change(
            scope.agent_id, kinds, lambda ledger: ledger.mark(scope, mark, event, parent_session_id=parent_session_id)
        )

    async def session(self, scope: Scope) -> Session | None:
        return await self._read(reads.session, scope)

    async def session_and_newest(self, scope: Scope, *, limit: int) -> tuple[Session | None, list[LoggedMessage]]:
        return await self._read(reads.session_and_newest, scope, limit)

    async def sessions(self, agent_id: str, *, limit: int = 20, matching: str = "") -> list[Session]:
        return await self._read(reads.sessions, agent_id, limit, matching)

    async def marks(self, scope: Scope, *, limit: int = 100) -> list[Mark]:
        return await self._read(reads.marks, scope, limit)

    # ── what is known of an agent ──

    async def agents(self) -> list[str]:
        return await self._read(reads.agents)

    async def counts(self, agent_id: str) -> Counts:
        return await self._read(reads.counts, agent_id)

    async def captures(self, agent_id: str) -> list[Capture]:
        return await self._read(reads.captures, agent_id)

    async def activity(self, agent_id: str, *, since: date) -> list[Day]:
        return await self._read(activity_reads.activity, agent_id, since)

    # ── audit ──

    async def record(self, agent_id: str, event: AuditDraft) -> AuditEvent | None:
        return await self._write().submit_read(
            ReadEvent(agent_id, event), lambda ledger: ledger.record(agent_id, event)
        )

    async def audit_head(self, agent_id: str) -> AuditHead:
        return await self._read(audit_reads.audit_head, agent_id)

    async def noted_audit_head(self, agent_id: str) -> AuditHead:
        return await self._read(audit_reads.noted_audit_head, agent_id)

    async def audit_events(
        self, agent_id: str, *, session_id: str | None = None, after_seq: int = 0, limit: int = 100
    ) -> list[AuditEvent]:
        return await self._read(audit_reads.audit_events, agent_id, session_id, after_seq, limit, False)

    async def newest_audit_events(
        self,
        agent_id: str,
        *,
        session_id: str | None = None,
        limit: int = 100,
        before_seq: int | None = None,
        verbs: Sequence[str] | None = None,
        until: datetime | None = None,
    ) -> list[AuditEvent]:
        return await self._read(audit_reads.newest_audit_events, agent_id, session_id, limit, before_seq, verbs, until)

    # ── what recall follows ──

    async def arrivals(self, agent_id: str, *, after_event: int, limit: int = 500) -> Arrivals:
        return await self._read(recall_reads.arrivals, agent_id, after_event, limit)

    async def messages_at(self, agent_id: str, places: Sequence[int]) -> list[PlacedMessage]:
        return await self._read(recall_reads.messages_at, agent_id, places)

    async def session_number(self, agent_id: str, session_id: str) -> int | None:
        return await self._read(recall_reads.session_number, agent_id, session_id)

    async def places(self, scope: Scope, seqs: Sequence[int]) -> list[int]:
        return await self._read(recall_reads.places, scope, seqs)

    # ── vectors ──

    async def add_vectors(self, agent_id: str, model: str, vectors: Sequence[VectorRow]) -> None:
        await self._write().submit(lambda ledger: ledger.recall.add_vectors(agent_id, model, vectors))

    async def vectors(self, agent_id: str, model: str, *, after: int = 0, limit: int = 1000) -> list[StoredVector]:
        return await self._read(recall_reads.vectors, agent_id, model, after, limit)

    async def vector_models(self, agent_id: str) -> dict[str, int]:
        return await self._read(recall_reads.vector_models, agent_id)

    async def drop_vectors(self, agent_id: str, model: str) -> int:
        through = await self._read(recall_reads.newest_vector, agent_id, model)
        dropped = 0
        while through is not None:
            piece = await self._write().submit(lambda ledger: ledger.recall.drop_vectors(agent_id, model, through))
            dropped += piece
            if not piece:
                break
        return dropped

    # ── what use makes of a message ──

    async def recalled(self, agent_id: str, places: Sequence[int], event: AuditDraft) -> None:
        await self._write().submit_read(
            ReadEvent(agent_id, event, places), lambda ledger: ledger.recall.recalled(agent_id, places, event)
        )

    async def pin(self, agent_id: str, places: Sequence[int], *, pinned: bool, event: AuditDraft) -> list[int]:
        return await self._change(
            agent_id, ["pins"], lambda ledger: ledger.recall.pin(agent_id, places, pinned=pinned, event=event)
        )

    async def holds(self, agent_id: str, places: Sequence[int]) -> dict[int, Hold]:
        return await self._read(recall_reads.holds, agent_id, places)

    async def pinned(self, agent_id: str, *, limit: int = 100, session_id: str | None = None) -> list[int]:
        return await self._read(recall_reads.pinned, agent_id, limit, session_id)

    async def hold_counts(self, agent_id: str) -> HoldCounts:
        return await self._read(recall_reads.hold_counts, agent_id)

    async def retrieved_since(self, agent_id: str, since: datetime, *, limit: int) -> list[tuple[int, Hold]]:
        return await self._read(recall_reads.retrieved_since, agent_id, since, limit)

    async def supersede(self, agent_id: str, links: Sequence[Supersession], event: AuditDraft) -> int:
        return await self._change(agent_id, ["links"], lambda ledger: ledger.recall.supersede(agent_id, links, event))

    async def withdraw_supersessions(self, agent_id: str, note: str, event: AuditDraft) -> int:
        return await self._change(agent_id, ["links"], lambda ledger: ledger.recall.withdraw(agent_id, note, event))

    async def newest_supersessions(self, agent_id: str, *, limit: int = 500) -> list[Supersession]:
        return await self._read(recall_reads.newest_supersessions, agent_id, limit)

    async def unlink(self, agent_id: str, old_place: int, new_place: int | None, event: AuditDraft) -> int:
        return await self._change(
            agent_id, ["links"], lambda ledger: ledger.recall.unlink(agent_id, old_place, new_place, event)
        )

    async def supersessions(self, agent_id: str, places: Sequence[int]) -> list[Supersession]:
        if not places:
            return []
        key = recall_reads.all_supersessions
        every = await self._cached_read(agent_id, key, ("links", "imports"), key, agent_id, MOST_LINKS_CACHED)
        if every is None:
            return await self._read(recall_reads.supersessions, agent_id, places)
        wanted = set(places)
        return [link for link in every if link.old_place in wanted or link.new_place in wanted]

    # ── small state of an agent ──

    async def agent_note(self, agent_id: str, name: str) -> str | None:
        return await self._cached_read(agent_id, name, (), recall_reads.agent_note, agent_id, name)

    async def set_agent_note(self, agent_id: str, name: str, value: str | None, event: AuditDraft | None) -> None:
        def settled(is_written: bool, _result: None) -> None:
            if is_written:
                self._cache.put(agent_id, name, self.versions.of(agent_id, "erased"), value)
            else:  # nobody knows: it may have been written all the same
                self._cache.let_go(agent_id)

        await self._write().submit(
            lambda ledger: ledger.recall.set_agent_note(agent_id, name, value, event), settled=settled
        )

    async def agents_with_note(self, name: str, value: str) -> list[str]:
        return await self._read(recall_reads.agents_with_note, name, value)

    # ── for who verifies ──

    async def noted_counts(self, agent_id: str) -> tuple[AuditHead, Counts]:
        return await self._read(reads.noted_counts, agent_id)

    async def examined_messages(
        self, scope: Scope, *, after_seq: int = 0, limit: int = 100
    ) -> list[ExaminedMessage | Fault]:
        return await self._read(reads.examined_messages, scope, after_seq, limit)

    async def examined_audit_events(
        self, agent_id: str, *, after_seq: int = 0, limit: int = 100
    ) -> list[AuditEvent | Fault]:
        return await self._read(audit_reads.examined_audit_events, agent_id, after_seq, limit)

    # ── care ──

    @abstractmethod
    async def schema_version(self) -> int: ...

    async def ping(self) -> None:
        await self._read(reads.answers)

    async def installation_key(self) -> bytes:
        return await self._read(reads.installation_key)

    async def derived_faults(self) -> AsyncIterator[Fault]:
        for table in derived_faults.tables(await self.schema_version()):
            through: int | None = 0
            while through is not None:
                faults, through = await self._read(derived_faults.page, table, through)
                for fault in faults:
                    yield fault

    def let_go(self, agent_id: str) -> None:
        self._cache.let_go(agent_id)

    async def close(self) -> None:
        await asyncio.to_thread(self._close)
