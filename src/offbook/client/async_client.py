"""The provider from Python, for asyncio.

    async with AsyncClient(agent_id="main") as memory:
        memory.record("telegram:42", ("user", "I moved to Lisbon"))     # microseconds, never raises
        context = await memory.get_compressed_context("telegram:42", max_chars=8000)

A verb asks the provider and raises ProviderUnavailable or ProviderRefused. `record` only promises: the
message is on disk when it returns and arrives once, now or when the provider is back.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from offbook.client.answers import content_of, value_of
from offbook.client.async_contexts import AsyncContexts
from offbook.client.async_forgetting import AsyncForgetting
from offbook.client.async_lessons import AsyncLessons
from offbook.client.async_turns import AsyncTurns
from offbook.client.delivery import CLOSE_FLUSH_SECONDS, Destination
from offbook.client.endpoint import Endpoint, default_endpoint, default_token
from offbook.client.outboxes import MAX_BYTES
from offbook.client.recorder import MessageLike, Recorder, outgoing
from offbook.client.transport import Transport
from offbook.model.errors import InvalidInput
from offbook.model.home import home_folder
from offbook.model.maintenance import MaintenanceReport
from offbook.model.memory_entry import CrossSearch, Pinned, Reach, Recollection
from offbook.model.record import ExportPage, Followed, Imported, Record
from offbook.model.status import IndexStatus
from offbook.model.types import CompressedContext, Receipt

CLIENT_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")


class Saved(msgspec.Struct):
    saved: int


class Missing(msgspec.Struct):
    missing: list[str]


class AsyncClient(AsyncContexts, AsyncTurns, AsyncLessons, AsyncForgetting):
    """Verbs as methods, any other through `call`, and `record`. Tasks may share it; threads may share `record`.

    `client` names the outbox in `home`. What waits in it is delivered by the next client of that name and
    endpoint. `agent_id` is OFFBOOK_AGENT where none is given.
    """

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
        if not CLIENT_NAME.fullmatch(client):
            raise InvalidInput(f"client {client!r}: a name is up to 64 letters, digits and any of . _ -")
        environ = os.environ if home is None else {**os.environ, "OFFBOOK_HOME": str(home)}
        if endpoint is None:
            endpoint = default_endpoint(environ)
        elif isinstance(endpoint, str):
            endpoint = Endpoint.parse(endpoint)
        if token is not None and not token.strip():
            raise InvalidInput("the token is empty: give one, or leave it out to ask as the owner of the data folder")
        token = token or default_token(endpoint, environ)
        agent_id = agent_id or environ.get("OFFBOOK_AGENT") or None
        transport = Transport(endpoint, token=token, timeout_seconds=timeout_seconds)
        super().__init__(transport, agent_id=agent_id, timeout_seconds=timeout_seconds)
        self.endpoint = endpoint
        self._client = client
        self._recorder = Recorder(
            Destination(home_folder(environ).absolute(), client, endpoint, token, outbox_max_bytes),
            agent_id=agent_id,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # ── fire and forget ──

    def record(self, session_id: str, message: MessageLike, *, agent_id: str | None = None) -> None:
        """Keep a message and deliver it later, once and in order. Returns in microseconds; never raises.

        What is no message is counted (`outbox_status()["invalid"]`) and logged once under `offbook.client`.
        """
        self._recorder.record(session_id, message, agent_id)

    async def flush(self, timeout_seconds: float = 30.0) -> bool:
        """Wait until all that was recorded has arrived.

        False if it has not, in time, or if the provider refused some of it for good since the last flush:
        that lies in `rejected.jsonl` in the outbox's folder.
        """
        return await self._recorder.flush(timeout_seconds)

    async def settle(self, timeout_seconds: float = 5.0) -> bool:
        """As `flush`, but not for a provider that is away: False as soon as it does not answer."""
        return await self._recorder.settle(timeout_seconds)

    async def sync(self) -> bool:
        """Whether all that was recorded with this client is on disk for good, or has arrived; False as soon as the
        outbox had no room for a message. What is not valid is counted in `outbox_status`."""
        return await asyncio.to_thread(self._recorder.sync)

    def outbox_status(self) -> dict[str, Any]:
        """`waiting`, `delivered`, `dropped`, `rejected`, `invalid`, `last_error` and more."""
        return self._recorder.status()

    async def close(self, timeout_seconds: float = CLOSE_FLUSH_SECONDS) -> None:
        """Deliver what can be delivered quickly; the rest stays on disk for the next client of this name."""
        await self._recorder.close(timeout_seconds)
        self._transport.close()

    # ── verbs ──

    async def ping(self) -> dict[str, Any]:
        return value_of(await self._transport.get("/v1/ping"), dict[str, Any])

    async def on_message(self, session_id: str, *messages: MessageLike, agent_id: str | None = None) -> Receipt:
        """Store messages, durably when this returns. To try again after an error, give them ids."""
        ready = [msgspec.Raw(outgoing(each).completed(f"{self._client}:{os.urandom(16).hex()}")) for each in messages]
        content = {"message": ready[0]} if len(ready) == 1 else {"messages": ready}
        return await self._ask("onMessage", self._of(session_id, agent_id, **content), Receipt)

    async def recall(
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
        """What was said that answers the query, best first."""
        body = self._of(
            session_id,
            agent_id,
            query=query,
            limit=limit,
            scope=scope,
            at=at,
            includeSuperseded=include_superseded or None,
            explain=explain or None,
        )
        return await self._ask("recall", body, Recollection)

    async def pin(
        self,
        *,
        keyword: str | None = None,
        session_id: str | None = None,
        entry_ids: Sequence[str] | None = None,
        agent_id: str | None = None,
    ) -> Pinned:
        """Keep entries hot for ever."""
        return await self._ask("pin", self._of(session_id, agent_id, keyword=keyword, entryIds=entry_ids), Pinned)

    async def unpin(
        self,
        *,
        keyword: str | None = None,
        session_id: str | None = None,
        entry_ids: Sequence[str] | None = None,
        agent_id: str | None = None,
    ) -> Pinned:
        """Let pinned entries age again."""
        return await self._ask("unpin", self._of(session_id, agent_id, keyword=keyword, entryIds=entry_ids), Pinned)

    async def cross(self, enabled: bool | None = None, *, agent_id: str | None = None) -> CrossSearch:
        """Open or close the agent's memory to other agents, or ask how it is."""
        return await self._ask("cross", self._of(None, agent_id, enabled=enabled), CrossSearch)

    async def reindex(self, *, embeddings: bool = False, agent_id: str | None = None) -> IndexStatus:
        """Make the agent's search index anew, in the background."""
        return await self._ask("reindex", self._of(None, agent_id, embeddings=embeddings or None), IndexStatus)

    async def maintain(self, *, tasks: Sequence[str] | None = None, agent_id: str | None = None) -> MaintenanceReport:
        """Look after the agent's memory now: all tasks, or those named. Answers when they have ended."""
        return await self._ask("maintain", self._of(None, agent_id, tasks=tasks), MaintenanceReport)

    async def export(self, after: str | None = None, *, limit: int = 500, agent_id: str | None = None) -> ExportPage:
        """Everything the agent has, as records; go on with `after`, the `next` of the page before."""
        return await self._ask("export", self._of(None, agent_id, after=after, limit=limit), ExportPage)

    async def import_records(
        self,
        records: Sequence[Record],
        *,
        follows: Followed | None = None,
        done: bool = False,
        agent_id: str | None = None,
    ) -> Imported:
        """Take records of an export, in their order, each once. `follows`: the message given last before them, where
        they go on with its session. With `done` no more are to come."""
        body = self._of(None, agent_id, records=records, follows=follows, done=done or None)
        return await self._ask("import", body, Imported)

    async def pre_compaction(
        self, session_id: str, messages: Sequence[MessageLike] | None = None, *, agent_id: str | None = None
    ) -> int:
        """Save what is unsaved before the host compacts. How many messages that were.

        What this client recorded before arrives first: it would be saved twice otherwise.
        """
        await self._recorder.settle(self._timeout_seconds)
        unsaved = None if messages is None else [msgspec.Raw(outgoing(each).content) for each in messages]
        body = self._of(session_id, agent_id, messages=unsaved)
        return (await self._ask("hooks/pre-compaction", body, Saved)).saved

    async def post_compaction(self, session_id: str, new_context: Any = None, *, agent_id: str | None = None) -> None:
        await self.call("hooks/post-compaction", self._of(session_id, agent_id, newContext=new_context))

    async def session_start(
        self,
        session_id: str,
        max_chars: int | None = None,
        *,
        parent_session_id: str | None = None,
        agent_id: str | None = None,
    ) -> CompressedContext | None:
        """The context of a session that has one, for a host that starts cold. `parent_session_id`: the session that
        started it, where it is a subagent's."""
        body = self._of(session_id, agent_id, maxChars=max_chars, parentSessionId=parent_session_id)
        answer = await self._post("hooks/session-start", body)
        return None if content_of(answer).strip() == b"null" else value_of(answer, CompressedContext)

    async def session_end(self, session_id: str, reason: str | None = None, *, agent_id: str | None = None) -> None:
        await self.call("hooks/session-end", self._of(session_id, agent_id, reason=reason))

    async def status(self, agent_id: str | None = None) -> dict[str, Any]:
        return await self._ask("status", self._of(None, agent_id), dict[str, Any])

    async def audit(
        self,
        *,
        agent_id: str | None = None,
        session_id: str | None = None,
        since: Any = None,
        limit: int | None = None,
    ) -> dict[str, Any]:
        return await self._ask("audit", self._of(session_id, agent_id, since=since, limit=limit), dict[str, Any])

    async def log(
        self,
        session_id: str,
        after_seq: int = 0,
        limit: int = 100,
        wait_ms: int = 0,
        *,
        newest: bool = False,
        agent_id: str | None = None,
    ) -> dict[str, Any]:
        """The session's messages after `after_seq`, the first or the `newest`; waits up to `wait_ms` for one."""
        body = self._of(session_id, agent_id, afterSeq=after_seq, limit=limit, newest=newest or None, waitMs=wait_ms)
        return await self._ask("log", body, dict[str, Any], extra_seconds=wait_ms / 1000)

    async def missing(self, session_id: str, ids: Sequence[str], *, agent_id: str | None = None) -> list[str]:
        """Which of these message ids (at most 1,000) the session does not hold, each once, in the order given."""
        return (await self._ask("missing", self._of(session_id, agent_id, ids=ids), Missing)).missing
