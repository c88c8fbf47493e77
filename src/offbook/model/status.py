"""What is counted and reported: status, health, capture reconciliation."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from offbook.model.types import AuditEvent, AuditHead, Session, Sparse, Value


class CaptureClaim(Value, frozen=True):
    """What a client says it has sent: this delivery holds its messages `first` … `last` of `sent` so far."""

    client: Annotated[str, Meta(min_length=1, max_length=128)]
    first: int
    last: int
    sent: int


class Capture(Value, frozen=True):
    """What one client says it sent to one agent, against what arrived."""

    client: str
    sent: int
    received: int
    missing: int
    waiting: int
    last_seen: datetime


class Counts(Value, frozen=True):
    messages: int = 0
    chars: int = 0
    sessions: int = 0
    noise: int = 0
    duplicates: int = 0
    conflicts: int = 0
    redactions: int = 0
    blobs: int = 0
    audit_events: int = 0


class Health(Value, frozen=True):
    """`backlog` counts derived work still to do; 0 when all is caught up."""

    ok: bool
    latency_ms: float
    version: str
    store: str
    model: str | None
    backlog: int


class Tiers(Value, frozen=True):
    hot: int
    warm: int
    cold: int


class TierHours(Value, frozen=True):
    """How long a message stays hot: at first, longer for each retrieval, at most."""

    base: float
    bump: float
    most: float


class Costs(Value, frozen=True):
    """What models have cost so far."""

    tokens: int
    dollars: float


class CaptureReport(Value, frozen=True):
    """What clients say they sent against what arrived. `missing` above 0 is a loss to look into."""

    sent: int
    received: int
    missing: int
    waiting: int
    clients: list[Capture]


class IndexStatus(Sparse, frozen=True):
    """How far an agent's index is: `entries` can be found by text, `embedded` of them by meaning too."""

    entries: int = msgspec.field()
    embedded: int = msgspec.field()
    waiting: int = msgspec.field()
    """Messages and vectors still to be taken in."""
    model: str | None = None
    trouble: str | None = None
    """Why there are no embeddings."""
    reader: str | None = None
    """Who reads what was found once more, for a deep recall; nobody by default."""
    reader_trouble: str | None = None
    """Why it did not the last time."""


class DailySpending(Value, frozen=True):
    """What the model that writes has used today (UTC), for all agents, and the most it may use."""

    tokens: int
    dollars: float
    max_tokens: int
    max_dollars: float


class SummaryStatus(Sparse, frozen=True):
    """How far an agent's summaries are."""

    counts: dict[str, int] = msgspec.field()
    """How many there are, by level."""
    waiting: int = msgspec.field()
    """Sessions still to be looked at, and what was asked to be written again."""
    summarizers: list[str] = msgspec.field()
    """Who writes them, in the order they are tried."""
    troubles: dict[str, str] = {}
    """Why one of them is not used now."""
    spending: DailySpending | None = None
    """Of the first of them; none where that is no model."""


class TaskHealth(Sparse, frozen=True):
    """How a task is: when it last worked, and since when it does not."""

    task: str
    runs: int
    failures: int
    """In a row."""
    did: dict[str, int]
    """Since the provider started."""
    last_run: datetime | None = None
    last_success: datetime | None = None
    next_run: datetime | None = None
    error: str | None = None
    waits: list[str] = []
    """What waits for a person, the first few: a page to be mended."""


class BackupStatus(Sparse, frozen=True):
    """A backup that holds the agent's memory."""

    file: str
    """Its name, without its folder."""
    made_at: datetime
    in_data_folder: bool
    """Else it was written elsewhere, and may be gone by now."""
    messages: int | None = None
    """Of the agent's; known of those in the data folder."""


class Status(Value, frozen=True):
    agent_id: str
    version: str
    store: str
    started_at: datetime
    counts: Counts
    tiers: Tiers
    pinned: int
    retrievals: int
    index: IndexStatus
    summaries: SummaryStatus
    backlog: int
    costs: Costs
    capture: CaptureReport
    sessions: list[Session]
    agents: list[str]
    hot_hours: TierHours | None = None
    maintenance: list[TaskHealth] = []
    lessons: dict[str, int] = {}
    """How many were learnt, by what became of them."""
    forgets: int = 0
    """How often something was forgotten for good."""
    encrypted: bool = False
    """Whether the data folder is encrypted."""
    backups: list[BackupStatus] = []
    """The newest first; of a memory in a file."""
    unreadable_backups: int = 0
    """In the data folder, whoever's they are."""


class AuditReport(Value, frozen=True):
    """`verified`: the end of the chain is unbroken and ends in `head`."""

    events: list[AuditEvent]
    head: AuditHead
    verified: bool


class Happened(Value, frozen=True):
    """What came to the audit chain up to event `seq`, and what derived work is still to do."""

    seq: int
    events: list[AuditEvent]
    backlog: int
