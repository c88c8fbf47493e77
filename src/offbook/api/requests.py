"""The shapes of requests and answers: the source of the OpenAPI document.

One row a verb: what it is called, what it takes, what it gives. The answers that are nouns come straight
from `types`.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from offbook.api.nulls import without_nulls
from offbook.model.errors import InvalidInput, WrongShape
from offbook.model.lesson import Lesson, LessonKind, LessonPage, LessonStatus, Verdict
from offbook.model.maintenance import MaintenanceReport
from offbook.model.memory_entry import CrossSearch, Pinned, Reach, Recollection
from offbook.model.receipt import ForgetCheck, ForgetReceipt, Forgot
from offbook.model.record import ExportPage, Followed, Imported, Record
from offbook.model.status import AuditReport, CaptureClaim, Health, IndexStatus, Status
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
    AgentId,
    CompressedContext,
    LogPage,
    Message,
    MessageId,
    Moment,
    Receipt,
    SessionId,
    Value,
)
from offbook.search.words import ENTRY_ID

MOST_MESSAGES = 1_000
"""In one request: a batch is a convenience, not a bulk load."""
MOST_MESSAGES_OF_A_CONTEXT = 10_000
LARGEST_INTEGER = 2**53 - 1
"""The largest whole number every JSON implementation keeps."""

LONGEST_QUERY = 1_000_000
"""A whole message may be the query; how much of it is read is bounded elsewhere."""
NOT_BLANK = r"[^\s\u001c-\u001f\u0085]"
"""What Python takes for blank is more than what a JSON schema does."""
MOST_ENTRIES = 100
MOST_TASKS = 100

EntryId = Annotated[str, Meta(max_length=64, extra_json_schema={"pattern": ENTRY_ID})]
"""What is none is refused with a word on where to find one."""
SummaryId = Annotated[str, Meta(pattern=r"^L[1-9]-[0-9]{4,15}$(?!\n)", description="As in `L1-0003`.")]
LessonId = Annotated[str, Meta(pattern=r"^lesson-[0-9]{4,15}$(?!\n)", description="As in `lesson-0003`.")]
MaxChars = Annotated[int, Meta(ge=1, le=LARGEST_INTEGER, description="The context is at most this many characters.")]
Messages = Annotated[list[Message], Meta(min_length=1, max_length=MOST_MESSAGES)]
JobTokens = Annotated[int, Meta(ge=0, le=1_000_000_000)]
"""More than any model reads; what all jobs used is summed up."""
Limit = Annotated[int, Meta(ge=1, le=1_000)]
Seq = Annotated[int, Meta(ge=0, le=LARGEST_INTEGER)]


class OnMessage(Value, frozen=True):
    """Take one `message`, or several `messages` in their order. Answered after the write is durable."""

    session_id: SessionId
    agent_id: AgentId | None = None
    message: Message | None = None
    messages: Messages | None = None

    def given(self) -> list[Message]:
        if (self.message is None) == (self.messages is None):
            raise WrongShape("give either `message` or `messages`, not both and not neither")
        return [self.message] if self.message is not None else list(self.messages or ())


class GetCompressedContext(Value, frozen=True):
    """The session in at most `maxChars` characters, newest verbatim."""

    session_id: SessionId
    max_chars: MaxChars
    agent_id: AgentId | None = None


class TakeSwap(Value, frozen=True):
    """Take the compressed context that stands by in the place of the one in use, where `usedTokens` of
    `contextWindow` have reached the threshold, or with `force`. Asked again with nothing new, the same answer."""

    session_id: SessionId
    used_tokens: Annotated[int, Meta(ge=0, le=LARGEST_INTEGER)]
    context_window: Annotated[int, Meta(ge=1, le=LARGEST_INTEGER)]
    agent_id: AgentId | None = None
    force: bool = False


class ExpandedSpan(Value, frozen=True):
    """Messages `firstSeq` to `lastSeq` of a session."""

    first_seq: Annotated[int, Meta(ge=1, le=LARGEST_INTEGER)]
    last_seq: Annotated[int, Meta(ge=1, le=LARGEST_INTEGER)]
    session_id: SessionId | None = None


class Expand(Value, frozen=True):
    """The source messages behind a summary or a `span`, verbatim. Go on with `after`: the `next` of the page before."""

    agent_id: AgentId | None = None
    summary_id: SummaryId | None = None
    span: ExpandedSpan | None = None
    session_id: SessionId | None = None
    after: Annotated[str, Meta(max_length=64)] | None = None
    limit: Limit = 100

    def source(self) -> SourceSpan | None:
        if self.span is None:
            return None
        session_id = self.span.session_id or self.session_id
        if session_id is None:
            raise WrongShape("`span.sessionId` is missing: say of which session")
        if self.span.last_seq < self.span.first_seq:
            raise WrongShape(f"`span` ends at {self.span.last_seq}, before it begins at {self.span.first_seq}")
        return SourceSpan(session_id=session_id, first_seq=self.span.first_seq, last_seq=self.span.last_seq)


class Summaries(Value, frozen=True):
    """The agent's summaries, the newest first, of one `level` or one session. Go on with `before`: the last `next`."""

    agent_id: AgentId | None = None
    level: Annotated[int, Meta(ge=1, le=9)] | None = None
    session_id: SessionId | None = None
    before: SummaryId | None = None
    limit: Annotated[int, Meta(ge=1, le=100)] = 20


