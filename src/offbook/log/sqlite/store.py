"""The embedded store: one SQLite file, one writer thread, readers beside it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path

from offbook.log.sqlite import (
    admission,
    audit_reads,
    derived_faults,
    erase_reads,
    lesson_reads,
    reads,
    recall_reads,
    summary_reads,
    summary_writes,
    turns,
)
from offbook.log.sqlite.erase_writes import PAUSE_SECONDS, TRIES, rewritten, truncated
from offbook.log.sqlite.file import SqliteFile
from offbook.log.store import ChangeKind, ExaminedMessage
from offbook.model.errors import StoreBusy
from offbook.model.lesson import Lesson, LessonDraft, LessonKind, LessonStatus
from offbook.model.memory_entry import Arrivals, Hold, HoldCounts, PlacedMessage, StoredVector, Supersession, VectorRow
from offbook.model.receipt import ForgetReceipt, KeptText, Lineage
from offbook.model.record import Admission, SessionPart
from offbook.model.status import Capture, CaptureClaim, Counts
from offbook.model.summary import Completion, HandedContext, Node, Spending, Summary, SummaryDraft, SummaryText, Usage
from offbook.model.turn import TurnMemory
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


class SqliteStore(SqliteFile):
    """See `protocols.Store` for what each method promises."""

    kind = "sqlite"

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
        return await self._write().submit(
            lambda ledger: ledger.append(
                scope, entries, event, gaps=gaps, claim=claim, mark=mark, is_context=is_context
            )
        )

    async def messages(self, scope: Scope, *, after_seq: int = 0, limit: int = 100) -> list[LoggedMessage]:
        return await self._read(reads.messages, scope, after_seq, limit)

    async def messages_before(self, scope: Scope, *, before_seq: int, limit: int = 100) -> list[LoggedMessage]:
        return await self._read(reads.messages_before, scope, before_seq, limit)

    async def missing(self, scope: Scope, ids: Sequence[str]) -> list[str]:
        return await self._read(reads.missing, scope, ids)

    # ── sessions ──

    async def mark(self, scope: Scope, mark: Mark, event: AuditDraft, *, parent_session_id: str | None = None) -> None:
        kinds: list[ChangeKind] = ["ends"] if mark.kind == "end" else []
        await self._change(
            scope.agent_id, kinds, lambda ledger: ledger.mark(scope, mark, event, parent_session_id=parent_session_id)
        )

    async def session(self, scope: Scope) -> Session | None:
        return await self._read(reads.session, scope)

    async def sessions(self, agent_id: str, *, limit: int = 20) -> list[Session]:
        return await self._read(reads.sessions, agent_id, limit)

    async def marks(self, scope: Scope, *, limit: int = 100) -> list[Mark]:
        return await self._read(reads.marks, scope, limit)

    # ── what is known of an agent ──

    async def agents(self) -> list[str]:
        return await self._read(reads.agents)

    async def counts(self, agent_id: str) -> Counts:
        return await self._read(reads.counts, agent_id)

    async def captures(self, agent_id: str) -> list[Capture]:
        return await self._read(reads.captures, agent_id)

    # ── audit ──

    async def record(self, agent_id: str, event: AuditDraft) -> AuditEvent:
        return await self._write().submit(lambda ledger: ledger.record(agent_id, event))

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
        await self._write().submit(lambda ledger: ledger.recall.recalled(agent_id, places, event))

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
        return await self._write().submit(lambda ledger: ledger.recall.supersede(agent_id, links, event))

    async def withdraw_supersessions(self, agent_id: str, note: str, event: AuditDraft) -> int:
        return await self._write().submit(lambda ledger: ledger.recall.withdraw(agent_id, note, event))

    async def supersessions(self, agent_id: str, places: Sequence[int]) -> list[Supersession]:
        return await self._read(recall_reads.supersessions, agent_id, places)

    # ── small state of an agent ──

    async def agent_note(self, agent_id: str, name: str) -> str | None:
        return await self._read(recall_reads.agent_note, agent_id, name)

    async def set_agent_note(self, agent_id: str, name: str, value: str | None, event: AuditDraft | None) -> None:
        await self._write().submit(lambda ledger: ledger.recall.set_agent_note(agent_id, name, value, event))

    async def agents_with_note(self, name: str, value: str) -> list[str]:
        return await self._read(recall_reads.agents_with_note, name, value)

    # ── summaries ──

    async def add_summary(self, agent_id: str, draft: SummaryDraft, event: AuditDraft) -> Summary:
        kinds: list[ChangeKind] = ["summaries", "texts"] if event.details.get("again") else ["summaries"]
        return await self._change(
            agent_id, kinds, lambda ledger: ledger.compression.add_summary(agent_id, draft, event)
        )

    async def summaries(
        self,
        agent_id: str,
        *,
        level: int | None = None,
        session_id: str | None = None,
        before: str | None = None,
        limit: int = 100,
    ) -> list[Summary]:
        return await self._read(summary_reads.summaries, agent_id, level, session_id, before, limit)

    async def summary(self, agent_id: str, summary_id: str) -> Summary | None:
        return await self._read(summary_reads.summary, agent_id, summary_id)

    async def nodes(self, scope: Scope, *, level: int, through_seq: int | None = None, limit: int = 100) -> list[Node]:
        return await self._read(summary_reads.nodes, scope, level, through_seq, limit)

    async def nodes_holding(self, scope: Scope, *, seq: int) -> list[Node]:
        return await self._read(summary_reads.nodes_holding, scope, seq)

    async def summary_texts(self, agent_id: str, ids: Sequence[str]) -> dict[str, SummaryText]:
        return await self._read(summary_reads.summary_texts, agent_id, ids)

    async def summarised_through(self, scope: Scope) -> int:
        return await self._read(summary_reads.summarised_through, scope)

    async def unmerged(
        self, agent_id: str, *, level: int, session_id: str | None = None, limit: int = 100
    ) -> list[Summary]:
        return await self._read(summary_reads.unmerged, agent_id, level, session_id, limit)

    async def summary_counts(self, agent_id: str) -> dict[int, int]:
        return await self._read(summary_reads.summary_counts, agent_id)

    async def summaries_after(self, agent_id: str, *, after: str | None = None, limit: int = 100) -> list[Summary]:
        return await self._read(admission.summaries_after, agent_id, after, limit)

    # ── what models were paid for ──

    async def completion(self, agent_id: str, fingerprint: str) -> Completion | None:
        return await self._read(summary_reads.completion, agent_id, fingerprint)

    async def add_completion(self, agent_id: str, completion: Completion, at: datetime) -> None:
        await self._write().submit(lambda ledger: ledger.compression.add_completion(agent_id, completion, at))

    async def spending(self, day: date, *, agent_id: str | None = None) -> list[Spending]:
        return await self._read(summary_reads.spending, day, agent_id)

    async def spent(self, agent_id: str) -> Usage:
        return await self._read(summary_reads.spent, agent_id)

    # ── lessons ──

    async def keep_lessons(
        self, agent_id: str, drafts: Sequence[LessonDraft], *, replaced: Mapping[str, str], event: AuditDraft
    ) -> list[Lesson]:
        return await self._write().submit(lambda ledger: ledger.lessons.keep(agent_id, drafts, replaced, event))

    async def lessons(
        self,
        agent_id: str,
        *,
        kind: LessonKind | None = None,
        statuses: Sequence[LessonStatus] | None = None,
        before: str | None = None,
        limit: int = 100,
    ) -> list[Lesson]:
        return await self._read(lesson_reads.lessons, agent_id, kind, statuses, before, limit)

    async def lesson(self, agent_id: str, lesson_id: str) -> Lesson | None:
        return await self._read(lesson_reads.lesson, agent_id, lesson_id)

    async def lesson_places(self, agent_id: str, lesson_id: str) -> list[int]:
        return await self._read(lesson_reads.lesson_places, agent_id, lesson_id)

    async def judge_lesson(
        self, agent_id: str, lesson: Lesson, places: Sequence[int], event: AuditDraft | None
    ) -> None:
        await self._change(agent_id, ["lessons"], lambda ledger: ledger.lessons.judge(agent_id, lesson, places, event))

    async def lesson_counts(self, agent_id: str) -> dict[str, int]:
        return await self._read(lesson_reads.lesson_counts, agent_id)

    # ── forgetting ──

    async def places_hashed(self, agent_id: str, hashes: Collection[bytes]) -> list[int]:
        return await self._read(erase_reads.places_hashed, agent_id, hashes)

    async def lineage(self, agent_id: str, places: Sequence[int], *, summaries: Sequence[str] = ()) -> Lineage:
        return await self._read(erase_reads.lineage, agent_id, places, summaries)

    async def parts_in_use(self, agent_id: str, digests: Collection[str]) -> set[str]:
        # Behind what is queued: who was cancelled has left, and what they sent is written all the same.
        await self._write().submit(lambda _ledger: None)
        return await self._read(erase_reads.parts_in_use, agent_id, digests)

    async def erase(
        self,
        agent_id: str,
        lineage: Lineage,
        rewritten: Mapping[str, SummaryDraft],
        receipt: ForgetReceipt,
        event: AuditDraft,
        lessons: Sequence[Lesson] = (),
    ) -> tuple[int, AuditEvent]:
        return await self._change(
            agent_id,
            ["erased", "summaries", "texts"],
            lambda ledger: ledger.erasing.erase(agent_id, lineage, rewritten, receipt, event, lessons),
        )

    async def erase_stray(self, agent_id: str, rows: Sequence[tuple[str, int]]) -> None:
        await self._change(
            agent_id, ["erased", "summaries", "texts"], lambda ledger: ledger.erasing.erase_stray(agent_id, rows)
        )

    async def kept_texts(self, agent_id: str) -> AsyncIterator[KeptText]:
        for table in erase_reads.TABLES:
            after = 0
            while page := await self._read(erase_reads.kept_texts, agent_id, table, after):
                for kept in page:
                    yield kept
                after = page[-1].row

    async def set_receipt(self, agent_id: str, erasure: int, receipt: ForgetReceipt) -> None:
        await self._write().submit(lambda ledger: ledger.erasing.set_receipt(agent_id, erasure, receipt))

    async def receipts(self, agent_id: str) -> list[tuple[int, ForgetReceipt]]:
        return await self._read(erase_reads.receipts, agent_id)

    async def purge(self) -> None:
        await self._write().submit_alone(rewritten)
        for _ in range(TRIES):
            if await self._write().submit_alone(truncated):
                return
            await asyncio.sleep(PAUSE_SECONDS)
        raise StoreBusy(
            "somebody reads the store and keeps its old pages: end the backup or the reader, then try again"
        )

    # ── contexts that were handed out ──

    async def hand_over(self, scope: Scope, context: HandedContext, event: AuditDraft | None) -> None:
        # A large one takes milliseconds, in which the writer has better things to do.
        payload = await asyncio.to_thread(summary_writes.packed, context)
        await self._write().submit(lambda ledger: ledger.compression.hand_over(scope, context, payload, event))

    async def handed(self, scope: Scope, *, at: datetime | None = None) -> HandedContext | None:
        return await self._read(summary_reads.handed, scope, at)

    # ── what turns were prepared with ──

    async def keep_turn_memory(self, scope: Scope, memory: TurnMemory) -> None:
        payload = await asyncio.to_thread(turns.packed, memory)
        await self._write().submit(lambda ledger: ledger.turns.keep(scope, memory, payload))

    async def turn_memory(self, scope: Scope, *, at: datetime | None = None) -> TurnMemory | None:
        return await self._read(turns.turn_memory, scope, at)

    # ── small state of a session ──

    async def session_note(self, scope: Scope, name: str) -> str | None:
        return await self._read(summary_reads.session_note, scope, name)

    async def set_session_note(self, scope: Scope, name: str, value: str | None) -> None:
        await self._change(
            scope.agent_id, ["notes"], lambda ledger: ledger.compression.set_session_note(scope, name, value)
        )

    async def sessions_after(self, agent_id: str, *, after: str | None = None, limit: int = 100) -> list[Session]:
        return await self._read(summary_reads.sessions_after, agent_id, after, limit)

    # ── what another installation exported ──

    async def forgotten_in(self, scope: Scope, *, first_seq: int, last_seq: int) -> int:
        return await self._read(admission.forgotten_in, scope, first_seq, last_seq)

    async def admit(self, scope: Scope, parts: Sequence[SessionPart], event: AuditDraft) -> list[Admission]:
        return await self._change(
            scope.agent_id, ["imports"], lambda ledger: ledger.admitting.session(scope, parts, event)
        )

    async def admit_lessons(self, agent_id: str, lessons: Sequence[Lesson], event: AuditDraft) -> list[Admission]:
        return await self._change(
            agent_id, ["imports"], lambda ledger: ledger.admitting_lessons.lessons(agent_id, lessons, event)
        )

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

    async def ping(self) -> None:
        await self._read(reads.answers)

    async def installation_key(self) -> bytes:
        return await self._read(reads.installation_key)

    async def faults(self) -> AsyncIterator[Fault]:
        for fault in await asyncio.to_thread(self._integrity_faults):
            yield fault

    async def derived_faults(self) -> AsyncIterator[Fault]:
        for table in await self._read(derived_faults.tables):
            through: int | None = 0
            while through is not None:
                faults, through = await self._read(derived_faults.page, table, through)
                for fault in faults:
                    yield fault

    async def backup(self, destination: Path) -> None:
        await asyncio.to_thread(self._copy_to, destination)

    async def close(self) -> None:
        await asyncio.to_thread(self._close)
