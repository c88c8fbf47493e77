"""Framing, limits, order and stopping, over real sockets with raw bytes."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import tracemalloc
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any

import pytest
import uvloop

from offbook.api import listener as listening
from offbook.api.listener import BODY_WORTH_ASKING, MOST_PIPELINED, BodyBudget, Connection, Listener
from offbook.api.messages import Answer, Request
from offbook.model.errors import Forbidden, OffbookError
from offbook.model.http1 import MAX_HEAD_BYTES

LIMIT = 100_000
LARGE = 1_000_000
ROOM = 10 * LARGE

# The hook that is to replace the fixture `event_loop_policy` would hold for other files too.
pytestmark = pytest.mark.filterwarnings("ignore:Overriding the .event_loop_policy. fixture")


@pytest.fixture(params=["asyncio", "uvloop"])
def event_loop_policy(request: pytest.FixtureRequest) -> Any:
    """Their transports differ in when they pause, close and tell of an end; the daemon runs on either."""
    return asyncio.DefaultEventLoopPolicy() if request.param == "asyncio" else uvloop.EventLoopPolicy()


class Served:
    def __init__(self, listener: Listener, port: int) -> None:
        self.listener = listener
        self.port = port

    def only_connection(self) -> Connection:
        (connection,) = self.listener.connections
        return connection

    def is_answering(self) -> bool:
        return any(connection._task is not None for connection in self.listener.connections)

    async def after(self, seconds: float) -> None:
        """What the sweeper does then."""
        await asyncio.sleep(0.1)
        now = asyncio.get_running_loop().time()
        for connection in list(self.listener.connections):
            connection.end_if_overdue(now + seconds, 1_000)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def ask(self, raw: bytes) -> bytes:
        """Everything that comes back until the connection is closed."""
        reader, writer = await self.connect()
        writer.write(raw)
        answer = await asyncio.wait_for(reader.read(), 30)
        writer.close()
        return answer

    async def refused(self, raw: bytes) -> bytes:
        """The answer alone: after a refusal a connection lingers."""
        reader, writer = await self.connect()
        writer.write(raw)
        answer = await asyncio.wait_for(whole_answer(reader), 30)
        writer.transport.abort()
        return answer


async def whole_answer(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head)
    assert length is not None
    return head + await reader.readexactly(int(length[1]))


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(120):
        while not holds():
            await asyncio.sleep(0.01)


async def echo(request: Request) -> Answer:
    if request.path == "/slow":
        await asyncio.sleep(0.2)
    if request.path == "/very-slow":
        await asyncio.sleep(20)
    if request.path == "/large":
        return Answer(200, b"x" * LARGE)
    if request.path == "/broken":
        raise RuntimeError
    if request.path == "/headers":
        return Answer(200, repr(sorted(request.headers.items())).encode())
    return Answer(200, f"{request.method} {request.path} {len(request.body)} ".encode() + request.body[:100])


def admit(request: Request) -> None:
    if request.path == "/forbidden":
        raise Forbidden("not for you")


@pytest.fixture(autouse=True)
def brief_lingering(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every refusal waits that long, and the client is in the same process."""
    monkeypatch.setattr(listening, "LINGER_SECONDS", 0.5)


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    opened = socket.create_server(("127.0.0.1", 0))
    opened.setblocking(False)
    listener = Listener(echo, admit, max_body_bytes=LIMIT, keep_alive_seconds=30, bodies=BodyBudget(ROOM))
    await listener.start(opened)
    yield Served(listener, opened.getsockname()[1])
    await listener.close(1)


def post(path: str, body: bytes, *more: str) -> bytes:
    head = "".join(
        f"{line}\r\n" for line in (f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", *more)
    )
    return head.encode() + b"\r\n" + body


async def test_a_request_is_answered(served: Served) -> None:
    answer = await served.ask(post("/a?query=1", b"hello", "Connection: close"))
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"\r\n\r\nPOST /a 5 hello")


