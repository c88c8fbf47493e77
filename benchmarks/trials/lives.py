"""Random histories as they happen to a provider, and what is there of them afterwards."""

from __future__ import annotations

import asyncio
import random
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import NamedTuple, TypeVar

from benchmarks.trials.asked import Provider, whole_log
from benchmarks.trials.conserved import (
    cover_faults,
    expansion_faults,
    log_faults,
    replay_faults,
    shown_faults,
    swap_faults,
    tree_faults,
)
from benchmarks.trials.histories import History, Step, sized
from offbook.model.summary import SourceLine, SummaryView
from offbook.model.types import LogLine, Message, Scope, now

AGENTS = 4
AT_ONCE = 25
SIZES = (1, 50, 200, 700, 3_000, 12_000, 10**6)
SIZES_AFTER_RESTART = (200, 3_000)
LONGEST_PAUSE_SECONDS = 0.25
USED_TOKENS = 10**9
"""So that a swap is always due."""
LEAST_WINDOW_TOKENS = 100
"""In a smaller one there may be no room for a single message."""

T = TypeVar("T")


@dataclass
class Tally:
    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.counts += other.counts
        self.faults += other.faults


class Moment(NamedTuple):
    """What was in the agent's context then: what it had been handed, and the log from there to here."""

    at: datetime
    handed: Sequence[Message]
    after_seq: int
    last_seq: int
    generation: int


class Life:
    """One history, lived and then looked at."""

    def __init__(self, provider: Provider, history: History, tally: Tally) -> None:
        self._provider = provider
        self._history = history
        self._tally = tally
        self._chance = random.Random(f"life {history.seed}")
        self.scope = Scope(agent_id=f"agent-{history.seed % AGENTS}", session_id=history.session_id)
        self._tasks: list[list[Message]] = []
        self._acknowledged = self._sent = 0
        self._handed: tuple[Sequence[Message], int, int] = ((), 0, 0)
        self._moments: list[Moment] = []
        self.lines: list[LogLine] = []

    async def live(self) -> None:
        steps = {"say": self._say, "ask": self._ask, "swap": self._swap, "end": self._end, "start": self._start}
        steps |= {"again": self._again, "pause": self._pause}
        await self._guarded(self._all_of([partial(steps[step.kind], step) for step in self._history.steps]))

    async def reckon(self) -> None:
        await self._guarded(self._reckon())

    async def again(self, provider: Provider) -> None:
        """After a restart, while the background finds out what is left to do."""
        self._provider = provider
        await self._guarded(self._look_again())

    # ── what happens ──

    async def _say(self, step: Step) -> None:
        self._tasks += [[message for request in task for message in request] for task in step.tasks]
        self._sent += sum(len(request) for task in step.tasks for request in task)
        await asyncio.gather(*(self._say_one(task) for task in step.tasks), self._look_meanwhile())
        self._note_moment()

    async def _say_one(self, requests: Sequence[Sequence[Message]]) -> None:
        for messages in requests:
            receipt = await self._provider.say(self.scope, messages)
            if receipt.accepted + receipt.duplicates != len(messages) or receipt.conflicts:
                self._fault(f"{len(messages)} messages were answered with {receipt}")
            self._acknowledged += len(messages)
            self._count("messages", len(messages))

    async def _look_meanwhile(self) -> None:
        """A context while others write: of some moment in between."""
        await asyncio.sleep(self._chance.uniform(0, 0.02))
        least, max_chars = self._acknowledged, sized(self._chance)
        context = await self._provider.context(self.scope, max_chars)
        last_seq = context.covers.last_seq
        if not least <= last_seq <= self._sent:
            self._fault(f"a context covers {last_seq} messages, when there were {least} to {self._sent}")
        self._faults(cover_faults(context, self.scope, last_seq, max_chars))
        self._count("contexts while others write")

    async def _ask(self, step: Step) -> None:
        await self._look(step.number, await whole_log(self._provider, self.scope))

    async def _swap(self, step: Step) -> None:
        swap = await self._provider.swap(self.scope, USED_TOKENS, step.number)
        if not self._acknowledged or (not swap.swapped and step.number < LEAST_WINDOW_TOKENS):
            return
        again = await self._provider.swap(self.scope, USED_TOKENS, step.number)
        self._faults(swap_faults(swap, again, self._acknowledged))
        self._handed = (swap.messages, self._acknowledged, swap.generation)
        self._note_moment()
        self._count("swaps")

    async def _end(self, _step: Step) -> None:
        await self._provider.end(self.scope)
        self._count("ends of a session")

    async def _start(self, step: Step) -> None:
        context = await self._provider.start(self.scope, step.number)
        if (context is None) == bool(self._acknowledged):
            self._fault(f"a start with {self._acknowledged} messages was answered with {context}")
        elif context is not None:
            lines = await whole_log(self._provider, self.scope)
            self._faults(shown_faults(context, self.scope, lines, step.number))
            self._handed = (context.messages, self._acknowledged, context.generation)
            self._note_moment()
            self._count("starts of a session")

    async def _again(self, _step: Step) -> None:
        """What a host sends that has lost an answer, or that empties its context before it compacts."""
        known = [message for task in self._tasks for message in task]
        first = self._chance.randrange(len(known)) if known else 0
        given = known[first : first + self._chance.choice((1, 5, 100))]
        if not given:
            return
        if self._chance.random() < 0.5:
            receipt = await self._provider.say(self.scope, given)
            if receipt.accepted or receipt.duplicates != len(given):
                self._fault(f"{len(given)} messages sent again were answered with {receipt}")
        elif saved := await self._provider.save(self.scope, given):
            self._fault(f"of {len(given)} messages that were there, {saved} were saved again")
        self._count("messages sent again", len(given))

    async def _pause(self, _step: Step) -> None:
        await asyncio.sleep(self._chance.uniform(0, LONGEST_PAUSE_SECONDS))

    # ── what is there ──

    async def _reckon(self) -> None:
        self.lines = await whole_log(self._provider, self.scope)
        self._faults(log_faults(self.lines, self._tasks))
        for max_chars in (*SIZES, sized(self._chance)):
            await self._look(max_chars, self.lines)
        for moment in [*self._moments, self._moment()]:
            replay = await self._provider.replay(self.scope, moment.at)
            since = [line.message for line in self.lines[moment.after_seq : moment.last_seq]]
            self._faults(replay_faults(replay, [*moment.handed, *since], moment.generation))
            self._count("replays")
        self._count("histories")

    async def _look(self, max_chars: int, lines: Sequence[LogLine]) -> None:
        context = await self._provider.context(self.scope, max_chars)
        self._faults(shown_faults(context, self.scope, lines, max_chars))
        self._count("contexts")
        self._count("parts of contexts", len(context.parts))

    async def _look_again(self) -> None:
        self._faults(log_faults(await whole_log(self._provider, self.scope), self._tasks))
        for size in SIZES_AFTER_RESTART:
            await self._look(size, self.lines)
            self._count("contexts after a restart")

    def _moment(self) -> Moment:
        handed, after_seq, generation = self._handed
        return Moment(now(), handed, after_seq, self._acknowledged, generation)

    def _note_moment(self) -> None:
        self._moments.append(self._moment())

    # ── how it is told ──

    def _count(self, what: str, number: int = 1) -> None:
        self._tally.counts[what] += number

    def _fault(self, what: str) -> None:
        self._tally.faults.append(f"seed {self._history.seed}: {what}")

    def _faults(self, found: Sequence[str] | Iterator[str]) -> None:
        for one in found:
            self._fault(one)

    async def _all_of(self, steps: Sequence[Callable[[], Awaitable[None]]]) -> None:
        for step in steps:
            await step()

    async def _guarded(self, work: Awaitable[None]) -> None:
        try:
            await work
        # Whatever it is, the other histories go on, and it is a fault of this one.
        except Exception:  # noqa: BLE001
            self._fault(f"raised {traceback.format_exc(limit=-4)}")


