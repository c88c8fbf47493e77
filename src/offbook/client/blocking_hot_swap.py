"""`HotSwapSession` for callers that block: each method is its, run on the client's event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from offbook.client.blocking import Client
from offbook.client.hot_swap import DEADLINE_SECONDS, LIMIT, HotSwapSession
from offbook.client.loop_thread import OnLoop, blocking, passed_on
from offbook.client.recorder import MessageLike
from offbook.client.swap_question import SwapStats
from offbook.model.settings.sections import Compaction, MemoryCompaction
from offbook.model.types import Message

BlockingCompaction = Callable[[list[Message]], Sequence[MessageLike]]


class BlockingHotSwapSession(OnLoop):
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
        super().__init__(memory._thread, self._session)
        self.session_id = session_id
        self.context_window = context_window
        self.events = self._session.events

    messages = blocking(HotSwapSession.messages)
    openai_messages = blocking(HotSwapSession.openai_messages)
    anthropic_request = blocking(HotSwapSession.anthropic_request)
    as_openai = passed_on(HotSwapSession.as_openai)
    as_anthropic = passed_on(HotSwapSession.as_anthropic)
    start = blocking(HotSwapSession.start)
    add = passed_on(HotSwapSession.add)
    knows = passed_on(HotSwapSession.knows)
    recorded = blocking(HotSwapSession.recorded)
    turn_messages = blocking(HotSwapSession.turn_messages)
    let_go = blocking(HotSwapSession.let_go)
    report_usage = passed_on(HotSwapSession.report_usage)
    close = blocking(HotSwapSession.close)

    @property
    def used_tokens(self) -> int:
        return self._session.used_tokens

    @property
    def stats(self) -> SwapStats:
        return self._session.stats

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
