"""HTTP/1.1 on a listening socket: bytes in, whole requests to a handler, answers out in order.

Ours because the way to an acknowledgement is our core: an ASGI server under the same handler costs about
80 µs more a request (`docs/decisions/0004`). Framing is `http1`'s; here are limits, keep-alive and stopping.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import cast

from offbook.api.messages import Answer, Request, problem_answer
from offbook.model.errors import InvalidInput, OffbookError, StoreBusy, WrongMethod
from offbook.model.http1 import CONTINUE, Head, RequestParser, path_of, status_line

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

SMALL_SHARE = 1 / 8
"""Of the room for bodies: kept for those up to `BODY_WORTH_ASKING`, so that large ones do not keep them out."""

REMEDY = "send fewer messages at a time, or raise `server.maxRequestBytes`"

NOTHING = memoryview(b"")
Handler = Callable[[Request], Awaitable[Answer]]
Admit = Callable[[Request], object]


class BodyBudget:
    """What the bodies of all requests that are not answered yet may take, over every connection."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self.held_bytes = 0

    def check(self, more_bytes: int, body_bytes: int, own_bytes: int) -> None:
        """Refuse `more_bytes` of a body of `body_bytes` where there is no room. Who holds all that is held,
        `own_bytes`, may go on: to send it again later would not help."""
        room_bytes = self._max_bytes * (1 if body_bytes <= BODY_WORTH_ASKING else 1 - SMALL_SHARE)
        if self.held_bytes > own_bytes and self.held_bytes + more_bytes > room_bytes:
            raise StoreBusy(
                f"requests that are being read take {self.held_bytes:,} bytes already: send it again in a moment, "
                "or raise `server.maxBufferedBytes`"
            )


class Listener:
    """Serves one socket until closed."""

    def __init__(
        self,
        handler: Handler,
        admit: Admit,
        *,
        max_body_bytes: int,
        keep_alive_seconds: float,
        bodies: BodyBudget,
        refused: Callable[[OffbookError], None] = lambda error: None,
    ) -> None:
        """`refused` is told of what never became a whole request."""
        self.handler = handler
        self.admit = admit
        self.refused = refused
        self.max_body_bytes = max_body_bytes
        self.bodies = bodies
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
        self._parser = RequestParser(self, max_body_bytes=listener.max_body_bytes, remedy=REMEDY)
        self._transport: asyncio.Transport | None = None
        self._unread = NOTHING
        self._waiting: deque[tuple[Request | OffbookError, bool]] = deque()
        self._waiting_bytes = 0
        self._coming_bytes = self._held_bytes = 0
        self._task: asyncio.Task[None] | None = None
        self._unclogged: asyncio.Future[None] | None = None
        self._idle_since = self._loop.time()
        self._begun_at: float | None = None
        self._stuck_until: float | None = None
        self._is_over = self._is_last = self._is_paused = self._is_clogged = False

    # ── the transport ──

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are not subclasses
        self._listener.connections.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._listener.left(self)
        self._transport, self._is_over = None, True
        self._waiting.clear()
        self._let_go(self._held_bytes)
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
        if self._unclogged is not None and not self._unclogged.done():
            self._unclogged.set_result(None)
        self._go_on()

    # ── reading, as long as there is room ──

    def _read_on(self) -> None:
        """What there is no room for stays unparsed, and nothing more is read meanwhile."""
        while self._unread and not self._is_over and self._has_room():
            piece, self._unread = self._unread[:SLICE_BYTES], self._unread[SLICE_BYTES:]
            try:
                self._parser.feed(piece)
            except OffbookError as error:
                self._refuse(error)
        if self._begun_at is None and self._parser.is_within_request and not self._is_over:
            self._begun_at = self._loop.time()
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

    # ── what the parser finds ──

    def head_received(self, head: Head) -> None:
        if head.method == b"CONNECT":
            raise WrongMethod("CONNECT: this is no proxy, use POST with a JSON body")
        if head.is_chunked or (head.length or 0) > BODY_WORTH_ASKING:
            self._listener.admit(_request(head, b""))
            self._listener.bodies.check(head.length or 0, head.length or 0, self._held_bytes)
        if head.expects_continue and self._transport is not None:
            self._transport.write(CONTINUE)

    def body_received(self, size_bytes: int) -> None:
        self._listener.bodies.check(size_bytes, self._coming_bytes + size_bytes, self._held_bytes)
        self._coming_bytes += size_bytes
        self._held_bytes += size_bytes
        self._listener.bodies.held_bytes += size_bytes

    def request_received(self, head: Head, body: bytes) -> None:
        self._begun_at, self._coming_bytes = None, 0
        self._waiting.append((_request(head, body), head.keeps_alive))
        self._waiting_bytes += len(body)
        self._go_on()

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
                if answer.pieces is not None:
                    await self._stream(answer, answer.pieces)
                    return
                stays = keeps_alive and not self._is_last and not self._listener.is_closing
                self._send(answer, is_head=request.method == "HEAD", keeps_alive=stays or bool(self._waiting))
        except BaseException:
            # A handler answers whatever happens; where one did not, a closed connection beats a silent one.
            self.abort()
            raise
        finally:
            self._task = None
            self._let_go(len(request.body) if isinstance(request, Request) else 0)
            self._idle_since = self._loop.time()
            self._go_on()
            self._read_on()

    def _send(self, answer: Answer, *, is_head: bool, keeps_alive: bool) -> None:
        if self._transport is None:
            return
        self._transport.write(
            b"%b\r\ncontent-type: %b\r\ncontent-length: %d\r\n%b%b\r\n%b"
            % (
                status_line(answer.status),
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

    async def _stream(self, answer: Answer, pieces: AsyncGenerator[bytes, None]) -> None:
        """An answer that goes on: its end is the end of the connection, so that it needs no length."""
        self._is_over = True
        if self._transport is not None:
            self._transport.write(
                b"%b\r\ncontent-type: %b\r\n%bconnection: close\r\n\r\n%b"
                % (status_line(answer.status), answer.content_type, answer.extra_headers, answer.body)
            )
        async with aclosing(pieces):
            async for piece in pieces:
                if self._is_clogged:  # who does not read for a minute is cut off by the sweep
                    self._unclogged = self._loop.create_future()
                    await self._unclogged
                if self._transport is None:
                    return
                self._transport.write(piece)
        if self._transport is not None:
            self._transport.close()

    def _refuse(self, error: OffbookError) -> None:
        """Answer what came before, then say why, then go."""
        self._is_over, self._begun_at = True, None
        self._listener.refused(error)
        self._let_go(self._coming_bytes)
        self._parser.drop_body()
        self._waiting.append((error, False))
        self._go_on()

    def _let_go(self, body_bytes: int) -> None:
        """Of bodies that are answered, or that nobody waits for any more."""
        body_bytes = min(body_bytes, self._held_bytes)
        self._held_bytes -= body_bytes
        self._listener.bodies.held_bytes -= body_bytes

    # ── stopping ──

    def close_when_idle(self) -> None:
        if self._task is None and not self._waiting and self._transport is not None:
            self._transport.close()

    def end_if_overdue(self, now: float, keep_alive_seconds: float) -> None:
        if self._is_stuck(now):
            self.abort()
        elif self._begun_at is not None:
            came = self._parser.body_bytes
            allowed = HEAD_SECONDS if came is None else PATIENCE_SECONDS + came / SLOWEST_BYTES_PER_SECOND
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


def _request(head: Head, body: bytes) -> Request:
    path = path_of(head.target).partition(b"?")[0].decode("latin-1")
    return Request(method=head.method.decode(), path=path, headers=head.fields, body=body)
