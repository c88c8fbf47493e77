"""The nouns of continuity: a prepared turn, open tasks, topics and anchors, and what stays between turns."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec

from offbook.model.memory_entry import MemoryEntry
from offbook.model.summary import StateRecord, TurnPart
from offbook.model.types import GapKind, Span, Sparse, Value

Intent = Literal["recall", "resume", "plain", "brief"]
"""What a prompt wants of memory: what was said before, the thread picked up again, nothing in particular; `brief` is
too short to search for."""
AnchorKind = Literal["identity", "contradiction", "tension"]

# ── open tasks, topics and anchors ────────────────────────────────────────────────────────────


class Topic(Value, frozen=True):
    """Something they talk about."""

    label: str
    """As they say it."""
    mentions: int
    """Turns of the window that speak of it."""
    total: int
    """Turns that ever did."""
    freshness: float
    """1 in the turn that speaks of it; what is left of it after each turn that does not."""
    is_fixated: bool
    """They keep returning to it."""
    is_stale: bool
    """They have left it."""
    first_at: datetime
    last_at: datetime
    sessions: int = 1


class Anchor(Value, frozen=True):
    """Something that must not be lost from sight: who they are, what does not fit together, what is unresolved."""

    kind: AnchorKind
    text: str
    """Their words: one sentence."""
    session_id: str
    seq: int
    at: datetime
    """When it was last said."""
    times: int = 1
    is_fresh: bool = True


class SessionInfo(Value, frozen=True):
    """A conversation so far. `gap` tells how it goes on from what was before it (D16)."""

    session_id: str
    exchanges: int
    started_at: datetime
    last_at: datetime
    gap: GapKind


class SessionState(Value, frozen=True):
    """What one session was doing when it was last heard of."""

    session_id: str
    last_at: datetime
    records: list[StateRecord]


class ContinuityState(Sparse, frozen=True):
    """Open tasks, current goal, topics and anchors of an agent: of one session, or of the newest ones."""

    agent_id: str
    topics: list[Topic] = msgspec.field()
    anchors: list[Anchor] = msgspec.field()
    working: list[SessionState] = msgspec.field()
    session: SessionInfo | None = None


class TopicList(Value, frozen=True):
    topics: list[Topic]
    """What they keep returning to first, then what is fresh, then what has gone stale."""


class AnchorList(Value, frozen=True):
    anchors: list[Anchor]
    """The fresh ones first, each newest first."""


class SettingsView(Value, frozen=True):
    """What the provider goes by for one agent."""

    agent_id: str
    settings: dict[str, Any]
    """Nested, under the names of the documents."""
    origins: dict[str, str] = {}
    """Who gave what is not a default: `config.toml`, a variable, a flag of `offbook serve`."""


# ── a turn made ready ─────────────────────────────────────────────────────────────────────────


class TurnTokens(Value, frozen=True):
    """What the two sections take, by our estimate, and what `recall` may take."""

    memory: int
    recall: int
    budget: int


class PreparedTurn(Sparse, frozen=True):
    """What the agent should have in mind. `memory` belongs at the start of the context and stays the same, byte for
    byte, until the next swap; `recall` belongs at its end, in the user's turn, and is of this turn only."""

    memory: str = msgspec.field()
    recall: str = msgspec.field()
    tokens: TurnTokens = msgspec.field()
    entries: list[MemoryEntry] = msgspec.field()
    """What came to mind, in order of time; a score of -1 is only the newest there is (A3)."""
    intent: Intent = msgspec.field()
    degraded: list[str] = msgspec.field()
    """What was unavailable, and why."""
    parts: list[TurnPart] = msgspec.field(default_factory=list)
    """With `explain`."""
    forgets: int | None = None
    """How often something of the agent's was forgotten for good. Another number than before: a host that keeps words of
    it lets them go."""


class Handed(Value, frozen=True):
    """Which messages a context shows word for word; what came after `through` does too."""

    spans: list[Span]
    through: int

    def shows(self, seq: int) -> bool:
        return seq > self.through or any(span.first_seq <= seq <= span.last_seq for span in self.spans)


class TurnMemory(Value, frozen=True):
    """A stable section as it was first given: the same until the next swap."""

    epoch: str
    """Of which generation of the context: another one, and the section is made anew."""
    at: datetime
    text: str
    tokens: int
    parts: list[TurnPart]


# ── what a host's own search is given besides ─────────────────────────────────────────────────


class Sparseness(Value, frozen=True):
    """A search result with at most so many hits, or at most so many characters, is sparse."""

    results: int
    chars: int


class Enrichment(Value, frozen=True):
    """What a sparse result of the host's own memory search is enriched with, asked for before the search runs, so that
    a synchronous hook has it at hand. `text` is empty where nothing comes to mind."""

    text: str
    entries: list[MemoryEntry]
    tokens: int
    sparse: Sparseness
    degraded: list[str]
