"""What the user gets: each item's conversations fed to an agent of its own, and a new session's first turn."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.memory.items import Item
from offbook.api.memory import Memory
from offbook.model.lesson import Lesson
from offbook.model.memory_entry import MemoryEntry
from offbook.model.turn import ContinuityState, PreparedTurn
from offbook.model.types import Message

POLL_SECONDS = 0.1
LONGEST_WAIT_SECONDS = 900.0
MOST_TIMES_ASKED = 50
NEW_SESSION = "now"
OPENING_KINDS = frozenset(("session", "handover", "topics"))
GOALS_KIND = "working state"


@dataclass(frozen=True)
class Seen:
    """A turn, and what else the verbs tell about the prompt."""

    turn: PreparedTurn
    hits: list[MemoryEntry]
    """Of `recall`, as it is asked by default."""
    with_superseded: list[MemoryEntry]
    """Of `recall`, with what gave way."""
    lessons: list[Lesson]
    state: ContinuityState
    places: dict[str, str] = field(default_factory=dict)
    """The turn's text by where it stands: recall, page, opening (handover) and goals."""

    @property
    def text(self) -> str:
        return f"{self.turn.memory}\n{self.turn.recall}"

    def state_text(self) -> str:
        records = [record.text for session in self.state.working for record in session.records]
        return "\n".join([*(anchor.text for anchor in self.state.anchors), *records])


def tell(what: str) -> None:
    print(f"  {what}", file=sys.stderr, flush=True)


# ── feeding ──


async def feed(memory: Memory, items: Sequence[Item]) -> None:
    for item in items:
        for number, session in enumerate(item.sessions, 1):
            await store(memory, item.id, f"session-{number}", session.messages())


async def store(memory: Memory, agent: str, session: str, messages: Sequence[Message]) -> None:
    scope = memory.scope(session, agent)
    receipt = await memory.on_message(scope, messages)
    assert receipt.accepted == len(messages), receipt
    await memory.session_end(scope)


async def settle(memory: Memory, agents: Sequence[str], *, has_model: bool) -> None:
    """Until the background has nothing left to do, the tasks of maintenance included."""
    await _quiet(memory, agents, has_model=has_model)
    for number, agent in enumerate(agents, 1):
        report = await memory.maintain(agent)
        if failed := [run for run in report.runs if run.error is not None]:
            raise RuntimeError(f"{agent}: {failed}")
        if number % 50 == 0:
            tell(f"maintained {number} of {len(agents)}")
    await _quiet(memory, agents, has_model=has_model)


async def _quiet(memory: Memory, agents: Sequence[str], *, has_model: bool) -> None:
    """`backlog` is 0 also while news are gathered, so each index is asked as well."""
    until = time.monotonic() + LONGEST_WAIT_SECONDS
    told = time.monotonic()
    left = list(agents)
    while left:
        backlog = (await memory.ping()).backlog
        if not backlog:
            index = (await memory.status(left[-1])).index
            if index.entries and not (has_model and index.waiting):
                left.pop()
                continue
            if index.trouble and has_model:
                raise RuntimeError(f"{left[-1]} is not indexed: {index.trouble}")
        if time.monotonic() > until:
            raise RuntimeError(f"the background is not done: {backlog} left, {left[-1]} not indexed")
        if time.monotonic() - told > 5:
            tell(f"in the background: {backlog} left")
            told = time.monotonic()
        await asyncio.sleep(POLL_SECONDS)


# ── asking ──


async def seen(memory: Memory, item: Item, *, has_model: bool) -> Seen:
    turn = await prepared(memory, item.id, item.prompt, has_model=has_model)
    return Seen(
        turn=turn,
        hits=await _hits(memory, item, has_model=has_model),
        with_superseded=await _hits(memory, item, has_model=has_model, include_superseded=True),
        lessons=(await memory.lessons(item.id, limit=200)).lessons,
        state=await memory.state(item.id),
        places=_places(turn),
    )


async def prepared(
    memory: Memory, agent: str, prompt: str, *, has_model: bool, window: int | None = None
) -> PreparedTurn:
    """As a preview, so that it can be asked again where the machine was too busy for the deadline."""
    scope = memory.scope(NEW_SESSION, agent)
    for _ in range(MOST_TIMES_ASKED):
        turn = await memory.prepare_turn(scope, prompt, context_window=window, explain=True, preview=True)
        if not _is_late(turn.degraded, has_model=has_model):
            return turn
        await asyncio.sleep(POLL_SECONDS)
    raise RuntimeError(f"{agent}, {prompt!r}: {turn.degraded}")


async def _hits(memory: Memory, item: Item, *, has_model: bool, include_superseded: bool = False) -> list[MemoryEntry]:
    scope = memory.scope(NEW_SESSION, item.id)
    for _ in range(MOST_TIMES_ASKED):
        found = await memory.recall(scope, item.prompt, include_superseded=include_superseded)
        if not _is_late(found.degraded, has_model=has_model):
            return found.entries
        await asyncio.sleep(POLL_SECONDS)
    raise RuntimeError(f"{item.id}, {item.prompt!r}: {found.degraded}")


def _is_late(degraded: Sequence[str], *, has_model: bool) -> bool:
    """Without a model it is said each time that there is none."""
    return bool(degraded) if has_model else any(not one.startswith("embedding") for one in degraded)


def _places(turn: PreparedTurn) -> dict[str, str]:
    """Where there are no parts, all of a section is its own."""
    if not turn.parts:
        return {"recall": turn.recall, "page": turn.memory, "opening": "", "goals": ""}
    places: dict[str, list[str]] = {"recall": [], "page": [], "opening": [], "goals": []}
    for part in turn.parts:
        if part.kind == GOALS_KIND:
            places["goals"].append(part.text)
        elif part.section == "memory":
            places["page"].append(part.text)
        else:
            places["opening" if part.kind in OPENING_KINDS else "recall"].append(part.text)
    return {place: "\n".join(texts) for place, texts in places.items()}
