"""A session whose context never overflows and never makes the agent wait.

    async with AsyncClient(agent_id="main") as memory:
        session = HotSwapSession(memory, "telegram:42", context_window=200_000, compact=my_own_compaction)
        await session.start()                                   # after a restart: what the session was about
        session.add(("user", text))                             # recorded, and in slot A
        answer = await my_model(await session.messages())       # between two messages: swapped here, where it is due
        session.report_usage(answer.usage.prompt_tokens)

The provider keeps slot B ready. At the threshold it takes the place of slot A; what arrives meanwhile is queued behind
it. Where the provider is away, slow or wrong, the agent goes on with slot A, and compacts by itself when that is full.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections import Counter, deque
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self

import msgspec

from offbook.client.async_client import AsyncClient
from offbook.client.messages import counted, message_of
from offbook.client.placement import SessionShapes, TurnKey, held, placed, turn_key_of
from offbook.client.recorder import MessageLike
from offbook.client.slot import OwnCompaction, Slot, compacted, newest_messages, not_smaller, tokens_of, wrong_with
from offbook.client.swap_question import EventKind, Meter, Outcome, Questions, SwapEvent, SwapStats, notify
from offbook.model.errors import InvalidInput
from offbook.model.settings.sections import Compaction, MemoryCompaction
from offbook.model.summary import Ledger, Swap
from offbook.model.turn import PreparedTurn
from offbook.model.types import CompressedContext, Message, now
from offbook.models.tokens import CHARS_PER_TOKEN

LIMIT = 0.97
"""Share of the window beyond which the agent compacts by itself rather than go on waiting for a provider."""
DEADLINE_SECONDS = 0.25
START_SECONDS = 2.0
REST_SECONDS = 5.0
"""After a question that failed."""
GROWTH_BEFORE_NEXT = 0.05
"""Share of the window that must have come before the provider is asked again: swaps are rare and large, or the prompt
cache is never warm."""
TROUBLES: tuple[EventKind, ...] = ("kept", "away", "slow", "refused", "wrong")
EVENTS_KEPT = 1_000


class HotSwapSession(SessionShapes):
    """One session of one agent. `add` is for any thread, the rest for one event loop.

    A `threshold` that is given is the host's word: it holds whatever the provider's settings say. `target` is what the
    agent's own compaction and a cold start may fill; how much a swap leaves is the provider's setting.
    """

    def __init__(
        self,
        memory: AsyncClient,
        session_id: str,
        *,
        context_window: int,
        compact: OwnCompaction | None = None,
        threshold: float | None = None,
        target: float = MemoryCompaction().target_size,
        limit: float = LIMIT,
        deadline_seconds: float = DEADLINE_SECONDS,
        fallback_messages: int = Compaction().fallback_messages,
        agent_id: str | None = None,
    ) -> None:
        share = MemoryCompaction().threshold if threshold is None else threshold
        if context_window < 1 or not 0 < target < share <= limit <= 1:
            raise InvalidInput("a session needs a `context_window`, and 0 < target < threshold <= limit <= 1")
        self.session_id = session_id
        self.context_window = context_window
        self.events: deque[SwapEvent] = deque(maxlen=EVENTS_KEPT)
        self._memory = memory
        self._agent_id = agent_id
        self._questions = Questions(memory, session_id, agent_id, lambda: self._slot)
        self._compact = compact
        self._due_tokens = int(context_window * share)
        self._full_tokens = int(context_window * limit)
        self._target_tokens = max(1, int(context_window * target))
        self._has_threshold = threshold is not None
        self._deadline_seconds = deadline_seconds
        self._fallback_messages = fallback_messages
        self._slot = Slot()
        self._changing = threading.Lock()
        self._gap = asyncio.Lock()
        self._name = secrets.token_hex(8)
        self._known_ids: set[str] = set()
        self._meter = Meter()
        self._asking: asyncio.Task[Outcome] | None = None
        self._notifications: set[asyncio.Task[None]] = set()
        self._awaits_start = False
        self._has_read_log = False
        self._forgets: int | None = None
        self._holds_forgotten = False
        self._rest_until = 0.0
        self._ask_again_tokens = 0
        self._compact_again_tokens = 0
        self._lost = self._questions.lost()
        self._counts: Counter[str] = Counter()
        self._generation = 0
        self._waited_seconds = 0.0
        self._last_ledger: Ledger | None = None
        self._last_turn: tuple[TurnKey, PreparedTurn] | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # ── what the agent uses ──

    async def start(self, timeout_seconds: float = START_SECONDS) -> list[Message]:
        """What the session was about, where it goes on after a restart. Never raises.

        Where no provider answers, slot A is empty; what it knows is taken in between two messages as soon as it does.
        """
        self._awaits_start = True
        async with self._gap:
            await self._attend(timeout_seconds)
        return self._slot.messages

    def add(self, message: MessageLike) -> Message:
        """Record a message and append it to slot A: microseconds, whatever the provider does.

        One whose `id` is known changes nothing. Raises WrongShape where it is no message, or cannot be sent.
        """
        said = message_of(message)
        with self._changing:
            message_id = said.id or f"{self._name}:{self._slot.total + 1}"
            if message_id in self._known_ids:
                return said
            self._known_ids.add(message_id)
            said = msgspec.structs.replace(said, id=message_id)
            # Both under the lock: what arrives in one order must stand in the same.
            self._memory.record(self.session_id, said, agent_id=self._agent_id)
            self._slot = self._slot.with_added(said, message_id)
        return said

    def knows(self, message_id: str) -> bool:
        """Whether `add` would change nothing."""
        return message_id in self._known_ids

    async def recorded(self, most: int) -> list[Message]:
        """The newest messages that the provider has of this session. None of them where it has not answered yet, or
        does not now. The first time belongs to a session's beginning, and may take as long."""
        if self._awaits_start:
            return []
        seconds = self._deadline_seconds if self._has_read_log else max(START_SECONDS, self._deadline_seconds)
        self._has_read_log = True
        return await self._questions.recorded(most, seconds)

    async def messages(self) -> list[Message]:
        """What to give the model. Call it between two messages: a swap that is due happens here."""
        async with self._gap:
            await self._attend(self._deadline_seconds)
            slot = self._slot
            self._meter.give(slot.tokens)
        return slot.messages

    async def turn_messages(self, prompt: str | None = None) -> list[Message]:
        """`messages()`, and what the provider would have in mind for what the user said last, or for `prompt`, in its
        places (`placed`). Each within the deadline; where the provider has no answer by then, just the messages."""
        for _ in range(2):  # what comes with the word that something was forgotten may still have it
            messages = await self.messages()
            asked = turn_key_of(messages, prompt, self._generation)
            turn = None if asked is None else await self._prepared(asked, time.monotonic() + self._deadline_seconds)
            if turn is None:
                return messages
            if not await self.let_go(turn.forgets):
                self._meter.give(self._slot.tokens, turn.tokens.memory + turn.tokens.recall)
                return placed(messages, turn)
        return await self.messages()

    async def let_go(self, forgets: int | None) -> bool:
        """For a host that prepares its turns itself: what the newest says of `forgets`. True where something of the
        agent's was forgotten for good since the one before, which that turn and the messages may still show.

        Between two messages the provider's context then takes the place of all that it knows of, whatever its size.
        """
        self._forgets, is_more = counted(self._forgets, forgets)
        if not is_more:
            return False
        self._last_turn = None
        async with self._gap:
            if self._asking is not None:  # what it answers may be from before
                self._asking.cancel()
                self._asking = None
            self._holds_forgotten = bool(self._slot.whole)
        return True

    def report_usage(self, prompt_tokens: int | None) -> None:
        """What the prompt made of the last `messages` took, as the model's provider counted it: all of it, also what
        came from its cache. Nothing, or none at all, is no count."""
        self._meter.report(prompt_tokens)

    @property
    def used_tokens(self) -> int:
        return self._meter.used(self._slot.tokens)

    @property
    def stats(self) -> SwapStats:
        return SwapStats(
            swaps=self._counts["swapped"],
            generation=self._generation,
            compactions=self._counts["compacted"],
            fallbacks={kind: self._counts[kind] for kind in TROUBLES if self._counts[kind]},
            waited_ms=round(self._waited_seconds * 1_000, 3),
            used_tokens=self.used_tokens,
            last_ledger=self._last_ledger,
        )

    async def close(self) -> None:
        """Stop asking. What was added is the client's to deliver."""
        tasks: list[asyncio.Task[Any]] = [*self._notifications, *([self._asking] if self._asking else [])]
        self._asking = None
        if self._notifications:
            await asyncio.wait(self._notifications, timeout=self._deadline_seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _prepared(self, asked: TurnKey, until: float) -> PreparedTurn | None:
        """Once: were it another one after a tool's result, nothing from the user's message on would be cached."""
        if self._last_turn is not None and self._last_turn[0] == asked:
            return self._last_turn[1]
        started = time.monotonic()
        if self._asking is not None or started < self._rest_until:
            return held(None, asked, self._last_turn)
        turn = await self._questions.turn(asked.prompt, self.used_tokens, self.context_window, until - started)
        self._waited_seconds += time.monotonic() - started
        if isinstance(turn, Outcome):
            self._take(turn)
            return held(None, asked, self._last_turn)
        self._last_turn = (asked, held(turn, asked, self._last_turn) or turn)
        return self._last_turn[1]

    # ── between two messages ──

    async def _attend(self, seconds: float) -> None:
        """Ask where something is to be asked, take what was answered, and compact where nothing else is left."""
        until = time.monotonic() + seconds
        # The provider shows a call that is still open as text, and its result would stand alone.
        if (self._asking is not None or self._is_asked_for()) and not self._slot.has_open_calls:
            await self._ask_and_take(until)
        if self._is_full:
            await self._compact_here(until)

    async def _ask_and_take(self, until: float) -> None:
        asking, is_new = self._asking, self._asking is None
        if asking is None:
            asking = self._asking = asyncio.create_task(self._question())
        if is_new or self._is_full:  # nobody waits twice for one answer, unless there is nothing else to do
            await self._wait_for(asking, until)
        if asking.done():
            self._asking = None
            self._take(asking.result())
        elif is_new:
            self._note("slow", "no answer in time; it is used when it comes")

    @property
    def _is_full(self) -> bool:
        return self.used_tokens >= max(self._full_tokens, self._compact_again_tokens)

    @property
    def _is_due(self) -> bool:
        used = self.used_tokens
        return used >= self._due_tokens and (used >= self._ask_again_tokens or self._is_full)

    def _is_asked_for(self) -> bool:
        if time.monotonic() < self._rest_until and not self._is_full:
            return False
        return self._is_due or self._awaits_start or self._holds_forgotten

    def _question(self) -> Coroutine[Any, Any, Outcome]:
        if self._awaits_start and not self._is_due:
            return self._questions.start(self._lost, self._target_tokens * CHARS_PER_TOKEN)
        is_forced = self._has_threshold or self._is_full or self._holds_forgotten
        # What holds something that was forgotten has to go, whatever its size.
        used_tokens = self.context_window if self._holds_forgotten else self.used_tokens
        ratio = self._meter.ratio
        return self._questions.swap(self._lost, used_tokens, self.context_window, token_ratio=ratio, force=is_forced)

    async def _wait_for(self, task: asyncio.Task[Any], until: float) -> None:
        started = time.monotonic()
        await asyncio.wait({task}, timeout=max(0.0, until - started))
        self._waited_seconds += time.monotonic() - started

    # ── what was answered ──

    def _take(self, outcome: Outcome) -> None:
        answer = outcome.answer
        if outcome.trouble is not None:
            self._rest_until = time.monotonic() + REST_SECONDS
            self._note(outcome.trouble, outcome.reason)
        elif answer is None:
            self._awaits_start = False
            self._note("started", "the provider knows nothing of this session yet")
        elif isinstance(answer, Swap) and not answer.swapped:
            self._ask_later()
            if self._holds_forgotten:
                self._rest_until = time.monotonic() + REST_SECONDS
            self._note("kept", answer.reason)
        else:
            self._use(answer, outcome)

    def _use(self, answer: Swap | CompressedContext, outcome: Outcome) -> None:
        is_swap = isinstance(answer, Swap)
        with self._changing:
            before = self._slot
            older = before.without(outcome.known, outcome.unrecorded)
            reach = older.reach_of(answer.messages)
            if reach is None and older.last_id is None and not is_swap:
                reach = older.covered  # a session that goes on; nothing of ours is older
            after = older.replaced(answer.messages, reach or 0, outcome.unrecorded)
            wrong = wrong_with(answer.messages, reach, outcome.arrived, older, after)
            wrong = wrong or (not_smaller(before, after) if is_swap and not self._holds_forgotten else None)
            if wrong is None:
                self._slot = after
                self._known_ids.update(outcome.known, (one.id for one in answer.messages if one.id is not None))
        self._awaits_start = False
        if wrong is not None:
            self._rest_until = time.monotonic() + REST_SECONDS
            self._ask_later()
            self._note("wrong", wrong)
            # It believes that its answer is in use.
            self._tell(self._memory.post_compaction(self.session_id, {"kept": wrong}, agent_id=self._agent_id))
            return
        self._holds_forgotten = False
        self._lost = outcome.lost
        self._generation = answer.generation
        self._ask_later()
        if isinstance(answer, Swap):
            self._last_ledger = answer.ledger
        self._note("swapped" if is_swap else "started", answer.reason if isinstance(answer, Swap) else "", before)

    def _ask_later(self) -> None:
        self._ask_again_tokens = self.used_tokens + int(self.context_window * GROWTH_BEFORE_NEXT)

    # ── without a provider ──

    async def _compact_here(self, until: float) -> None:
        why = self._why_not_swapped()
        before, lost = self._slot, self._questions.lost()
        covered = before.settled
        messages = before.up_to(covered)
        if tokens_of(messages) <= self._target_tokens:  # what takes the room is of a tool that is still at work
            return
        if self._asking is not None:  # what it answers is about messages that are gone by then
            self._asking.cancel()
            self._asking = None
        saving = self._tell(self._memory.pre_compaction(self.session_id, agent_id=self._agent_id))
        await self._wait_for(saving, until)
        try:
            fewer = await compacted(self._compact, messages) if self._compact else None
        # The host's own function may raise anything; the agent has to go on with something.
        except Exception as error:  # noqa: BLE001
            why, fewer = f"{why}; the agent's own compaction failed: {error!r}", None
        if fewer is None:
            fewer = newest_messages(messages, self._fallback_messages, self._target_tokens)
        with self._changing:
            self._slot = self._slot.compacted(fewer, covered)
        self._lost = lost
        self._ask_later()
        self._compact_again_tokens = self._ask_again_tokens
        self._note("compacted", why, before)
        told = {"messages": len(fewer), "tokens": tokens_of(fewer)}
        self._tell(self._memory.post_compaction(self.session_id, told, agent_id=self._agent_id), after=saving)

    def _why_not_swapped(self) -> str:
        if self._slot.has_open_calls:
            return "a tool is still at work"
        troubles = [event for event in [*self.events][-1:] if event.kind in TROUBLES]
        return f"{troubles[0].kind}: {troubles[0].reason}" if troubles else "a swap left it full"

    def _tell(
        self, notification: Coroutine[Any, Any, Any], after: asyncio.Task[None] | None = None
    ) -> asyncio.Task[None]:
        task = asyncio.create_task(notify(notification, after))
        self._notifications.add(task)
        task.add_done_callback(self._notifications.discard)
        return task

    def _note(self, kind: EventKind, reason: str, before: Slot | None = None) -> None:
        before, after = before or self._slot, self._slot
        self._counts[kind] += 1
        sizes = (before.tokens, after.tokens, len(before.whole), len(after.whole))
        self.events.append(SwapEvent(kind, now(), reason, self._generation, *sizes))
