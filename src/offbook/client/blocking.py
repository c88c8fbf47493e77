"""The provider from Python, for callers that block."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from offbook.client.async_client import AsyncClient
from offbook.client.blocking_methods import ClientMethods
from offbook.client.delivery import CLOSE_FLUSH_SECONDS
from offbook.client.endpoint import Endpoint
from offbook.client.loop_thread import LoopThread
from offbook.client.outboxes import MAX_BYTES


class Client(ClientMethods):
    """The same for callers that block: each method is AsyncClient's, run on an event loop of its own."""

    def __init__(
        self,
        endpoint: Endpoint | str | None = None,
        *,
        agent_id: str | None = None,
        token: str | None = None,
        client: str = "python",
        timeout_seconds: float = 5.0,
        home: Path | str | None = None,
        outbox_max_bytes: int = MAX_BYTES,
    ) -> None:
        self._client = AsyncClient(
            endpoint,
            agent_id=agent_id,
            token=token,
            client=client,
            timeout_seconds=timeout_seconds,
            home=home,
            outbox_max_bytes=outbox_max_bytes,
        )
        super().__init__(LoopThread(), self._client)
        self.endpoint = self._client.endpoint
        self.agent_id = self._client.agent_id

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self, timeout_seconds: float = CLOSE_FLUSH_SECONDS) -> None:
        super().close(timeout_seconds)
        self._thread.close()