async def test_requests_of_one_connection_are_answered_in_order(served: Served) -> None:
    raw = post("/slow", b"1") + post("/b", b"22") + post("/c", b"333", "Connection: close")
    answer = await served.ask(raw)
    assert [answer.find(text) for text in (b"/slow 1", b"/b 2", b"/c 3")] == sorted(
        answer.find(text) for text in (b"/slow 1", b"/b 2", b"/c 3")
    )
    assert answer.count(b"HTTP/1.1 200") == 3


async def test_many_pipelined_requests_are_all_answered(served: Served) -> None:
    raw = b"".join(post(f"/{number}", b"x") for number in range(200)) + post("/last", b"", "Connection: close")
    answer = await served.ask(raw)
    assert answer.count(b"HTTP/1.1 200") == 201


async def test_a_request_may_come_byte_by_byte(served: Served) -> None:
    reader, writer = await served.connect()
    for byte in post("/a", b"hello", "Connection: close"):
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0)
    assert (await reader.read()).endswith(b"POST /a 5 hello")
    writer.close()


async def test_a_chunked_body(served: Served) -> None:
    raw = b"POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    assert (await served.ask(raw)).endswith(b"POST /a 5 abcde")


async def test_head_has_no_body(served: Served) -> None:
    answer = await served.ask(b"HEAD /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert answer.endswith(b"\r\n\r\n")


async def test_http_1_0_is_answered_and_closed(served: Served) -> None:
    assert (await served.ask(b"GET /a HTTP/1.0\r\n\r\n")).startswith(b"HTTP/1.1 200")


async def test_expect_continue(served: Served) -> None:
    reader, writer = await served.connect()
    writer.write(
        b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n"
    )
    assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    writer.write(b"hi")
    assert (await reader.read()).endswith(b"POST /a 2 hi")
    writer.close()


@pytest.mark.parametrize(
    "raw",
    [
        post("/a", b"x" * (LIMIT + 1)),
        b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999\r\n\r\n",
        b"POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n30000\r\n"
        + b"x" * 0x30000
        + b"\r\n0\r\n\r\n",
        b"GET /a HTTP/1.1\r\nHost: x\r\nX-Long: " + b"x" * (MAX_HEAD_BYTES + 1),
    ],
    ids=["body", "announced", "chunked", "head"],
)
async def test_what_is_too_large_is_refused(served: Served, raw: bytes) -> None:
    answer = await served.refused(raw)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"application/problem+json" in answer


@pytest.mark.parametrize("raw", [b"NONSENSE\r\n\r\n", b"\x16\x03\x01\x00\xa5", b"GET / HTTP/1.1\r\nbad header\r\n\r\n"])
async def test_what_is_not_http_is_refused(served: Served, raw: bytes) -> None:
    answer = await served.refused(raw)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b'"retryable":false' in answer


async def test_a_large_body_is_read_only_where_its_head_is_admitted(served: Served) -> None:
    reader, writer = await served.connect()
    writer.write(f"POST /forbidden HTTP/1.1\r\nHost: x\r\nContent-Length: {BODY_WORTH_ASKING + 1}\r\n\r\n".encode())
    assert (await asyncio.wait_for(reader.readline(), 30)).startswith(b"HTTP/1.1 403 ")
    writer.close()


async def test_an_offer_to_upgrade_is_declined_and_the_request_answered(served: Served) -> None:
    offer = ("Upgrade: h2c", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA", "Connection: Upgrade, HTTP2-Settings")
    reader, writer = await served.connect()
    writer.write(post("/a", b"hello", *offer) + post("/b", b"you", "Connection: close"))
    answer = await asyncio.wait_for(reader.read(), 30)
    assert answer.count(b"HTTP/1.1 200") == 2
    assert b"POST /a 5 hello" in answer
    assert answer.endswith(b"POST /b 3 you")
    writer.close()


async def test_two_hosts_are_refused(served: Served) -> None:
    assert (await served.refused(post("/a", b"", "Host: y"))).startswith(b"HTTP/1.1 400 ")


async def test_a_whole_url_is_a_path_too(served: Served) -> None:
    answer = await served.ask(b"GET http://localhost:1/a?b=c HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert answer.endswith(b"GET /a 0 ")


async def test_what_came_before_a_refusal_is_answered(served: Served) -> None:
    answer = await served.ask(post("/slow", b"1") + b"NONSENSE\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"HTTP/1.1 400" in answer


async def test_a_client_that_stops_talking_still_gets_its_answer(served: Served) -> None:
    reader, writer = await served.connect()
    writer.write(post("/slow", b"1"))
    writer.write_eof()
    assert (await reader.read()).endswith(b"POST /slow 1 1")
    writer.close()


async def test_a_client_that_goes_away_leaves_nothing_behind(served: Served) -> None:
    _, writer = await served.connect()
    writer.write(post("/slow", b"1"))
    await until(served.is_answering)
    writer.transport.abort()
    await until(lambda: not served.listener.connections)


async def test_what_never_became_a_request_is_told() -> None:
    opened = socket.create_server(("127.0.0.1", 0))
    opened.setblocking(False)
    refused: list[OffbookError] = []
    limits = {"max_body_bytes": LIMIT, "keep_alive_seconds": 30, "bodies": BodyBudget(ROOM)}
    listener = Listener(echo, admit, **limits, refused=refused.append)
    await listener.start(opened)
    served = Served(listener, opened.getsockname()[1])
    assert b" 200 " in await served.ask(post("/a", b"hello", "Connection: close"))
    assert refused == []
    assert b" 413 " in await served.ask(post("/a", b"x" * (LIMIT + 1)))
    assert [error.status for error in refused] == [413]
    await listener.close(1)


async def test_silent_connections_are_closed() -> None:
    opened = socket.create_server(("127.0.0.1", 0))
    opened.setblocking(False)
    listener = Listener(echo, admit, max_body_bytes=LIMIT, keep_alive_seconds=0.0, bodies=BodyBudget(ROOM))
    await listener.start(opened)
    reader, writer = await asyncio.open_connection("127.0.0.1", opened.getsockname()[1])
    await until(lambda: listener.connections)
    await asyncio.sleep(0.05)
    listener._sweep()
    assert await asyncio.wait_for(reader.read(), 30) == b""
    writer.close()
    await listener.close(1)


async def test_a_stop_lets_the_request_under_way_finish(served: Served) -> None:
    reader, writer = await served.connect()
    idle_reader, idle_writer = await served.connect()
    writer.write(post("/slow", b"1"))
    await until(served.is_answering)
    await served.listener.close(30)
    assert (await reader.read()).endswith(b"POST /slow 1 1")
    assert await idle_reader.read() == b""
    writer.close()
    idle_writer.close()


def get(path: str, *more: str) -> bytes:
    return "".join(f"{line}\r\n" for line in (f"GET {path} HTTP/1.1", "Host: x", *more, "")).encode()


CHUNKED = b"POST /headers HTTP/1.1\r\nHost: x\r\nAuthorization: right\r\nTransfer-Encoding: chunked\r\n"


# ── offers ──


async def test_connect_is_refused_however_often_it_comes(served: Served) -> None:
    answer = await served.ask(b"CONNECT a:1 HTTP/1.1\r\nHost: x\r\n\r\n" * 2_000)
    assert answer.startswith(b"HTTP/1.1 405 ")
    assert b"\r\nallow: GET, POST\r\n" in answer
    assert answer.count(b"HTTP/1.1 ") == 1


async def test_thousands_of_offers_are_declined_one_after_the_other(served: Served) -> None:
    answer = await served.ask(get("/a", "Upgrade: h2c", "Connection: Upgrade") * 3_000 + get("/b", "Connection: close"))
    assert answer.count(b"HTTP/1.1 200") == 3_001


async def test_a_declined_offer_is_told_to_continue_once(served: Served) -> None:
    offer = ("Upgrade: h2c", "Connection: Upgrade", "Expect: 100-continue")
    answer = await served.ask(post("/a", b"hello", *offer) + get("/b", "Connection: close"))
    assert answer.count(b"HTTP/1.1 100 Continue") == 1
    assert b"POST /a 5 hello" in answer


@pytest.mark.parametrize(
    "connection", [("Connection: close, Upgrade",), ("Connection: close", "Connection: Upgrade")], ids=["one", "two"]
)
async def test_a_declined_offer_closes_where_asked_to(served: Served, connection: tuple[str, ...]) -> None:
    answer = await served.ask(get("/a", "Upgrade: h2c", *connection))
    assert b"\r\nconnection: close\r\n" in answer
    assert answer.endswith(b"GET /a 0 ")


async def test_a_declined_offer_of_an_older_client_is_closed(served: Served) -> None:
    answer = await served.ask(b"GET /a HTTP/1.0\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n")
    assert b"\r\nconnection: close\r\n" in answer


# ── many at a time ──


async def test_what_waits_is_bounded_however_much_is_sent(served: Served) -> None:
    _, writer = await served.connect()
    writer.write(get("/very-slow") + b"GET /a HTTP/1.1\r\n\r\n" * 200_000)
    await until(lambda: served.is_answering() and served.only_connection()._is_paused)
    await asyncio.sleep(0.1)
    connection = served.only_connection()
    assert len(connection._waiting) < MOST_PIPELINED + 300
    assert len(connection._unread) <= 600_000
    writer.transport.abort()


async def test_reading_goes_on_only_when_few_wait(served: Served) -> None:
    most = 0
    go_on = Connection._go_on

    def watched(connection: Connection) -> None:
        nonlocal most
        most = max(most, len(connection._waiting))
        go_on(connection)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Connection, "_go_on", watched)
        answer = await served.ask(b"GET /a HTTP/1.1\r\n\r\n" * 5_000 + get("/b", "Connection: close"))
    assert answer.count(b"HTTP/1.1 200") == 5_001
    assert most < MOST_PIPELINED + 300


async def test_the_bytes_that_wait_are_bounded(served: Served) -> None:
    _, writer = await served.connect()
    writer.write(get("/very-slow") + post("/a", b"x" * 60_000) * 20)
    await until(lambda: served.is_answering() and served.only_connection()._is_paused)
    await asyncio.sleep(0.1)
    waiting = served.only_connection()._waiting
    assert 0 < sum(len(request.body) for request, _ in waiting if isinstance(request, Request)) <= 2 * LIMIT
    writer.transport.abort()


async def test_large_pipelined_bodies_are_all_answered(served: Served) -> None:
    answer = await served.ask(post("/a", b"x" * 60_000) * 20 + get("/b", "Connection: close"))
    assert answer.count(b"POST /a 60000 ") == 20


async def test_a_body_in_the_smallest_chunks_takes_no_more_memory(served: Served) -> None:
    _, writer = await served.connect()
    writer.write(CHUNKED + b"\r\n")
    await until(lambda: served.listener.connections and served.only_connection()._begun_at is not None)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    connection = served.only_connection()
    for _ in range(90):
        connection.data_received(b"1\r\nx\r\n" * 1_000)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 3 * 90_000
    writer.transport.abort()


# ── slow clients ──


@pytest.mark.parametrize("raw", [b"G", b"GET /a HTTP/1.1\r\nHost: x\r\n"])
async def test_a_head_that_does_not_end_is_ended(served: Served, raw: bytes) -> None:
    reader, writer = await served.connect()
    for byte in raw:
        writer.write(bytes([byte]))
        await asyncio.sleep(0.01)
    await served.after(listening.HEAD_SECONDS / 2)
    assert not served.only_connection()._is_over
    await served.after(listening.HEAD_SECONDS + 1)
    assert (await asyncio.wait_for(whole_answer(reader), 30)).startswith(b"HTTP/1.1 400 ")
    writer.close()


async def test_a_body_that_does_not_come_is_ended(served: Served) -> None:
    reader, writer = await served.connect()
    writer.write(post("/a", b"x" * 50_000)[:-10_000])
    await served.after(listening.PATIENCE_SECONDS)
    assert not served.only_connection()._is_over
    await served.after(listening.PATIENCE_SECONDS + 5)
    assert b"in time" in await asyncio.wait_for(whole_answer(reader), 30)
    writer.close()


async def test_what_came_before_a_slow_head_is_answered(served: Served) -> None:
    reader, writer = await served.connect()
    writer.write(get("/slow") + b"GET")
    await served.after(listening.HEAD_SECONDS + 1)
    answer = await asyncio.wait_for(reader.read(), 30)
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"HTTP/1.1 400" in answer
    writer.close()


async def test_empty_lines_do_not_keep_a_connection(served: Served) -> None:
    reader, writer = await served.connect()
    writer.write(b"\r\n" * 3)
    await served.after(1_001)
    assert await asyncio.wait_for(reader.read(), 30) == b""
    writer.close()


async def test_an_idle_connection_stays(served: Served) -> None:
    reader, writer = await served.connect()
    writer.write(get("/a"))
    assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    await served.after(999)
    writer.write(get("/b", "Connection: close"))
    assert (await asyncio.wait_for(reader.read(), 30)).endswith(b"GET /b 0 ")
    writer.close()


async def unread_client(served: Served, raw: bytes) -> socket.socket:
    """It sends, and does not read."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    client.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(client, ("127.0.0.1", served.port))
    await loop.sock_sendall(client, raw)
    return client


@pytest.mark.parametrize("more", [(), ("Connection: close",)], ids=["open", "closing"])
async def test_a_client_that_never_reads_is_ended(served: Served, more: tuple[str, ...]) -> None:
    client = await unread_client(served, get("/large") * 9 + get("/large", *more))
    await asyncio.sleep(0.3)
    await served.after(0)
    await served.after(listening.PATIENCE_SECONDS / 2)
    assert served.listener.connections
    await served.after(listening.PATIENCE_SECONDS + 10 * LARGE / listening.SLOWEST_BYTES_PER_SECOND)
    await until(lambda: not served.listener.connections)
    client.close()


async def test_a_half_closed_client_that_reads_slowly_gets_all_its_answers(served: Served) -> None:
    client = await unread_client(served, get("/large") * 20)
    await asyncio.sleep(0.3)
    client.shutdown(socket.SHUT_WR)
    await asyncio.sleep(0.2)
    received = 0
    while data := await asyncio.wait_for(asyncio.get_running_loop().sock_recv(client, 1 << 20), 10):
        received += len(data)
    assert received > 20 * LARGE
    client.close()


# ── trailers ──


async def test_a_trailer_replaces_no_header(served: Served) -> None:
    trailers = b"Authorization: wrong\r\nHost: y\r\nConnection: close\r\n"
    answer = await served.ask(CHUNKED + b"\r\n1\r\nx\r\n0\r\n" + trailers + b"\r\n" + get("/b", "Connection: close"))
    assert b"(b'authorization', b'right'), (b'host', b'x')" in answer
    assert b"wrong" not in answer


@pytest.mark.parametrize("trailer", [b"X: " + b"y" * 200_000, b"X: y\r\n" * 40_000], ids=["long", "many"])
async def test_trailers_are_bounded(served: Served, trailer: bytes) -> None:
    answer = await served.refused(CHUNKED + b"\r\n1\r\nx\r\n0\r\n" + trailer + b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413 ")


# ── never silent ──


async def test_a_handler_that_fails_ends_its_connection_and_what_waits(served: Served) -> None:
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    reader, writer = await served.connect()
    writer.write(get("/broken") + get("/a") * 100)
    with contextlib.suppress(ConnectionResetError):
        assert await asyncio.wait_for(reader.read(), 30) == b""
    assert not served.listener.connections
    writer.close()


# ── all bodies together ──


@pytest.fixture
async def crowded() -> AsyncIterator[tuple[Served, asyncio.Event]]:
    """Holds what it is given until the event is set, and has room for two large bodies."""
    go_on = asyncio.Event()

    async def holding(request: Request) -> Answer:
        if request.path != "/now":
            await go_on.wait()
        return Answer(200, b"%d" % len(request.body))

    opened = socket.create_server(("127.0.0.1", 0))
    opened.setblocking(False)
    bodies = BodyBudget(240_000)
    listener = Listener(holding, admit, max_body_bytes=LIMIT, keep_alive_seconds=30, bodies=bodies)
    await listener.start(opened)
    yield Served(listener, opened.getsockname()[1]), go_on
    go_on.set()
    await listener.close(1)


async def has_held(served: Served, size_bytes: int) -> None:
    while served.listener.bodies.held_bytes != size_bytes:
        await asyncio.sleep(0.01)


async def test_bodies_of_all_connections_share_one_room(crowded: tuple[Served, asyncio.Event]) -> None:
    served, go_on = crowded
    large = post("/a", b"x" * LIMIT, "Connection: close")
    two = [asyncio.create_task(served.ask(large)) for _ in range(2)]
    await has_held(served, 2 * LIMIT)
    chunked = b"POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n"
    for refused in (large, chunked % (LIMIT, b"x" * LIMIT)):
        answer = await served.refused(refused)
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"\r\nretry-after: 1\r\n" in answer
        assert b'"retryable":true' in answer
        assert b"server.maxBufferedBytes" in answer
    # A small one finds room all the same, and what was refused takes none.
    assert (await served.ask(post("/now", b"hello", "Connection: close"))).endswith(b"\r\n\r\n5")
    assert served.listener.bodies.held_bytes == 2 * LIMIT
    go_on.set()
    assert all(answer.endswith(b"%d" % LIMIT) for answer in await asyncio.gather(*two))
    assert served.listener.bodies.held_bytes == 0
    assert (await served.ask(large)).startswith(b"HTTP/1.1 200")


async def test_who_hangs_up_leaves_room(crowded: tuple[Served, asyncio.Event]) -> None:
    served, go_on = crowded
    half = post("/a", b"x" * LIMIT)[: -LIMIT // 2]
    streams = [await served.connect() for _ in range(4)]
    sent = (half, half, post("/a", b"x" * 10), post("/a", b"y" * 10) * 3)
    for (_, writer), raw in zip(streams, sent, strict=True):
        writer.write(raw)
    await has_held(served, LIMIT + 40)
    for _, writer in streams:
        writer.transport.abort()
    await has_held(served, 40)  # whole requests are answered all the same
    go_on.set()
    await has_held(served, 0)


async def test_who_is_alone_is_read_whatever_the_room(crowded: tuple[Served, asyncio.Event]) -> None:
    served, _ = crowded
    served.listener.bodies = BodyBudget(1_024)
    assert (await served.ask(post("/now", b"x" * LIMIT, "Connection: close"))).endswith(b"%d" % LIMIT)


# ── an answer that goes on ──


async def test_an_answer_that_goes_on_comes_piece_by_piece_and_ends_the_connection(served: Served) -> None:
    async def pieces() -> AsyncGenerator[bytes, None]:
        for number in range(3):
            await asyncio.sleep(0)
            yield b"piece %d;" % number

    async def handler(_request: Request) -> Answer:
        return Answer(200, b"first;", b"text/event-stream", pieces=pieces())

    served.listener.handler = handler
    answer = await served.ask(b"POST /ui/events HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert body == b"first;piece 0;piece 1;piece 2;"
    assert b"connection: close" in head
    assert b"content-length" not in head


async def test_an_answer_that_goes_on_is_ended_when_its_client_goes(served: Served) -> None:
    ended = asyncio.Event()

    async def pieces() -> AsyncGenerator[bytes, None]:
        try:
            while True:
                yield b"x" * 100_000
                await asyncio.sleep(0)
        finally:
            ended.set()

    async def handler(_request: Request) -> Answer:
        return Answer(200, b"", b"text/event-stream", pieces=pieces())

    served.listener.handler = handler
    reader, writer = await served.connect()
    writer.write(b"POST /ui/events HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n")
    assert b"200" in await reader.readuntil(b"\r\n\r\n")
    await asyncio.sleep(0.2)  # it is not read: whatever there is room for has come, the rest waits
    writer.transport.abort()
    await asyncio.wait_for(ended.wait(), 60)
