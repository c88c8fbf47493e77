"""The verbs about an agent as methods, for asyncio.

Made by `make docs`. Change what it is made from, not this file.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from offbook.client.asking import PATIENCE_SECONDS, Asking
from offbook.model.lesson import Lesson, LessonKind, LessonPage, LessonStatus, Verdict
from offbook.model.maintenance import MaintenanceReport
from offbook.model.memory_entry import CrossSearch, Pinned, Unlinked
from offbook.model.overview import Activity, EntryList, SessionPage
from offbook.model.receipt import ForgetReceipt, Forgot
from offbook.model.record import ExportPage, Followed, Imported, Record
from offbook.model.status import IndexStatus
from offbook.model.summary import ClaimedJob, CompressionEstimate, Job, SummaryPage, Usage
from offbook.model.turn import AnchorList, ContinuityState, SettingsView, TopicList


class AgentVerbMethods(Asking):
    async def summaries(
        self,
        *,
        level: int | None = None,
        session_id: str | None = None,
        before: str | None = None,
        limit: int = 20,
        ids: Sequence[str] | None = None,
        agent_id: str | None = None,
    ) -> SummaryPage:
        """The agent's summaries, newest first, of one `level` or session. To continue, pass `next` as `before`."""
        body = self._of(session_id, agent_id, level=level, before=before, limit=limit, ids=ids)
        return await self._ask("summaries", body, SummaryPage)

    async def compress(
        self, session_id: str | None = None, *, dry_run: bool = False, again: bool = False, agent_id: str | None = None
    ) -> CompressionEstimate:
        """Summarise what is due in one session or in all of the agent's, in the background; with `again`, also
        rewrite what a lesser summarizer wrote than is available now. With `dry_run`, only estimate the cost."""
        body = self._of(session_id, agent_id, dryRun=dry_run or None, again=again or None)
        return await self._ask("compress", body, CompressionEstimate)

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
        everything: bool = False,
        dry_run: bool = False,
        agent_id: str | None = None,
    ) -> ForgetReceipt:
        """Erase messages for good, with everything derived from them: those in `entry_ids`, all of a session, those
        `matching` a text, regardless of case and spacing, those that hold `secrets`, or `everything`. Give
        exactly one of the five. `reason` is kept (it may be empty). With `dry_run` nothing is erased, and the
        receipt says what would be."""
        body = self._of(
            session_id,
            agent_id,
            reason=reason,
            entryIds=entry_ids,
            matching=matching,
            secrets=secrets or None,
            everything=everything or None,
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

    async def sessions(
        self,
        *,
        after: int = 0,
        limit: int = 50,
        matching: str = "",
        session_id: str | None = None,
        agent_id: str | None = None,
    ) -> SessionPage:
        """The agent's sessions, the one last written to first, and how full the context of each is. To continue,
        pass `next` as `after`. `matching` narrows them to those whose id contains a text; `session_id` asks for
        one."""
        body = self._of(session_id, agent_id, after=after, limit=limit, matching=matching or None)
        return await self._ask("sessions", body, SessionPage)

    async def activity(self, *, days: int = 366, agent_id: str | None = None) -> Activity:
        """How much was said on each day, and what models were used for it."""
        body = self._of(None, agent_id, days=days)
        return await self._ask("activity", body, Activity)

    async def entries(
        self, entry_ids: Sequence[str] | None = None, *, limit: int = 100, agent_id: str | None = None
    ) -> EntryList:
        """The memory entries of these ids; without `entry_ids`, those that are pinned, the one pinned last first."""
        body = self._of(None, agent_id, entryIds=entry_ids, limit=limit)
        return await self._ask("entries", body, EntryList)

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
        before: int | None = None,
        verbs: Sequence[str] | None = None,
        agent_id: str | None = None,
    ) -> dict[str, Any]:
        """The newest audit events, after `since` (a time, or the sequence number of an event), `before` an event, of
        these `verbs`."""
        body = self._of(session_id, agent_id, since=since, limit=limit, before=before, verbs=verbs)
        return await self._ask("audit", body, dict[str, Any])
