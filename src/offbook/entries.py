"""The nouns of recall: messages in their places, and what is kept of each place beside the log."""

from __future__ import annotations

from datetime import datetime

from offbook.types import LoggedMessage, Value

# ── what an index follows ─────────────────────────────────────────────────────────────────────


class PlacedMessage(Value, frozen=True):
    """A message, and where it lies."""

    place: int
    """The store's own number of the message: stable, unique in the store, rising with `seq` within a session."""
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


class Supersession(Value, frozen=True):
    """A newer message takes the place of an older one; the log keeps both."""

    old_place: int
    new_place: int
    kind: str
    at: datetime
    note: str = ""
