"""What is shown of an agent's memory at a glance: its sessions with how full their contexts are, its days, its pins."""

from __future__ import annotations

import msgspec

from offbook.model.memory_entry import MemoryEntry
from offbook.model.summary import Usage
from offbook.model.types import Session, Sparse, Value


class SessionView(Session, frozen=True):
    """A session, and about what its context takes now: what was handed over last, and all that came since."""

    context_tokens: int = msgspec.field(default=0)
    context_window: int = msgspec.field(default=0)
    swap_at_tokens: int = msgspec.field(default=0)
    """As soon as so many are in use, a swap is due."""


class SessionPage(Sparse, frozen=True):
    sessions: list[SessionView] = msgspec.field()
    total: int = msgspec.field()
    """How many sessions the agent has."""
    next: int | None = None


class Day(Value, frozen=True):
    """What was said on one day (UTC), and what models were used for it."""

    day: str
    """As in 2026-11-15."""
    messages: int
    chars: int
    model_calls: int = 0
    usage: Usage = Usage()


class Activity(Value, frozen=True):
    agent_id: str
    days: list[Day]
    """Those on which there was anything, the oldest first."""


class EntryList(Value, frozen=True):
    entries: list[MemoryEntry]
