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

from offbook.api.messages import Answer, Request, problem_answer
from offbook.model.errors import InvalidInput, OffbookError, TooLarge, WrongMethod

MAX_HEAD_BYTES = 65_536
"""For the head, and again for what surrounds a body: trailers and chunk extensions."""
MOST_PIPELINED = 32
"""Requests of one connection that wait for their turn; beyond it reading stops until some are answered."""
SLICE_BYTES = 4_096
"""The parser cannot be stopped within what it is given, and one read can hold thousands of requests."""
LINGER_SECONDS = 2.0
"""After a refusal in the middle of a body, so that the client can read why before the connection goes."""
SWEEP_SECONDS = 5.0
HEAD_SECONDS = 10.0
"""From a head's first byte to its last: it is sent in one go, so who takes longer only holds a connection."""
PATIENCE_SECONDS = 60.0
"""For a request to come or an answer to be taken, besides the time its size needs on a slow line."""
SLOWEST_BYTES_PER_SECOND = 16_384

BODY_WORTH_ASKING = 65_536
"""A body larger than this is read only after its head was admitted: a stranger cannot make us hold it."""

NOTHING = memoryview(b"")
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
        """End what takes too long: one timer for all connections."""
        loop = asyncio.get_running_loop()
        self._sweeper = loop.call_later(SWEEP_SECONDS, self._sweep)
        for connection in list(self.connections):
            connection.end_if_overdue(loop.time(), self._keep_alive_seconds)


