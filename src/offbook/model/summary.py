"""The nouns of compression: summaries, what they cost, what they leave out, and the contexts that were handed out."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from offbook.model.types import LogLine, Message, Part, SessionId, Sparse, Value

LossKind = Literal["identifier", "number", "date", "name", "question", "decision", "correction"]
StateKind = Literal["goal", "open loop", "confirmed action", "live handle"]
HandedKind = Literal["swap", "start"]
Section = Literal["memory", "recall"]
PartKind = Literal[
    "summaries", "anchors", "lessons", "working state", "pinned", "session", "handover", "topics", "recalled", "newest"
]


class SourceSpan(Value, frozen=True):
    """A stretch of one session: what a summary stands for."""

    session_id: SessionId
    first_seq: Annotated[int, Meta(ge=1)]
    last_seq: Annotated[int, Meta(ge=1)]


class Usage(Value, frozen=True):
    """What a model read and wrote for one answer, and what that cost. `cached_tokens` are part of `input_tokens`."""

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    dollars: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            dollars=self.dollars + other.dollars,
        )


class Loss(Sparse, frozen=True):
    """Something particular that the source says and the summary does not, and where it is said."""

    kind: LossKind
    text: str
    session_id: str
    seq: int


# ── summaries ─────────────────────────────────────────────────────────────────────────────────


class SummaryDraft(Value, frozen=True):
    """A summary made ready for the store, which gives it its number.

    The text is lines. `rank` orders them by what each adds to those before it, so that a shorter form is made by
    taking the first of them, in the order of the text.
    """

    level: Annotated[int, Meta(ge=1, le=9)]
    spans: list[SourceSpan]
    """In order of time; one, unless it merges what several sessions left over."""
    text: str
    rank: list[int]
    brief: str
    """A line or two: what is shown of it where there is next to no room."""
    source_messages: int
    source_tokens: int
    tokens: int
    first_at: datetime
    last_at: datetime
    summarizer: str
    """Who wrote it: `extractive`, or the kind of endpoint and the model's name."""
    prompt_version: str
    fingerprint: str
    """Of what it was written of, by whom and how it was asked for: the same stretch is never paid for twice."""
    usage: Usage = Usage()
    sources: list[str] = msgspec.field(default_factory=list)
    """Ids of the summaries that it merges; none for level 1."""
    kept: list[Loss] = msgspec.field(default_factory=list)
    """Particulars that it does have: what a shorter form of it may lose."""
    losses: list[Loss] = msgspec.field(default_factory=list)
    lost: int = 0
    """How many losses there are in all; `losses` holds the newest of them."""


class Summary(Value, frozen=True):
    """A summary as it is kept. `id` is `L2-0007`: its level, and its number among the agent's summaries of that."""

    id: str
    agent_id: str
    made_at: datetime
    draft: SummaryDraft
    parent: str | None = None
    """The summary that merges it, where there is one."""


def summary_id(level: int, number: int) -> str:
    return f"L{level}-{number:04}"


class Node(Value, frozen=True):
    """What choosing a cover needs to know of a summary that lies in one session."""

    id: str
    level: int
    first_seq: int
    last_seq: int
    chars: int
    tokens: int
    brief: str
    first_at: datetime
    last_at: datetime
    parent: str | None = None


class SummaryText(Value, frozen=True):
    """What showing a summary needs besides."""

    text: str
    rank: list[int]
    kept: list[Loss]
    losses: list[Loss]
    lost: int


# ── what models were paid for ─────────────────────────────────────────────────────────────────


class Completion(Value, frozen=True):
    """An answer of a model, kept before it is judged: whatever happens next, it is not paid for again."""

    fingerprint: str
    summarizer: str
    text: str
    usage: Usage


class Spending(Value, frozen=True):
    """What one summarizer has used on one day (UTC), of all agents or of one."""

    summarizer: str
    calls: int
    usage: Usage


# ── working state ─────────────────────────────────────────────────────────────────────────────


class StateRecord(Value, frozen=True):
    """Something the agent must not lose hold of, carried outside the prose, and where it was said."""

    kind: StateKind
    text: str
    first_seq: int
    last_seq: int
    at: datetime


# ── contexts that were handed out ─────────────────────────────────────────────────────────────


class Dropped(Sparse, frozen=True):
    """A particular that is no longer in the text, and what to `expand` to get it back."""

    kind: LossKind
    text: str
    session_id: str
    seq: int
    expand: str | None = None
    """The id of the summary; None where a span stands for it: expand `seq`."""


class Ledger(Value, frozen=True):
    """What a swap kept and what it left out."""

    verbatim: list[Part] = msgspec.field(default_factory=list)
    summaries: list[Part] = msgspec.field(default_factory=list)
    dropped: list[Dropped] = msgspec.field(default_factory=list)
    """The newest of what was dropped."""
    dropped_count: int = 0
    state: list[StateRecord] = msgspec.field(default_factory=list)


