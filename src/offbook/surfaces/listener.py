"""HTTP/1.1 on a listening socket: bytes in, whole requests to a handler, answers out in order.

Ours because the way to an acknowledgement is our core: an ASGI server under the same handler costs about
80 µs more a request (`docs/decisions/0004`). Parsing is llhttp's, through httptools; here is only framing,
limits, keep-alive and stopping.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import NoReturn, cast

import httptools

from offbook.errors import InvalidInput, OffbookError, TooLarge
from offbook.surfaces.messages import Answer, Request, problem_answer

MAX_HEAD_BYTES = 65_536
MOST_PIPELINED = 32
"""Requests of one connection that wait for their turn; beyond it reading stops until some are answered."""
LINGER_SECONDS = 2.0
"""After a refusal in the middle of a body, so that the client can read why before the connection goes."""
SWEEP_SECONDS = 5.0

BODY_WORTH_ASKING = 65_536
"""A body larger than this is read only after its head was admitted: a stranger cannot make us hold it."""

Handler = Callable[[Request], Awaitable[Answer]]
Admit = Callable[[Request], object]
_REASONS = {status.value: status.phrase.encode() for status in HTTPStatus}


class Listener:
    """Serves one socket until closed."""

    def __init__(self, handler: Handler, admit: Admit, *, max_body_bytes: int, keep_alive_seconds: float) -> None:
        self.handler = handler
        self.admit = admit
        self.max_body_bytes = max_body_bytes
        self.connections: set[Connection] = set()
        self.is_closing = False
        self._keep_alive_seconds = keep_alive_seconds
        self._server: asyncio.Server | None = None
        self._sweeper: asyncio.TimerHandle | None = None
        self._last_left: asyncio.Future[None] | None = None

    async def start(self, listener: socket.socket, tls: ssl.SSLContext | None = None) -> None:
        loop = asyncio.get_running_loop()
        if listener.family == socket.AF_UNIX:
            self._server = await loop.create_unix_server(lambda: Connection(self), sock=listener)
        else:
            self._server = await loop.create_server(lambda: Connection(self), sock=listener, ssl=tls)
        self._sweep()

    async def close(self, grace_seconds: float) -> None:
        """No new connections; those under way finish their request, within the grace."""
        self.is_closing = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        if self._server is not None:
            self._server.close()
        for connection in list(self.connections):
            connection.close_when_idle()
        if self.connections:
            self._last_left = asyncio.get_running_loop().create_future()
            await asyncio.wait([self._last_left], timeout=grace_seconds)
        for connection in list(self.connections):
            connection.abort()

    def left(self, connection: Connection) -> None:
        self.connections.discard(connection)
        if self._last_left is not None and not self.connections and not self._last_left.done():
            self._last_left.set_result(None)

    def _sweep(self) -> None:
        """Close what has been silent for too long: one timer for all connections."""
        loop = asyncio.get_running_loop()
        for connection in list(self.connections):
            connection.close_if_silent(loop.time() - self._keep_alive_seconds)
        self._sweeper = loop.call_later(SWEEP_SECONDS, self._sweep)


class Connection(asyncio.Protocol):
    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._waiting: deque[tuple[Request | OffbookError, bool]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._heard_at = self._loop.time()
        self._is_refused = False
        self._is_last = False
        self._is_clogged = False
        self._head_bytes = 0
        self._begin()

    # ── the transport ──

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are not subclasses
        self._listener.connections.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._listener.left(self)
        self._transport = None
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        self._heard_at = self._loop.time()
        if self._is_refused:
            return
        if not self._is_body:
            self._head_bytes += len(data)
        try:
            self._feed(data)
        except httptools.HttpParserError as error:
            self._refuse(self._refusal or InvalidInput(f"this is not a request we can read: {error}"))
            return
        if not self._is_body and self._head_bytes > MAX_HEAD_BYTES:
            self._refuse(self._head_too_large())

    def _feed(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            # Some clients offer HTTP/2 with every request. We decline by reading it as if they had not.
            self._parser, head = httptools.HttpRequestParser(self), self._head_without_offer()
            self._feed(head + data[offer.args[0] :])

    def _head_without_offer(self) -> bytes:
        kept = {name: value for name, value in self._headers.items() if name not in (b"upgrade", b"connection")}
        lines = [b"%b: %b\r\n" % header for header in kept.items()]
        return b"%b %b HTTP/1.1\r\n%b\r\n" % (self._method, self._url, b"".join(lines))

    def eof_received(self) -> bool:
        """A client that has said all it wants still gets its answers."""
        self._is_last = True
        return self._task is not None

    def pause_writing(self) -> None:
        self._is_clogged = True

    def resume_writing(self) -> None:
        self._is_clogged = False
        self._go_on()

    # ── the parser ──

    def _begin(self) -> None:
        self._url = self._method = b""
        self._headers: dict[bytes, bytes] = {}
        self._chunks: list[bytes] = []
        self._body_bytes = 0
        self._is_body = False
        self._refusal: OffbookError | None = None

    def on_message_begin(self) -> None:
        self._begin()

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name == b"host" and name in self._headers:
            self._stop_parsing(InvalidInput("the request has two Host headers: send one"))
        self._headers[name] = value

    def on_headers_complete(self) -> None:
        self._is_body = True
        self._method = self._parser.get_method()
        if sum(len(name) + len(value) for name, value in self._headers.items()) > MAX_HEAD_BYTES:
            self._stop_parsing(self._head_too_large())
        announced = self._headers.get(b"content-length", b"")
        size = int(announced) if announced.isdigit() else 0
        if size > self._listener.max_body_bytes:
            self._stop_parsing(self._too_large(size))
        if size > BODY_WORTH_ASKING or b"transfer-encoding" in self._headers:
            try:
                self._listener.admit(self._request(b""))
            except OffbookError as error:
                self._stop_parsing(error)
        if self._headers.get(b"expect", b"").lower() == b"100-continue" and self._transport is not None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._chunks.append(body)
        self._body_bytes += len(body)
        if self._body_bytes > self._listener.max_body_bytes:
            self._stop_parsing(self._too_large(self._body_bytes))

    def on_message_complete(self) -> None:
        if self._parser.should_upgrade():
            return
        request = self._request(self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks))
        self._is_body, self._head_bytes = False, 0
        self._waiting.append((request, self._parser.should_keep_alive()))
        if len(self._waiting) > MOST_PIPELINED and self._transport is not None:
            self._transport.pause_reading()
        self._go_on()

    def _request(self, body: bytes) -> Request:
        url = self._url if self._url.startswith(b"/") else httptools.parse_url(self._url).path or b"/"
        path = url.split(b"?", 1)[0].decode("latin-1")
        return Request(method=self._method.decode(), path=path, headers=self._headers, body=body)

    def _stop_parsing(self, refusal: OffbookError) -> NoReturn:
        """Raised through the parser, which says only that a callback failed; the reason is kept here."""
        self._refusal = refusal
        raise refusal

    def _too_large(self, size: int) -> TooLarge:
        return TooLarge(
            f"the request is {size:,} bytes or more, the limit is {self._listener.max_body_bytes:,}: send fewer "
            "messages at a time, or raise `server.maxRequestBytes`"
        )

    def _head_too_large(self) -> TooLarge:
        return TooLarge(f"the request's head is larger than {MAX_HEAD_BYTES:,} bytes: send fewer headers")

    # ── answering, one at a time ──

    def _go_on(self) -> None:
        if self._task is None and self._waiting and not self._is_clogged and self._transport is not None:
            self._task = self._loop.create_task(self._answer(*self._waiting.popleft()))

    async def _answer(self, request: Request | OffbookError, keeps_alive: bool) -> None:
        try:
            if isinstance(request, OffbookError):
                self._send(problem_answer(request), is_head=False, keeps_alive=False)
                self._linger()
            else:
                answer = await self._listener.handler(request)
                stays = keeps_alive and not self._is_last and not self._listener.is_closing
                self._send(answer, is_head=request.method == "HEAD", keeps_alive=stays or bool(self._waiting))
        except BaseException:
            # A handler answers whatever happens; where one did not, a closed connection beats a silent one.
            self.abort()
            raise
        finally:
            self._task = None
            if self._transport is not None:
                self._transport.resume_reading()
                self._go_on()

    def _send(self, answer: Answer, *, is_head: bool, keeps_alive: bool) -> None:
        if self._transport is None:
            return
        self._transport.write(
            b"HTTP/1.1 %d %b\r\ncontent-type: %b\r\ncontent-length: %d\r\n%b%b\r\n%b"
            % (
                answer.status,
                _REASONS.get(answer.status, b""),
                answer.content_type,
                len(answer.body),
                answer.extra_headers,
                b"" if keeps_alive else b"connection: close\r\n",
                b"" if is_head else answer.body,
            )
        )
        if not keeps_alive and not self._is_refused:
            self._transport.close()

    def _refuse(self, error: OffbookError) -> None:
        """Answer what came before, then say why, then go."""
        self._is_refused = True
        self._waiting.append((error, False))
        self._go_on()

    def _linger(self) -> None:
        if self._transport is not None:
            self._loop.call_later(LINGER_SECONDS, self._transport.close)

    # ── stopping ──

    def close_when_idle(self) -> None:
        if self._task is None and not self._waiting and self._transport is not None:
            self._transport.close()

    def close_if_silent(self, since: float) -> None:
        if self._heard_at < since:
            self.close_when_idle()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
