"""The nouns of maintenance: tasks, what each did, and how each is."""

from __future__ import annotations

import msgspec

from offbook.model.status import TaskHealth
from offbook.model.types import Sparse, Value


class TaskRun(Sparse, frozen=True):
    """One run of one task: for one agent, or for all where it is not an agent's."""

    task: str
    did: dict[str, int] = msgspec.field()
    seconds: float = msgspec.field()
    agent_id: str | None = None
    error: str | None = None
    """What went wrong, and what to do; it is tried again by itself."""
    waits: list[str] = msgspec.field(default_factory=list)
    """What waits for a person, the first few: a page to be mended."""


class MaintenanceReport(Value, frozen=True):
    agent_id: str
    runs: list[TaskRun]
    health: list[TaskHealth]
