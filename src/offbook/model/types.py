"""The nouns. Every value is frozen; a change makes a new value.

Values that cross the wire are encoded in camelCase by msgspec straight from these classes, so the
wire contract, the OpenAPI document and the Python types cannot drift apart.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

Role = Literal["user", "assistant", "system", "tool"]
Block = dict[str, Any]
Content = str | list[Block]
Tier = Literal["hot", "warm", "cold"]
GapKind = Literal["first", "continuous", "interrupted", "new"]
MarkKind = Literal["first", "interrupted", "new", "start", "end", "pre-compaction", "post-compaction"]

MAX_KEY_BYTES = 512
"""Longest session key and message id, in UTF-8 bytes (the contract's figure)."""
MAX_AGENT_BYTES = 128
WITHOUT_NUL = {"pattern": "^[^\\x00]*$"}
"""For the OpenAPI document only; `scope` and `ingest` refuse a NUL with a better message."""
YEARS_1901_TO_8999 = {"pattern": "^(190[1-9]|19[1-9][0-9]|[2-8][0-9]{3})-"}

SessionId = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=MAX_KEY_BYTES,
        description="The host's stable session key, at most 512 bytes.",
        extra_json_schema=WITHOUT_NUL,
    ),
]
AgentId = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=MAX_AGENT_BYTES,
        description="The owner, at most 128 bytes; left out, taken from the session key.",
        extra_json_schema=WITHOUT_NUL,
    ),
]
MessageId = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=MAX_KEY_BYTES,
        description="The host's own id, at most 512 bytes: the idempotency key.",
        extra_json_schema=WITHOUT_NUL,
    ),
]
Label = Annotated[str, Meta(extra_json_schema=WITHOUT_NUL)]
Moment = Annotated[datetime, Meta(extra_json_schema={"format": "date-time", **YEARS_1901_TO_8999})]