class Compress(Value, frozen=True):
    """Look through a session, or all of the agent's, for what is to be summarised, in the background; with `again` also
    for what a lesser summarizer wrote than can be had now. With `dryRun` only say what that would take."""

    agent_id: AgentId | None = None
    session_id: SessionId | None = None
    dry_run: bool = False
    again: bool = False


class GetReplay(Value, frozen=True):
    """What was in the agent's context at a moment, and why."""

    session_id: SessionId
    at: Moment
    agent_id: AgentId | None = None


class ClaimJob(Value, frozen=True):
    """A summary for the host's own model to write, or none; waits up to `waitMs` for one."""

    agent_id: AgentId | None = None
    wait_ms: Annotated[int, Meta(ge=0, le=60_000)] = 0


class HostUsage(Value, frozen=True):
    """What the host's model read and wrote for a job, and its price. `cached_tokens` are part of `input_tokens`."""

    input_tokens: JobTokens = 0
    cached_tokens: JobTokens = 0
    output_tokens: JobTokens = 0
    dollars: Annotated[float, Meta(ge=0, le=1_000_000)] = 0.0

    def as_usage(self) -> Usage:
        return Usage(**msgspec.structs.asdict(self))


class CompleteJob(Value, frozen=True):
    """What the host's model wrote for a job. Given twice, the first holds."""

    job_id: Annotated[str, Meta(min_length=1, max_length=64)]
    text: Annotated[str, Meta(max_length=1_000_000)]
    agent_id: AgentId | None = None
    usage: HostUsage | None = None


class FailJob(Value, frozen=True):
    """The host's model could not write it: somebody else is asked."""

    job_id: Annotated[str, Meta(min_length=1, max_length=64)]
    agent_id: AgentId | None = None
    reason: Annotated[str, Meta(max_length=512)] = ""


class Recall(Value, frozen=True):
    """What was said that answers `query`, best first.

    `scope`: this `session`, all sessions of this `agent`, or `all` agents that have opened their memory to each
    other. `at`: as it was known then. What was corrected since is left out unless `includeSuperseded`.
    """

    session_id: SessionId
    query: Annotated[str, Meta(min_length=1, max_length=LONGEST_QUERY, extra_json_schema={"pattern": NOT_BLANK})]
    agent_id: AgentId | None = None
    limit: Annotated[int, Meta(ge=1, le=MOST_ENTRIES)] = 5
    scope: Reach = "agent"
    at: Moment | None = None
    include_superseded: bool = False
    explain: bool = False


class PrepareTurn(Value, frozen=True):
    """What the agent should have in mind before a model call: `memory` for the start of the context, the same bytes
    until the next swap, and `recall` for the end of the user's turn.

    `currentTokens` of `contextWindow` are in use. `deadlineMs` is how long it may take, where the host has less time
    than the setting `turn.deadline` gives. `explain` shows the parts, what each takes and why it is there; `preview`
    changes nothing by it: no retrieval is counted and no section kept.
    """

    session_id: SessionId
    prompt: Annotated[str, Meta(max_length=LONGEST_QUERY)]
    agent_id: AgentId | None = None
    current_tokens: Annotated[int, Meta(ge=0, le=LARGEST_INTEGER)] | None = None
    context_window: Annotated[int, Meta(ge=1, le=LARGEST_INTEGER)] | None = None
    deadline_ms: Annotated[int, Meta(ge=1, le=60_000)] | None = None
    explain: bool = False
    preview: bool = False


