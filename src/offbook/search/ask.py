"""One question to memory, and what one agent's memory had of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from offbook.log.tiers import OffloadedThrough
from offbook.model.memory_entry import Hold, LeftOut, Reach
from offbook.model.types import Scope, Value
from offbook.search.resolve import ResolvedHit
from offbook.search.times import QueryTimes

if TYPE_CHECKING:
    from offbook.search.ranking import Hit, Ranking


class Ask(Value, frozen=True):
    """One question to memory."""

    scope: Scope
    query: str
    limit: int = 5
    reach: Reach = "agent"
    at: datetime | None = None
    include_superseded: bool = False
    explain: bool = False
    prefers_hot: bool = False
    only_said: bool = False
    """Without what the host told the agent (`system`)."""
    seconds: float | None = None
    """How long it may take in all, where somebody has a deadline: what is slow is done without in time."""
    others: tuple[str, ...] = ()
    """Agents whose memory may be searched too."""


@dataclass(frozen=True)
class Found:
    """What one agent's memory had."""

    agent_id: str
    times: QueryTimes
    ranking: Ranking
    hits: dict[int, Hit]
    """By place."""
    resolved: list[ResolvedHit]
    """What is to be shown, best first; some of it was not found itself but replaced what was."""
    holds: Mapping[int, Hold]
    """By place, of what stands; of others there may be none."""
    offloaded: OffloadedThrough | None
    """Whatever arrived by then, and is not pinned, is cold."""
    left_out: list[LeftOut] = field(default_factory=list)
