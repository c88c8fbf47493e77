"""One HTTP/1.1 exchange of JSON with a provider, over a Unix socket, TCP or TLS.

Written out instead of taken from a library because the client is most of the round trip: STACK.md has
980 µs for httpx against 32 µs for a bare socket.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar, cast, get_args, get_origin, get_type_hints

import msgspec

from offbook.client.endpoint import Endpoint
from offbook.model.errors import InvalidInput, OffbookError, ProviderRefused, ProviderUnavailable
from offbook.model.http1 import AnswerParser

CONNECTIONS_PER_TRANSPORT = 32
MAX_ANSWER_BYTES = 64 * 1024 * 1024
"""Four times the largest request a provider takes by default: beyond it, it is not our provider."""
START_HINT = "start it with `offbook serve`"


# ── one connection ────────────────────────────────────────────────────────────────────────────


class Answer(msgspec.Struct, frozen=True):
    status: int
    body: bytes


class AnswerLost(ProviderUnavailable):
    """The connection broke before the answer was whole."""

    def __init__(self, detail: str, *, began: bool) -> None:
        super().__init__(detail)
        self.began = began


class NotReached(ProviderUnavailable):
    """No connection can be had: nothing was sent."""


class Connection(asyncio.Protocol):
    """One kept-alive connection that carries one exchange at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[Answer] | None = None
        self._is_open = False
        self._answer = AnswerParser(max_body_bytes=MAX_ANSWER_BYTES)
        self._began = False

    @property
    def is_reusable(self) -> bool:
        return self._is_open and self._waiter is None

    async def exchange(self, request: bytes) -> Answer:
        if self._transport is None or not self._is_open:
            raise AnswerLost("the connection was closed", began=False)
        self._answer.expect_next()
        self._began = False
        waiter: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiter = waiter
        self._transport.write(request)
        try:
            return await waiter
        finally:
            if self._waiter is not None:  # cancelled: the answer to come belongs to nobody
                self.close()

    def close(self) -> None:
        self._is_open = False
        if self._transport is not None:
            self._transport.abort()

    def _fail(self, detail: str) -> None:
        waiter, self._waiter = self._waiter, None
        self.close()
        if waiter is not None and not waiter.done():
            waiter.set_exception(AnswerLost(detail, began=self._began))

    def _finish(self) -> None:
        waiter, self._waiter = self._waiter, None
        head = self._answer.head
        if waiter is not None and not waiter.done() and head is not None:
            waiter.set_result(Answer(status=head.status, body=bytes(self._answer.body)))

    # ── asyncio's callbacks ──

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are not subclasses
        self._is_open = True

    def data_received(self, data: bytes) -> None:
        if self._waiter is None:
            self.close()  # bytes that nobody asked for: what follows could not be told apart
            return
        self._began = True
        try:
            self._answer.feed(data)
        except OffbookError as error:
            self._fail(error.detail)
        else:
            if self._answer.is_whole:
                self._is_open = self._answer.leaves_connection
                self._finish()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_open = False
        if self._answer.ends_with_connection and exc is None:
            self._finish()  # an answer without a length ends where the connection does
        else:
            self._fail(f"the connection broke{f': {exc}' if exc else ''}")


# ── many exchanges ────────────────────────────────────────────────────────────────────────────


