"""What of an agent's prompts the provider of its model has cached, by where memory stands in them (A4)."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import groupby, islice, pairwise
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import msgspec
import uvloop

from benchmarks.prefix_cache import Account, Given, Read, cost, share
from benchmarks.prompt_prefix import CACHED_PRICE
from benchmarks.provider import running_in
from benchmarks.quality.data import Turn, load
from benchmarks.results import Bar, Cell, Findings, Section
from benchmarks.run import Run
from benchmarks.texts import text
from benchmarks.working_day import MODEL_SECONDS
from offbook.client.async_client import AsyncClient
from offbook.client.hot_swap import TROUBLES, HotSwapSession
from offbook.client.placement import placed
from offbook.model.settings.sections import MemoryCompaction
from offbook.model.turn import PreparedTurn
from offbook.model.types import Message, now
from offbook.models.tokens import CHARS_PER_TOKEN, estimate_tokens

TITLE = "What of a long conversation's prompts comes from the cache of a model's provider, by where memory stands"

OURS = "ours"
IN_SYSTEM = "recall in the system prompt"
REBUILT = "history rebuilt each turn"
WAYS = (OURS, IN_SYSTEM, REBUILT)
LEAST_SHARE = 0.9
WINDOWS = (200_000, 32_000)
SESSION = "conversation"
REMEMBER_SECONDS = 300.0
DATA = "RealMem"
INSTRUCTIONS_TOKENS = 8_000
"""As those of an agent with tools are."""
EARLIER_TURNS, SESSION_TURNS = 150, 25
"""Said in other sessions, days ago: without them there would be nothing to remember first."""


def _instructions() -> str:
    whole = text("instructions", INSTRUCTIONS_TOKENS * 8)
    return whole[: len(whole) * INSTRUCTIONS_TOKENS // estimate_tokens(whole)]


INSTRUCTIONS = _instructions()
"""The same in every prompt."""


class Exchange(NamedTuple):
    asked: str
    answered: str


class Swapped(NamedTuple):
    turn: int
    tokens_before: int
    tokens_after: int


class Talk(NamedTuple):
    """What a conversation came to in one of the ways."""

    openai: list[Read]
    anthropic: list[Read]
    turns: list[PreparedTurn]
    swaps: list[Swapped]
    troubles: list[str]
    """Why the agent went on without a swap that it had asked for."""
    prepare_ms: list[float]


# ── the conversation ──────────────────────────────────────────────────────────────────────────


def exchanges(run: Run) -> Iterator[Exchange]:
    """What was asked and what an assistant answered, one conversation after the other."""
    for conversation in load(run.data, DATA):
        turns = [turn for session in conversation.sessions for turn in session.turns]
        rows = [(who, "\n\n".join(turn.text for turn in row)) for who, row in groupby(turns, key=_role_of)]
        for (who, asked), (_, answered) in pairwise(rows):
            if who == "user":
                yield Exchange(asked, answered)


def _role_of(turn: Turn) -> str:
    return "assistant" if turn.speaker == "assistant" else "user"


class Conversation:
    """One agent's, with a real provider. The model's answers are those that were given, and it is not waited for."""

    def __init__(self, run: Run, memory: AsyncClient, window: int, agent_id: str) -> None:
        self._run = run
        self._memory = memory
        self._window = window
        self._agent_id = agent_id
        self._session = HotSwapSession(memory, SESSION, context_window=window, agent_id=agent_id)
        self._turns: list[PreparedTurn] = []
        self._prepare_ms: list[float] = []
        self._swaps: list[Swapped] = []

    async def remember(self, earlier: Sequence[Exchange]) -> None:
        """What was said in sessions before this one."""
        first = now() - timedelta(days=3)
        for at in range(0, len(earlier), SESSION_TURNS):
            spoken = [text for exchange in earlier[at : at + SESSION_TURNS] for text in exchange]
            messages = [
                Message(
                    role="assistant" if number % 2 else "user",
                    content=text,
                    ts=first + timedelta(hours=at / SESSION_TURNS * 8, minutes=number),
                )
                for number, text in enumerate(spoken)
            ]
            await self._memory.on_message(f"earlier-{at}", *messages, agent_id=self._agent_id)
        await self._settled(REMEMBER_SECONDS)

    async def swapped(self, said: Sequence[Exchange]) -> dict[str, Talk]:
        """With hot swap: recall at the end as we place it, and the same in the system prompt."""
        accounts = {OURS: Account(), IN_SYSTEM: Account()}
        await self._session.start()
        for number, exchange in enumerate(said, 1):
            self._session.add(("user", exchange.asked))
            messages = await self._messages(number)
            turn = await self._prepared(exchange.asked, self._session.used_tokens)
            system = [INSTRUCTIONS, turn.recall] if turn.recall else [INSTRUCTIONS]
            without = msgspec.structs.replace(turn, recall="")
            prompt_tokens = accounts[OURS].take(Given([INSTRUCTIONS], placed(messages, turn), turn.memory))
            accounts[IN_SYSTEM].take(Given(system, placed(messages, without), turn.memory))
            self._session.report_usage(prompt_tokens)
            self._session.add(("assistant", exchange.answered))
            await self._rest(number, len(said), "with hot swap")
        troubles = [f"{event.kind}: {event.reason}" for event in self._session.events if event.kind in TROUBLES]
        await self._session.close()
        return {way: self._talk(account, self._swaps, troubles) for way, account in accounts.items()}

    async def rebuilt(self, said: Sequence[Exchange]) -> Talk:
        """Without: in place of the history a context of the size that a swap leaves, made anew for each turn."""
        account = Account()
        room = int(self._window * MemoryCompaction().target_size) * CHARS_PER_TOKEN
        used = 0
        for number, exchange in enumerate(said, 1):
            self._memory.record(SESSION, ("user", exchange.asked), agent_id=self._agent_id)
            await self._memory.settle(MODEL_SECONDS)
            turn = await self._prepared(exchange.asked, used)
            context = await self._memory.get_compressed_context(SESSION, room, agent_id=self._agent_id)
            used = account.take(Given([INSTRUCTIONS], placed(context.messages, turn), turn.memory))
            self._memory.record(SESSION, ("assistant", exchange.answered), agent_id=self._agent_id)
            await self._rest(number, len(said), "rebuilt")
        return self._talk(account, [], [])

    def _talk(self, account: Account, swaps: list[Swapped], troubles: list[str]) -> Talk:
        return Talk(account.openai, account.anthropic, self._turns, swaps, troubles, self._prepare_ms)

    async def _messages(self, number: int) -> list[Message]:
        """What was said has arrived, as it would have before a model is asked."""
        await self._memory.settle(MODEL_SECONDS)
        before, swaps = self._session.used_tokens, self._session.stats.swaps
        messages = await self._session.messages()
        if self._session.stats.swaps > swaps:
            self._swaps.append(Swapped(number, before, self._session.used_tokens))
        return messages

    async def _prepared(self, prompt: str, used_tokens: int) -> PreparedTurn:
        started = time.perf_counter()
        turn = await self._memory.prepare_turn(
            SESSION, prompt, current_tokens=used_tokens, context_window=self._window, agent_id=self._agent_id
        )
        self._prepare_ms.append((time.perf_counter() - started) * 1_000)
        self._turns.append(turn)
        return turn

    async def _rest(self, number: int, total: int, how: str) -> None:
        """What the provider does in the time that a model takes; without waiting for that time."""
        self._run.progress(f"turns in {self._window:,} tokens, {how}", number, total)
        await self._settled(MODEL_SECONDS)

    async def _settled(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        await self._memory.settle(seconds)
        while (await self._memory.ping())["backlog"] and time.monotonic() < until:
            await asyncio.sleep(0.02)


async def _talks(
    run: Run, home: Path, window: int, earlier: Sequence[Exchange], said: Sequence[Exchange]
) -> dict[str, Talk]:
    """An agent for each history: what one is given is no concern of the other's memory."""
    with running_in(home) as daemon:
        async with AsyncClient(daemon.socket_endpoint, home=home, timeout_seconds=60) as memory:
            swapping = Conversation(run, memory, window, "swapping")
            rebuilding = Conversation(run, memory, window, "rebuilding")
            await swapping.remember(earlier)
            await rebuilding.remember(earlier)
            return {**await swapping.swapped(said), REBUILT: await rebuilding.rebuilt(said)}


