"""The requests of the verbs about an agent, one struct per verb."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from offbook.api.fields import (
    MOST_MESSAGES,
    MOST_TASKS,
    NOT_BLANK,
    Count,
    EntryId,
    JobTokens,
    LessonId,
    Limit,
    Matching,
    Name,
    OfAgent,
    Positive,
    Reason,
    SourceId,
    SummaryId,
    WaitMs,
    described,
)
from offbook.ingest.scope import resolve_agent
from offbook.model.errors import WrongShape
from offbook.model.lesson import LessonKind, LessonStatus, Verdict
from offbook.model.receipt import ForgetReceipt
from offbook.model.record import Followed, Record
from offbook.model.summary import SourceSpan, Usage
from offbook.model.types import MessageId, Moment, SessionId, Value

# ── summaries ──


class ExpandedSpan(Value, frozen=True):
    """Messages `firstSeq` to `lastSeq` of a session."""

    first_seq: Annotated[Positive, described("First message of it.")]
    last_seq: Annotated[Positive, described("Last message of it.")]
    session_id: SessionId | None = None


class Expand(OfAgent, frozen=True):
    """The source messages of a summary, a lesson or a `span`, verbatim. To continue, pass `next` as `after`."""

    summary_id: SourceId | None = None
    span: ExpandedSpan | None = None
    session_id: SessionId | None = None
    after: Annotated[str, Meta(max_length=64, description="To continue: `next` of the page before.")] | None = None
    limit: Annotated[Limit, described("Most messages.")] = 100

    def owner(self, default_agent: str) -> str:
        return resolve_agent((self.span and self.span.session_id) or self.session_id, self.agent_id, default_agent)

    def arguments(self) -> dict[str, Any]:
        given = {**super().arguments(), "span": self._source()}
        del given["session_id"]
        return given

    def _source(self) -> SourceSpan | None:
        if self.span is None:
            return None
        session_id = self.span.session_id or self.session_id
        if session_id is None:
            raise WrongShape("`span.sessionId` is missing: say of which session")
        if self.span.last_seq < self.span.first_seq:
            raise WrongShape(f"`span` ends at {self.span.last_seq}, before it begins at {self.span.first_seq}")
        return SourceSpan(session_id=session_id, first_seq=self.span.first_seq, last_seq=self.span.last_seq)


class Summaries(OfAgent, frozen=True):
    """The agent's summaries, newest first, of one `level` or session. To continue, pass `next` as `before`."""

    level: Annotated[int, Meta(ge=1, le=9)] | None = None
    session_id: SessionId | None = None
    before: SummaryId | None = None
    limit: Annotated[int, Meta(ge=1, le=100)] = 20
    ids: Annotated[list[SummaryId], Meta(min_length=1, max_length=100, description="Only these.")] | None = None


class Compress(OfAgent, frozen=True):
    """Summarise what is due in one session or in all of the agent's, in the background; with `again`, also rewrite what
    a lesser summarizer wrote than is available now. With `dryRun`, only estimate the cost."""

    session_id: SessionId | None = None
    dry_run: bool = False
    again: bool = False


# ── jobs of the host's own model ──


class ClaimJob(OfAgent, frozen=True):
    """The next summary for the host's own model to write, or none; waits up to `waitMs` for one."""

    wait_ms: WaitMs = 0

    def arguments(self) -> dict[str, Any]:
        return {"wait_seconds": self.wait_ms / 1_000}


class HostUsage(Value, frozen=True):
    """What the host's model read and wrote for a job, and its price. `cached_tokens` are part of `input_tokens`."""

    input_tokens: JobTokens = 0
    cached_tokens: JobTokens = 0
    output_tokens: JobTokens = 0
    dollars: Annotated[float, Meta(ge=0, le=1_000_000)] = 0.0


class CompleteJob(OfAgent, frozen=True, kw_only=True):
    """What the host's model wrote for a job. If sent twice, the first counts."""

    job_id: Name
    text: Annotated[str, Meta(max_length=1_000_000)]
    usage: HostUsage | None = None

    def arguments(self) -> dict[str, Any]:
        usage = Usage(**msgspec.structs.asdict(self.usage)) if self.usage else None
        return {**super().arguments(), "usage": usage}