class Pool:
    """The idle connections of one event loop in one process."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.process_id = os.getpid()
        self.slots = asyncio.Semaphore(CONNECTIONS_PER_TRANSPORT)
        self._idle: list[Connection] = []

    def take(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_reusable:
                return connection
        return None

    def give(self, connection: Connection) -> None:
        if connection.is_reusable:
            self._idle.append(connection)
        else:
            connection.close()

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()


class Transport:
    """Asks one provider. Each exchange in flight has a connection of its own, 32 at most; more wait."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        token: str | None = None,
        timeout_seconds: float = 5.0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        if token is not None and not (token.isascii() and token.isprintable()):
            raise InvalidInput("the token holds characters that no header may have")
        self.endpoint = endpoint
        self.timeout_seconds = timeout_seconds
        self._tls = tls
        self._token = token
        self._nodes = (endpoint, *endpoint.others)
        self._is_at(0)
        self._pool: Pool | None = None

    def _is_at(self, node: int) -> None:
        """Which of the provider's nodes is asked from now on."""
        self._node = node % len(self._nodes)
        where = self._nodes[self._node]
        self._prefix = where.path if where.scheme != "unix" else ""
        self._head = f" HTTP/1.1\r\nhost: {where.authority}\r\naccept: application/json\r\n" + (
            f"authorization: Bearer {self._token}\r\n" if self._token else ""
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def get(self, path: str, *, timeout_seconds: float | None = None) -> Answer:
        def request() -> bytes:
            return f"GET {self._prefix}{path}{self._head}\r\n".encode()

        return await self._send(request, timeout_seconds)

    async def post(self, path: str, body: bytes, *, headers: str = "", timeout_seconds: float | None = None) -> Answer:
        """`headers` are whole lines, each ending in CR LF."""

        def request() -> bytes:
            head = (
                f"POST {self._prefix}{path}{self._head}{headers}"
                f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
            )
            return head.encode() + body

        return await self._send(request, timeout_seconds)

    def close(self) -> None:
        """Let the idle connections go. The next exchange opens new ones."""
        pool, self._pool = self._pool, None
        if pool is not None and pool.process_id == os.getpid() and not pool.loop.is_closed():
            pool.close()

    async def _send(self, request: Callable[[], bytes], timeout_seconds: float | None) -> Answer:
        """Where a node takes no connection, the next is asked; where one gives no answer, by whoever asks next."""
        limit = self.timeout_seconds if timeout_seconds is None else timeout_seconds
        node = self._node
        try:
            async with asyncio.timeout(limit):
                for _ in self._nodes[1:]:
                    try:
                        return await self._send_to_node(request)
                    except NotReached:
                        self._go_on_from(node)
                        node = self._node
                return await self._send_to_node(request)
        except TimeoutError:
            self._go_on_from(node)
            raise ProviderUnavailable(
                f"{self.endpoint} gave no answer within {limit:g} s: if it is not running, {START_HINT}"
            ) from None
        except AnswerLost as error:
            raise AnswerLost(
                f"{self.endpoint} gave no whole answer ({error.detail}): if it is not running, {START_HINT}",
                began=error.began,
            ) from None

    async def _send_to_node(self, request: Callable[[], bytes]) -> Answer:
        pool = self._current_pool()
        async with pool.slots:
            return await self._send_over_kept_connection(pool, request())

    def _go_on_from(self, node: int) -> None:
        """To the next of the nodes, unless somebody did already."""
        if len(self._nodes) > 1 and node == self._node:
            self._is_at(node + 1)
            self.close()

    async def _send_over_kept_connection(self, pool: Pool, request: bytes) -> Answer:
        connection = pool.take()
        if connection is None:
            return await self._send_over_new_connection(pool, request)
        try:
            return await self._send_over(connection, pool, request)
        except AnswerLost as error:
            # A server may close an idle connection just as we use it; once an answer began it was not that.
            if error.began:
                raise
        return await self._send_over_new_connection(pool, request)

    async def _send_over_new_connection(self, pool: Pool, request: bytes) -> Answer:
        return await self._send_over(await self._connect(), pool, request)

    async def _send_over(self, connection: Connection, pool: Pool, request: bytes) -> Answer:
        try:
            return await connection.exchange(request)
        finally:
            pool.give(connection)

    async def _connect(self) -> Connection:
        loop = asyncio.get_running_loop()
        where = self._nodes[self._node]
        try:
            if where.scheme == "unix":
                _, connection = await loop.create_unix_connection(Connection, where.path)
            else:
                tls = self._context() if where.scheme == "https" else None
                _, connection = await loop.create_connection(Connection, where.host, where.port, ssl=tls)
        except TimeoutError:
            raise
        except ssl.SSLCertVerificationError as error:
            raise ProviderUnavailable(
                f"the certificate of {where} is not trusted ({error.verify_message}): name the authority that "
                "signed it in SSL_CERT_FILE=/path/to/ca.pem, or use the host name that the certificate is for"
            ) from None
        # RuntimeError: the interpreter is shutting down and resolves no more names.
        except (OSError, ValueError, RuntimeError) as error:
            raise NotReached(f"nobody answers at {where} ({error}): {START_HINT}") from None
        return connection

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls

    def _current_pool(self) -> Pool:
        """Connections belong to one loop and one process; those of another are left alone, not closed."""
        loop = asyncio.get_running_loop()
        pool = self._pool
        if pool is None or pool.loop is not loop or pool.process_id != os.getpid():
            pool = self._pool = Pool(loop)
        return pool


# ── What a provider's answer means ──
# A value, a refusal, or nothing we can use.


T = TypeVar("T")


def content_of(answer: Answer) -> bytes:
    """The body of a success. A problem document is raised as the refusal it is."""
    if 200 <= answer.status < 300:
        return answer.body
    try:
        document = msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        document = None
    if isinstance(document, dict) and isinstance(document.get("title") or document.get("type"), str):
        raise ProviderRefused({"status": answer.status, **document})
    raise ProviderUnavailable(
        f"the answer has status {answer.status} and no problem document: is this a memory provider?"
    )


def value_of(answer: Answer, kind: type[T]) -> T:
    """The success as a value. Fields that a newer provider added are passed over."""
    content = content_of(answer)
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:
        return msgspec.convert(known_fields(msgspec.json.decode(content), kind), kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProviderUnavailable(f"the answer cannot be read ({error}): is this a memory provider?") from None


def known_fields(value: Any, kind: Any) -> Any:
    """`value` without the fields that `kind` does not have, at every depth."""
    if isinstance(value, dict) and isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = get_type_hints(kind)
        return {
            field.encode_name: known_fields(value[field.encode_name], hints[field.name])
            for field in msgspec.structs.fields(kind)
            if field.encode_name in value
        }
    if isinstance(value, list) and get_origin(kind) is list:
        return [known_fields(item, get_args(kind)[0]) for item in value]
    if value is not None:
        for choice in get_args(kind):
            if isinstance(choice, type) and issubclass(choice, msgspec.Struct):
                return known_fields(value, choice)
    return value