class Enrich(Value, frozen=True):
    """What the host's own memory search is enriched with, should its result be sparse. Ask before the search runs."""

    session_id: SessionId
    query: Annotated[str, Meta(min_length=1, max_length=LONGEST_QUERY, extra_json_schema={"pattern": NOT_BLANK})]
    agent_id: AgentId | None = None


class GetTopics(Value, frozen=True):
    """What they talk about and keep returning to, in one session or in the newest ones."""

    agent_id: AgentId | None = None
    session_id: SessionId | None = None


class GetAnchors(Value, frozen=True):
    """What must not be lost from sight, of one session or of the newest ones."""

    agent_id: AgentId | None = None
    session_id: SessionId | None = None


class GetState(Value, frozen=True):
    """Topics, anchors and working state, of one session or of the newest ones."""

    agent_id: AgentId | None = None
    session_id: SessionId | None = None


class GetConfig(Value, frozen=True):
    """The settings that hold for an agent."""

    agent_id: AgentId | None = None


class GetLessons(Value, frozen=True):
    """What was learnt from what was said, the newest first.

    Of one `kind`, of one or several `status`. Go on with `before`: the last `next`.
    """

    agent_id: AgentId | None = None
    kind: LessonKind | None = None
    status: LessonStatus | Annotated[list[LessonStatus], Meta(min_length=1, max_length=4)] | None = None
    before: LessonId | None = None
    limit: Annotated[int, Meta(ge=1, le=100)] = 50

    def statuses(self) -> list[LessonStatus] | None:
        return [self.status] if isinstance(self.status, str) else self.status


class JudgeLesson(Value, frozen=True):
    """Accept a lesson, reject it, or `edit` it: `text` is what it says from now on. The same again changes nothing."""

    lesson_id: LessonId
    verdict: Verdict
    agent_id: AgentId | None = None
    text: Annotated[str, Meta(max_length=2_000, extra_json_schema={"pattern": NOT_BLANK})] | None = None


class Pin(Value, frozen=True):
    """Keep entries hot for ever: those named by `entryIds`, all of a session, or those that hold a `keyword`."""

    agent_id: AgentId | None = None
    keyword: Annotated[str, Meta(min_length=1, max_length=512)] | None = None
    session_id: SessionId | None = None
    entry_ids: Annotated[list[EntryId], Meta(max_length=1_000)] | None = None


class Unpin(Pin, frozen=True):
    """Let pinned entries age again: those named, those of a session, those that hold a `keyword`."""


class Forget(Value, frozen=True):
    """Forget messages for good, with everything that came of them: those named by `entryIds`, all of a session, or
    those `matching` a text, however it is spaced and in whatever case. Exactly one of the three. `reason` is kept (it
    may be empty); with `dryRun` nothing is touched, and the receipt says what would be."""

    reason: Annotated[str, Meta(max_length=512)]
    agent_id: AgentId | None = None
    entry_ids: Annotated[list[EntryId], Meta(min_length=1, max_length=1_000)] | None = None
    session_id: SessionId | None = None
    matching: Annotated[str, Meta(min_length=1, max_length=10_000)] | None = None
    dry_run: bool = False


class VerifyForgotten(Value, frozen=True):
    """Look everywhere for what a receipt of `forget` says is gone, and say whether the receipt is this provider's own;
    nothing is searched for one that is not. With `matching`, look for this text too. A receipt that the store keeps can
    be named by `receiptId`, and is answered, too; without either, those that it keeps of the agent are listed."""

    receipt: ForgetReceipt | None = None
    receipt_id: Annotated[str, Meta(min_length=1, max_length=64)] | None = None
    agent_id: AgentId | None = None
    matching: Annotated[str, Meta(min_length=1, max_length=10_000)] | None = None


class Cross(Value, frozen=True):
    """Open an agent's memory and that of others to each other (`enabled`), close it, or ask how it is."""

    agent_id: AgentId | None = None
    enabled: bool | None = None


