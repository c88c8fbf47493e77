"""Framing, limits, order and stopping, over real sockets with raw bytes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest

from offbook.errors import Forbidden
from offbook.surfaces.listener import BODY_WORTH_ASKING, MAX_HEAD_BYTES, Listener
from offbook.surfaces.messages import Answer, Request

LIMIT = 100_000


class Served:
    def __init__(self, listener: Listener, port: int) -> None:
        self.listener = listener
        self.port = port

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def ask(self, raw: bytes) -> bytes:
        """Everything that comes back until the connection is closed."""
        reader, writer = await self.connect()
        writer.write(raw)
        answer = await asyncio.wait_for(reader.read(), 10)
        writer.close()
        return answer


async def echo(request: Request) -> Answer:
    if request.path == "/slow":
        await asyncio.sleep(0.2)
    return Answer(200, f"{request.method} {request.path} {len(request.body)} ".encode() + request.body[:100])


def admit(request: Request) -> None:
    if request.path == "/forbidden":
        raise Forbidden("not for you")


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    opened = socket.create_server(("127.0.0.1", 0))
    opened.setblocking(False)
    listener = Listener(echo, admit, max_body_bytes=LIMIT, keep_alive_seconds=30)
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
    answer = await served.ask(raw)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"application/problem+json" in answer


@pytest.mark.parametrize("raw", [b"NONSENSE\r\n\r\n", b"\x16\x03\x01\x00\xa5", b"GET / HTTP/1.1\r\nbad header\r\n\r\n"])
async def test_what_is_not_http_is_refused(served: Served, raw: bytes) -> None:
    answer = await served.ask(raw)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b'"retryable":false' in answer


async def test_a_large_body_is_read_only_where_its_head_is_admitted(served: Served) -> None:
    reader, writer = await served.connect()
    writer.write(f"POST /forbidden HTTP/1.1\r\nHost: x\r\nContent-Length: {BODY_WORTH_ASKING + 1}\r\n\r\n".encode())
    assert (await asyncio.wait_for(reader.readline(), 5)).startswith(b"HTTP/1.1 403 ")
    writer.close()


async def test_an_offer_to_upgrade_is_declined_and_the_request_answered(served: Served) -> None:
    offer = ("Upgrade: h2c", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA", "Connection: Upgrade, HTTP2-Settings")
    reader, writer = await served.connect()
    writer.write(post("/a", b"hello", *offer) + post("/b", b"you", "Connection: close"))
    answer = await asyncio.wait_for(reader.read(), 5)
    assert answer.count(b"HTTP/1.1 200") == 2
    assert b"POST /a 5 hello" in answer
    assert answer.endswith(b"POST /b 3 you")
    writer.close()


async def test_two_hosts_are_refused(served: Served) -> None:
    assert (await served.ask(post("/a", b"", "Host: y"))).startswith(b"HTTP/1.1 400 ")


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
    await writer.drain()
    await asyncio.sleep(0.05)
    writer.transport.abort()
    await asyncio.sleep(0.3)
    assert not served.listener.connections


async def test_silent_connections_are_closed() -> None:
    opened = socket.create_server(("127.0.0.1", 0))
    opened.setblocking(False)
    listener = Listener(echo, admit, max_body_bytes=LIMIT, keep_alive_seconds=0.0)
    await listener.start(opened)
    reader, writer = await asyncio.open_connection("127.0.0.1", opened.getsockname()[1])
    await asyncio.sleep(0.05)
    listener._sweep()
    assert await asyncio.wait_for(reader.read(), 5) == b""
    writer.close()
    await listener.close(1)


async def test_a_stop_lets_the_request_under_way_finish(served: Served) -> None:
    reader, writer = await served.connect()
    idle_reader, idle_writer = await served.connect()
    writer.write(post("/slow", b"1"))
    await asyncio.sleep(0.05)
    await served.listener.close(5)
    assert (await reader.read()).endswith(b"POST /slow 1 1")
    assert await idle_reader.read() == b""
    writer.close()
    idle_writer.close()
