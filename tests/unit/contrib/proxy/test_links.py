"""Trouble on the way to the API and back, and what may be reached there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from offbook.contrib.proxy.forwarding import is_beneath
from tests.acceptance.scripted_api import Says, events
from tests.unit.contrib.proxy.test_forwarding import CHAT, GET, POST, Bench, plainly

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    await made.start()
    yield made
    await made.close()


async def kept_link(bench: Bench) -> None:
    """A connection to the API that the next request will use."""
    assert (await bench.send(GET)).endswith(b"ok")
    assert bench.connections == 1


@pytest.mark.parametrize("broken", [b"not http at all\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-le", b"H"])
async def test_what_the_api_has_begun_to_answer_is_not_asked_twice(bench: Bench, broken: bytes) -> None:
    await kept_link(bench)
    bench.reply = plainly(broken, hang_up=True)
    got = await bench.send(POST)
    assert got.startswith(b"HTTP/1.1 502 ")
    assert len(bench.heads) == 2


async def test_a_head_without_an_end_is_the_apis_fault(bench: Bench) -> None:
    await kept_link(bench)
    bench.reply = plainly(b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 20_000)
    got = await bench.send(POST)
    assert got.startswith(b"HTTP/1.1 502 ")
    assert len(bench.heads) == 2


async def test_a_link_that_was_closed_just_as_it_is_used_is_opened_anew(bench: Bench) -> None:
    await kept_link(bench)

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes) -> None:
        bench.reply = plainly(OK)
        raise ConnectionResetError

    bench.reply = once
    assert (await bench.send(POST)).endswith(b"ok")
    assert (len(bench.heads), bench.connections) == (3, 2)


async def test_an_answer_that_nobody_asked_for_is_not_taken_for_the_next(bench: Bench) -> None:
    extra = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nother"
    bench.reply = plainly(OK + extra)
    assert (await bench.send(GET)).endswith(b"ok")
    bench.reply = plainly(OK)
    assert (await bench.send(GET)).endswith(b"ok")
    assert bench.connections == 2


async def test_a_client_that_leaves_while_the_api_thinks_leaves_no_link_behind(bench: Bench) -> None:
    await kept_link(bench)
    thinking, is_closed = asyncio.Event(), asyncio.Event()

    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes) -> None:
        await reader.readexactly(len(CHAT))
        thinking.set()
        try:
            assert not await reader.read(1)
        finally:
            is_closed.set()
        raise ConnectionResetError

    bench.reply = reply
    _, writer = await asyncio.open_connection("127.0.0.1", bench.port)
    writer.write(POST)
    async with asyncio.timeout(120):
        await thinking.wait()
        writer.close()
        await is_closed.wait()


async def test_a_client_that_leaves_at_the_end_of_its_answer_has_had_it(bench: Bench) -> None:
    """Many close at `[DONE]`, before the API's last chunk."""
    held = asyncio.Event()

    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes) -> None:
        await reader.readexactly(len(CHAT))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        for event in events(Says("Hello.")):
            writer.write(b"%x\r\n%b\r\n" % (len(event), event))
        await held.wait()

    bench.reply = reply
    reader, writer = await asyncio.open_connection("127.0.0.1", bench.port)
    writer.write(POST)
    async with asyncio.timeout(120):
        await reader.readuntil(b"[DONE]")
        writer.close()
        while len(bench.memory.recorded) < 2:
            await asyncio.sleep(0.01)
    held.set()
    assert [message.content for _, message in bench.memory.recorded] == ["Hi", "Hello."]


# ── an API that answers before it has read all ──

LARGE = 8_000_000
REFUSED = b"HTTP/1.1 413 Payload Too Large\r\ncontent-length: 7\r\n\r\ntoo big"


def large(path: bytes) -> bytes:
    """More than lies between two programs while nobody reads."""
    body = CHAT.replace(b"Hi", b"x" * LARGE)
    return (
        b"POST %b HTTP/1.1\r\nHost: localhost\r\ncontent-type: application/json\r\nconnection: close\r\n"
        b"content-length: %d\r\n\r\n%b" % (path, len(body), body)
    )


async def unread(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes) -> None:
    writer.write(REFUSED)
    await asyncio.Event().wait()


@pytest.mark.parametrize("path", [b"/v1/chat/completions", b"/v1/files"])
async def test_a_refusal_of_what_was_not_read_reaches_the_client(bench: Bench, path: bytes) -> None:
    bench.reply = unread
    got = await bench.send(large(path))
    assert got.startswith(b"HTTP/1.1 413 ")
    assert got.endswith(b"\r\n\r\ntoo big")
    assert len(bench.heads) == 1


async def test_a_request_that_was_refused_unread_is_sent_again_as_it_came(bench: Bench) -> None:
    bench.memory.trouble = None
    bare = plainly(OK)

    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes) -> None:
        await (unread if len(bench.heads) == 1 else bare)(reader, writer, head)

    bench.reply = reply
    assert (await bench.send(large(b"/v1/chat/completions"))).endswith(b"ok")
    assert len(bench.heads) == 2


async def test_what_is_left_of_a_request_is_not_taken_for_the_next(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("offbook.contrib.proxy.forwarding.LINGER_SECONDS", 30.0)
    bench.reply = unread
    head, _, body = large(b"/v1/files").replace(b"connection: close\r\n", b"").partition(b"\r\n\r\n")
    smuggled = b"GET /v1/smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", bench.port)
    writer.write(head + b"\r\n\r\n" + body[:1_000])
    async with asyncio.timeout(120):
        assert b"connection: close\r\n" in await reader.readuntil(b"too big")
        writer.write(smuggled + body[1_000 + len(smuggled) :])
        assert await reader.read() == b""
    writer.close()
    assert len(bench.heads) == 1


async def test_an_upload_that_was_read_keeps_its_connection(bench: Bench) -> None:
    request = large(b"/v1/files").replace(b"connection: close\r\n", b"")
    reader, writer = await asyncio.open_connection("127.0.0.1", bench.port)
    async with asyncio.timeout(60):
        for _ in range(2):
            writer.write(request)
            assert b"connection" not in await reader.readuntil(b"\r\n\r\nok")
    writer.close()


OUTSIDE = [
    b"/",
    b"/admin",
    b"/v1x/models",
    b"/V1/models",
    b"//v1/models",
    b"*",
    b"http://localhost/admin",
    b"/v1/../admin",
    b"/v1/%2E%2e/admin",
    b"/v1/..%2fadmin",
    b"/v1/%252e%252e/admin",
    b"/v1/..;a=b/admin",
    b"/v1/..\\admin",
    b"/v1/./models",
]


@pytest.mark.parametrize("target", OUTSIDE)
async def test_only_what_is_beneath_the_apis_path_can_be_reached(bench: Bench, target: bytes) -> None:
    method = b"OPTIONS" if target == b"*" else b"GET"
    got = await bench.send(b"%b %b HTTP/1.1\r\nHost: localhost\r\nconnection: close\r\n\r\n" % (method, target))
    assert got.split(b" ", 2)[1] in (b"404", b"400")
    assert bench.heads == []


def test_what_is_beneath() -> None:
    for target in (b"/v1", b"/v1/", b"/v1/models", b"/v1?a=../b", b"/v1/models/org%2Fname", b"/v1/a..b", b"/v1/..."):
        assert is_beneath(target, b"/v1")
        assert is_beneath(target, b"")
    for target in OUTSIDE[:6]:
        assert not is_beneath(target, b"/v1")
