"""What a session asks its provider: the context to start with, a swap, what to have in mind. Asking never raises."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Literal, NamedTuple

import msgspec

from offbook.client.async_client import AsyncClient
from offbook.client.slot import Slot
from offbook.model.errors import OffbookError, ProviderRefused
from offbook.model.summary import Ledger, Swap
from offbook.model.turn import PreparedTurn
from offbook.model.types import CompressedContext, Message
from offbook.models.calibration import UsagePoint, fitted, with_point

# ── What happened to a session's context, for whoever wants to see it ──

EventKind = Literal["started", "swapped", "kept", "away", "slow", "refused", "wrong", "compacted"]
"""`started` and `swapped`: something of the provider's is in use. `kept`: the provider saw no need. `away`, `slow`,
`refused`, `wrong`: the agent went on with what it had. `compacted`: by the agent's own means."""


class SwapEvent(NamedTuple):
    """Sizes are those of slot A by our estimate, before and after."""

    kind: EventKind
    at: datetime
    reason: str
    generation: int
    tokens_before: int
    tokens_after: int
    messages_before: int
    messages_after: int


class SwapStats(NamedTuple):
    swaps: int
    generation: int
    compactions: int
    """How often the agent had to do without."""
    fallbacks: Mapping[str, int]
    """How often the agent went on with what it had, by why."""
    waited_ms: float
    """What the agent has waited for the provider, in all."""
    used_tokens: int
    last_ledger: Ledger | None
    """What the last swap kept and what it left out."""


LEAST_OF_ESTIMATE = 0.5
"""No tokenizer is better than that by our estimate: a lower count leaves something out, such as what was cached."""


class Meter:
    """How many tokens the next prompt has: what the model's provider last counted, and our estimate of what changed, by
    as many of its tokens as one of ours has turned out to be (`calibration`)."""

    def __init__(self) -> None:
        self._given = 0
        self._beside = 0
        self._points: tuple[UsagePoint, ...] = ()
        self._newest: UsagePoint | None = None

    def give(self, slot_tokens: int, beside: int = 0) -> None:
        """This much of slot A goes into the next prompt, and this much of memory beside it."""
        self._given = slot_tokens + beside
        self._beside = beside

    def report(self, prompt_tokens: int | None) -> None:
        """What that prompt took. No prompt takes nothing: then it was not counted."""
        if prompt_tokens is not None and prompt_tokens > 0:
            self._newest = UsagePoint(self._given, max(prompt_tokens, int(self._given * LEAST_OF_ESTIMATE)))
            self._points = with_point(self._points, self._newest)

    @property
    def ratio(self) -> float:
        """Tokens of the provider's for each that we estimate."""
        return fitted(self._points).ratio

    def used(self, slot_tokens: int) -> int:
        total = slot_tokens + self._beside
        if self._newest is None:
            return total
        return max(0, int(self._newest.reported + self.ratio * (total - self._newest.estimate)))


ANSWERED_SHARE = 0.8
"""Of the time there is for a turn: the rest is for the way there and back."""
SETTLE_SECONDS = 5.0
"""How long a question may wait for what was recorded to arrive; the agent does not wait that long."""
MOST_LOOKED_UP = 1_000
MOST_KNOWN = 20_000
KNOWN_SECONDS = 0.5
"""How many messages of a session that goes on are known by their ids, and how long reading them may take: the agent
waits for its context."""


class Outcome(NamedTuple):
    """What became of a question."""

    answer: Swap | CompressedContext | None = None
    arrived: int = 0
    """How many messages of ours the provider had for certain when it answered."""
    lost: int = 0
    """How many the outbox had given up by then."""
    unrecorded: frozenset[str] = frozenset()
    """Which of ours those are."""
    known: frozenset[str] = frozenset()
    """The messages that a context to start with stands for, shown or not."""
    trouble: EventKind | None = None
    reason: str = ""


