"""`HotSwapSession` for callers that block: each method is its, run on the client's event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from offbook.client.blocking import Client
from offbook.client.blocking_session_methods import SessionMethods
from offbook.client.hot_swap import DEADLINE_SECONDS, LIMIT, HotSwapSession
from offbook.client.recorder import MessageLike
from offbook.model.settings.sections import Compaction, MemoryCompaction
from offbook.model.types import Message

BlockingCompaction = Callable[[list[Message]], Sequence[MessageLike]]


class BlockingHotSwapSession(SessionMethods):
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

        super().__init__(memory._thread)
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
        self.events = self._session.events

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
