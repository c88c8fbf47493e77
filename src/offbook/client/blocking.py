"""The provider from Python, for callers that block."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from offbook.client.async_client import AsyncClient
from offbook.client.blocking_forgetting import BlockingForgetting
from offbook.client.delivery import CLOSE_FLUSH_SECONDS
from offbook.client.endpoint import Endpoint
from offbook.client.loop_thread import LoopThread
from offbook.client.outboxes import MAX_BYTES
from offbook.client.recorder import MessageLike
from offbook.model.maintenance import MaintenanceReport
from offbook.model.memory_entry import CrossSearch, Pinned, Reach, Recollection
from offbook.model.record import ExportPage, Followed, Imported, Record
from offbook.model.status import IndexStatus
from offbook.model.types import CompressedContext, Receipt


class Client(BlockingForgetting):
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
        asking = AsyncClient(
            endpoint,
            agent_id=agent_id,
            token=token,
            client=client,
            timeout_seconds=timeout_seconds,
            home=home,
            outbox_max_bytes=outbox_max_bytes,
        )
        super().__init__(asking, LoopThread())
        self.endpoint = asking.endpoint
        self.agent_id = asking.agent_id

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def record(self, session_id: str, message: MessageLike, *, agent_id: str | None = None) -> None:
        self._client.record(session_id, message, agent_id=agent_id)

    def flush(self, timeout_seconds: float = 30.0) -> bool:
        return self._run(self._client.flush(timeout_seconds))

    def settle(self, timeout_seconds: float = 5.0) -> bool:
        return self._run(self._client.settle(timeout_seconds))

    def sync(self) -> bool:
        return self._run(self._client.sync())

    def outbox_status(self) -> dict[str, Any]:
        return self._client.outbox_status()

    def close(self, timeout_seconds: float = CLOSE_FLUSH_SECONDS) -> None:
        self._run(self._client.close(timeout_seconds))
        self._thread.close()

    def ping(self) -> dict[str, Any]:
        return self._run(self._client.ping())

    def on_message(self, session_id: str, *messages: MessageLike, agent_id: str | None = None) -> Receipt:
        return self._run(self._client.on_message(session_id, *messages, agent_id=agent_id))

    def recall(
        self,
        session_id: str,
        query: str,
        *,
        limit: int = 5,
        scope: Reach = "agent",
        at: datetime | str | None = None,
        include_superseded: bool = False,
        explain: bool = False,
        agent_id: str | None = None,
    ) -> Recollection:
        return self._run(
            self._client.recall(
                session_id,
                query,
                limit=limit,
                scope=scope,
                at=at,
                include_superseded=include_superseded,
                explain=explain,
                agent_id=agent_id,
            )
        )

    def pin(
        self,
        *,
        keyword: str | None = None,
        session_id: str | None = None,
        entry_ids: Sequence[str] | None = None,
        agent_id: str | None = None,
    ) -> Pinned:
        return self._run(
            self._client.pin(keyword=keyword, session_id=session_id, entry_ids=entry_ids, agent_id=agent_id)
        )

    def unpin(
        self,
        *,
        keyword: str | None = None,
        session_id: str | None = None,
        entry_ids: Sequence[str] | None = None,
        agent_id: str | None = None,
    ) -> Pinned:
        return self._run(
            self._client.unpin(keyword=keyword, session_id=session_id, entry_ids=entry_ids, agent_id=agent_id)
        )

    def cross(self, enabled: bool | None = None, *, agent_id: str | None = None) -> CrossSearch:
        return self._run(self._client.cross(enabled, agent_id=agent_id))

    def reindex(self, *, embeddings: bool = False, agent_id: str | None = None) -> IndexStatus:
        return self._run(self._client.reindex(embeddings=embeddings, agent_id=agent_id))

    def maintain(self, *, tasks: Sequence[str] | None = None, agent_id: str | None = None) -> MaintenanceReport:
        return self._run(self._client.maintain(tasks=tasks, agent_id=agent_id))

    def export(self, after: str | None = None, *, limit: int = 500, agent_id: str | None = None) -> ExportPage:
        return self._run(self._client.export(after, limit=limit, agent_id=agent_id))

    def import_records(
        self,
        records: Sequence[Record],
        *,
        follows: Followed | None = None,
        done: bool = False,
        agent_id: str | None = None,
    ) -> Imported:
        return self._run(self._client.import_records(records, follows=follows, done=done, agent_id=agent_id))

    def pre_compaction(
        self, session_id: str, messages: Sequence[MessageLike] | None = None, *, agent_id: str | None = None
    ) -> int:
        return self._run(self._client.pre_compaction(session_id, messages, agent_id=agent_id))

    def post_compaction(self, session_id: str, new_context: Any = None, *, agent_id: str | None = None) -> None:
        self._run(self._client.post_compaction(session_id, new_context, agent_id=agent_id))

    def session_start(
        self,
        session_id: str,
        max_chars: int | None = None,
        *,
        parent_session_id: str | None = None,
        agent_id: str | None = None,
    ) -> CompressedContext | None:
        return self._run(
            self._client.session_start(session_id, max_chars, parent_session_id=parent_session_id, agent_id=agent_id)
        )

    def session_end(self, session_id: str, reason: str | None = None, *, agent_id: str | None = None) -> None:
        self._run(self._client.session_end(session_id, reason, agent_id=agent_id))

    def status(self, agent_id: str | None = None) -> dict[str, Any]:
        return self._run(self._client.status(agent_id))

    def audit(
        self,
        *,
        agent_id: str | None = None,
        session_id: str | None = None,
        since: Any = None,
        limit: int | None = None,
    ) -> dict[str, Any]:
        return self._run(self._client.audit(agent_id=agent_id, session_id=session_id, since=since, limit=limit))

    def log(
        self,
        session_id: str,
        after_seq: int = 0,
        limit: int = 100,
        wait_ms: int = 0,
        *,
        newest: bool = False,
        agent_id: str | None = None,
    ) -> dict[str, Any]:
        return self._run(self._client.log(session_id, after_seq, limit, wait_ms, newest=newest, agent_id=agent_id))

    def missing(self, session_id: str, ids: Sequence[str], *, agent_id: str | None = None) -> list[str]:
        return self._run(self._client.missing(session_id, ids, agent_id=agent_id))