class Questions:
    """About one session, whose slot A `slot` gives as it is when asked."""

    def __init__(self, memory: AsyncClient, session_id: str, agent_id: str | None, slot: Callable[[], Slot]) -> None:
        self._memory = memory
        self._session_id = session_id
        self._agent_id = agent_id
        self._slot = slot

    def lost(self) -> int:
        """Messages of this client that the provider refused for good, or that never came into the outbox."""
        status = self._memory.outbox_status()
        return sum(int(status[name]) for name in ("rejected", "dropped", "invalid"))

    async def start(self, lost_before: int, max_chars: int) -> Outcome:
        asked = self._memory.session_start
        outcome = await self._ask(lambda: asked(self._session_id, max_chars, agent_id=self._agent_id), lost_before)
        if not isinstance(outcome.answer, CompressedContext):
            return outcome
        try:
            return outcome._replace(known=await self._ids_up_to(outcome.answer.covers.last_seq))
        except ProviderRefused:  # a token that may not read the log: what is shown is known all the same
            return outcome
        except OffbookError as error:
            return Outcome(trouble="away", reason=str(error))

    async def recorded(self, most: int, seconds: float) -> list[Message]:
        """The newest of the log, as far as they are there in time."""
        try:
            async with asyncio.timeout(seconds):
                page = await self._memory.log(self._session_id, limit=most, newest=True, agent_id=self._agent_id)
            return [msgspec.convert(line["message"], Message) for line in page["messages"]]
        # Whatever goes wrong with memory, the agent goes on.
        except Exception:  # noqa: BLE001
            return []

    async def swap(
        self, lost_before: int, used_tokens: int, context_window: int, *, token_ratio: float, force: bool
    ) -> Outcome:
        asked = partial(self._memory.swap, token_ratio=round(token_ratio, 2), force=force, agent_id=self._agent_id)
        return await self._ask(lambda: asked(self._session_id, used_tokens, context_window), lost_before)

    async def turn(self, prompt: str, used_tokens: int, context_window: int, seconds: float) -> PreparedTurn | Outcome:
        """What the trouble was, where there is none in time: an answer that comes later is of a turn that is over."""
        asked = self._memory.prepare_turn
        try:
            async with asyncio.timeout(seconds):
                return await asked(
                    self._session_id,
                    prompt,
                    current_tokens=used_tokens,
                    context_window=context_window,
                    # The provider says what it has while there is still time for its answer to arrive.
                    deadline_ms=max(1, int(seconds * ANSWERED_SHARE * 1_000)),
                    agent_id=self._agent_id,
                )
        except TimeoutError:
            return Outcome(trouble="slow", reason="no turn was prepared in time")
        # Whatever goes wrong with memory, the agent goes on.
        except Exception as error:  # noqa: BLE001
            return _troubled(error)

    async def _ask(self, asked: Callable[[], Awaitable[Swap | CompressedContext | None]], lost_before: int) -> Outcome:
        total = self._slot().total
        try:
            has_arrived = await self._memory.settle(SETTLE_SECONDS)
            answer = await asked()
            lost = self.lost()
            if lost != lost_before:
                unrecorded, is_all = await self._unrecorded()
                return Outcome(answer, lost=lost if is_all else lost_before, unrecorded=unrecorded)
            return Outcome(answer, arrived=total if has_arrived else 0, lost=lost)
        # Whatever goes wrong with memory, the agent goes on.
        except Exception as error:  # noqa: BLE001
            return _troubled(error)

    async def _ids_up_to(self, last_seq: int) -> frozenset[str]:
        """Of the newest: page by page, the newest page first."""
        ids: set[str] = set()
        until = time.monotonic() + KNOWN_SECONDS
        for end in range(last_seq, max(0, last_seq - MOST_KNOWN), -MOST_LOOKED_UP):
            after = max(0, end - MOST_LOOKED_UP)
            page = await self._memory.log(self._session_id, after, end - after, agent_id=self._agent_id)
            messages = [line["message"] for line in page["messages"] if line["seq"] <= last_seq]
            ids.update(message["id"] for message in messages if message.get("id"))
            if time.monotonic() > until:
                break
        return frozenset(ids)

    async def _unrecorded(self) -> tuple[frozenset[str], bool]:
        """Those of ours that are not in the log between two that are: messages arrive in order.

        And whether that is all: of those behind the newest that is there nobody can say yet.
        """
        slot = self._slot()
        page = await self._memory.log(self._session_id, limit=MOST_LOOKED_UP, newest=True, agent_id=self._agent_id)
        lines = page["messages"]
        known = {line["message"].get("id") for line in lines}
        found = [one.position for one in slot.added if one.id in known]
        if not found:
            return frozenset(), not slot.added
        is_whole = slot.last_id in known or lines[0]["seq"] == 1
        first = slot.covered if is_whole else found[0]
        lost = (one.id for one in slot.added if first < one.position < found[-1] and one.id not in known)
        return frozenset(lost), found[-1] == slot.total


def _troubled(error: Exception) -> Outcome:
    if isinstance(error, ProviderRefused):
        return Outcome(trouble="refused", reason=str(error))
    if isinstance(error, OffbookError):
        return Outcome(trouble="away", reason=str(error))
    return Outcome(trouble="wrong", reason=repr(error))


async def notify(notification: Coroutine[Any, Any, Any], after: asyncio.Task[None] | None) -> None:
    """Best effort: nobody waits for it, and what it tells is in the agent's own log too."""
    try:
        if after is not None:
            await asyncio.wait({after})
        await notification
    except (OffbookError, OSError):
        pass
    finally:
        notification.close()
