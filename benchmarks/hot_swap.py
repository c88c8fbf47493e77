"""An agent that works all day: what it waits for compaction, and what it still knows right after."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import uvloop

from benchmarks.provider import running_in
from benchmarks.results import Bar, Cell, Findings, Section
from benchmarks.run import Run
from benchmarks.samples import percentile
from benchmarks.working_day import (
    KEPT_MESSAGES,
    MODEL_SECONDS,
    READ_TOKENS_PER_SECOND,
    SUMMARY_TOKENS,
    THRESHOLD,
    WINDOW,
    WRITTEN_TOKENS_PER_SECOND,
    Compacted,
    Fact,
    by_itself,
    facts_of,
    first_sentences,
    known_share,
    our_digest,
    turns_of,
)
from offbook.client.async_client import AsyncClient
from offbook.client.hot_swap import HotSwapSession
from offbook.model.content import render
from offbook.model.types import Message
from offbook.models.tokens import CHARS_PER_TOKEN

TITLE = "An agent of thousands of turns in a window of 200,000 tokens: hot swap against compacting by itself"

AGENT, SESSION = "worker", "all-day"
MOST_SWAP_MS = 50.0
SETTLE_EVERY = 20
"""Turns after which the daemon may finish what it has to do: less than the time that a model gives it."""
NEARLY_DUE = 0.97
"""Of the threshold: from here on after each turn, since the swap finds what the last one left."""
ENVIRON = {"OFFBOOK_EMBEDDING_MODEL": "none"}
"""So that the cores are the agent's and the daemon's; recall goes by text."""
RECALLED = 5


class Ours(NamedTuple):
    swaps: list[Compacted]
    call_ms: list[float]
    """Of every call for the messages in which nothing was swapped."""
    record_ms: list[float]
    fallbacks: dict[str, int]
    own_compactions: int
    in_context: float
    recalled: float
    expanded: float
    seconds: float


# ── hot swap ──────────────────────────────────────────────────────────────────────────────────


class Agent:
    """With a provider. Its model's 5 seconds are not waited for; everything of the provider's is."""

    def __init__(self, memory: AsyncClient, facts: Sequence[Fact]) -> None:
        self._memory = memory
        self._facts = facts
        self._session = HotSwapSession(memory, SESSION, context_window=WINDOW)
        self._waited_seconds = 0.0
        self.swaps: list[Compacted] = []
        self.call_ms: list[float] = []
        self.record_ms: list[float] = []

    async def work(self, run: Run, turns: int) -> Ours:
        began = time.monotonic()
        await self._session.start()
        for turn, messages in enumerate(turns_of(turns, self._facts), 1):
            # A tool is waited for by the model: what it is given next has the result.
            for message in messages[:-1]:
                self._add(message)
            await self._ask(turn)
            self._add(messages[-1])
            if turn % SETTLE_EVERY == 0 or self._session.used_tokens >= WINDOW * THRESHOLD * NEARLY_DUE:
                await self._settle(MODEL_SECONDS)
            run.progress("turns with hot swap", turn, turns)
        stats = self._session.stats
        recalled, expanded = await self._got_back()
        ours = Ours(
            swaps=self.swaps,
            call_ms=self.call_ms,
            record_ms=self.record_ms,
            fallbacks=dict(stats.fallbacks),
            own_compactions=stats.compactions,
            in_context=known_share(await self._session.messages(), self._facts),
            recalled=recalled,
            expanded=expanded,
            seconds=time.monotonic() - began,
        )
        await self._session.close()
        return ours

    def _add(self, message: Message) -> None:
        started = time.perf_counter()
        self._session.add(message)
        self.record_ms.append((time.perf_counter() - started) * 1_000)

    async def _ask(self, turn: int) -> None:
        """A swap that did not come in time is taken by a later call: both are waited for."""
        before, stats = self._session.used_tokens, self._session.stats
        started = time.perf_counter()
        messages = await self._session.messages()
        seconds = time.perf_counter() - started
        if self._session.stats.waited_ms == stats.waited_ms and self._session.stats.swaps == stats.swaps:
            self.call_ms.append(seconds * 1_000)
            return
        self._waited_seconds += seconds
        if self._session.stats.swaps > stats.swaps:
            known = known_share(messages, [fact for fact in self._facts if fact.turn <= turn])
            self.swaps.append(Compacted(turn, before, self._session.used_tokens, self._waited_seconds, known))
            self._waited_seconds = 0.0

    async def _settle(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        await self._memory.settle(seconds)
        while (await self._memory.ping())["backlog"] and time.monotonic() < until:
            await asyncio.sleep(0.02)

    async def _got_back(self) -> tuple[float, float]:
        """The share of all facts that a recall finds, and that an expansion of what stands for them has."""
        await self._settle(60)
        recalled = [await self._recalls(fact) for fact in self._facts]
        context = await self._memory.get_compressed_context(SESSION, int(WINDOW * 0.4) * CHARS_PER_TOKEN)
        found = []
        for part in context.parts:
            span = None if part.id is not None else (part.first_seq, part.last_seq)
            found.append(await self._expanded(part.id, span))
        text = "\n".join(found)
        return fmean(recalled), fmean(fact.identifier in text for fact in self._facts)

    async def _recalls(self, fact: Fact) -> bool:
        found = await self._memory.recall(SESSION, fact.question, limit=RECALLED)
        return any(fact.identifier in entry.text for entry in found.entries)

    async def _expanded(self, summary_id: str | None, span: tuple[int, int] | None) -> str:
        texts: list[str] = []
        after: str | None = None
        while True:
            page = await self._memory.expand(summary_id, span=span, session_id=SESSION, after=after, limit=1_000)
            texts += [render(line.message) for line in page.messages]
            after = page.next
            if after is None:
                return "\n".join(texts)


async def _hot_swap(run: Run, home: Path, turns: int, facts: Sequence[Fact]) -> Ours:
    with running_in(home, **ENVIRON) as daemon:
        async with AsyncClient(daemon.socket_endpoint, agent_id=AGENT, home=home, timeout_seconds=60) as memory:
            return await Agent(memory, facts).work(run, turns)


# ── told ──────────────────────────────────────────────────────────────────────────────────────


def measure(run: Run) -> Findings:
    turns = run.choose(700, 5_000)
    facts = facts_of(turns, run.choose(40, 200))
    ours = uvloop.run(_hot_swap(run, run.folder / "hot-swap", turns, facts))
    run.say("the same turns with an agent that compacts by itself")
    built_in = {
        "by itself, first sentences": by_itself(turns, facts, first_sentences),
        "by itself, our digest in 2,000 tokens": by_itself(turns, facts, our_digest),
    }
    return _findings(run, turns, facts, ours, built_in)


def _findings(
    run: Run,
    turns: int,
    facts: Sequence[Fact],
    ours: Ours,
    built_in: dict[str, tuple[list[Compacted], float]],
) -> Findings:
    swap_ms = [swap.waited_seconds * 1_000 for swap in ours.swaps]
    p99 = percentile(swap_ms, 99) if swap_ms else 0.0
    waited = sum(one.waited_seconds for one in built_in["by itself, first sentences"][0])
    rows = [_row("hot swap", ours.swaps, ours.in_context, ours.recalled, ours.expanded)]
    rows += [_row(how, compactions, at_end, 0.0, 0.0) for how, (compactions, at_end) in built_in.items()]
    return Findings(
        bars=[
            Bar(
                f"times the agent waited for a model to compact, in {turns:,} turns",
                "0",
                f"{ours.own_compactions} in {len(ours.swaps)} swaps",
                ours.own_compactions == 0 and bool(ours.swaps),
            ),
            Bar(
                "p99 of a swap, as the agent waits for it",
                f"< {MOST_SWAP_MS:g} ms",
                f"{p99:.1f} ms",
                None if run.is_quick else bool(swap_ms) and p99 < MOST_SWAP_MS,
            ),
            Bar(
                "the agent waits for swaps in all; compacting by itself",
                "none",
                f"{sum(swap_ms):.0f} ms; {waited:.0f} s",
                None,
            ),
            Bar(
                "facts told once that can be got back at the end, by recall or by expanding",
                "none",
                f"{ours.recalled:.1%}, {ours.expanded:.1%}",
                None,
            ),
        ],
        rows=rows,
        sections=[
            Section("Each swap", [_swap_row(number, swap) for number, swap in enumerate(ours.swaps, 1)]),
            Section("What the agent calls, real milliseconds", _calls(ours, swap_ms)),
        ],
        notes=[
            f"{turns:,} turns of a question, in two of five a tool's call and what it printed, and an answer; "
            f"{len(facts)} references, each told once. The model's {MODEL_SECONDS:g} s for each answer are a number "
            f"here, not a pause: the daemon, which would have them, may finish its work every {SETTLE_EVERY} turns and "
            f"before a swap. The run took {ours.seconds:.0f} s for {turns * MODEL_SECONDS / 3_600:.1f} hours of work.",
            f"By itself: at the same threshold of {THRESHOLD:.0%} the agent stops and has its model write "
            f"{SUMMARY_TOKENS:,} tokens, then goes on with them and its last {KEPT_MESSAGES} messages. Assumed: "
            f"{MODEL_SECONDS:g} s, and {READ_TOKENS_PER_SECOND:,} tokens read and {WRITTEN_TOKENS_PER_SECOND} written "
            "a second. Its summaries are stand-ins, no model wrote them: first sentences of messages evenly spread, or "
            "what our own extractive summarizer makes of all of it. A model would write better prose; how many of "
            "the references it would keep is not measured here.",
            "Known: the share of the references told so far that stand in the context word for word right after. Got "
            f"back by recall: among the first {RECALLED} entries, by text only, asked without the reference. By "
            "expanding: in the messages behind the parts of the last context.",
            f"What the agent went on with instead of a swap: {ours.fallbacks or 'nothing, ever'}.",
        ],
    )


def _row(
    how: str, compactions: Sequence[Compacted], at_end: float, recalled: float, expanded: float
) -> dict[str, Cell]:
    waits = [one.waited_seconds for one in compactions] or [0.0]
    return {
        "how": how,
        "compactions": len(compactions),
        "waited s, in all": sum(waits),
        "longest s": max(waits),
        "tokens before": fmean([one.tokens_before for one in compactions] or [0]),
        "tokens after": fmean([one.tokens_after for one in compactions] or [0]),
        "known right after %": 100 * fmean([one.known for one in compactions] or [0]),
        "known at the end %": 100 * at_end,
        "recalled %": 100 * recalled,
        "expanded %": 100 * expanded,
    }


def _swap_row(number: int, swap: Compacted) -> dict[str, Cell]:
    return {
        "swap": number,
        "turn": swap.turn,
        "ms": swap.waited_seconds * 1_000,
        "tokens before": swap.tokens_before,
        "tokens after": swap.tokens_after,
        "known %": 100 * swap.known,
    }


def _calls(ours: Ours, swap_ms: list[float]) -> list[dict[str, Cell]]:
    calls = {"add (record)": ours.record_ms, "messages, nothing due": ours.call_ms, "messages, with a swap": swap_ms}
    return [
        {
            "call": name,
            "calls": len(samples),
            "sum ms": sum(samples),
            "p50 ms": percentile(samples, 50),
            "p99 ms": percentile(samples, 99),
            "most ms": max(samples),
        }
        for name, samples in calls.items()
        if samples
    ]
