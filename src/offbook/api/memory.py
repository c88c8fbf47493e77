"""The verbs. Every surface, whichever language it speaks, ends in one of these methods.

A verb checks what it was given, asks pure functions what to do, and has the store do it. Whatever reads
or writes leaves one audit event, durable before the answer: nothing is read or written unrecorded. Only a
turn, which has a deadline, does not wait for the event beyond it.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

import msgspec

from offbook.api.context_service import Contexts
from offbook.api.followers import Followers
from offbook.api.lesson_review import Judging
from offbook.api.recall_service import Recollections, place_of_entry
from offbook.api.session_state import Attention
from offbook.api.turn_builder import Turning
from offbook.context.swaps import what_was_shown
from offbook.forget.receipts import in_a_line
from offbook.ingest import entries as ingest
from offbook.ingest.intake import HEAVY_CHARS, Intake
from offbook.ingest.redaction import redact_text
from offbook.ingest.scope import checked_key, checked_text, resolve_agent, resolve_scope
from offbook.log.audit_chain import end_is_whole
from offbook.log.erasure import SHORTEST_MATCHING_CHARS, folded
from offbook.log.reading import LogReader
from offbook.log.store import CROSS, PARENT_NOTE, Blobs, Store
from offbook.model.errors import NotFound, WrongShape
from offbook.model.home import VERSION
from offbook.model.lesson import LESSONS_SESSION, Lesson, LessonKind, LessonPage, LessonStatus, Verdict
from offbook.model.maintenance import MaintenanceReport
from offbook.model.memory_entry import CrossSearch, Pinned, Reach, Recollection
from offbook.model.receipt import ForgetCheck, ForgetReceipt, KeptReceipt
from offbook.model.record import ExportPage, Followed, Imported, Record
from offbook.model.settings import Settings, as_document
from offbook.model.status import (
    AuditReport,
    CaptureClaim,
    CaptureReport,
    Costs,
    Health,
    IndexStatus,
    Status,
    TaskHealth,
    TierHours,
)
from offbook.model.summary import (
    ClaimedJob,
    CompressionEstimate,
    Expansion,
    Replay,
    SourceSpan,
    SummaryPage,
    Swap,
    Usage,
)
from offbook.model.turn import AnchorList, ContinuityState, Enrichment, PreparedTurn, SettingsView, TopicList
from offbook.model.types import (
    EMBEDDED,
    MAX_KEY_BYTES,
    AuditDraft,
    AuditHead,
    Caller,
    CompressedContext,
    Entry,
    LoggedMessage,
    LogPage,
    Mark,
    MarkKind,
    Message,
    Receipt,
    Scope,
    SessionGaps,
    now,
    session_event,
)
from offbook.transfer.records import Transfer
from offbook.worker.background import Background
from offbook.worker.forgetting.elsewhere import Elsewhere
from offbook.worker.forgetting.meant import Meant
from offbook.worker.maintenance import Maintenance

EVENTS_VERIFIED = 1_000
"""How much of the chain the `audit` verb verifies: as much as it can show. All of it: `offbook audit --verify`."""
SESSIONS_IN_STATUS = 20
MOST_RECEIPTS = 1_000
"""Of those that are listed: years of daily retention."""
LONGEST_WAIT_SECONDS = 60.0
BY_HAND = Caller(name="wiki")
"""Whoever edits the files of the data folder."""
A_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_.:/-]{0,39}")
"""As hosts name why a session ends: `idle`, `reset`."""
CLAIM_PAUSE_SECONDS = 0.1
"""How often a host that waits for a job is looked for one."""


class Memory:
    def __init__(
        self, store: Store, blobs: Blobs, settings: Settings, *, frame_key: bytes, background: Background
    ) -> None:
        self._store = store
        self._settings = settings
        self._background = background
        self._started_at = now()
        self._reader = background.reader
        self._intake = Intake(blobs, settings, frame_key)
        self._log_reader = LogReader(store, blobs)
        self._contexts = Contexts(store, self._log_reader)
        self._judging = Judging(store, self._take)
        background.caring.judge = self._judged_by_hand
        self._recollections = Recollections(store, settings, background)
        self._attention = Attention(store, settings)
        self._turning = Turning(store, blobs, settings, background, self._recollections, self._attention, frame_key)
        self._transfer = Transfer(store, settings, self._log_reader, self._intake)
        self._followers = Followers()

    # ── who is meant ──

    def scope(self, session_id: str, agent_id: str | None = None) -> Scope:
        return resolve_scope(session_id, agent_id, self._settings.default_agent)

    def agent(self, agent_id: str | None = None, session_id: str | None = None) -> str:
        return resolve_agent(session_id, agent_id, self._settings.default_agent)

    # ── the record ──

    async def on_message(
        self,
        scope: Scope,
        messages: Sequence[Message],
        *,
        by: Caller = EMBEDDED,
        claim: CaptureClaim | None = None,
    ) -> Receipt:
        """Take messages into the log. Returns when they are durable."""
        if not messages:
            raise WrongShape("`messages` is empty: send at least one message")
        async with self._intake.entries(scope, messages) as entries:
            return await self._append(scope, entries, session_event("onMessage", by, scope), claim=claim)

    async def log(
        self,
        scope: Scope,
        *,
        after_seq: int = 0,
        limit: int = 100,
        newest: bool = False,
        wait_seconds: float = 0.0,
        by: Caller = EMBEDDED,
    ) -> LogPage:
        """The session's messages after `after_seq`, whole, the first or the newest `limit` of them; waits for the
        next one where there is none yet. A page of large ones ends early: go on from `last_seq`."""
        if newest:
            session = await self._store.session(scope)
            after_seq = max(after_seq, (session.last_seq if session else 0) - limit)
        page = await self._page(scope, after_seq, limit)
        if not page and wait_seconds > 0 and not self._followers.is_stopping:

            async def has_come() -> bool:
                return bool(await self._page(scope, after_seq, 1))

            await self._followers.wait(scope, min(wait_seconds, LONGEST_WAIT_SECONDS), has_come)
            page = await self._page(scope, after_seq, limit)
        lines = await self._log_reader.lines(scope, page)
        last_seq = lines[-1].seq if lines else after_seq
        await self._record(scope, "log", by, {"afterSeq": after_seq, "lastSeq": last_seq, "messages": len(lines)})
        return LogPage(messages=lines, last_seq=last_seq)

    async def missing(self, scope: Scope, ids: Sequence[str], *, by: Caller = EMBEDDED) -> list[str]:
        """Which of these message ids the session does not hold, each once, in the order given: for a host that
        compares its own transcript with the log."""
        if not ids:
            raise WrongShape("`ids` is empty: name at least one message")
        for id_ in ids:
            checked_key(id_, "ids", MAX_KEY_BYTES)
        missing = await self._store.missing(scope, ids)
        await self._record(scope, "missing", by, {"asked": len(ids), "missing": len(missing)})
        return missing

    # ── the context that stands by ──

    async def get_compressed_context(self, scope: Scope, max_chars: int, *, by: Caller = EMBEDDED) -> CompressedContext:
        """The session in at most `max_chars` characters."""
        if max_chars < 1:
            raise WrongShape(f"`maxChars` is {max_chars}: ask for at least 1 character")
        context = await self._reader.context(scope, await self._store.session(scope), max_chars)
        await self._record(scope, "getCompressedContext", by, what_was_shown(context))
        return context

    async def swap(
        self,
        scope: Scope,
        *,
        used_tokens: int,
        context_window: int,
        force: bool = False,
        by: Caller = EMBEDDED,
    ) -> Swap:
        """Hand over the context that stands by, where the one in use has reached the threshold, or with `force`.
        Atomic; asked again with nothing new it is the same answer."""
        return await self._background.swapping.swap(
            scope, used_tokens=used_tokens, context_window=context_window, force=force, by=by
        )

    async def expand(
        self,
        agent_id: str,
        *,
        summary_id: str | None = None,
        span: SourceSpan | None = None,
        after: str | None = None,
        limit: int = 100,
        by: Caller = EMBEDDED,
    ) -> Expansion:
        """The source messages behind a summary or a span, verbatim, a page at a time."""
        if span is not None:
            checked_key(span.session_id, "sessionId", MAX_KEY_BYTES)
        return await self._contexts.expand(agent_id, summary_id=summary_id, span=span, after=after, limit=limit, by=by)

    async def summaries(
        self,
        agent_id: str,
        *,
        level: int | None = None,
        session_id: str | None = None,
        before: str | None = None,
        limit: int = 20,
        by: Caller = EMBEDDED,
    ) -> SummaryPage:
        """The agent's summaries, the newest first."""
        if session_id is not None:
            checked_key(session_id, "sessionId", MAX_KEY_BYTES)
        return await self._contexts.summaries(
            agent_id, level=level, session_id=session_id, before=before, limit=limit, by=by
        )

    async def compress(
        self,
        agent_id: str,
        *,
        session_id: str | None = None,
        dry_run: bool = False,
        again: bool = False,
        by: Caller = EMBEDDED,
    ) -> CompressionEstimate:
        """Look for what is to be summarised, in one session or in all, and say what that takes; with `again` also for
        what a lesser summarizer wrote than can be had now."""
        if session_id is not None:
            checked_key(session_id, "sessionId", MAX_KEY_BYTES)
        estimate = await self._background.compression_estimate(agent_id, session_id, again=again)
        details = {"dryRun": dry_run, "sourceTokens": estimate.source_tokens, "dollars": estimate.dollars}
        details |= {"again": True} if again else {}
        await self._store.record(
            agent_id, AuditDraft(verb="compress", actor=by.name, session_id=session_id, details=details)
        )
        if not dry_run:
            self._reader.forget(agent_id)
            await self._background.compress(agent_id, session_id, again=again)
        return estimate

    async def replay(self, scope: Scope, at: datetime, *, by: Caller = EMBEDDED) -> Replay:
        """What was in the agent's context then, and why."""
        return await self._contexts.replay(scope, ingest.in_utc(at, "at"), by=by)

    # ── summaries that the host's model writes ──

    async def claim_job(self, agent_id: str, *, wait_seconds: float = 0.0, by: Caller = EMBEDDED) -> ClaimedJob:
        """The host's next job, if there is one within `wait_seconds`."""
        deadline = time.monotonic() + min(wait_seconds, LONGEST_WAIT_SECONDS)
        # No thread waits for it: there are few of them, and hosts that wait would leave none for the other verbs.
        while (job := self._background.host.claim(agent_id)) is None:
            if time.monotonic() >= deadline or self._followers.is_stopping:
                break
            await asyncio.sleep(CLAIM_PAUSE_SECONDS)
        await self._store.record(
            agent_id, AuditDraft(verb="jobs/claim", actor=by.name, details={"job": job.id if job else None})
        )
        return ClaimedJob(job=job)

    async def complete_job(
        self, agent_id: str, job_id: str, text: str, *, usage: Usage | None = None, by: Caller = EMBEDDED
    ) -> None:
        said, _ = await asyncio.to_thread(redact_text, text) if len(text) > HEAVY_CHARS else redact_text(text)
        if not self._background.host.complete(agent_id, job_id, said, usage):
            raise NotFound(f"there is no job {job_id!r} to complete: it was given to somebody else, or given up")
        await self._store.record(
            agent_id, AuditDraft(verb="jobs/complete", actor=by.name, details={"job": job_id, "chars": len(text)})
        )

    async def fail_job(self, agent_id: str, job_id: str, *, reason: str = "", by: Caller = EMBEDDED) -> None:
        if not self._background.host.fail(agent_id, job_id, redact_text(reason)[0]):
            raise NotFound(f"there is no job {job_id!r} to fail: it was given to somebody else, or given up")
        await self._store.record(agent_id, AuditDraft(verb="jobs/fail", actor=by.name, details={"job": job_id}))

    # ── recall ──

    async def recall(
        self,
        scope: Scope,
        query: str,
        *,
        limit: int = 5,
        reach: Reach = "agent",
        at: datetime | None = None,
        include_superseded: bool = False,
        explain: bool = False,
        by: Caller = EMBEDDED,
    ) -> Recollection:
        """What was said that answers the query, best first, from this session, this agent, or all that may be read.

        `at`: as it was known then. What was corrected since gives way to the correction, and says so.
        """
        if not query.strip():
            raise WrongShape("`query` is empty: say what is to be recalled")
        checked_text(query, "query")
        if limit < 1:
            raise WrongShape(f"`limit` is {limit}: ask for at least 1 entry")
        moment = ingest.in_utc(at, "at") if at is not None else None
        return await self._recollections.recall(
            scope,
            query,
            limit=limit,
            reach=reach,
            at=moment,
            include_superseded=include_superseded,
            explain=explain,
            by=by,
        )

    # ── continuity ──

    async def prepare_turn(
        self,
        scope: Scope,
        prompt: str,
        *,
        current_tokens: int | None = None,
        context_window: int | None = None,
        seconds: float | None = None,
        explain: bool = False,
        preview: bool = False,
        by: Caller = EMBEDDED,
    ) -> PreparedTurn:
        """What the agent should have in mind for this prompt: `memory`, the same until the next swap, and `recall`.
        `seconds`: where there are fewer than the setting `turn.deadline`. With `preview` nothing is changed by it."""
        checked_text(prompt, "prompt")
        return await self._turning.prepare(
            scope,
            prompt,
            current_tokens=current_tokens,
            context_window=context_window,
            seconds=seconds,
            explain=explain,
            preview=preview,
            by=by,
        )

    async def enrich(self, scope: Scope, query: str, *, by: Caller = EMBEDDED) -> Enrichment:
        """What a sparse result of the host's own memory search is enriched with."""
        if not query.strip():
            raise WrongShape("`query` is empty: say what is searched for")
        checked_text(query, "query")
        return await self._turning.enrich(scope, query, by=by)

    async def topics(self, agent_id: str, *, session_id: str | None = None, by: Caller = EMBEDDED) -> TopicList:
        """What they keep returning to, in one session or in the newest ones."""
        return await self._attention.topics(agent_id, session_id=self._checked(session_id), by=by)

    async def anchors(self, agent_id: str, *, session_id: str | None = None, by: Caller = EMBEDDED) -> AnchorList:
        """What must not be lost from sight."""
        return await self._attention.anchors(agent_id, session_id=self._checked(session_id), by=by)

    async def state(self, agent_id: str, *, session_id: str | None = None, by: Caller = EMBEDDED) -> ContinuityState:
        """Topics, anchors, and what each session was doing."""
        return await self._attention.state(agent_id, session_id=self._checked(session_id), by=by)

    async def config(self, agent_id: str, *, by: Caller = EMBEDDED) -> SettingsView:
        """The settings that hold for the agent."""
        await self._store.record(agent_id, AuditDraft(verb="config", actor=by.name))
        return SettingsView(agent_id=agent_id, settings=as_document(self._settings.for_agent(agent_id)))

    # ── lessons ──

    async def lessons(
        self,
        agent_id: str,
        *,
        kind: LessonKind | None = None,
        statuses: Sequence[LessonStatus] | None = None,
        before: str | None = None,
        limit: int = 50,
        by: Caller = EMBEDDED,
    ) -> LessonPage:
        """What was learnt from what was said, the newest first, with how sure it is and where it was said."""
        return await self._judging.lessons(agent_id, kind=kind, statuses=statuses, before=before, limit=limit, by=by)

    async def judge_lesson(
        self, agent_id: str, lesson_id: str, verdict: Verdict, text: str | None = None, *, by: Caller = EMBEDDED
    ) -> Lesson:
        """Accept a lesson, reject it, or say in `text` what it should say. The background never changes what a person
        has judged."""
        judged = await self._judging.judge(agent_id, lesson_id, verdict, text, by=by)
        self._reader.forget(agent_id)
        self._background.slots.forget(agent_id)
        return judged

    async def _judged_by_hand(self, agent_id: str, lesson_id: str, verdict: Verdict, text: str | None) -> None:
        """In the wiki."""
        await self.judge_lesson(agent_id, lesson_id, verdict, text, by=BY_HAND)

    # ── forgetting ──

    async def forget(
        self,
        agent_id: str,
        *,
        entry_ids: Sequence[str] | None = None,
        session_id: str | None = None,
        matching: str | Sequence[str] | None = None,
        reason: str = "",
        dry_run: bool = False,
        by: Caller = EMBEDDED,
    ) -> ForgetReceipt:
        """Forget messages for good, with everything that came of them, and prove it: those named, those of a session,
        or those that say something. With `dry_run`: what that would touch."""
        given = {"entryIds": entry_ids, "sessionId": session_id, "matching": matching}
        named = [name for name, value in given.items() if value is not None]
        if len(named) != 1:
            raise WrongShape(f"say what is meant by one of `entryIds`, `sessionId`, `matching`, not by {len(named)}")
        checked_text(reason, "reason")
        said = None if matching is None else (matching,) if isinstance(matching, str) else tuple(matching)
        for each in said or ():
            checked_text(each, "matching")
            if len(folded(each)) < SHORTEST_MATCHING_CHARS:
                raise WrongShape(f"`matching` is shorter than {SHORTEST_MATCHING_CHARS} characters: say more of it")
            if folded(each) in folded(reason):
                raise WrongShape("`reason` repeats what is to be forgotten, and is kept: give another")
        reason, _ = redact_text(reason)
        places = frozenset(map(place_of_entry, entry_ids)) if entry_ids is not None else None
        meant = Meant(entry_places=places, session_id=self._checked(session_id), matching=said)
        return await self._background.caring.forgets.forget(agent_id, meant, reason=reason, by=by, dry_run=dry_run)

    def reaches(self, elsewhere: Elsewhere) -> None:
        """Files beside the store that forgetting is to reach, too."""
        self._background.caring.forgets.forgetting.elsewhere.append(elsewhere)

    async def verify_forgotten(
        self, receipt: ForgetReceipt, *, matching: str | None = None, by: Caller = EMBEDDED
    ) -> ForgetCheck:
        """Look everywhere for what the receipt says is gone. Grows with history."""
        if receipt.agent_id not in await self._store.agents():
            raise NotFound(f"there is no agent {receipt.agent_id!r} here: ask the provider that gave the receipt")
        if matching is not None:
            checked_text(matching, "matching")
            if len(folded(matching)) < SHORTEST_MATCHING_CHARS:
                raise WrongShape(f"`matching` is shorter than {SHORTEST_MATCHING_CHARS} characters: say more of it")
        check = await self._background.caring.forgets.forgetting.check(receipt, matching)
        details = {"receipt": receipt.id[:64], "genuine": check.is_genuine, "residue": len(check.residue)}
        await self._store.record(receipt.agent_id, AuditDraft(verb="forget/verify", actor=by.name, details=details))
        return check

    async def forget_receipt(self, agent_id: str, receipt_id: str) -> ForgetReceipt:
        """One that the store keeps, to be verified."""
        for _, receipt in await self._store.receipts(agent_id):
            if receipt.id == receipt_id:
                if receipt.unfinished is None:
                    return receipt
                raise NotFound(f"{receipt_id} has no receipt yet: it broke off, and is finished at the next start")
        raise NotFound(f"agent {agent_id!r} has no receipt {receipt_id!r}: `offbook forget --receipts` lists them")

    async def forget_receipts(self, agent_id: str, *, by: Caller = EMBEDDED) -> list[KeptReceipt]:
        """Those that the store keeps, the newest first: also of what was forgotten by rule, or after a crash."""
        if agent_id not in await self._store.agents():
            raise NotFound(f"there is no agent {agent_id!r} here: `offbook status` lists them")
        kept = [in_a_line(receipt) for _, receipt in reversed(await self._store.receipts(agent_id))]
        event = AuditDraft(verb="forget/verify", actor=by.name, details={"receipts": len(kept)})
        await self._store.record(agent_id, event)
        return kept[:MOST_RECEIPTS]

    # ── pins, agents, the index ──

    async def pin(
        self,
        agent_id: str,
        *,
        keyword: str | None = None,
        session_id: str | None = None,
        entry_ids: Sequence[str] | None = None,
        pinned: bool = True,
        by: Caller = EMBEDDED,
    ) -> Pinned:
        """Keep entries hot for ever, or (`pinned` false) let them age again: those named, those of a session, those
        that hold a keyword."""
        if keyword is None and session_id is None and entry_ids is None:
            raise WrongShape("say what is meant: `entryIds`, `sessionId` or `keyword`")
        if keyword is not None:
            checked_text(keyword, "keyword")
        if session_id is not None:
            checked_key(session_id, "sessionId", MAX_KEY_BYTES)
        changed = await self._recollections.pin(
            agent_id, keyword=keyword, session_id=session_id, entry_ids=entry_ids, pinned=pinned, by=by
        )
        self._reader.forget(agent_id)
        self._background.slots.forget(agent_id)
        return changed

    async def cross(self, agent_id: str, *, enabled: bool | None = None, by: Caller = EMBEDDED) -> CrossSearch:
        """Open the agent's memory and that of other agents to each other, close it, or only say how it is."""
        return await self._recollections.cross(agent_id, enabled=enabled, by=by)

    async def reindex(self, agent_id: str, *, embeddings: bool = False, by: Caller = EMBEDDED) -> IndexStatus:
        """Make the agent's search index anew from the log, in the background; with `embeddings` the vectors too."""
        await self._store.record(
            agent_id, AuditDraft(verb="reindex", actor=by.name, details={"embeddings": embeddings})
        )
        return await self._background.rebuild(agent_id, embeddings=embeddings)

    async def maintain(
        self, agent_id: str, *, tasks: Sequence[str] | None = None, by: Caller = EMBEDDED
    ) -> MaintenanceReport:
        """Look after the agent's memory now, and say what was done: all tasks, or those named."""
        runs = await self._background.caring.maintenance.now(agent_id, tasks)
        failed = sorted({run.task for run in runs if run.error is not None})
        details = {"tasks": sorted({run.task for run in runs})} | ({"failed": failed} if failed else {})
        await self._store.record(agent_id, AuditDraft(verb="maintain", actor=by.name, details=details))
        return MaintenanceReport(agent_id=agent_id, runs=runs, health=self._task_health(agent_id, by))

    @property
    def maintenance(self) -> Maintenance:
        return self._background.caring.maintenance

    def _task_health(self, agent_id: str, by: Caller) -> list[TaskHealth]:
        """Whoever may act for some agents only does not see how those of others are."""
        return self._background.caring.maintenance.health(agent_id, with_others=by.agents is None)

    # ── out and in ──

    async def export(
        self, agent_id: str, *, after: str | None = None, limit: int = 500, by: Caller = EMBEDDED
    ) -> ExportPage:
        """Everything the agent has, as records, a page at a time."""
        return await self._transfer.export(agent_id, after=after, limit=limit, by=by)

    async def import_records(
        self,
        agent_id: str,
        records: Sequence[Record],
        *,
        follows: Followed | None = None,
        done: bool = False,
        by: Caller = EMBEDDED,
    ) -> Imported:
        """Take records of an export, each once, in their order. `follows`: the message given last before them, where
        they go on with its session. With `done` no more are to come."""
        await self._background.caring.holding.hold(agent_id)
        taken = await self._transfer.import_records(agent_id, records, follows=follows, by=by)
        if done:
            await self._background.caring.holding.release(agent_id)
            await self._background.compress(agent_id, None)
        await self._background.imported(agent_id, taken.scopes, taken.summaries)
        for scope in taken.scopes:
            self._followers.wake(scope)
        return taken.imported

    # ── lifecycle ──

    async def session_start(
        self,
        scope: Scope,
        *,
        max_chars: int | None = None,
        parent_session_id: str | None = None,
        by: Caller = EMBEDDED,
    ) -> CompressedContext | None:
        """What the agent needs to go on with a session after a restart; None where nothing is known of it.

        `parent_session_id`: the session that started this one, of whichever agent. Its name is kept with this one and
        opens nothing.
        """
        if parent_session_id is not None:
            checked_key(parent_session_id, "parentSessionId", MAX_KEY_BYTES)
        session = await self._store.session(scope)
        if session is None or not session.last_seq:
            event = session_event("hooks/session-start", by, scope, {"context": None})
            await self._store.mark(scope, Mark(kind="start", at=now()), event, parent_session_id=parent_session_id)
            return None
        if parent_session_id is not None:
            # Before the start is marked: its event says what is noted.
            await self._store.set_session_note(scope, PARENT_NOTE, parent_session_id)
        return await self._background.swapping.started(scope, session, max_chars or self._default_chars(scope), by)

    async def session_end(self, scope: Scope, *, reason: str | None = None, by: Caller = EMBEDDED) -> None:
        reason = redact_text(reason)[0] if reason else None
        # The chain is for ever: of a sentence it has none of the words, which can be forgotten.
        details = {"reason": reason} if reason and A_WORD.fullmatch(reason) else {}
        await self._mark(scope, "end", session_event("hooks/session-end", by, scope, details), reason=reason)
        self._reader.forget(scope.agent_id)
        self._background.notify_session(scope)

    async def pre_compaction(
        self,
        scope: Scope,
        messages: Sequence[Message] = (),
        *,
        by: Caller = EMBEDDED,
    ) -> int:
        """Save whatever of the host's context is not in the log yet. Returns how many messages that were."""
        event = session_event("hooks/pre-compaction", by, scope, {"given": len(messages)})
        mark = Mark(kind="pre-compaction", at=now())
        async with self._intake.entries(scope, messages) as entries:
            receipt = await self._append(scope, entries, event, mark=mark, is_context=True)
        return receipt.accepted

    async def post_compaction(self, scope: Scope, new_context: Any = None, *, by: Caller = EMBEDDED) -> None:
        """Note that the host compacted by itself, and what it went on with."""
        encoded = msgspec.json.encode(new_context)
        details = {} if new_context is None else {"bytes": len(encoded), "sha256": sha256(encoded).hexdigest()}
        await self._mark(scope, "post-compaction", session_event("hooks/post-compaction", by, scope, details))

    # ── what is known ──

    async def ping(self) -> Health:
        started = time.perf_counter()
        await self._store.ping()
        return Health(
            ok=True,
            latency_ms=round((time.perf_counter() - started) * 1_000, 3),
            version=VERSION,
            store=self._store.kind,
            model=self._background.model,
            backlog=self._background.backlog(),
        )

    async def status(self, agent_id: str, *, by: Caller = EMBEDDED) -> Status:
        counts = await self._store.counts(agent_id)
        captures = await self._store.captures(agent_id)
        newest = await self._store.sessions(agent_id, limit=SESSIONS_IN_STATUS + 1)
        sessions = [session for session in newest if session.session_id != LESSONS_SESSION][:SESSIONS_IN_STATUS]
        if await self._store.session(Scope(agent_id=agent_id, session_id=LESSONS_SESSION)) is not None:
            counts = msgspec.structs.replace(counts, sessions=counts.sessions - 1)  # nobody talked there
        index, tiers = await self._background.status(agent_id)
        holds = await self._store.hold_counts(agent_id)
        ttl = self._settings.for_agent(agent_id).ttl
        spent = await self._store.spent(agent_id)
        await self._store.record(agent_id, AuditDraft(verb="status", actor=by.name))
        return Status(
            agent_id=agent_id,
            version=VERSION,
            store=self._store.kind,
            started_at=self._started_at,
            counts=counts,
            tiers=tiers,
            pinned=holds.pinned,
            retrievals=holds.retrievals,
            index=index,
            backlog=index.waiting + self._background.to_compress(agent_id),
            costs=Costs(tokens=spent.input_tokens + spent.output_tokens, dollars=spent.dollars),
            summaries=await self._background.summary_status(agent_id),
            capture=CaptureReport(
                sent=sum(capture.sent for capture in captures),
                received=sum(capture.received for capture in captures),
                missing=sum(capture.missing for capture in captures),
                waiting=sum(capture.waiting for capture in captures),
                clients=captures,
            ),
            sessions=sessions,
            agents=await self._visible_agents(by),
            hot_hours=TierHours(base=ttl.base_hours, bump=ttl.bump_hours, most=ttl.max_hours),
            maintenance=self._task_health(agent_id, by),
            lessons=await self._store.lesson_counts(agent_id),
            forgets=self._background.caring.forgets.forgetting.times.get(agent_id, 0),
        )

    async def audit(
        self,
        agent_id: str,
        *,
        session_id: str | None = None,
        since: datetime | int | None = None,
        limit: int = 100,
        by: Caller = EMBEDDED,
    ) -> AuditReport:
        """The newest events (after `since`, a time or a sequence number), and whether the chain's end verifies."""
        if session_id is not None:
            checked_key(session_id, "sessionId", MAX_KEY_BYTES)
        earliest = ingest.in_utc(since, "since") if isinstance(since, datetime) else None
        await self._store.record(
            agent_id, AuditDraft(verb="audit", actor=by.name, session_id=session_id, details={"limit": limit})
        )
        # Noted before the events are read: whatever is noted then must be among them or before them.
        noted = await self._store.noted_audit_head(agent_id)
        end = await self._store.newest_audit_events(agent_id, limit=EVENTS_VERIFIED)
        head = AuditHead(seq=end[-1].seq, hash=end[-1].hash)
        is_whole = await asyncio.to_thread(end_is_whole, end, noted)
        if isinstance(since, int):
            events = await self._store.audit_events(agent_id, session_id=session_id, after_seq=since, limit=limit)
        else:
            events = await self._store.newest_audit_events(agent_id, session_id=session_id, limit=limit)
            events = [event for event in events if earliest is None or event.at >= earliest]
        return AuditReport(events=events, head=head, verified=is_whole)

    # ── how ──

    def _checked(self, session_id: str | None) -> str | None:
        return None if session_id is None else checked_key(session_id, "sessionId", MAX_KEY_BYTES)

    async def _take(self, scope: Scope, messages: Sequence[Message], event: AuditDraft) -> Receipt:
        async with self._intake.entries(scope, messages) as entries:
            return await self._append(scope, entries, event)

    async def _append(
        self,
        scope: Scope,
        entries: Sequence[Entry],
        event: AuditDraft,
        *,
        claim: CaptureClaim | None = None,
        mark: Mark | None = None,
        is_context: bool = False,
    ) -> Receipt:
        receipt = await self._store.append(
            scope,
            entries,
            event,
            gaps=self._gaps(scope.agent_id),
            claim=claim,
            mark=mark,
            is_context=is_context,
        )
        self._followers.wake(scope)
        self._background.notify(scope.agent_id)
        self._background.notify_session(scope)
        return receipt

    async def _mark(self, scope: Scope, kind: MarkKind, event: AuditDraft, reason: str | None = None) -> None:
        await self._store.mark(scope, Mark(kind=kind, at=now(), reason=reason), event)

    async def _record(self, scope: Scope, verb: str, by: Caller, details: dict[str, Any]) -> None:
        await self._store.record(scope.agent_id, session_event(verb, by, scope, details))

    def stop_waiting(self) -> None:
        """Answer those who wait for a message with what there is: the provider is about to stop."""
        self._followers.stop()

    async def _page(self, scope: Scope, after_seq: int, limit: int) -> list[LoggedMessage]:
        return await self._store.messages(scope, after_seq=after_seq, limit=limit)

    async def _visible_agents(self, by: Caller) -> list[str]:
        """Those of whom there is anything. A question makes an agent, too, with the event that it was asked: a name
        that was mistyped is none that anybody has to see."""
        decided = {name for value in ("on", "off") for name in await self._store.agents_with_note(CROSS, value)}
        visible = [agent for agent in await self._store.agents() if by.may_act_for(agent)]
        return [agent for agent in visible if agent in decided or (await self._store.counts(agent)).sessions]

    def _gaps(self, agent_id: str) -> SessionGaps:
        session = self._settings.for_agent(agent_id).session
        return SessionGaps(interrupted=session.interrupted_gap, new=session.new_session_gap)

    def _default_chars(self, scope: Scope) -> int:
        """The share of the window a swapped-in context may take (B6), at four characters a token."""
        settings = self._settings.for_agent(scope.agent_id)
        return int(settings.token_budget.context_window * settings.memory.compaction.target_size * 4)
