"""The verbs as methods, for asyncio.

Made by `make docs`. Change what it is made from, not this file.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from offbook.client.asking import PATIENCE_SECONDS, Asking
from offbook.model.answers import Missing
from offbook.model.lesson import Lesson, LessonKind, LessonPage, LessonStatus, Verdict
from offbook.model.maintenance import MaintenanceReport
from offbook.model.memory_entry import CrossSearch, Pinned, Reach, Recollection, Unlinked
from offbook.model.receipt import ForgetReceipt, Forgot
from offbook.model.record import ExportPage, Followed, Imported, Record
from offbook.model.status import IndexStatus
from offbook.model.summary import ClaimedJob, CompressionEstimate, Job, Replay, SummaryPage, Swap, Usage
from offbook.model.turn import AnchorList, ContinuityState, Enrichment, PreparedTurn, SettingsView, TopicList
from offbook.model.types import CompressedContext


class VerbMethods(Asking):
    async def get_compressed_context(
        self, session_id: str, max_chars: int, *, agent_id: str | None = None
    ) -> CompressedContext:
        """The session in at most `max_chars` characters, newest verbatim."""
        body = self._of(session_id, agent_id, maxChars=max_chars)
        return await self._ask("getCompressedContext", body, CompressedContext)

    async def swap(
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
        """Replace the context in use by the compressed one that is kept ready, once `used_tokens` of
        `context_window` reach the threshold, or as soon as the host asks with `target_tokens`, which says what
        the new one may take. A swap frees at least a quarter of `context_window`, or it does not happen and
        `reason` says why; with `force` it happens wherever the new context is the smaller one. Without new
        messages, asking again gives the same answer.

        Tokens are those that the model's provider counts; `token_ratio` says how many of them are one of our
        estimate. What instructions and tools take is left out of `used_tokens` and `context_window` by a host
        that knows it.
        """
        body = self._of(
            session_id,
            agent_id,
            usedTokens=used_tokens,
            contextWindow=context_window,
            force=force or None,
            targetTokens=target_tokens,
            tokenRatio=token_ratio,
            generation=generation,
        )
        return await self._ask("swap", body, Swap)

    async def summaries(
        self,
        *,
        level: int | None = None,
        session_id: str | None = None,
        before: str | None = None,
        limit: int = 20,
        agent_id: str | None = None,
    ) -> SummaryPage:
        """The agent's summaries, newest first, of one `level` or session. To continue, pass `next` as `before`."""
        body = self._of(session_id, agent_id, level=level, before=before, limit=limit)
        return await self._ask("summaries", body, SummaryPage)

    async def compress(
        self, session_id: str | None = None, *, dry_run: bool = False, again: bool = False, agent_id: str | None = None
    ) -> CompressionEstimate:
        """Summarise what is due in one session or in all of the agent's, in the background; with `again`, also
        rewrite what a lesser summarizer wrote than is available now. With `dry_run`, only estimate the cost."""
        body = self._of(session_id, agent_id, dryRun=dry_run or None, again=again or None)
        return await self._ask("compress", body, CompressionEstimate)

    async def replay(self, session_id: str, at: datetime | str, *, agent_id: str | None = None) -> Replay:
        """What the agent's context held at a given time, and why."""
        body = self._of(session_id, agent_id, at=at)
        return await self._ask("replay", body, Replay)

    async def claim_job(self, wait_ms: int = 0, *, agent_id: str | None = None) -> Job | None:
        """The next summary for the host's own model to write, or none; waits up to `wait_ms` for one."""
        body = self._of(None, agent_id, waitMs=wait_ms)
        return (await self._ask("jobs/claim", body, ClaimedJob, extra_seconds=wait_ms / 1000)).job

    async def complete_job(
        self, job_id: str, text: str, *, usage: Usage | None = None, agent_id: str | None = None
    ) -> None:
        """What the host's model wrote for a job. If sent twice, the first counts."""
        body = self._of(None, agent_id, jobId=job_id, text=text, usage=usage)
        await self.call("jobs/complete", body)

    async def fail_job(self, job_id: str, reason: str = "", *, agent_id: str | None = None) -> None:
        """The host's model could not write it: the next summarizer is asked."""
        body = self._of(None, agent_id, jobId=job_id, reason=reason or None)
        await self.call("jobs/fail", body)

    async def recall(
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
        """What was said that answers `query`, best first.

        `scope`: this `session`, all sessions of this `agent`, or `all` agents that share their memory with each
        other. `at`: as it was known then. What was corrected since is left out unless `include_superseded`.
        """
        body = self._of(
            session_id,
            agent_id,
            query=query,
            limit=limit,
            scope=scope,
            at=at,
            includeSuperseded=include_superseded or None,
            explain=explain or None,
        )
        return await self._ask("recall", body, Recollection)

    async def prepare_turn(
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
        """What the agent should have in mind before a model call: `memory` for the start of the context, the same
        bytes until the next swap, and `recall` for the end of the user's turn.

        `current_tokens` of `context_window` are in use. A host that swaps by its own count says when and to how
        much (`swap_at_tokens`, `swap_to_tokens`, `token_ratio`, as with `swap`), so that the context stands by in
        time. `deadline_ms` limits how long it may take, if the host has less time than the setting
        `turn.deadline`. `explain` shows the parts, their size and why each is there; `preview` changes nothing:
        no retrieval is counted and no section is kept.
        """
        body = self._of(
            session_id,
            agent_id,
            prompt=prompt,
            currentTokens=current_tokens,
            contextWindow=context_window,
            swapAtTokens=swap_at_tokens,
            swapToTokens=swap_to_tokens,
            tokenRatio=token_ratio,
            deadlineMs=deadline_ms,
            explain=explain or None,
            preview=preview or None,
        )
        return await self._ask("prepareTurn", body, PreparedTurn)

    async def enrich(self, session_id: str, query: str, *, agent_id: str | None = None) -> Enrichment:
        """Memories to add to the result of the host's own memory search if that is sparse. Ask before the search
        runs."""
        body = self._of(session_id, agent_id, query=query)
        return await self._ask("enrich", body, Enrichment)

    async def topics(self, session_id: str | None = None, *, agent_id: str | None = None) -> TopicList:
        """The topics of one session or of the newest ones: what they talk about and return to."""
        body = self._of(session_id, agent_id)
        return await self._ask("topics", body, TopicList)

    async def anchors(self, session_id: str | None = None, *, agent_id: str | None = None) -> AnchorList:
        """The anchors of one session or of the newest ones: identities, contradictions, unresolved points."""
        body = self._of(session_id, agent_id)
        return await self._ask("anchors", body, AnchorList)

    async def state(self, session_id: str | None = None, *, agent_id: str | None = None) -> ContinuityState:
        """Open tasks and current goal, with topics and anchors, of one session or of the newest ones."""
        body = self._of(session_id, agent_id)
        return await self._ask("state", body, ContinuityState)

    async def config(self, *, agent_id: str | None = None) -> SettingsView:
        """The settings that apply to an agent."""
        body = self._of(None, agent_id)
        return await self._ask("config", body, SettingsView)

    async def lessons(
        self,
        *,
        kind: LessonKind | None = None,
        status: LessonStatus | Sequence[LessonStatus] | None = None,
        before: str | None = None,
        limit: int = 50,
        agent_id: str | None = None,
    ) -> LessonPage:
        """The lessons learnt from what was said, newest first.

        Of one `kind`, of one or several `status`. To continue, pass `next` as `before`.
        """
        body = self._of(None, agent_id, kind=kind, status=status, before=before, limit=limit)
        return await self._ask("lessons", body, LessonPage)

    async def judge_lesson(
        self, lesson_id: str, verdict: Verdict, text: str | None = None, *, agent_id: str | None = None
    ) -> Lesson:
        """Accept, reject or `edit` a lesson: `text` replaces what it says. The same verdict again changes nothing."""
        body = self._of(None, agent_id, lessonId=lesson_id, verdict=verdict, text=text)
        return await self._ask("lessons/judge", body, Lesson)

    async def pin(
        self,
        *,
        keyword: str | None = None,
        session_id: str | None = None,
        entry_ids: Sequence[str] | None = None,
        message_ids: Sequence[str] | None = None,
        agent_id: str | None = None,
    ) -> Pinned:
        """Pin entries, so that they stay hot: those in `entry_ids`, all of a session or its `message_ids`, or those
        that contain a `keyword`."""
        body = self._of(session_id, agent_id, keyword=keyword, entryIds=entry_ids, messageIds=message_ids)
        return await self._ask("pin", body, Pinned)

    async def unpin(
        self,
        *,
        keyword: str | None = None,
        session_id: str | None = None,
        entry_ids: Sequence[str] | None = None,
        message_ids: Sequence[str] | None = None,
        agent_id: str | None = None,
    ) -> Pinned:
        """Unpin entries: those in `entry_ids`, all of a session or its `message_ids`, or those that contain a
        `keyword`."""
        body = self._of(session_id, agent_id, keyword=keyword, entryIds=entry_ids, messageIds=message_ids)
        return await self._ask("unpin", body, Pinned)

    async def unlink(self, entry_id: str, by_id: str | None = None, *, agent_id: str | None = None) -> Unlinked:
        """Take back that a later message replaced an earlier one, or may be about the same: `entry_id` holds again,
        as do lessons that had given way with it, and the link is not made again. With `by_id`, only the link to
        that message."""
        body = self._of(None, agent_id, entryId=entry_id, byId=by_id)
        return await self._ask("unlink", body, Unlinked)

    async def forget(
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
        """Erase messages for good, with everything derived from them: those in `entry_ids`, all of a session, those
        `matching` a text, regardless of case and spacing, or those that hold `secrets`. Give exactly one of the
        four. `reason` is kept (it may be empty). With `dry_run` nothing is erased, and the receipt says what
        would be."""
        body = self._of(
            session_id,
            agent_id,
            reason=reason,
            entryIds=entry_ids,
            matching=matching,
            secrets=secrets or None,
            dryRun=dry_run or None,
        )
        return (await self._ask("forget", body, Forgot, extra_seconds=PATIENCE_SECONDS)).receipt

    async def cross(self, enabled: bool | None = None, *, agent_id: str | None = None) -> CrossSearch:
        """Allow or forbid (`enabled`) this agent and others to search each other's memory, or ask whether they may."""
        body = self._of(None, agent_id, enabled=enabled)
        return await self._ask("cross", body, CrossSearch)

    async def reindex(self, *, embeddings: bool = False, agent_id: str | None = None) -> IndexStatus:
        """Rebuild the agent's search index from the log, in the background; with `embeddings` the vectors too."""
        body = self._of(None, agent_id, embeddings=embeddings or None)
        return await self._ask("reindex", body, IndexStatus)

    async def maintain(self, *, tasks: Sequence[str] | None = None, agent_id: str | None = None) -> MaintenanceReport:
        """Run the agent's maintenance now, all `tasks` or those named, and report what was done. It also runs by
        itself every few minutes."""
        body = self._of(None, agent_id, tasks=tasks)
        return await self._ask("maintain", body, MaintenanceReport)

    async def export(self, after: str | None = None, *, limit: int = 500, agent_id: str | None = None) -> ExportPage:
        """Everything an agent has, as records in a fixed order. To continue, pass `next` as `after`."""
        body = self._of(None, agent_id, after=after, limit=limit)
        return await self._ask("export", body, ExportPage)

    async def import_records(
        self,
        records: Sequence[Record],
        *,
        follows: Followed | None = None,
        done: bool = False,
        agent_id: str | None = None,
    ) -> Imported:
        """Import the records of an export, in order, each once. A request that continues a session names the
        session's last message before it (`follows`). `done` says that no more will come; until then nothing is
        derived from them."""
        body = self._of(None, agent_id, records=records, follows=follows, done=done or None)
        return await self._ask("import", body, Imported)

    async def post_compaction(
        self,
        session_id: str,
        new_context: str | Sequence[Any] | dict[str, Any] | None = None,
        *,
        agent_id: str | None = None,
    ) -> None:
        """The host has compacted by itself. `new_context` is what it continues with: a text, messages, or an object."""
        body = self._of(session_id, agent_id, newContext=new_context)
        await self.call("hooks/post-compaction", body)

    async def session_start(
        self,
        session_id: str,
        max_chars: int | None = None,
        *,
        parent_session_id: str | None = None,
        agent_id: str | None = None,
    ) -> CompressedContext | None:
        """A session starts or continues; the answer is the context it needs, or null.

        `parent_session_id`: the session that started it, if it belongs to a subagent. Only the name is kept, and
        `status` shows it; it gives no access to another agent's memory.
        """
        body = self._of(session_id, agent_id, maxChars=max_chars, parentSessionId=parent_session_id)
        return await self._ask_maybe("hooks/session-start", body, CompressedContext)

    async def session_end(self, session_id: str, reason: str | None = None, *, agent_id: str | None = None) -> None:
        """A session has ended, for a `reason` (new, reset, idle, daily, shutdown, …)."""
        body = self._of(session_id, agent_id, reason=reason)
        await self.call("hooks/session-end", body)

    async def log(
        self,
        session_id: str,
        after_seq: int = 0,
        limit: int = 100,
        wait_ms: int = 0,
        *,
        newest: bool = False,
        agent_id: str | None = None,
    ) -> dict[str, Any]:
        """The session's whole messages after `after_seq`; where there is none yet, waits up to `wait_ms` for one.

        The first `limit` of them, or the `newest`.
        """
        body = self._of(session_id, agent_id, afterSeq=after_seq, limit=limit, newest=newest or None, waitMs=wait_ms)
        return await self._ask("log", body, dict[str, Any], extra_seconds=wait_ms / 1000)

    async def missing(self, session_id: str, ids: Sequence[str], *, agent_id: str | None = None) -> list[str]:
        """Which of these message ids the session does not hold: for a host that compares its transcript with the
        log."""
        body = self._of(session_id, agent_id, ids=ids)
        return (await self._ask("missing", body, Missing)).missing

    async def status(self, agent_id: str | None = None) -> dict[str, Any]:
        """Counts, tiers, backlog, costs and capture reconciliation of one agent."""
        body = self._of(None, agent_id)
        return await self._ask("status", body, dict[str, Any])

    async def audit(
        self,
        *,
        session_id: str | None = None,
        since: datetime | str | int | None = None,
        limit: int = 100,
        agent_id: str | None = None,
    ) -> dict[str, Any]:
        """The newest audit events, after `since` (a time, or the sequence number of an event)."""
        body = self._of(session_id, agent_id, since=since, limit=limit)
        return await self._ask("audit", body, dict[str, Any])