# ── told ──────────────────────────────────────────────────────────────────────────────────────


def measure(run: Run) -> Findings:
    known = run.choose(EARLIER_TURNS // 3, EARLIER_TURNS)
    both = list(islice(exchanges(run), known + run.choose(50, 500)))
    earlier, said = both[:known], both[known:]
    talks: dict[int, dict[str, Talk]] = {}
    for window in WINDOWS:
        talks[window] = uvloop.run(_talks(run, run.folder / f"economy-{window}", window, earlier, said))
    rows = [_row(window, way, of[way], of[OURS]) for window, of in talks.items() for way in WAYS]
    return Findings(
        bars=[_bar(run, window, len(said), of[OURS]) for window, of in talks.items()],
        rows=rows,
        sections=[
            Section("What was prepared", _prepared(talks)),
            Section("Our swaps, and what of the prompt right after was cached", _swaps(talks)),
        ],
        notes=[
            f"{len(said)} turns of {DATA}: what was asked and what was answered there. Instructions of "
            f"{estimate_tokens(INSTRUCTIONS):,} tokens, always the same, stand first. The provider of memory is a real "
            f"one, with its model and {len(earlier)} turns of earlier sessions. It may finish its work after each turn "
            f"in the {MODEL_SECONDS:g} s at most that a model would take.",
            "Cached as OpenAI documents it: the longest beginning that a prompt before had, from 1,024 tokens on in "
            "steps of 128. As Anthropic does: up to a block that was marked, from 1,024 tokens on, looked for over 20 "
            "blocks back from each mark; marked are the end of the instructions, of the memory and of the history. "
            "Nothing is forgotten meanwhile. Tokens are our estimate.",
            f"Cost of a turn: tokens of its prompt at full price, those from the cache at {CACHED_PRICE:g} of it. What "
            "Anthropic takes for keeping (a quarter more for what is kept) is not counted.",
            "All ways have the same memory section first. In the system prompt recall stands behind the instructions, "
            "as a block of its own, so that these stay cached. Rebuilt: `getCompressedContext` in place of the "
            "history, of the size that a swap leaves, so prompts are smaller; memory and recall stand where ours do.",
            *(
                f"Window of {window:,}: why there was no swap though one was asked for: "
                f"{dict(Counter(of[OURS].troubles)) or '-'}; what was left out of turns: {_left_out(of) or '-'}."
                for window, of in talks.items()
            ),
        ],
    )


def _bar(run: Run, window: int, turns: int, ours: Talk) -> Bar:
    shares = share(ours.openai), share(ours.anthropic)
    return Bar(
        f"prompt tokens of {turns} turns read from the cache, window of {window:,} (as OpenAI, as Anthropic)",
        f"≥ {LEAST_SHARE:.0%}",
        f"{shares[0]:.1%}, {shares[1]:.1%}",
        None if run.is_quick else min(shares) >= LEAST_SHARE,
    )


def _row(window: int, way: str, talk: Talk, ours: Talk) -> dict[str, Cell]:
    return {
        "window": f"{window:,}",
        "way": way,
        "mean prompt tokens": fmean(read.prompt for read in talk.openai),
        "swaps": len(talk.swaps),
        "OpenAI: cached %": 100 * share(talk.openai),
        "OpenAI: cost of a turn": cost(talk.openai),
        "OpenAI: × ours": cost(talk.openai) / cost(ours.openai),
        "Anthropic: cached %": 100 * share(talk.anthropic),
        "Anthropic: cost of a turn": cost(talk.anthropic),
        "Anthropic: × ours": cost(talk.anthropic) / cost(ours.anthropic),
    }


def _prepared(talks: dict[int, dict[str, Talk]]) -> list[dict[str, Cell]]:
    """Where recall is often missing, a high share would say little."""
    return [
        {
            "window": f"{window:,}",
            "conversation": name,
            "memory tokens": fmean(turn.tokens.memory for turn in talk.turns),
            "memory changed": sum(one.memory != following.memory for one, following in pairwise(talk.turns)),
            "recall tokens": fmean(turn.tokens.recall for turn in talk.turns),
            "turns with recall %": 100 * fmean(bool(turn.recall) for turn in talk.turns),
            "turns degraded %": 100 * fmean(bool(turn.degraded) for turn in talk.turns),
            "mean prepareTurn ms": fmean(talk.prepare_ms),
        }
        for window, of in talks.items()
        for name, talk in (("with hot swap", of[OURS]), ("rebuilt", of[REBUILT]))
    ]


def _left_out(of: dict[str, Talk]) -> dict[str, int]:
    return dict(
        Counter(why for way in (OURS, REBUILT) for turn in of[way].turns for why in turn.degraded).most_common(5)
    )


def _swaps(talks: dict[int, dict[str, Talk]]) -> list[dict[str, Cell]]:
    return [
        {
            "window": f"{window:,}",
            "turn": swap.turn,
            "tokens before": swap.tokens_before,
            "tokens after": swap.tokens_after,
            "OpenAI: cached %": 100 * share([of[OURS].openai[swap.turn - 1]]),
            "Anthropic: cached %": 100 * share([of[OURS].anthropic[swap.turn - 1]]),
        }
        for window, of in talks.items()
        for swap in of[OURS].swaps
    ]