class Connection(asyncio.Protocol):
    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._unread = NOTHING
        self._waiting: deque[tuple[Request | OffbookError, bool]] = deque()
        self._waiting_bytes = self._framing_bytes = 0
        self._task: asyncio.Task[None] | None = None
        self._idle_since = self._loop.time()
        self._begun_at: float | None = None
        self._stuck_until: float | None = None
        self._is_over = self._is_last = self._is_paused = self._is_clogged = False
        self._begin()

    # ── the transport ──

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are not subclasses
        self._listener.connections.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._listener.left(self)
        self._transport, self._is_over = None, True
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        if not self._is_over:
            self._unread = memoryview(bytes(self._unread) + data if self._unread else data)
            self._read_on()

    def eof_received(self) -> bool:
        """A client that has said all it wants still gets its answers."""
        self._is_last = True
        return self._task is not None or bool(self._waiting)

    def pause_writing(self) -> None:
        self._is_clogged, self._stuck_until = True, None

    def resume_writing(self) -> None:
        self._is_clogged, self._stuck_until = False, None
        self._go_on()

    # ── reading, as long as there is room ──

    def _read_on(self) -> None:
        """What there is no room for stays unparsed, and nothing more is read meanwhile."""
        while self._unread and not self._is_over and self._has_room():
            piece, self._unread = self._unread[:SLICE_BYTES], self._unread[SLICE_BYTES:]
            self._parse(piece)
        if self._is_over or not self._unread:
            self._unread = NOTHING  # an empty view would keep alive what it was cut from
        self._pause_reading(bool(self._unread) or not (self._is_over or self._has_room()))

    def _has_room(self) -> bool:
        return len(self._waiting) < MOST_PIPELINED and self._waiting_bytes <= self._listener.max_body_bytes

    def _pause_reading(self, is_wanted: bool) -> None:
        if self._transport is None or is_wanted == self._is_paused:
            return
        self._is_paused = is_wanted
        (self._transport.pause_reading if is_wanted else self._transport.resume_reading)()
        if self._begun_at is not None:
            self._begun_at = self._loop.time()  # the wait was ours, not the client's

    def _parse(self, piece: memoryview) -> None:
        self._framing_bytes += len(piece)
        try:
            self._feed(piece)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._refuse(self._refusal or InvalidInput(f"this is not a request we can read: {error}"))
        else:
            if self._framing_bytes > MAX_HEAD_BYTES:
                self._refuse(TooLarge(f"the request's head has more than {MAX_HEAD_BYTES:,} bytes: send fewer headers"))

    def _feed(self, piece: memoryview) -> None:
        while piece:
            try:
                self._parser.feed_data(piece)
                return
            except httptools.HttpParserUpgrade as offer:
                # Some clients offer HTTP/2 with every request. We decline by reading it as if they had not.
                head, piece = self._head_without_offer(), piece[offer.args[0] :]
                self._parser = httptools.HttpRequestParser(self)
                self._parser.feed_data(head)

    def _head_without_offer(self) -> bytes:
        lines = [b"%b: %b\r\n" % header for header in self._lines if header[0] != b"upgrade"]
        version = self._parser.get_http_version().encode()
        return b"%b %b HTTP/%b\r\n%b\r\n" % (self._method, self._url, version, b"".join(lines))

    # ── the parser ──

    def _begin(self) -> None:
        self._url = self._method = b""
        self._lines: list[tuple[bytes, bytes]] = []
        self._headers: dict[bytes, bytes] = {}
        self._body, self._is_body = bytearray(), False
        self._refusal: OffbookError | None = None

    def on_message_begin(self) -> None:
        self._begin()
        self._begun_at = self._loop.time()

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._is_body:  # a trailer has no say in what its head has settled
            self._lines.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self._method = self._parser.get_method()
        if self._method == b"CONNECT":
            self._stop_parsing(WrongMethod("CONNECT: this is no proxy, use POST with a JSON body"))
        if self._parser.should_upgrade():
            return  # the head comes again, without its offer
        self._is_body = True
        self._headers = dict(self._lines)
        if len(self._headers) != len(self._lines) and [name for name, _ in self._lines].count(b"host") > 1:
            self._stop_parsing(InvalidInput("the request has two Host headers: send one"))
        self._check_announced()
        if self._headers.get(b"expect", b"").lower() == b"100-continue" and self._transport is not None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _check_announced(self) -> None:
        announced = self._headers.get(b"content-length", b"")
        size = int(announced) if announced.isdigit() else 0
        if size > self._listener.max_body_bytes:
            self._stop_parsing(self._too_large(size))
        if size > BODY_WORTH_ASKING or b"transfer-encoding" in self._headers:
            try:
                self._listener.admit(self._request(b""))
            except OffbookError as error:
                self._stop_parsing(error)

    def on_body(self, body: bytes) -> None:
        self._framing_bytes = 0
        self._body += body
        if len(self._body) > self._listener.max_body_bytes:
            self._stop_parsing(self._too_large(len(self._body)))

    def on_message_complete(self) -> None:
        if self._parser.should_upgrade():
            return
        request = self._request(bytes(self._body))
        self._body, self._is_body = bytearray(), False
        self._begun_at, self._framing_bytes = None, 0
        self._waiting.append((request, self._parser.should_keep_alive()))
        self._waiting_bytes += len(request.body)
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

    # ── answering, one at a time ──

    def _go_on(self) -> None:
        if self._task is None and self._waiting and not self._is_clogged and self._transport is not None:
            request, keeps_alive = self._waiting.popleft()
            self._waiting_bytes -= len(request.body) if isinstance(request, Request) else 0
            self._task = self._loop.create_task(self._answer(request, keeps_alive))

    async def _answer(self, request: Request | OffbookError, keeps_alive: bool) -> None:
        try:
            if isinstance(request, OffbookError):
                allowed = b"allow: GET, POST\r\n" if isinstance(request, WrongMethod) else b""
                self._send(problem_answer(request, allowed), is_head=False, keeps_alive=False)
                self._loop.call_later(LINGER_SECONDS, self.close_when_idle)
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
            self._idle_since = self._loop.time()
            self._go_on()
            self._read_on()

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
        if not keeps_alive and not self._is_over:
            self._is_over = True
            self._transport.close()

    def _refuse(self, error: OffbookError) -> None:
        """Answer what came before, then say why, then go."""
        self._is_over, self._begun_at = True, None
        self._waiting.append((error, False))
        self._go_on()

    # ── stopping ──

    def close_when_idle(self) -> None:
        if self._task is None and not self._waiting and self._transport is not None:
            self._transport.close()

    def end_if_overdue(self, now: float, keep_alive_seconds: float) -> None:
        if self._is_stuck(now):
            self.abort()
        elif self._begun_at is not None:
            allowed = PATIENCE_SECONDS + len(self._body) / SLOWEST_BYTES_PER_SECOND if self._is_body else HEAD_SECONDS
            if not self._is_paused and now - self._begun_at > allowed:
                self._refuse(InvalidInput("the request did not come in time: send it in one go"))
        elif now - self._idle_since > keep_alive_seconds:
            self.close_when_idle()

    def _is_stuck(self, now: float) -> bool:
        """Whether an answer waits in vain for its client to read, be it that we have closed already."""
        unsent = self._transport.get_write_buffer_size() if self._transport is not None else 0
        if not unsent:
            self._stuck_until = None
        elif self._stuck_until is None:
            self._stuck_until = now + PATIENCE_SECONDS + unsent / SLOWEST_BYTES_PER_SECOND
        return self._stuck_until is not None and now > self._stuck_until

    def abort(self) -> None:
        self._is_over = True
        self._waiting.clear()
        if self._transport is not None:
            self._transport.abort()
