"""The methods of `AsyncClient`, for callers that block.

Made by `make docs`. Change what it is made from, not this file.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from offbook.client.async_client import AsyncClient
from offbook.client.loop_thread import OnLoop
from offbook.client.recorder import MessageLike
from offbook.model.lesson import Lesson, LessonKind, LessonPage, LessonStatus, Verdict
from offbook.model.maintenance import MaintenanceReport
from offbook.model.memory_entry import CrossSearch, Pinned, Reach, Recollection, Unlinked
from offbook.model.receipt import ForgetCheck, ForgetReceipt, KeptReceipt
from offbook.model.record import ExportPage, Followed, Imported, Record
from offbook.model.status import IndexStatus
from offbook.model.summary import CompressionEstimate, Expansion, Job, Replay, SummaryPage, Swap, Usage
from offbook.model.turn import AnchorList, ContinuityState, Enrichment, PreparedTurn, SettingsView, TopicList
from offbook.model.types import CompressedContext, Receipt


class ClientMethods(OnLoop):
    _client: AsyncClient

    def call(self, verb: str, body: dict[str, Any] | None = None) -> Any:
        return self._run(self._client.call(verb, body))

    def get_compressed_context(
        self, session_id: str, max_chars: int, *, agent_id: str | None = None
    ) -> CompressedContext:
        return self._run(self._client.get_compressed_context(session_id, max_chars, agent_id=agent_id))

    def swap(
        self,
        session_id: str,
        used_tokens: int,
        context_window: int,
        *,
        force: bool = False,
        target_tokens: int | None = None,
        token_ratio: float | None = None,
        generation: int | None = None,
        agent_id: str | None = None,
    ) -> Swap:
        return self._run(
            self._client.swap(
                session_id,
                used_tokens,
                context_window,
                force=force,
                target_tokens=target_tokens,
                token_ratio=token_ratio,
                generation=generation,
                agent_id=agent_id,
            )
        )

    def summaries(
        self,
        *,
        level: int | None = None,
        session_id: str | None = None,
        before: str | None = None,
        limit: int = 20,
        agent_id: str | None = None,
    ) -> SummaryPage:
        return self._run(
            self._client.summaries(level=level, session_id=session_id, before=before, limit=limit, agent_id=agent_id)
        )

    def compress(
        self, session_id: str | None = None, *, dry_run: bool = False, again: bool = False, agent_id: str | None = None
    ) -> CompressionEstimate:
        return self._run(self._client.compress(session_id, dry_run=dry_run, again=again, agent_id=agent_id))

    def replay(self, session_id: str, at: datetime | str, *, agent_id: str | None = None) -> Replay:
        return self._run(self._client.replay(session_id, at, agent_id=agent_id))

    def claim_job(self, wait_ms: int = 0, *, agent_id: str | None = None) -> Job | None:
        return self._run(self._client.claim_job(wait_ms, agent_id=agent_id))

    def complete_job(self, job_id: str, text: str, *, usage: Usage | None = None, agent_id: str | None = None) -> None:
        self._run(self._client.complete_job(job_id, text, usage=usage, agent_id=agent_id))

    def fail_job(self, job_id: str, reason: str = "", *, agent_id: str | None = None) -> None:
        self._run(self._client.fail_job(job_id, reason, agent_id=agent_id))

    def recall(
        self,
        session_id: str,
        query: str,
        *,
        limit: int = 5,
        scope: Reach = "agent",
        at: datetime | str | None = None,
        include_superseded: bool = False,
        explain: bool = False,
        agent_id: str | None = None,
    ) -> Recollection:
        return self._run(
            self._client.recall(
                session_id,
                query,
                limit=limit,
                scope=scope,
                at=at,
                include_superseded=include_superseded,
                explain=explain,
                agent_id=agent_id,
            )
        )

    def prepare_turn(
        self,
        session_id: str,
        prompt: str,
        *,
        current_tokens: int | None = None,
        context_window: int | None = None,
        swap_at_tokens: int | None = None,
        swap_to_tokens: int | None = None,
        token_ratio: float | None = None,
        deadline_ms: int | None = None,
        explain: bool = False,
        preview: bool = False,
        agent_id: str | None = None,
    ) -> PreparedTurn:
        return self._run(
            self._client.prepare_turn(
                session_id,
                prompt,
                current_tokens=current_tokens,
                context_window=context_window,
                swap_at_tokens=swap_at_tokens,
                swap_to_tokens=swap_to_tokens,
                token_ratio=token_ratio,
                deadline_ms=deadline_ms,
                explain=explain,
                preview=preview,
                agent_id=agent_id,
            )
        )

    def enrich(self, session_id: str, query: str, *, agent_id: str | None = None) -> Enrichment:
        return self._run(self._client.enrich(session_id, query, agent_id=agent_id))

    def topics(self, session_id: str | None = None, *, agent_id: str | None = None) -> TopicList:
        return self._run(self._client.topics(session_id, agent_id=agent_id))

    def anchors(self, session_id: str | None = None, *, agent_id: str | None = None) -> AnchorList:
        return self._run(self._client.anchors(session_id, agent_id=agent_id))

    def state(self, session_id: str | None = None, *, agent_id: str | None = None) -> ContinuityState:
        return self._run(self._client.state(session_id, agent_id=agent_id))

    def config(self, *, agent_id: str | None = None) -> SettingsView:
        return self._run(self._client.config(agent_id=agent_id))

    def lessons(
        self,
        *,
        kind: LessonKind | None = None,
        status: LessonStatus | Sequence[LessonStatus] | None = None,
        before: str | None = None,
        limit: int = 50,
        agent_id: str | None = None,
    ) -> LessonPage:
        return self._run(self._client.lessons(kind=kind, status=status, before=before, limit=limit, agent_id=agent_id))

    def judge_lesson(
        self, lesson_id: str, verdict: Verdict, text: str | None = None, *, agent_id: str | None = None
    ) -> Lesson:
        return self._run(self._client.judge_lesson(lesson_id, verdict, text, agent_id=agent_id))

    def pin(
        self,
        *,
        keyword: str | None = None,
        session_id: str | None = None,
        entry_ids: Sequence[str] | None = None,
        message_ids: Sequence[str] | None = None,
        agent_id: str | None = None,
    ) -> Pinned:
        return self._run(
            self._client.pin(
                keyword=keyword, session_id=session_id, entry_ids=entry_ids, message_ids=message_ids, agent_id=agent_id
            )
        )

    def unpin(
        self,
        *,
        keyword: str | None = None,
        session_id: str | None = None,
        entry_ids: Sequence[str] | None = None,
        message_ids: Sequence[str] | None = None,
        agent_id: str | None = None,
    ) -> Pinned:
        return self._run(
            self._client.unpin(
                keyword=keyword, session_id=session_id, entry_ids=entry_ids, message_ids=message_ids, agent_id=agent_id
            )
        )

    def unlink(self, entry_id: str, by_id: str | None = None, *, agent_id: str | None = None) -> Unlinked:
        return self._run(self._client.unlink(entry_id, by_id, agent_id=agent_id))

    def forget(
        self,
        *,
        reason: str = "",
        entry_ids: Sequence[str] | None = None,
        session_id: str | None = None,
        matching: str | None = None,
        secrets: bool = False,
        dry_run: bool = False,
        agent_id: str | None = None,
    ) -> ForgetReceipt:
        return self._run(
            self._client.forget(
                reason=reason,
                entry_ids=entry_ids,
                session_id=session_id,
                matching=matching,
                secrets=secrets,
                dry_run=dry_run,
                agent_id=agent_id,
            )
        )

    def cross(self, enabled: bool | None = None, *, agent_id: str | None = None) -> CrossSearch:
        return self._run(self._client.cross(enabled, agent_id=agent_id))

    def reindex(self, *, embeddings: bool = False, agent_id: str | None = None) -> IndexStatus:
        return self._run(self._client.reindex(embeddings=embeddings, agent_id=agent_id))

    def maintain(self, *, tasks: Sequence[str] | None = None, agent_id: str | None = None) -> MaintenanceReport:
        return self._run(self._client.maintain(tasks=tasks, agent_id=agent_id))

    def export(self, after: str | None = None, *, limit: int = 500, agent_id: str | None = None) -> ExportPage:
        return self._run(self._client.export(after, limit=limit, agent_id=agent_id))

    def import_records(
        self,
        records: Sequence[Record],
        *,
        follows: Followed | None = None,
        done: bool = False,
        agent_id: str | None = None,
    ) -> Imported:
        return self._run(self._client.import_records(records, follows=follows, done=done, agent_id=agent_id))

    def post_compaction(
        self,
        session_id: str,
        new_context: str | Sequence[Any] | dict[str, Any] | None = None,
        *,
        agent_id: str | None = None,
    ) -> None:
        self._run(self._client.post_compaction(session_id, new_context, agent_id=agent_id))

    def session_start(
        self,
        session_id: str,
        max_chars: int | None = None,
        *,
        parent_session_id: str | None = None,
        agent_id: str | None = None,
    ) -> CompressedContext | None:
        return self._run(
            self._client.session_start(session_id, max_chars, parent_session_id=parent_session_id, agent_id=agent_id)
        )

    def session_end(self, session_id: str, reason: str | None = None, *, agent_id: str | None = None) -> None:
        self._run(self._client.session_end(session_id, reason, agent_id=agent_id))

    def log(
        self,
        session_id: str,
        after_seq: int = 0,
        limit: int = 100,
        wait_ms: int = 0,
        *,
        newest: bool = False,
        agent_id: str | None = None,
    ) -> dict[str, Any]:
        return self._run(self._client.log(session_id, after_seq, limit, wait_ms, newest=newest, agent_id=agent_id))

    def missing(self, session_id: str, ids: Sequence[str], *, agent_id: str | None = None) -> list[str]:
        return self._run(self._client.missing(session_id, ids, agent_id=agent_id))

    def status(self, agent_id: str | None = None) -> dict[str, Any]:
        return self._run(self._client.status(agent_id))

    def audit(
        self,
        *,
        session_id: str | None = None,
        since: datetime | str | int | None = None,
        limit: int = 100,
        agent_id: str | None = None,
    ) -> dict[str, Any]:
        return self._run(self._client.audit(session_id=session_id, since=since, limit=limit, agent_id=agent_id))

    def record(self, session_id: str, message: MessageLike, *, agent_id: str | None = None) -> None:
        self._client.record(session_id, message, agent_id=agent_id)

    def flush(self, timeout_seconds: float = 30.0) -> bool:
        return self._run(self._client.flush(timeout_seconds))

    def settle(self, timeout_seconds: float = 5.0) -> bool:
        return self._run(self._client.settle(timeout_seconds))

    def sync(self) -> bool:
        return self._run(self._client.sync())

    def outbox_status(self) -> dict[str, Any]:
        return self._client.outbox_status()

    def close(self, timeout_seconds: float = 2.0) -> None:
        self._run(self._client.close(timeout_seconds))

    def ping(self) -> dict[str, Any]:
        return self._run(self._client.ping())

    def on_message(self, session_id: str, *messages: MessageLike, agent_id: str | None = None) -> Receipt:
        return self._run(self._client.on_message(session_id, *messages, agent_id=agent_id))

    def expand(
        self,
        summary_id: str | None = None,
        *,
        span: tuple[int, int] | None = None,
        session_id: str | None = None,
        after: str | None = None,
        limit: int = 100,
        agent_id: str | None = None,
    ) -> Expansion:
        return self._run(
            self._client.expand(
                summary_id, span=span, session_id=session_id, after=after, limit=limit, agent_id=agent_id
            )
        )

    def pre_compaction(
        self, session_id: str, messages: Sequence[MessageLike] | None = None, *, agent_id: str | None = None
    ) -> int:
        return self._run(self._client.pre_compaction(session_id, messages, agent_id=agent_id))

    def verify_forgotten(
        self, receipt: ForgetReceipt | str, *, matching: str | None = None, agent_id: str | None = None
    ) -> ForgetCheck:
        return self._run(self._client.verify_forgotten(receipt, matching=matching, agent_id=agent_id))

    def forget_receipts(self, *, agent_id: str | None = None) -> list[KeptReceipt]:
        return self._run(self._client.forget_receipts(agent_id=agent_id))