class HandedContext(Value, frozen=True):
    """What the agent runs on from a moment on: slot A of one generation."""

    kind: HandedKind
    generation: int
    at: datetime
    last_seq: int
    used_tokens: int
    context_window: int
    tokens_after: int
    max_chars: int
    memory: str
    """The part that stays the same until the next swap."""
    messages: list[Message]
    parts: list[Part]
    ledger: Ledger


class Swap(Value, frozen=True):
    """What became of a request to swap. Where nothing was swapped, `reason` says why and `messages` is empty."""

    swapped: bool
    reason: str
    generation: int
    messages: list[Message]
    tokens_before: int
    tokens_after: int
    ledger: Ledger
    took_ms: float


# ── answers ───────────────────────────────────────────────────────────────────────────────────


class SourceLine(LogLine, frozen=True, kw_only=True):
    """A message in its place, and of which session."""

    session_id: str


class Expansion(Sparse, frozen=True):
    """The messages behind a summary or a span, verbatim. `next` is given where there are more."""

    spans: list[SourceSpan] = msgspec.field()
    messages: list[SourceLine] = msgspec.field()
    summary_id: str | None = None
    next: str | None = None


class SummaryView(Sparse, frozen=True):
    """A summary as `inspect` shows it."""

    id: str
    level: int
    spans: list[SourceSpan]
    sources: list[str]
    text: str
    source_messages: int
    source_tokens: int
    tokens: int
    summarizer: str
    prompt_version: str
    fingerprint: str
    usage: Usage
    first_at: datetime
    last_at: datetime
    made_at: datetime
    lost: int
    losses: list[Loss] = msgspec.field()
    kept: list[Loss] = []
    """Particulars of the source that it does have."""
    parent: str | None = None
    instructions: str | None = None
    """What its model was asked, after the memories and messages that it read."""


class SummaryPage(Sparse, frozen=True):
    summaries: list[SummaryView] = msgspec.field()
    next: str | None = None


def view_of(summary: Summary, *, instructions: str | None = None) -> SummaryView:
    draft = summary.draft
    fields: dict[str, Any] = {
        name: getattr(draft, name) for name in SummaryView.__struct_fields__ if name in SummaryDraft.__struct_fields__
    }
    return SummaryView(
        id=summary.id, made_at=summary.made_at, parent=summary.parent, instructions=instructions, **fields
    )


class TurnPart(Sparse, frozen=True):
    """One part of a section of a turn: how many things it tells of, what it takes, and why it is there."""

    section: Section
    kind: PartKind
    tokens: int
    items: int
    why: str
    text: str


class ReplayEvent(Value, frozen=True):
    """Why a context was what it was."""

    at: datetime
    verb: str
    actor: str
    details: dict[str, Any]


class Replay(Value, frozen=True):
    """What was in the agent's context at a moment: what it was handed, and what had come since.

    `is_exact` is false where the host had compacted by itself in between, or where too much had come to be shown.
    """

    session_id: str
    agent_id: str
    at: datetime
    generation: int
    kind: Literal["swap", "start", "log"]
    handed_at: datetime | None
    memory: str
    messages: list[Message]
    last_seq: int
    is_exact: bool
    why: list[ReplayEvent]
    turn_memory: str = ""
    """The stable section of turns prepared then; the last `prepareTurn` in `why` names what was recalled."""
    turn_parts: list[TurnPart] = []
    """What that section is made of."""
    parts: list[Part] = []
    """What the context that was handed over is made of; `messages` that came since are not among them."""
    handed_messages: int = 0
    """How many of `messages` were handed over; the others came since."""
    left_out: int = 0
    """With `newest`: how many messages of the context come before those shown."""
    used_tokens: int = 0
    """In use when it was handed over, as the host said; 0 where it did not."""
    context_window: int = 0
    tokens_after: int = 0
    ledger: Ledger = Ledger()
    """What it kept and what it left out."""


class CompressionEstimate(Value, frozen=True, kw_only=True):
    """What is still to be summarised, and about what it will take."""

    agent_id: str
    sessions: int
    waiting: int
    """Sessions still to be looked at."""
    source_tokens: int
    summaries: int
    input_tokens: int
    output_tokens: int
    dollars: float
    summarizer: str
    counts: dict[str, int]
    """Summaries there are, by level."""
    again: int = 0
    """Summaries there are that would be written again."""


class Job(Value, frozen=True):
    """A summary for the host's model to write. `messages` is the prompt, to be given as it is, without a system prompt;
    `stable` of them at the start are the same next time, so their end is the place for a cache mark."""

    id: str
    agent_id: str
    messages: list[Message]
    stable: int
    max_output_tokens: int
    lease_seconds: float


class ClaimedJob(Value, frozen=True):
    job: Job | None
