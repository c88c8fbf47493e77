"""Events of reads for which there was no room: kept in memory, and written as soon as there is some.

A full disk refuses what is said; it must not take away what can be read. In the chain each of these says when it
happened (`heldSince`), and after them one event an agent says how many reads there were, and from when to when. Of more
than `MOST_HELD` only that is known, and a kill loses them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

import msgspec

from offbook.log.sql.ledger import Ledger
from offbook.model.types import AuditDraft, now

MOST_HELD = 1_000
"""Of all agents together: about 2 MB."""
HELD_VERB = "audit/held"
HELD_SINCE = "heldSince"


class ReadEvent(NamedTuple):
    """One event that changes nothing but the counts of what was retrieved."""

    agent_id: str
    draft: AuditDraft
    retrieved: Sequence[int] = ()
    """Places of messages."""


@dataclass
class HeldOfAgent:
    first: datetime
    last: datetime
    reads: int = 0
    events: list[tuple[datetime, ReadEvent]] = field(default_factory=list)


class HeldEvents:
    def __init__(self) -> None:
        self._agents: dict[str, HeldOfAgent] = {}

    @property
    def reads(self) -> int:
        return sum(agent.reads for agent in self._agents.values())

    def hold(self, event: ReadEvent) -> bool:
        """False where there are too many agents to count for."""
        at = now()
        agent = self._agents.get(event.agent_id)
        if agent is None:
            if len(self._agents) >= MOST_HELD:
                return False
            agent = self._agents[event.agent_id] = HeldOfAgent(first=at, last=at)
        agent.last, agent.reads = at, agent.reads + 1
        if sum(len(each.events) for each in self._agents.values()) < MOST_HELD:
            agent.events.append((at, event))
        return True

    def write(self, ledger: Ledger) -> None:
        for agent_id, agent in self._agents.items():
            for at, event in agent.events:
                details = event.draft.details | {HELD_SINCE: at.isoformat()}
                draft = msgspec.structs.replace(event.draft, details=details)
                ledger.recall.recalled(agent_id, event.retrieved, draft)
            told = {"reason": "store-full", "reads": agent.reads, "written": len(agent.events)}
            told |= {"from": agent.first.isoformat(), "to": agent.last.isoformat()}
            ledger.record(agent_id, AuditDraft(verb=HELD_VERB, actor="offbook", details=told))

    def keep_only(self, is_ours: Callable[[str], bool]) -> None:
        """Those of other agents cannot be written here any more."""
        self._agents = {agent_id: held for agent_id, held in self._agents.items() if is_ours(agent_id)}

    def clear(self) -> None:
        self._agents.clear()
