"""The hot swap of one conversation: asked for when it is due, used when it has come, however late."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from offbook.client.clients import AsyncClient
from offbook.client.messages import counted
from offbook.client.placement import TurnKey
from offbook.client.swap_question import Meter, notify
from offbook.contrib.proxy.contexts import Base, NotUsed, base_of, has_open_calls, shown_by_id, size_tokens, with_base
from offbook.contrib.proxy.conversation import Turn
from offbook.contrib.proxy.requests import Item
from offbook.model.summary import Swap
from offbook.model.turn import PreparedTurn

GROWTH_BEFORE_NEXT = 0.05
"""Share of the window that must have come before the provider is asked again, as in `HotSwapSession`."""
SETTLE_SECONDS = 5.0
"""How long the question may wait for what was recorded to arrive; no request waits that long."""
COUNT_SECONDS = 60.0
"""While the model is at work with its tools nothing is asked, but what was forgotten meanwhile must go."""


class Limits(NamedTuple):
    window_tokens: int
    threshold: float
    """Share of the window at which a swap is asked for."""


class _PendingSwap(NamedTuple):
    swap: Swap
    newest_id: str | None
    asked_at: float


class Context:
    """What one conversation's requests are made of, besides what the client sends."""

    def __init__(self) -> None:
        self.base: Base | None = None
        self.meter = Meter()
        self.sizes: dict[str, int] = {}
        self.last_turn: tuple[TurnKey, PreparedTurn] | None = None
        self.forgets: int | None = None
        self.has_memory_at_api = False
        """Whether it stands in the history that the API keeps: there it is not put in again."""
        self.naming: asyncio.Task[None] | None = None
        self._base_asked_at = 0.0
        self._counted_at = 0.0
        self._counting: asyncio.Task[None] | None = None
        self._asking: asyncio.Task[_PendingSwap] | None = None
        self._ask_again_tokens = 0
        self._notifications: set[asyncio.Task[None]] = set()

    @property
    def generation(self) -> int:
        return self.base.generation if self.base else 0

    def forget(self) -> None:
        """Something was forgotten for good: no word of it stays here."""
        self.base, self.last_turn = None, None
        self._ask_again_tokens = 0
        if self._asking is not None:  # asked before: its answer may hold the words
            self._asking.cancel()
            self._asking = None

    def count(self, forgets: int | None, *, since: float) -> bool:
        """What a turn says of it, that was asked for at `since`. Whether there are more than before: then nothing stays
        here. Of a base from before the first count nobody knows."""
        is_old = self.forgets is None and self.base is not None and self._base_asked_at < since
        self._counted_at = time.monotonic()
        self.forgets, is_more = counted(self.forgets, forgets)
        if is_more or is_old:
            self.forget()
        return is_more or is_old

    def count_soon(self, question: Callable[[], Awaitable[PreparedTurn]]) -> None:
        """Where it was long ago, and no request waits for it."""
        is_counting = self._counting is not None and not self._counting.done()
        if not is_counting and time.monotonic() - self._counted_at >= COUNT_SECONDS:
            self._counting = asyncio.create_task(self._count_again(question))

    async def _count_again(self, question: Callable[[], Awaitable[PreparedTurn]]) -> None:
        self._counted_at = time.monotonic()
        with suppress(Exception):  # it is asked again
            self.count((await question()).forgets, since=self._counted_at)

    def items(self, items: Sequence[Item]) -> list[Item]:
        """The request as it stands now: with the base, where there is one that fits."""
        return with_base(items, self.base) or list(items)

    def estimate(self, items: Sequence[Item]) -> int:
        return size_tokens(self.items(items), self.sizes)

    def is_due(self, items: Sequence[Item], limits: Limits) -> bool:
        used = self.meter.used(self.estimate(items))
        return used >= max(int(limits.window_tokens * limits.threshold), self._ask_again_tokens)

    async def attend(
        self, memory: AsyncClient, items: Sequence[Item], turn: Turn, limits: Limits, until: float
    ) -> str | None:
        """Swap, where it is due and the provider has it in time. Or what was wrong with its answer."""
        session_id = turn.conversation.session_id
        if session_id is None:
            return None
        used = self.meter.used(self.estimate(items))
        if self._asking is None and self.is_due(items, limits) and not has_open_calls(items):
            newest = next((place.id for place in reversed(turn.places) if place is not None), None)
            self._asking = asyncio.create_task(_question(memory, session_id, used, limits.window_tokens, newest))
            await asyncio.wait({self._asking}, timeout=max(0.0, until - time.monotonic()))
        if self._asking is None or not self._asking.done():
            return None
        asking, self._asking = self._asking, None
        self._ask_again_tokens = used + int(limits.window_tokens * GROWTH_BEFORE_NEXT)
        answer = asking.result()
        if not answer.swap.swapped:
            return None
        return self._take(memory, session_id, answer, items, turn, limits)

    def _take(
        self,
        memory: AsyncClient,
        session_id: str,
        answer: _PendingSwap,
        items: Sequence[Item],
        turn: Turn,
        limits: Limits,
    ) -> str | None:
        before, size_before = self.base, self.estimate(items)
        shown = shown_by_id(items)
        swap = answer.swap
        try:
            self.base = base_of(
                swap.messages,
                turn.conversation.path,
                shown,
                newest_id=answer.newest_id,
                generation=swap.generation,
            )
            if with_base(items, self.base) is None:
                raise NotUsed("it does not fit to what the client has")
            if self.estimate(items) >= size_before:
                raise NotUsed("it has no fewer tokens than what is in use")
        except NotUsed as wrong:
            self.base = before
            # It believes that its answer is in use.
            self._tell(memory, session_id, str(wrong))
            return str(wrong)
        self._base_asked_at = answer.asked_at
        self._ask_again_tokens = self.meter.used(self.estimate(items)) + int(limits.window_tokens * GROWTH_BEFORE_NEXT)
        return None

    def _tell(self, memory: AsyncClient, session_id: str, wrong: str) -> None:
        task = asyncio.create_task(notify(memory.post_compaction(session_id, {"kept": wrong}), None))
        self._notifications.add(task)
        task.add_done_callback(self._notifications.discard)

    def close(self) -> None:
        for task in (self._asking, self._counting, *self._notifications):
            if task is not None:
                task.cancel()


async def _question(
    memory: AsyncClient, session_id: str, used_tokens: int, window_tokens: int, newest_id: str | None
) -> _PendingSwap:
    has_arrived = await memory.settle(SETTLE_SECONDS)
    asked_at = time.monotonic()
    swap = await memory.swap(session_id, used_tokens, window_tokens)
    return _PendingSwap(swap, newest_id if has_arrived else None, asked_at)
