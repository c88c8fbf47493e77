"""The name of a conversation, when the provider was asked about it; and what waited for it, told. No request waits.

The provider may know a history that is new to this process: told under a new name, it would be there twice. And it may
know a first answer as another conversation's: then the next answer is waited for.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import structlog

from offbook.client.async_client import AsyncClient
from offbook.contrib.proxy.conversation import Conversation, Known, Turn
from offbook.contrib.proxy.conversations import Conversations
from offbook.model.errors import ProviderUnavailable
from offbook.model.types import Message

MOST_NAMED_LATER = 100

log = structlog.get_logger("offbook.proxy")


class Naming:
    def __init__(self, memory: AsyncClient, conversations: Conversations) -> None:
        self._memory = memory
        self._conversations = conversations
        self._tasks: set[asyncio.Task[None]] = set()

    def name_soon(self, turn: Turn, said: Sequence[Mapping[str, Any]], answer: Known) -> asyncio.Task[None] | None:
        """After this answer. `said` has the roles of the request's messages."""
        if len(self._tasks) >= MOST_NAMED_LATER:
            self._conversations.name(turn.conversation, answer)
            return None
        task = asyncio.create_task(self._named_later(turn, said, answer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def look_for(self, turn: Turn, said: Sequence[Mapping[str, Any]]) -> None:
        """A conversation that is new to this process may be known to the provider: from before a restart. The newest
        answer that is known names it: an older one, such as a greeting, may have been somebody else's too."""
        conversation = turn.conversation
        candidates = conversation.candidates
        if not candidates:
            return
        answers = await asyncio.gather(*(self._memory.missing(known.id, [known.id]) for known in candidates))
        conversation.candidates = []
        for known, missing in zip(reversed(candidates), reversed(answers), strict=True):
            if not missing and conversation.session_id is None:
                self._conversations.adopt(turn, known.id, known, said)

    def send_unsent(self, conversation: Conversation) -> None:
        """What waited for the name, where there is one now."""
        if conversation.session_id is None:
            return
        for message_id, message in conversation.unsent.items():
            if message_id not in conversation.recorded:
                conversation.recorded.add(message_id)
                self.keep(conversation.session_id, message_id, message)
        conversation.unsent.clear()

    def keep(self, session_id: str, message_id: str, message: Message) -> None:
        self._memory.record(session_id, msgspec.structs.replace(message, id=message_id))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _named_later(self, turn: Turn, said: Sequence[Mapping[str, Any]], answer: Known) -> None:
        """Whether a history is known is asked as long as it takes; at a stop twice is better than not at all."""
        conversation, is_anothers = turn.conversation, False
        try:
            while conversation.candidates:
                try:
                    await self.look_for(turn, said)
                except Exception:  # noqa: BLE001 - whatever is wrong with it, it is asked again
                    await asyncio.sleep(REST_SECONDS)
            is_anothers = conversation.session_id is None and await self._is_known(answer)
        finally:
            if not is_anothers:
                self._conversations.name(conversation, answer)
            self.send_unsent(conversation)

    async def _is_known(self, answer: Known) -> bool:
        """While nobody can say, it is not: only with a name is what was said safe in the outbox."""
        try:
            async with asyncio.timeout(REST_SECONDS):
                return not await self._memory.missing(answer.id, [answer.id])
        except Exception as error:  # noqa: BLE001 - as above
            log.info("named unasked", action="proxy.named", reason=str(error) or repr(error))
            return False


# ── Whether the provider is asked at all ──
# After trouble requests do not wait for it for a while.


MOST_FAILED_IN_A_ROW = 3
REST_SECONDS = 5.0


class Rest:
    def __init__(self) -> None:
        self._until = 0.0
        self._failed_in_a_row = 0

    @property
    def is_on(self) -> bool:
        return time.monotonic() < self._until

    def answered(self) -> None:
        """A question was answered in time. A request that asked nothing says nothing about the provider."""
        self._failed_in_a_row = 0

    def failed(self, error: Exception) -> None:
        """A provider that is late or refuses something may do better the next time; one that is away is not asked."""
        is_away = isinstance(error, ProviderUnavailable | OSError) and not isinstance(error, TimeoutError)
        self._failed_in_a_row = MOST_FAILED_IN_A_ROW if is_away else self._failed_in_a_row + 1
        reason = "no answer in time" if isinstance(error, TimeoutError) else str(error) or repr(error)
        if self._failed_in_a_row < MOST_FAILED_IN_A_ROW:
            log.info("a request passed without memory", action="proxy.failed_once", reason=reason)
            return
        self._until = time.monotonic() + REST_SECONDS
        log.warning("requests pass without memory for now", action="proxy.rest", seconds=REST_SECONDS, reason=reason)


# ── Which models take no request of ours: theirs are not tried with memory for a while. No I/O ──

MOST_IN_A_ROW = 2
"""One refusal may be an accident of the API's own."""
REFUSED_SECONDS = 300.0
"""A model's template may be mended, and then it is served anew under the same name."""
MOST_MODELS = 256


class Refusals:
    def __init__(self) -> None:
        self._in_a_row: OrderedDict[str, int] = OrderedDict()
        self._until: dict[str, float] = {}

    def is_on(self, model: str) -> bool:
        return time.monotonic() < self._until.get(model, 0.0)

    def taken(self, model: str) -> None:
        """A request with something added was answered."""
        self._in_a_row.pop(model, None)
        self._until.pop(model, None)

    def refused(self, model: str) -> bool:
        """It was refused, and answered as it came. Whether the model is left alone from now on."""
        count = self._in_a_row.pop(model, 0) + 1
        self._in_a_row[model] = count
        if count >= MOST_IN_A_ROW:
            self._until[model] = time.monotonic() + REFUSED_SECONDS
        while len(self._in_a_row) > MOST_MODELS:
            oldest, _ = self._in_a_row.popitem(last=False)
            self._until.pop(oldest, None)
        return count >= MOST_IN_A_ROW