async def reckon_summaries(provider: Provider, lives: Sequence[Life], tally: Tally) -> None:
    """Of each agent: all of its summaries, and what each expands to."""
    for agent_id in sorted({life.scope.agent_id for life in lives}):
        logs = {life.scope.session_id: life.lines for life in lives if life.scope.agent_id == agent_id}
        summaries: list[SummaryView] = []
        before: str | None = None
        while True:
            page = await provider.summaries(agent_id, before)
            summaries += page.summaries
            before = page.next
            if before is None:
                break
        found = list(tree_faults(summaries, logs))
        expanded = await some_at_once([partial(_expanded, provider, agent_id, summary) for summary in summaries])
        for summary, lines in zip(summaries, expanded, strict=True):
            found += expansion_faults(summary, lines, logs)
            tally.counts[f"summaries of level {summary.level}"] += 1
            tally.counts["summaries across sessions"] += len(summary.spans) > 1
        tally.faults += [f"{agent_id} of seeds {', '.join(logs)}: {one}" for one in found]


async def _expanded(provider: Provider, agent_id: str, summary: SummaryView) -> list[SourceLine]:
    lines: list[SourceLine] = []
    limit = random.Random(summary.id).choice((1, 3, 20, 1_000)) if summary.source_messages < 60 else 1_000
    after: str | None = None
    while True:
        page = await provider.expand(agent_id, summary.id, after, limit)
        lines += page.messages
        after = page.next
        if after is None:
            return lines


async def some_at_once(works: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    """Many, so that they share transactions and meet each other; not all, or each would wait for all the others."""
    places = asyncio.Semaphore(AT_ONCE)

    async def do(work: Callable[[], Awaitable[T]]) -> T:
        async with places:
            return await work()

    return await asyncio.gather(*map(do, works))
