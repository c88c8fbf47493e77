"""The nouns of recall: messages in their places, and what is kept of each place beside the log."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from offbook.model.types import LoggedMessage, Moment, Span, Sparse, Tier, Value

Reach = Literal["agent", "session", "all"]
Depth = Literal["normal", "deep"]

# ── what an index follows ─────────────────────────────────────────────────────────────────────


class PlacedMessage(Value, frozen=True):
    """A message, and where it lies."""

    place: int
    """The store's own number of the message: stable, unique in the store; within a session it grows as `seq` does, by
    one."""
    session: int
    """The store's number of the session."""
    session_id: str
    logged: LoggedMessage


class Arrivals(Value, frozen=True):
    """A stretch of an agent's audit chain, as the messages that were accepted in it."""

    through_event: int
    """The last audit event looked at: go on from here."""
    messages: list[PlacedMessage]
    is_end: bool
    """Nothing newer was there."""


# ── vectors ───────────────────────────────────────────────────────────────────────────────────


class VectorRow(Value, frozen=True):
    """The embedding of one part of a message, as the model's own bytes."""

    place: int
    part: int
    data: bytes


class StoredVector(Value, frozen=True):
    """`number` grows with each vector added: a follower goes on after the last it has seen."""

    number: int
    place: int
    part: int
    data: bytes


# ── what use has made of a message ────────────────────────────────────────────────────────────


class Hold(Value, frozen=True):
    """What keeps a message from cooling down."""

    retrievals: int = 0
    retrieved_at: datetime | None = None
    pinned: bool = False


class HoldCounts(Value, frozen=True):
    """Of one agent: how many messages are pinned, how many retrievals there were."""

    pinned: int = 0
    retrievals: int = 0


TAKEN_BACK = "unlinked"
"""The kind of a link that a person took back: the one message does not take the place of the other. It is kept, so that
it is not made again."""


class Supersession(Value, frozen=True):
    """A newer message takes the place of an older one; the log keeps both."""

    old_place: int
    new_place: int
    kind: str
    at: datetime
    note: str = ""
    """The lesson that made it; or which characters of the older text no longer hold ("24-43"), where others do; or that
    it is `unclear` which."""


# ── what recall answers ───────────────────────────────────────────────────────────────────────


class Replaced(Value, frozen=True):
    """What an entry stands in the place of."""

    id: str
    text: str
    ts: Moment


class Why(Sparse, frozen=True):
    """Why an entry was found: with `explain` all of it, else only what it replaces."""

    replaces: list[Replaced] = msgspec.field(default_factory=list)
    speaker: str | None = None
    probability: float | None = None
    """That it is a memory that matters here: what decides whether it comes to mind before a turn."""
    similarity: float | None = None
    """Cosine of the query and the nearest passage."""
    ranks: dict[str, int] = msgspec.field(default_factory=dict)
    """Its place in what each retriever found, and in the order of the second `reader`."""
    evidence: dict[str, float] = msgspec.field(default_factory=dict)
    """What each kind of evidence added to the score."""


class MemoryEntry(Sparse, frozen=True):
    """Something remembered: what was said, when, by whom, and where in the log it stands."""

    id: str
    agent_id: str
    session_id: str
    text: str
    ts: Moment
    score: float = msgspec.field()
    """How well it answers, from 0 to 1; -1 where it is only the newest there is (A3)."""
    found_by: list[str] = msgspec.field()
    span: Span = msgspec.field()
    tier: Tier = msgspec.field()
    pinned: bool = msgspec.field()
    origin: str = msgspec.field()
    """Where it came from: `user`, `assistant`, `tool`, or what the host said."""
    superseded_by: str | None = None
    followed_by: str | None = None
    """What was said later and may be about the same; both hold, as far as is known."""
    why: Why | None = None


class LeftOut(Value, frozen=True):
    """What was found and is not shown."""

    id: str
    why: str


class Explained(Value, frozen=True):
    """How an answer came about."""

    query: str
    looked_for: list[str]
    """The words searched for."""
    times: list[str]
    """What in the query was understood as a time."""
    recipes: dict[str, str]
    """Which recipe ranked each agent's memory."""
    looked_at: int
    left_out: list[LeftOut]


class Recollection(Sparse, frozen=True):
    """What `recall` answers, best first. `degraded` names what was unavailable, and why."""

    entries: list[MemoryEntry] = msgspec.field()
    took_ms: float = msgspec.field()
    degraded: list[str] = msgspec.field()
    explained: Explained | None = None


class Pinned(Value, frozen=True):
    """What `pin` and `unpin` changed."""

    changed: int
    entry_ids: list[str]


class Unlinked(Value, frozen=True):
    """What `unlink` took back."""

    changed: int
    """How many links."""


class CrossSearch(Value, frozen=True):
    """Whether an agent's memory and that of others are open to each other."""

    enabled: bool
    agents: list[str]
    """The others whose memory it can search now."""