class Reindex(Value, frozen=True):
    """Make the agent's search index anew from the log, in the background; with `embeddings` the vectors too."""

    agent_id: AgentId | None = None
    embeddings: bool = False


class Maintain(Value, frozen=True):
    """Look after the agent's memory now, as is done every few minutes, and say what was done: all tasks, or those
    named."""

    agent_id: AgentId | None = None
    tasks: Annotated[list[str], Meta(min_length=1, max_length=MOST_TASKS)] | None = None


class Export(Value, frozen=True):
    """Everything an agent has, as records in one order. Go on with `after`: the `next` of the page before."""

    agent_id: AgentId | None = None
    after: Annotated[str, Meta(max_length=4_096)] | None = None
    limit: Limit = 500


class Import(Value, frozen=True):
    """Take the records of an export, in their order, each once. A request that goes on with a session says which of its
    messages was given last (`follows`). With `done` no more are to come; until then nothing is made of them."""

    records: Annotated[list[Record], Meta(max_length=MOST_MESSAGES)]
    agent_id: AgentId | None = None
    follows: Followed | None = None
    done: bool = False


class PreCompaction(Value, frozen=True):
    """The host is about to compact: save what is not saved yet."""

    session_id: SessionId
    agent_id: AgentId | None = None
    messages: Annotated[list[Message], Meta(max_length=MOST_MESSAGES_OF_A_CONTEXT)] | None = None


class PostCompaction(Value, frozen=True):
    """The host has compacted by itself. `newContext` is what it went on with: a text, messages, or an object."""

    session_id: SessionId
    agent_id: AgentId | None = None
    new_context: str | list[Any] | dict[str, Any] | None = None


class SessionStart(Value, frozen=True):
    """A session begins or goes on; the answer is what it needs to know, or null.

    `parentSessionId`: the session that started it, where it is a subagent's. Only the name is kept, and `status` tells
    it; nothing is read across agents because of it.
    """

    session_id: SessionId
    agent_id: AgentId | None = None
    max_chars: MaxChars | None = None
    parent_session_id: SessionId | None = None


class SessionEnd(Value, frozen=True):
    """A session is over, for a `reason` (new, reset, idle, daily, shutdown, …)."""

    session_id: SessionId
    agent_id: AgentId | None = None
    reason: Annotated[str, Meta(max_length=512)] | None = None


class GetLog(Value, frozen=True):
    """The session's messages after `afterSeq`, whole; waits up to `waitMs` for one where there is none.

    The first `limit` of them, or the `newest`.
    """

    session_id: SessionId
    agent_id: AgentId | None = None
    after_seq: Seq = 0
    limit: Limit = 100
    newest: bool = False
    wait_ms: Annotated[int, Meta(ge=0, le=60_000)] = 0


class GetMissing(Value, frozen=True):
    """Which of these message ids the session does not hold: for a host that compares its transcript with the log."""

    session_id: SessionId
    ids: Annotated[list[MessageId], Meta(min_length=1, max_length=MOST_MESSAGES)]
    agent_id: AgentId | None = None


class GetStatus(Value, frozen=True):
    """Counts, tiers, backlog, costs and capture reconciliation of one agent."""

    agent_id: AgentId | None = None


class GetAudit(Value, frozen=True):
    """The newest audit events, after `since` (a time, or the sequence number of an event)."""

    agent_id: AgentId | None = None
    session_id: SessionId | None = None
    since: Moment | Seq | None = None
    limit: Limit = 100


class Ping(Value, frozen=True):
    """Is anybody there?"""


class Saved(Value, frozen=True):
    saved: int


class Done(Value, frozen=True):
    ok: bool = True


class Missing(Value, frozen=True):
    """Ids that were asked for and are not there, each once, in the order given."""

    missing: list[str]


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """An RFC 9457 problem document. `retryable` says whether the same request may succeed later."""

    type: str
    title: str
    status: int
    detail: str
    retryable: bool


