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
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from offbook.client.asking import PATIENCE_SECONDS
from offbook.client.delivery import CLOSE_FLUSH_SECONDS, Destination
from offbook.client.endpoint import Endpoint, default_endpoint, default_token
from offbook.client.outboxes import MAX_BYTES
from offbook.client.recorder import MessageLike, Recorder, outgoing
from offbook.client.transport import Transport, value_of
from offbook.client.verb_methods import VerbMethods
from offbook.model.answers import Saved
from offbook.model.errors import InvalidInput
from offbook.model.home import home_folder
from offbook.model.plain_names import is_plain_name
from offbook.model.receipt import ForgetCheck, ForgetReceipt, KeptReceipt
from offbook.model.summary import Expansion
from offbook.model.types import Receipt


class AsyncClient(VerbMethods):
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
        if not is_plain_name(client, also="._-", first="_"):
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

    # ── verbs that take more than asking; `VerbMethods` has the others ──

    async def ping(self) -> dict[str, Any]:
        return value_of(await self._transport.get("/v1/ping"), dict[str, Any])

    async def on_message(self, session_id: str, *messages: MessageLike, agent_id: str | None = None) -> Receipt:
        """Store messages, durably when this returns. To try again after an error, give them ids."""
        ready = [msgspec.Raw(outgoing(each).completed(f"{self._client}:{os.urandom(16).hex()}")) for each in messages]
        content = {"message": ready[0]} if len(ready) == 1 else {"messages": ready}
        return await self._ask("onMessage", self._of(session_id, agent_id, **content), Receipt)

    async def expand(
        self,
        summary_id: str | None = None,
        *,
        span: tuple[int, int] | None = None,
        session_id: str | None = None,
        after: str | None = None,
        limit: int = 100,
        agent_id: str | None = None,
    ) -> Expansion:
        """The messages behind a summary or a lesson, or those from one `seq` to another of a session, word for word."""
        body = self._of(
            session_id,
            agent_id,
            summaryId=summary_id,
            span=None if span is None else {"firstSeq": span[0], "lastSeq": span[1]},
            after=after,
            limit=limit,
        )
        return await self._ask("expand", body, Expansion)

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

    async def verify_forgotten(
        self, receipt: ForgetReceipt | str, *, matching: str | None = None, agent_id: str | None = None
    ) -> ForgetCheck:
        """Whether the receipt is the provider's own, and whether anything of what it names can still be found. One that
        the provider keeps (`forget_receipts`) can be named by its id; `agent_id` is then whose it is."""
        more = {} if matching is None else {"matching": matching}
        if isinstance(receipt, str):
            body = self._of(None, agent_id, receiptId=receipt, **more)
        else:
            body = {"receipt": msgspec.to_builtins(receipt), **more}
        return await self._ask("forget/verify", body, ForgetCheck, extra_seconds=PATIENCE_SECONDS)

    async def forget_receipts(self, *, agent_id: str | None = None) -> list[KeptReceipt]:
        """What was forgotten so far, the newest first, also by rule."""
        return (await self._ask("forget/verify", self._of(None, agent_id), ForgetCheck)).receipts
