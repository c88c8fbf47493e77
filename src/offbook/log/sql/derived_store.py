"""The part of the store that keeps what was made of the log, takes over records, and erases."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from datetime import date, datetime

from offbook.log.sql import (
    admission,
    erase_reads,
    lesson_reads,
    summary_reads,
    summary_writes,
    turns,
)
from offbook.log.sql.database import Database, WriterT
from offbook.log.store import ChangeKind
from offbook.model.lesson import Lesson, LessonDraft, LessonKind, LessonStatus
from offbook.model.receipt import ForgetReceipt, KeptText, Lineage
from offbook.model.record import Admission, SessionPart
from offbook.model.summary import Completion, HandedContext, Node, Spending, Summary, SummaryDraft, SummaryText, Usage
from offbook.model.turn import TurnMemory
from offbook.model.types import (
    AuditDraft,
    AuditEvent,
    Scope,
    Session,
)

NOTED: tuple[ChangeKind, ...] = ("marks", "imports")
"""What changes notes of a session beside whoever sets them."""


class SqlDerivedStore(Database[WriterT]):
    """See `offbook.log.derived_store` for what each method promises."""

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
        return await self._change(
            agent_id, ["learnt"], lambda ledger: ledger.lessons.keep(agent_id, drafts, replaced, event)
        )

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

    async def standing_lessons(self, agent_id: str, ids: Sequence[str]) -> set[str]:
        return await self._read(lesson_reads.standing_lessons, agent_id, ids)

    async def lesson_places(self, agent_id: str, lesson_id: str) -> list[int]:
        return await self._read(lesson_reads.lesson_places, agent_id, lesson_id)

    async def lessons_at(self, agent_id: str, places: Sequence[int]) -> list[Lesson]:
        return await self._read(lesson_reads.lessons_at, agent_id, places)

    async def lessons_keyed(self, agent_id: str, keys: Collection[str]) -> list[Lesson]:
        return await self._read(lesson_reads.lessons_keyed, agent_id, keys)

    async def judge_lesson(
        self,
        agent_id: str,
        lesson: Lesson,
        places: Sequence[int],
        event: AuditDraft | None,
        *,
        made_of: tuple[int, ...] | None = None,
    ) -> None:
        self._refuse_erased(agent_id, made_of)
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
        return await self._erase(
            agent_id, lambda ledger: ledger.erasing.erase(agent_id, lineage, rewritten, receipt, event, lessons)
        )

    async def erase_stray(self, agent_id: str, rows: Sequence[tuple[str, int]]) -> None:
        await self._erase(agent_id, lambda ledger: ledger.erasing.erase_stray(agent_id, rows))

    async def kept_texts(self, agent_id: str) -> AsyncIterator[KeptText]:
        for table in erase_reads.TABLES:
            after = 0
            while page := await self._read(erase_reads.kept_texts, agent_id, table, after):
                for kept in page:
                    yield kept
                after = page[-1].row

    async def set_receipt(self, agent_id: str, erasure: int, receipt: ForgetReceipt) -> None:
        await self._write().submit(
            lambda ledger: ledger.erasing.set_receipt(agent_id, erasure, receipt), makes_room=True
        )

    async def receipts(self, agent_id: str) -> list[tuple[int, ForgetReceipt]]:
        return await self._read(erase_reads.receipts, agent_id)

    # ── contexts that were handed out ──

    async def hand_over(
        self,
        scope: Scope,
        context: HandedContext,
        event: AuditDraft | None,
        *,
        made_of: tuple[int, ...] | None = None,
    ) -> None:
        # A large one takes milliseconds, in which the writer has better things to do.
        payload = await asyncio.to_thread(summary_writes.packed, context)
        self._refuse_erased(scope.agent_id, made_of)
        await self._write().submit(lambda ledger: ledger.compression.hand_over(scope, context, payload, event))

    async def handed(self, scope: Scope, *, at: datetime | None = None) -> HandedContext | None:
        return await self._read(summary_reads.handed, scope, at)

    # ── what turns were prepared with ──

    async def keep_turn_memory(
        self, scope: Scope, memory: TurnMemory, *, made_of: tuple[int, ...] | None = None
    ) -> None:
        payload = await asyncio.to_thread(turns.packed, memory)
        self._refuse_erased(scope.agent_id, made_of)
        await self._write().submit(lambda ledger: ledger.turns.keep(scope, memory, payload))

    async def turn_memory(self, scope: Scope, *, at: datetime | None = None) -> TurnMemory | None:
        return await self._read(turns.turn_memory, scope, at)

    # ── small state of a session ──

    async def session_note(self, scope: Scope, name: str) -> str | None:
        return await self._cached_read(
            scope.agent_id, (scope.session_id, name), NOTED, summary_reads.session_note, scope, name
        )

    async def set_session_note(self, scope: Scope, name: str, value: str | None) -> None:
        def settled(is_written: bool, is_kept: bool | None) -> None:
            self.versions.changed(scope.agent_id, "notes")
            if is_written:
                version = self.versions.of(scope.agent_id, "erased", *NOTED)
                self._cache.put(scope.agent_id, (scope.session_id, name), version, value if is_kept else None)
            else:  # nobody knows: it may have been written all the same
                self._cache.let_go(scope.agent_id)

        await self._write().submit(
            lambda ledger: ledger.compression.set_session_note(scope, name, value), settled=settled
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
