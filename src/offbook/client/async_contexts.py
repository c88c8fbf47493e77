"""The verbs of contexts and summaries, for asyncio."""

from __future__ import annotations

from datetime import datetime

from offbook.client.asking import Asking
from offbook.model.summary import ClaimedJob, CompressionEstimate, Expansion, Job, Replay, SummaryPage, Swap, Usage
from offbook.model.types import CompressedContext


class AsyncContexts(Asking):
    async def get_compressed_context(
        self, session_id: str, max_chars: int, *, agent_id: str | None = None
    ) -> CompressedContext:
        body = self._of(session_id, agent_id, maxChars=max_chars)
        return await self._ask("getCompressedContext", body, CompressedContext)

    async def swap(
        self,
        session_id: str,
        used_tokens: int,
        context_window: int,
        *,
        force: bool = False,
        agent_id: str | None = None,
    ) -> Swap:
        """The context that stands by, to go on with, where it is due; `HotSwapSession` does all that belongs to it."""
        body = self._of(session_id, agent_id, usedTokens=used_tokens, contextWindow=context_window, force=force or None)
        return await self._ask("swap", body, Swap)

    async def expand(
        self,
        summary_id: str | None = None,
        *,
        span: tuple[int, int] | None = None,
        session_id: str | None = None,
        after: str | None = None,
        limit: int = 100,
        agent_id: str | None = None,
    ) -> Expansion:
        """The messages behind a summary, or those from one `seq` to another of a session, word for word."""
        body = self._of(
            session_id,
            agent_id,
            summaryId=summary_id,
            span=None if span is None else {"firstSeq": span[0], "lastSeq": span[1]},
            after=after,
            limit=limit,
        )
        return await self._ask("expand", body, Expansion)

    async def summaries(
        self,
        *,
        level: int | None = None,
        session_id: str | None = None,
        before: str | None = None,
        limit: int = 20,
        agent_id: str | None = None,
    ) -> SummaryPage:
        """The agent's summaries, the newest first."""
        body = self._of(session_id, agent_id, level=level, before=before, limit=limit)
        return await self._ask("summaries", body, SummaryPage)

    async def compress(
        self,
        session_id: str | None = None,
        *,
        dry_run: bool = False,
        again: bool = False,
        agent_id: str | None = None,
    ) -> CompressionEstimate:
        """Summarise what is to be summarised, in the background; with `again` also write again what a lesser
        summarizer wrote than can be had now. With `dry_run` only say what that would take."""
        body = self._of(session_id, agent_id, dryRun=dry_run or None, again=again or None)
        return await self._ask("compress", body, CompressionEstimate)

    async def replay(self, session_id: str, at: datetime | str, *, agent_id: str | None = None) -> Replay:
        """What was in the agent's context at a moment, and why."""
        return await self._ask("replay", self._of(session_id, agent_id, at=at), Replay)

    # ── summaries that the host's own model writes ──

    async def claim_job(self, wait_ms: int = 0, *, agent_id: str | None = None) -> Job | None:
        """A summary to write, or none; waits up to `wait_ms` for one."""
        body = self._of(None, agent_id, waitMs=wait_ms)
        return (await self._ask("jobs/claim", body, ClaimedJob, extra_seconds=wait_ms / 1000)).job

    async def complete_job(
        self, job_id: str, text: str, *, usage: Usage | None = None, agent_id: str | None = None
    ) -> None:
        """What the model wrote. Given twice, the first holds."""
        await self.call("jobs/complete", self._of(None, agent_id, jobId=job_id, text=text, usage=usage))

    async def fail_job(self, job_id: str, reason: str = "", *, agent_id: str | None = None) -> None:
        """The model could not write it: somebody else is asked."""
        await self.call("jobs/fail", self._of(None, agent_id, jobId=job_id, reason=reason or None))
