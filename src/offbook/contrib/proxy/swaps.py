"""The hot swap of a conversation, and its context in the place of the old part of a request.

What the provider hands over is a memory of the old part, then the newest messages word for word. Of those the client
has its own, with all their fields; so only what comes before them takes the place of the client's, up to the very
message it reaches.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec

from offbook.client.async_client import AsyncClient
from offbook.client.messages import counted, faults, to_openai
from offbook.client.placement import TurnKey
from offbook.client.slot import orphan_in, tokens_of
from offbook.client.swap_question import Meter, notify
from offbook.contrib.proxy.chat_api import Item, made_item
from offbook.contrib.proxy.conversation import ID_PREFIX, Known, Turn
from offbook.model.content import is_binary_path, render, replace, strings, tool_calls, tool_results
from offbook.model.summary import Swap
from offbook.model.turn import PreparedTurn
from offbook.model.types import Message

COUNTED_CHARS = 100_000
"""Of one message; the rest is taken to be alike. Counting takes 60 ms a megabyte, and every stream waits meanwhile."""
BINARY_CHARS = 4_000
"""Of an image or a file, what of it is looked at: it is counted as the line that tells of it, however long it is."""


class Base(NamedTuple):
    """Stands for all of a conversation up to the message `last_id`."""

    items: tuple[Item, ...]
    last_id: str
    generation: int


class NotUsed(Exception):
    """A context that may not take the place of what it stands for."""


def base_of(
    answer: Sequence[Message],
    path: Sequence[Known],
    shown: Mapping[str, Item],
    *,
    newest_id: str | None,
    generation: int,
) -> Base:
    """`shown` is what the client's request holds, by id. `newest_id` is the newest that the provider had for certain.

    Raises NotUsed, with the reason.
    """
    positions = {known.id: position for position, known in enumerate(path)}
    # What the client took back is in the log, but not in its conversation.
    kept = [one for one in answer if one.id is None or not one.id.startswith(ID_PREFIX) or one.id in positions]
    reach = max((positions[one.id] for one in kept if one.id in positions), default=None)
    if reach is None or (newest_id in positions and reach < positions[newest_id or ""]):
        raise NotUsed("the newest message is not in it")
    cut = _cut(kept, path, shown, reach)
    first_shown = reach + 1 - (len(kept) - cut)
    while cut < len(kept) and _belongs_to_before(path, shown, first_shown):
        cut, first_shown = cut + 1, first_shown + 1
    if cut == 0 or first_shown < 1:
        raise NotUsed("it stands for nothing")
    standing = kept[:cut]
    refused = faults(standing)
    if refused:
        raise NotUsed(f"a model would refuse it: {refused[0]}")
    items = tuple(made_item(message) for message in to_openai(standing))
    return Base(items, path[first_shown - 1].id, generation)


def _cut(kept: Sequence[Message], path: Sequence[Known], shown: Mapping[str, Item], reach: int) -> int:
    """From where on the client's own messages are the same, word for word and without a gap."""
    cut, position = len(kept), reach
    while cut and position >= 0:
        message, item = kept[cut - 1], shown.get(path[position].id)
        if message.id != path[position].id or item is None or render(message) != render(item.message):
            break
        cut, position = cut - 1, position - 1
    return cut


def _belongs_to_before(path: Sequence[Known], shown: Mapping[str, Item], position: int) -> bool:
    """A result stays with its call; and what the model said in one go stays one, with the thoughts that it came of."""
    role = shown[path[position].id].message.role
    before = shown.get(path[position - 1].id) if position else None
    return role == "tool" or (before is not None and role == before.message.role == "assistant")


def with_base(items: Sequence[Item], base: Base | None) -> list[Item] | None:
    """The request with the base in the place of what it stands for; instructions stay. None where it does not fit:
    the conversation parted before its end, or the client has left that out already."""
    if base is None:
        return None
    at = next((n for n, item in enumerate(items) if item.place is not None and item.place.id == base.last_id), None)
    if at is None:
        return None
    # Without what stood before them: thoughts alone, without what came of them, are refused.
    old = (item for item in items[: at + 1] if item.place is None)
    staying = [item._replace(before=()) if item.before else item for item in old]
    whole = [*staying, *base.items, *items[at + 1 :]]
    return None if orphan_in([item.message for item in whole]) is not None else whole


def has_open_calls(items: Sequence[Item]) -> bool:
    called = {call_id for item in items for call_id in tool_calls(item.message)}
    return bool(called.difference(result for item in items for result in tool_results(item.message)))


def size_tokens(items: Sequence[Item], known: dict[str, int]) -> int:
    """`known` has the sizes found before: a history is long, and comes again with every request."""
    total = 0
    for item in items:
        # With the length: the same answer may come with its thoughts, and later without them.
        key = item.fingerprint if isinstance(item.sent, dict) else f"{item.fingerprint}/{len(memoryview(item.sent))}"
        if key not in known:
            known[key] = _tokens(item.message)
        total += known[key]
    return total


def _tokens(message: Message) -> int:
    message = _without_binaries(message)
    text = render(message)
    if len(text) <= COUNTED_CHARS:
        return tokens_of([message])
    counted = msgspec.structs.replace(message, content=text[:COUNTED_CHARS])
    return int(tokens_of([counted]) * len(text) / COUNTED_CHARS)


def _without_binaries(message: Message) -> Message:
    """With the beginning of what is binary: all of it is read for nothing, at 20 ms a megabyte."""
    if isinstance(message.content, str):
        return message
    long = ((path, text) for path, text in strings(message.content) if len(text) > COUNTED_CHARS)
    cut = {path: text[:BINARY_CHARS] for path, text in long}
    begun = replace(message.content, cut) if cut else message.content
    binaries = {path: text for path, text in cut.items() if is_binary_path(begun, path)}
    return msgspec.structs.replace(message, content=replace(message.content, binaries)) if binaries else message


def shown_by_id(items: Sequence[Item]) -> dict[str, Item]:
    return {item.place.id: item for item in items if item.place is not None}


# ── The hot swap of one conversation ──
# Asked for when it is due, used when it has come, however late.


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
