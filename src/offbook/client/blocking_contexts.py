"""The verbs of contexts and summaries, for callers that block."""

from __future__ import annotations

from collections.abc import Coroutine
from datetime import datetime
from typing import Any, TypeVar

from offbook.client.async_client import AsyncClient
from offbook.client.loop_thread import LoopThread
from offbook.model.summary import CompressionEstimate, Expansion, Job, Replay, SummaryPage, Swap, Usage
from offbook.model.types import CompressedContext

T = TypeVar("T")


class BlockingContexts:
    def __init__(self, client: AsyncClient, thread: LoopThread) -> None:
        self._client = client
        self._thread = thread

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self._thread.run(coroutine)

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
        agent_id: str | None = None,
    ) -> Swap:
        return self._run(self._client.swap(session_id, used_tokens, context_window, force=force, agent_id=agent_id))

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
        self,
        session_id: str | None = None,
        *,
        dry_run: bool = False,
        again: bool = False,
        agent_id: str | None = None,
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