SHAPES: dict[str, tuple[type[Any], Any]] = {
    "ping": (Ping, Health),
    "onMessage": (OnMessage, Receipt),
    "getCompressedContext": (GetCompressedContext, CompressedContext),
    "swap": (TakeSwap, Swap),
    "expand": (Expand, Expansion),
    "summaries": (Summaries, SummaryPage),
    "compress": (Compress, CompressionEstimate),
    "replay": (GetReplay, Replay),
    "jobs/claim": (ClaimJob, ClaimedJob),
    "jobs/complete": (CompleteJob, Done),
    "jobs/fail": (FailJob, Done),
    "recall": (Recall, Recollection),
    "prepareTurn": (PrepareTurn, PreparedTurn),
    "enrich": (Enrich, Enrichment),
    "topics": (GetTopics, TopicList),
    "anchors": (GetAnchors, AnchorList),
    "state": (GetState, ContinuityState),
    "config": (GetConfig, SettingsView),
    "lessons": (GetLessons, LessonPage),
    "lessons/judge": (JudgeLesson, Lesson),
    "pin": (Pin, Pinned),
    "unpin": (Unpin, Pinned),
    "forget": (Forget, Forgot),
    "forget/verify": (VerifyForgotten, ForgetCheck),
    "cross": (Cross, CrossSearch),
    "reindex": (Reindex, IndexStatus),
    "maintain": (Maintain, MaintenanceReport),
    "export": (Export, ExportPage),
    "import": (Import, Imported),
    "hooks/pre-compaction": (PreCompaction, Saved),
    "hooks/post-compaction": (PostCompaction, Done),
    "hooks/session-start": (SessionStart, CompressedContext | None),
    "hooks/session-end": (SessionEnd, Done),
    "log": (GetLog, LogPage),
    "missing": (GetMissing, Missing),
    "status": (GetStatus, Status),
    "audit": (GetAudit, AuditReport),
}
_decoders = {verb: msgspec.json.Decoder(request) for verb, (request, _) in SHAPES.items()}
_encoder = msgspec.json.Encoder()


def decode_request(verb: str, body: bytes) -> Any:
    """A request of this verb, or the error that names the field at fault."""
    if not body.strip():
        if verb == "ping":
            return Ping()
        raise InvalidInput("the body is empty: send a JSON object")
    try:
        return _decoded(verb, body)
    except msgspec.ValidationError as error:
        raise WrongShape(str(error)) from None
    except UnicodeDecodeError as error:
        raise InvalidInput(f"the body is not valid UTF-8 at byte {_bad_byte(body, error)}: send UTF-8") from None
    except msgspec.DecodeError as error:
        raise InvalidInput(f"the body is not valid JSON: {error}") from None
    except RecursionError:
        raise WrongShape("the body is nested too deeply: flatten it") from None


def _decoded(verb: str, body: bytes) -> Any:
    try:
        return _decoders[verb].decode(body)
    except msgspec.ValidationError:
        if b"null" not in body:
            raise
        # Rare, so that the way of every other request is the short one.
        given = msgspec.json.decode(body)
        shape = SHAPES[verb][0]
        return msgspec.convert(without_nulls(given, shape), shape)


def _bad_byte(body: bytes, error: UnicodeDecodeError) -> int:
    """The error counts within the string that the byte stands in; who sent it has the body."""
    try:
        body.decode()
    except UnicodeDecodeError as of_the_body:
        return of_the_body.start
    return error.start


def encode_answer(answer: Any) -> bytes:
    return _encoder.encode(answer)


def capture_claim(header: str, messages: int) -> CaptureClaim:
    """Read `Offbook-Capture: client=<id>; first=12; last=20; sent=25`."""
    fields = dict(part.strip().split("=", 1) for part in header.split(";") if "=" in part)
    try:
        claim = CaptureClaim(
            client=fields["client"],
            first=int(fields["first"]),
            last=int(fields["last"]),
            sent=int(fields["sent"]),
        )
    except (KeyError, ValueError):
        raise InvalidInput(
            "the header Offbook-Capture cannot be read: send `client=<id>; first=<n>; last=<n>; sent=<n>`"
        ) from None
    is_sound = 1 <= claim.first <= claim.last <= claim.sent <= LARGEST_INTEGER and 0 < len(claim.client) <= 128
    if not is_sound or claim.last - claim.first + 1 != messages:
        raise InvalidInput(
            f"the header Offbook-Capture claims messages {claim.first} to {claim.last} of {claim.sent}, "
            f"the body holds {messages}: first to last must count the messages of this request"
        )
    return claim
