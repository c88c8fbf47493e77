"""The nouns of `export` and `import`: everything an agent has, as records in one order, and what became of each.

What a record was read from is made again by importing it, so the same records come out again. What is an installation's
own is in none of them: the audit chain, when messages were received, contexts handed out, retrievals, costs, indexes.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from offbook.model.lesson import Confidence, Lesson, LessonKind, LessonSource, LessonStatus
from offbook.model.summary import Loss, Summary, SummaryDraft, Usage
from offbook.model.types import AgentId, BlobRef, Entry, Mark, MarkKind, Message, Moment, SessionId, Sparse, Value

LARGEST_SEQ = 2**32 - 1
LARGEST_COUNT = 2**53 - 1
FOLLOWS_REFUSED = "it follows one that was refused"
"""Why most of what is refused is refused: told once is enough."""

Seq = Annotated[int, Meta(ge=1, le=LARGEST_SEQ)]
SeqBefore = Annotated[int, Meta(ge=0, le=LARGEST_SEQ)]
Count = Annotated[int, Meta(ge=0, le=LARGEST_COUNT)]
LongText = Annotated[str, Meta(max_length=1_000_000)]
Name = Annotated[str, Meta(max_length=512)]


class _Record(Sparse, frozen=True, kw_only=True, tag_field="type"):
    """A line of an export. Its first field, `type`, says which kind it is."""


class AgentRecord(_Record, frozen=True, tag="agent"):
    """Whose memory follows. `cross_search` is there where somebody decided on it."""

    agent_id: AgentId
    cross_search: bool | None = None


class SessionRecord(_Record, frozen=True, tag="session"):
    """A session; its messages and marks follow. How it ended is told for reading: the marks say it."""

    session_id: SessionId
    started_at: Moment
    parent_session_id: SessionId | None = None
    ended_at: Moment | None = None
    end_reason: Name | None = None


class MessageRecord(_Record, frozen=True, tag="message"):
    """A message in its place, whole. `pinned` counts the agent's pins in the order of pinning. `missing_parts` could
    not be read back: a stand-in in the message says so."""

    session_id: SessionId
    seq: Seq
    message: Message
    noise: Name | None = None
    redactions: dict[str, Count] = msgspec.field(default_factory=dict)
    pinned: Seq | None = None
    missing_parts: list[BlobRef] = msgspec.field(default_factory=list)


class MarkRecord(_Record, frozen=True, tag="mark"):
    """Something that happened to the session after message `seq`."""

    session_id: SessionId
    seq: SeqBefore
    kind: MarkKind
    at: Moment
    reason: Name | None = None


class RecordedSpan(Sparse, frozen=True):
    """A stretch of a session, and when its first and its last message were said: so that it is known to be the same.
    `forgotten` counts the messages in it that were: what was made before they were is not what is made of the rest."""

    session_id: SessionId
    first_seq: Seq
    last_seq: Seq
    first_at: Moment
    last_at: Moment
    forgotten: Count = 0


class SummaryRecord(_Record, frozen=True, tag="summary"):
    """A summary. Its `id` follows from the order of summaries; `sources` are ids of those that it merges."""

    id: Annotated[str, Meta(pattern=r"^L[1-9]-[0-9]{4,15}$(?!\n)")]
    level: Annotated[int, Meta(ge=1, le=9)]
    spans: Annotated[list[RecordedSpan], Meta(min_length=1, max_length=10_000)]
    text: LongText
    rank: Annotated[list[Count], Meta(max_length=100_000)]
    brief: LongText
    source_messages: Count
    source_tokens: Count
    tokens: Count
    first_at: Moment
    last_at: Moment
    summarizer: Name
    prompt_version: Name
    fingerprint: Name
    usage: Usage = Usage()
    sources: Annotated[list[Name], Meta(max_length=10_000)] = msgspec.field(default_factory=list)
    kept: list[Loss] = msgspec.field(default_factory=list)
    losses: list[Loss] = msgspec.field(default_factory=list)
    lost: Count = 0


class LessonRecord(_Record, frozen=True, tag="lesson"):
    """A lesson, and where it was said."""

    id: Annotated[str, Meta(pattern=r"^lesson-[0-9]{4,15}$(?!\n)")]
    kind: LessonKind
    text: LongText
    status: LessonStatus
    confidence: Confidence
    first_seen: Moment
    last_seen: Moment
    times: Count
    learnt_by: Name
    key: LongText = ""
    about: LongText | None = None
    learnt_text: LongText | None = None
    replaced_by: Name | None = None
    sources: list[LessonSource] = msgspec.field(default_factory=list)


Record = AgentRecord | SessionRecord | MessageRecord | MarkRecord | SummaryRecord | LessonRecord


class ExportPage(Sparse, frozen=True):
    """Records in their order. `next` is given where there are more."""

    agent_id: str
    records: list[Record]
    next: str | None = None


class Followed(Value, frozen=True):
    """The message that was given last before this request, and when it was said: what comes now follows that one."""

    session_id: SessionId
    seq: Seq
    at: Moment


class RefusedRecord(Value, frozen=True):
    """A record that was not taken, and why."""

    record: str
    reason: str


class Imported(Value, frozen=True):
    """What became of the records of one request."""

    agent_id: str
    taken: int
    already_there: int
    refused: list[RefusedRecord]


# ── what a store is asked to admit ────────────────────────────────────────────────────────────


class SessionOpening(Value, frozen=True):
    """A session that is to be there, since when, and by whom it was started."""

    started_at: datetime
    parent_session_id: str | None = None


class PlacedEntry(Value, frozen=True):
    """An entry that is to be at this place of its session."""

    seq: int
    entry: Entry
    pinned: int | None = None


SessionPart = SessionOpening | PlacedEntry | Mark | Followed


class Admission(Value, frozen=True):
    """What became of one thing: it was taken, or it was refused for a reason, or else it was there already."""

    is_taken: bool = False
    refused: str | None = None


TAKEN = Admission(is_taken=True)
THERE = Admission()

# What a store refuses, in the words in which a dry run foretells it.
WITHOUT_SESSION = Admission(refused="its session is not here: import its session record first")
ANOTHER_IN_ITS_PLACE = Admission(
    refused="another message is in its place here: import into another agent (--agent NAME), or into an empty store"
)


def behind_a_gap(last_seq: int) -> Admission:
    return Admission(refused=f"its session ends at message {last_seq} here: import those between first")


def behind_a_stranger(before_seq: int) -> Admission:
    return Admission(
        refused=f"it is not certain that message {before_seq} here is the one it follows: import both at once"
    )


def with_an_id_of_another(message_id: str | None) -> Admission:
    return Admission(refused=f"its id {message_id!r} is at another place of the session here")


def mark_behind_the_end(seq: int, last_seq: int) -> Admission:
    return Admission(refused=f"it belongs after message {seq}, and its session ends at {last_seq} here")


def cross_search_stays(told: str) -> Admission:
    return Admission(refused=f"searching across agents is {told} here, and stays so (`offbook cross`)")


# ── from one noun to the other ────────────────────────────────────────────────────────────────


def summary_record(summary: Summary, spans: list[RecordedSpan]) -> SummaryRecord:
    """`spans` are its own, with the times of their ends."""
    draft = summary.draft
    same = {name: getattr(draft, name) for name in SummaryDraft.__struct_fields__ if name != "spans"}
    return SummaryRecord(id=summary.id, spans=spans, **same)


def lesson_record(lesson: Lesson) -> LessonRecord:
    same = {name: getattr(lesson, name) for name in Lesson.__struct_fields__ if name != "agent_id"}
    return LessonRecord(**same)


def lesson_of(record: LessonRecord, agent_id: str) -> Lesson:
    same = {name: getattr(record, name) for name in LessonRecord.__struct_fields__}
    return Lesson(agent_id=agent_id, **same)


def name_of(record: Record) -> str:
    """Short, for a report."""
    match record:
        case AgentRecord():
            return f"agent {record.agent_id}"
        case SessionRecord():
            return f"session {record.session_id}"
        case MessageRecord():
            return f"message {record.session_id}#{record.seq}"
        case MarkRecord():
            return f"mark {record.session_id}#{record.seq} {record.kind}"
        case SummaryRecord():
            return f"summary {record.id}"
        case LessonRecord():
            return record.id
