"""What every format is read into: conversations, each with its messages in order, ready to be sent; and the report of
what became of them, in numbers and names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

MESSAGES_AT_A_TIME = 500
BYTES_AT_A_TIME = 4 * 1024 * 1024
"""A quarter of what a provider takes in one request by default."""
NAMED_AT_MOST = 1_000
"""Problems that are told one by one; all are counted."""
UNKNOWN_TIME = "neither ISO 8601 nor a number since 1970; what was said is taken, as of the time beside it or of now"


class Damage(NamedTuple):
    """What could not be read. `is_whole`: not one entry but a file, or all that follows in it."""

    where: str
    reason: str
    is_whole: bool = False


class Ready(NamedTuple):
    """A message as `onMessage` takes it. Its `id` is that of its origin, so that it is stored once however often it is
    told."""

    wire: dict[str, Any]
    at: datetime | None
    size_bytes: int
    where: str
    pinned: bool = False


Damaged = Callable[[Damage], None]


class Conversation(NamedTuple):
    """One session of one agent. `messages` reads it anew each time, a message at a time, and tells of damage."""

    agent_id: str
    key: str
    size_bytes: int
    messages: Callable[[Damaged], Iterator[Ready]]


def batches(found: Iterator[Ready]) -> Iterator[list[Ready]]:
    batch: list[Ready] = []
    size = 0
    for ready in found:
        if batch and (len(batch) >= MESSAGES_AT_A_TIME or size + ready.size_bytes > BYTES_AT_A_TIME):
            yield batch
            batch, size = [], 0
        batch.append(ready)
        size += ready.size_bytes
    if batch:
        yield batch


# ── the report ──


class AgentReport(msgspec.Struct, kw_only=True, rename="camel"):
    agent_id: str
    sessions: int = 0
    messages: int = 0
    already_there: int = 0
    new: int = 0
    """Stored; in a dry run: to be stored."""
    unknown: int = 0
    """In a dry run without a provider that can say: there already or new."""
    before_since: int = 0
    forgotten: int = 0
    """Transcripts left out because the host was told to forget them."""
    incognito: int = 0
    """Transcripts left out because their sessions are incognito."""
    skipped: int = 0
    conflicts: int = 0


class Late(msgspec.Struct, kw_only=True, rename="camel"):
    """A session that held newer messages when these came."""

    agent_id: str
    session_id: str
    messages: int


class Problem(msgspec.Struct, kw_only=True, rename="camel"):
    where: str
    reason: str


class LeftOut(msgspec.Struct, kw_only=True, rename="camel"):
    """What the source holds and Offbook does not take, and why."""

    what: str
    why: str
    count: int = 1


class ImportReport(msgspec.Struct, kw_only=True, rename="camel"):
    state: str
    is_dry_run: bool = msgspec.field(name="dryRun")
    agents: list[AgentReport] = []
    came_after_newer: list[Late] = []
    problems: list[Problem] = []
    left_out: list[LeftOut] = []
    unreadable: int = 0
    """Files and databases that could not be read, or not to their end."""
    changed_while_read: list[str] = []
    seconds: float = 0.0

    def problem(self, where: str, reason: str, *, is_first: bool = False) -> None:
        """`is_first`: before all others."""
        if len(self.problems) < NAMED_AT_MOST or is_first:
            self.problems.insert(0 if is_first else len(self.problems), Problem(where=where, reason=reason))

    def leave(self, what: str, why: str, count: int = 1) -> None:
        """Counted by kind: a file may hold a million of them."""
        for known in self.left_out:
            if (known.what, known.why) == (what, why):
                known.count += count
                return
        self.left_out.append(LeftOut(what=what, why=why, count=count))

    def note_time(self, given: Any, understood: datetime | None) -> None:
        self.unknown_times(int(is_unknown_time(given, understood)))

    def unknown_times(self, count: int) -> None:
        if count:
            self.leave("times that are not understood", UNKNOWN_TIME, count)

    def agent(self, agent_id: str) -> AgentReport:
        for known in self.agents:
            if known.agent_id == agent_id:
                return known
        self.agents.append(AgentReport(agent_id=agent_id))
        return self.agents[-1]

    def total(self, name: str) -> int:
        return sum(getattr(agent, name) for agent in self.agents)


def is_unknown_time(given: Any, understood: datetime | None) -> bool:
    """A time that is missing is told by nobody, one that is lost should be."""
    return understood is None and given is not None and given != ""