class Value(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A frozen value whose fields are camelCase on the wire."""


class Sparse(Value, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """A value whose fields are left out on the wire where they hold nothing."""


# ── who and where ─────────────────────────────────────────────────────────────────────────────


class Scope(Value, frozen=True):
    """One session of one agent. No method of a store works without its owner."""

    agent_id: str
    session_id: str


class Caller(Value, frozen=True):
    """Who asks. `agents` is None for the owner of the data folder, else the agents a token is bound to."""

    name: str
    agents: frozenset[str] | None = None

    def may_act_for(self, agent_id: str) -> bool:
        return self.agents is None or agent_id in self.agents


EMBEDDED = Caller(name="embedded")


# ── what is said ──────────────────────────────────────────────────────────────────────────────


class Message(Sparse, frozen=True):
    """One message, as a host sends it and as it comes back."""

    role: Role
    content: Content
    id: MessageId | None = None
    ts: Moment | None = None
    name: Label | None = None
    tool_call_id: Label | None = None
    model: Label | None = None
    origin: Label | None = None
    meta: dict[str, Any] | None = None


class BlobRef(Value, frozen=True):
    """Where a large string of a message lies, and where in the content it belongs."""

    path: list[str | int]
    sha256: str
    chars: int
    bytes: int
    is_binary: bool = False
    """An image or a file rather than a text: a context refers to it and never holds it."""


class Entry(Value, frozen=True):
    """A message made ready for the log: redacted, stripped of what we injected, large parts moved out."""

    message: Message
    noise: str | None = None
    redactions: dict[str, int] = {}
    blobs: list[BlobRef] = []
    chars: int = 0
    fingerprint: bytes = b""
    """Digest of role, content and tool ids: tells a retry from another message under the same id."""


class LoggedMessage(Value, frozen=True):
    """An entry in its place in the log."""

    seq: int
    received_at: datetime
    entry: Entry
    hash: bytes = b""
    """What the row hashed to when it was written (see `audit`)."""

    @property
    def message(self) -> Message:
        return self.entry.message

    @property
    def said_at(self) -> datetime:
        """By the host's clock where it told; one that is ahead of ours does not make it later than its arrival."""
        return min(self.message.ts or self.received_at, self.received_at)


class Conflict(Value, frozen=True):
    """A message id that is already stored with other content. The stored one stays."""

    id: str
    seq: int


class Receipt(Sparse, frozen=True):
    """What became of the messages of one `onMessage`. Sent after the write is durable."""

    accepted: int = msgspec.field()
    duplicates: int = msgspec.field()
    first_seq: int = msgspec.field()
    last_seq: int = msgspec.field()
    conflicts: list[Conflict] = []


# ── sessions ──────────────────────────────────────────────────────────────────────────────────


class SessionGaps(Value, frozen=True):
    """How long a silence must be to count (D16)."""

    interrupted: timedelta = timedelta(hours=2)
    new: timedelta = timedelta(hours=6)

    def between(self, earlier: datetime | None, later: datetime) -> GapKind:
        """A clock that jumps back makes no gap."""
        if earlier is None:
            return "first"
        silence = later - earlier
        if silence >= self.new:
            return "new"
        if silence >= self.interrupted:
            return "interrupted"
        return "continuous"


class Mark(Sparse, frozen=True):
    """Something that happened to a session between two messages: before `seq` + 1, at `at`."""

    kind: MarkKind
    at: datetime
    seq: int = 0
    reason: str | None = None


class Session(Sparse, frozen=True):
    session_id: str
    agent_id: str
    last_seq: int
    chars: int
    generation: int
    started_at: datetime
    last_at: datetime
    ended_at: datetime | None = None
    end_reason: str | None = None
    parent_session_id: str | None = None
    """The session that started this one, as its host named it; it may be of another agent, or unknown here."""


# ── contexts ──────────────────────────────────────────────────────────────────────────────────


class Span(Value, frozen=True):
    first_seq: int
    last_seq: int


class Part(Sparse, frozen=True):
    """One piece of a context and the stretch of the log it stands for."""

    kind: Literal["summary", "verbatim"]
    first_seq: int
    last_seq: int
    chars: int = msgspec.field()
    id: str | None = None
    level: int | None = None


class CompressedContext(Value, frozen=True):
    """A whole session in at most `max_chars` characters. `parts` partition 1 … `covers.last_seq`."""

    session_id: str
    agent_id: str
    generation: int
    text: str
    messages: list[Message]
    chars: int
    max_chars: int
    covers: Span
    parts: list[Part]
    built_at: datetime


# ── audit ─────────────────────────────────────────────────────────────────────────────────────


class AuditDraft(Value, frozen=True):
    """What a verb wants recorded; the store gives it its place in the agent's chain."""

    verb: str
    actor: str
    session_id: str | None = None
    details: dict[str, Any] = {}


def session_event(verb: str, by: Caller, scope: Scope, details: dict[str, Any] | None = None) -> AuditDraft:
    return AuditDraft(verb=verb, actor=by.name, session_id=scope.session_id, details=details or {})


class AuditEvent(Sparse, frozen=True):
    seq: int
    agent_id: str
    at: datetime
    verb: str
    actor: str
    details: dict[str, Any] = msgspec.field()
    previous: str
    hash: str
    session_id: str | None = None


class AuditHead(Value, frozen=True):
    seq: int
    hash: str


class Fault(Sparse, frozen=True):
    """Something in the store that is not as it was written, and where."""

    what: str
    agent_id: str | None = None
    session_id: str | None = None
    seq: int | None = None


# ── capture reconciliation ────────────────────────────────────────────────────────────────────


# ── answers ───────────────────────────────────────────────────────────────────────────────────


class LogLine(Sparse, frozen=True):
    """A message in its place, whole, as a reader of the log sees it."""

    seq: int
    received_at: datetime
    message: Message
    noise: str | None = None
    redactions: dict[str, int] = {}
    missing_parts: list[BlobRef] = []
    """Large parts that cannot be read back: in the message a stand-in says so."""


class LogPage(Value, frozen=True):
    messages: list[LogLine]
    last_seq: int


def now() -> datetime:
    return datetime.now(UTC)


LOST = "lost"
"""The noise kind of what stands where a message was lost to damage, and the verb of what stands for a lost event."""
SALVAGE = "salvage"
"""The verb of the event that names what was lost."""
COMMAND = "command"
"""The kind of what a person asks of the host, and of its answer."""