class FailJob(OfAgent, frozen=True, kw_only=True):
    """The host's model could not write it: the next summarizer is asked."""

    job_id: Name
    reason: Reason = ""


# ── what goes on, and what was learnt ──


class GetTopics(OfAgent, frozen=True):
    """The topics of one session or of the newest ones: what they talk about and return to."""

    session_id: Annotated[SessionId | None, described("Only those of this session.")] = None


class GetAnchors(OfAgent, frozen=True):
    """The anchors of one session or of the newest ones: identities, contradictions, unresolved points."""

    session_id: Annotated[SessionId | None, described("Only those of this session.")] = None


class GetState(OfAgent, frozen=True):
    """Open tasks and current goal, with topics and anchors, of one session or of the newest ones."""

    session_id: Annotated[SessionId | None, described("Only those of this session.")] = None


class GetConfig(OfAgent, frozen=True):
    """The settings that apply to an agent."""


class GetLessons(OfAgent, frozen=True):
    """The lessons learnt from what was said, newest first.

    Of one `kind`, of one or several `status`. To continue, pass `next` as `before`.
    """

    kind: LessonKind | None = None
    status: LessonStatus | Annotated[list[LessonStatus], Meta(min_length=1, max_length=4)] | None = None
    before: LessonId | None = None
    limit: Annotated[int, Meta(ge=1, le=100)] = 50

    def arguments(self) -> dict[str, Any]:
        given = super().arguments()
        status = given.pop("status")
        return {**given, "statuses": [status] if isinstance(status, str) else status}


class JudgeLesson(OfAgent, frozen=True, kw_only=True):
    """Accept, reject or `edit` a lesson: `text` replaces what it says. The same verdict again changes nothing."""

    lesson_id: LessonId
    verdict: Verdict
    text: Annotated[str, Meta(max_length=2_000, extra_json_schema={"pattern": NOT_BLANK})] | None = None


# ── what stays, and what goes ──


class Pin(OfAgent, frozen=True):
    """Pin entries, so that they stay hot: those in `entryIds`, all of a session or its `messageIds`, or those that
    contain a `keyword`."""

    keyword: Annotated[str, Meta(min_length=1, max_length=512, description="All with these words.")] | None = None
    session_id: Annotated[SessionId | None, described("All of this session.")] = None
    entry_ids: Annotated[list[EntryId], Meta(max_length=1_000, description="Ids that `recall` gave.")] | None = None
    message_ids: (
        Annotated[list[MessageId], Meta(max_length=1_000, description="Of the session, only messages of these ids.")]
        | None
    ) = None


class Unpin(Pin, frozen=True):
    """Unpin entries: those in `entryIds`, all of a session or its `messageIds`, or those that contain a `keyword`."""

    def arguments(self) -> dict[str, Any]:
        return {**super().arguments(), "pinned": False}


class Unlink(OfAgent, frozen=True, kw_only=True):
    """Take back that a later message replaced an earlier one, or may be about the same: `entryId` holds again, as do
    lessons that had given way with it, and the link is not made again. With `byId`, only the link to that message."""

    entry_id: Annotated[EntryId, described("The earlier message, as `recall` shows it.")]
    by_id: Annotated[EntryId | None, described("Only what links it to this later message.")] = None


class Forget(OfAgent, frozen=True, kw_only=True):
    """Erase messages for good, with everything derived from them: those in `entryIds`, all of a session, those
    `matching` a text, regardless of case and spacing, those that hold `secrets`, or `everything`. Give exactly one of
    the five. `reason` is kept (it may be empty). With `dryRun` nothing is erased, and the receipt says what would
    be."""

    reason: Annotated[Reason, described("Why; kept in the record.")]
    entry_ids: (
        Annotated[list[EntryId], Meta(min_length=1, max_length=1_000, description="Ids that `recall` gave.")] | None
    ) = None
    session_id: Annotated[SessionId | None, described("All of this session.")] = None
    matching: Annotated[Matching | None, described("All that contain this text, regardless of case.")] = None
    secrets: Annotated[bool, described("All that hold a secret that the redaction of today would take out.")] = False
    everything: Annotated[bool, described("All that the agent was ever told: it begins anew.")] = False
    dry_run: Annotated[bool, described("Erase nothing; only say what would be erased.")] = False


