"""The provider from Python: `AsyncClient`, and `Client` for those who block.

    async with AsyncClient(agent_id="main") as memory:
        memory.record("telegram:42", ("user", "I moved to Lisbon"))     # microseconds, never raises
        context = await memory.get_compressed_context("telegram:42", max_chars=8000)

A verb asks the provider and raises ProviderUnavailable or ProviderRefused. `record` only promises: the
message is on disk when it returns and arrives once, now or when the provider is back.
"""

from __future__ import annotations

import os
import re
from collections.abc import Coroutine, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote

import msgspec

from offbook.client.answers import content_of, value_of
from offbook.client.delivery import CLOSE_FLUSH_SECONDS, Destination
from offbook.client.endpoint import Endpoint, default_endpoint, default_token
from offbook.client.loop_thread import LoopThread
from offbook.client.outboxes import MAX_BYTES, deliver_outboxes
from offbook.client.outgoing import MessageLike, encoded, outgoing
from offbook.client.recorder import Recorder
from offbook.client.transport import Answer, Transport
from offbook.entries import CrossSearch, Pinned, Reach, Recollection
from offbook.errors import InvalidInput
from offbook.home import home_folder
from offbook.types import CompressedContext, IndexStatus, Receipt

__all__ = ["AsyncClient", "Client", "Endpoint", "MessageLike", "deliver_outboxes"]

CLIENT_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")

T = TypeVar("T")


class Saved(msgspec.Struct):
    saved: int


class AsyncClient:
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
        token = token or default_token(endpoint, environ)
        agent_id = agent_id or environ.get("OFFBOOK_AGENT") or None
        self.endpoint = endpoint
        self.agent_id = agent_id
        self._client = client
        self._timeout_seconds = timeout_seconds
        self._transport = Transport(endpoint, token=token, timeout_seconds=timeout_seconds)
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

    async def get_compressed_context(
        self, session_id: str, max_chars: int, *, agent_id: str | None = None
    ) -> CompressedContext:
        body = self._of(session_id, agent_id, maxChars=max_chars)
        return await self._ask("getCompressedContext", body, CompressedContext)

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
        self, session_id: str, max_chars: int | None = None, *, agent_id: str | None = None
    ) -> CompressedContext | None:
        """The context of a session that has one, for a host that starts cold."""
        body = self._of(session_id, agent_id, maxChars=max_chars)
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
        return value_of(await self._post("log", body, extra_seconds=wait_ms / 1000), dict[str, Any])

    async def call(self, verb: str, body: dict[str, Any] | None = None) -> Any:
        """Any verb, with the fields of the contract as they are on the wire."""
        return value_of(await self._post(verb, body or {}), object)

    def _of(self, session_id: str | None, agent_id: str | None, **fields: Any) -> dict[str, Any]:
        owner = self.agent_id if agent_id is None else agent_id
        named = {"sessionId": session_id, "agentId": owner, **fields}
        return {name: value for name, value in named.items() if value is not None}

    async def _post(self, verb: str, body: dict[str, Any], *, extra_seconds: float = 0.0) -> Answer:
        limit = self._timeout_seconds + extra_seconds
        return await self._transport.post(f"/v1/{quote(verb)}", encoded(body), timeout_seconds=limit)

    async def _ask(self, verb: str, body: dict[str, Any], kind: type[T]) -> T:
        return value_of(await self._post(verb, body), kind)


class Client:
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
        self._thread = LoopThread()
        self.endpoint = self._client.endpoint
        self.agent_id = self._client.agent_id

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self._thread.run(coroutine)

    def record(self, session_id: str, message: MessageLike, *, agent_id: str | None = None) -> None:
        self._client.record(session_id, message, agent_id=agent_id)

    def flush(self, timeout_seconds: float = 30.0) -> bool:
        return self._run(self._client.flush(timeout_seconds))

    def outbox_status(self) -> dict[str, Any]:
        return self._client.outbox_status()

    def close(self, timeout_seconds: float = CLOSE_FLUSH_SECONDS) -> None:
        self._run(self._client.close(timeout_seconds))
        self._thread.close()

    def ping(self) -> dict[str, Any]:
        return self._run(self._client.ping())

    def on_message(self, session_id: str, *messages: MessageLike, agent_id: str | None = None) -> Receipt:
        return self._run(self._client.on_message(session_id, *messages, agent_id=agent_id))

    def get_compressed_context(
        self, session_id: str, max_chars: int, *, agent_id: str | None = None
    ) -> CompressedContext:
        return self._run(self._client.get_compressed_context(session_id, max_chars, agent_id=agent_id))

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

    def pre_compaction(
        self, session_id: str, messages: Sequence[MessageLike] | None = None, *, agent_id: str | None = None
    ) -> int:
        return self._run(self._client.pre_compaction(session_id, messages, agent_id=agent_id))

    def post_compaction(self, session_id: str, new_context: Any = None, *, agent_id: str | None = None) -> None:
        self._run(self._client.post_compaction(session_id, new_context, agent_id=agent_id))

    def session_start(
        self, session_id: str, max_chars: int | None = None, *, agent_id: str | None = None
    ) -> CompressedContext | None:
        return self._run(self._client.session_start(session_id, max_chars, agent_id=agent_id))

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

    def call(self, verb: str, body: dict[str, Any] | None = None) -> Any:
        return self._run(self._client.call(verb, body))
