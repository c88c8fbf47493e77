"""`HotSwapSession` for callers that block: each method is its, run on the client's event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

from offbook.client.blocking import Client
from offbook.client.hot_swap import DEADLINE_SECONDS, LIMIT, START_SECONDS, HotSwapSession
from offbook.client.recorder import MessageLike
from offbook.client.swap_question import SwapEvent, SwapStats
from offbook.model.settings.sections import Compaction, MemoryCompaction
from offbook.model.types import Message

BlockingCompaction = Callable[[list[Message]], Sequence[MessageLike]]


class BlockingHotSwapSession:
    def __init__(
        self,
        memory: Client,
        session_id: str,
        *,
        context_window: int,
        compact: BlockingCompaction | None = None,
        threshold: float | None = None,
        target: float = MemoryCompaction().target_size,
        limit: float = LIMIT,
        deadline_seconds: float = DEADLINE_SECONDS,
        fallback_messages: int = Compaction().fallback_messages,
        agent_id: str | None = None,
    ) -> None:
        async def compact_elsewhere(messages: list[Message]) -> Sequence[MessageLike]:
            # On a thread of its own: it may well use this very client, whose loop must run meanwhile.
            assert compact is not None
            return await asyncio.to_thread(compact, messages)

        self._run = memory._run
        self._session = HotSwapSession(
            memory._client,
            session_id,
            context_window=context_window,
            compact=None if compact is None else compact_elsewhere,
            threshold=threshold,
            target=target,
            limit=limit,
            deadline_seconds=deadline_seconds,
            fallback_messages=fallback_messages,
            agent_id=agent_id,
        )
        self.session_id = session_id
        self.context_window = context_window

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self, timeout_seconds: float = START_SECONDS) -> list[Message]:
        return self._run(self._session.start(timeout_seconds))

    def add(self, message: MessageLike) -> Message:
        return self._session.add(message)

    def knows(self, message_id: str) -> bool:
        return self._session.knows(message_id)

    def recorded(self, most: int) -> list[Message]:
        return self._run(self._session.recorded(most))

    def messages(self) -> list[Message]:
        return self._run(self._session.messages())

    def turn_messages(self, prompt: str | None = None) -> list[Message]:
        return self._run(self._session.turn_messages(prompt))

    def let_go(self, forgets: int | None) -> bool:
        return self._run(self._session.let_go(forgets))

    def openai_messages(self) -> list[dict[str, Any]]:
        return self._run(self._session.openai_messages())

    def anthropic_request(self) -> dict[str, Any]:
        return self._run(self._session.anthropic_request())

    def as_openai(self) -> list[dict[str, Any]]:
        return self._session.as_openai()

    def as_anthropic(self) -> dict[str, Any]:
        return self._session.as_anthropic()

    def report_usage(self, prompt_tokens: int | None) -> None:
        self._session.report_usage(prompt_tokens)

    @property
    def used_tokens(self) -> int:
        return self._session.used_tokens

    @property
    def events(self) -> deque[SwapEvent]:
        return self._session.events

    @property
    def stats(self) -> SwapStats:
        return self._session.stats

    def close(self) -> None:
        self._run(self._session.close())