class VerifyForgotten(OfAgent, frozen=True):
    """Search everywhere for what a receipt of `forget` says is gone, and check that the receipt is this provider's own;
    for one that is not, nothing is searched. With `matching`, also search for this text. A stored receipt can be given
    by its `receiptId`, and is part of the answer; with neither, the agent's stored receipts are listed."""

    receipt: ForgetReceipt | None = None
    receipt_id: Name | None = None
    matching: Matching | None = None

    def owner(self, default_agent: str) -> str:
        return super().owner(default_agent) if self.receipt is None else self.receipt.agent_id


# ── its memory as a whole ──


class Cross(OfAgent, frozen=True):
    """Allow or forbid (`enabled`) this agent and others to search each other's memory, or ask whether they may."""

    enabled: bool | None = None


class Reindex(OfAgent, frozen=True):
    """Rebuild the agent's search index from the log, in the background; with `embeddings` the vectors too."""

    embeddings: Annotated[bool, described("Embed every message again as well, not only index it.")] = False


class Maintain(OfAgent, frozen=True):
    """Run the agent's maintenance now, all `tasks` or those named, and report what was done. It also runs by itself
    every few minutes."""

    tasks: Annotated[list[str], Meta(min_length=1, max_length=MOST_TASKS)] | None = None


class Export(OfAgent, frozen=True):
    """Everything an agent has, as records in a fixed order. To continue, pass `next` as `after`."""

    after: Annotated[str, Meta(max_length=4_096)] | None = None
    limit: Limit = 500


class Import(OfAgent, frozen=True, kw_only=True):
    """Import the records of an export, in order, each once. A request that continues a session names the session's
    last message before it (`follows`). `done` says that no more will come; until then nothing is derived from them."""

    records: Annotated[list[Record], Meta(max_length=MOST_MESSAGES)]
    follows: Followed | None = None
    done: bool = False


class GetStatus(OfAgent, frozen=True):
    """Counts, tiers, backlog, costs and capture reconciliation of one agent."""


class GetSessions(OfAgent, frozen=True):
    """The agent's sessions, the one last written to first, and how full the context of each is. To continue, pass
    `next` as `after`. `matching` narrows them to those whose id contains a text; `sessionId` asks for one."""

    after: Annotated[int, Meta(ge=0, le=1_000_000, description="How many to leave out.")] = 0
    limit: Annotated[int, Meta(ge=1, le=200, description="Most sessions.")] = 50
    matching: Annotated[str, Meta(max_length=200, description="A part of their ids, regardless of case.")] = ""
    session_id: Annotated[SessionId, Meta(description="This session only.")] | None = None


class GetActivity(OfAgent, frozen=True):
    """How much was said on each day, and what models were used for it."""

    days: Annotated[int, Meta(ge=1, le=3_660, description="How many days back, today included.")] = 366


class GetEntries(OfAgent, frozen=True):
    """The memory entries of these ids; without `entryIds`, those that are pinned, the one pinned last first."""

    entry_ids: (
        Annotated[list[EntryId], Meta(min_length=1, max_length=100, description="Ids that `recall` gave.")] | None
    ) = None
    limit: Annotated[int, Meta(ge=1, le=100, description="Most entries.")] = 100


class GetAudit(OfAgent, frozen=True):
    """The newest audit events, after `since` (a time, or the sequence number of an event), `before` an event, of these
    `verbs`."""

    session_id: SessionId | None = None
    since: Moment | Count | None = None
    limit: Limit = 100
    before: Annotated[Positive | None, described("Only events before the one of this number.")] = None
    verbs: Annotated[list[Name], Meta(min_length=1, max_length=100, description="Only events of these.")] | None = None
