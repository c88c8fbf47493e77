"""The proxy in this process, in front of a server that sends just the bytes a test wants."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Literal, cast

import pytest

from offbook.client.async_client import AsyncClient
from offbook.client.endpoint import Endpoint
from offbook.contrib.proxy.enricher import Enricher
from offbook.contrib.proxy.forwarding import Forwarder
from offbook.contrib.proxy.server import Guard, ProxyServer, read_listen, read_upstream
from offbook.contrib.proxy.swaps import Limits
from offbook.contrib.proxy.upstream import Upstream
from offbook.model.errors import InvalidInput, ProviderUnavailable, SettingsError
from offbook.model.home import token_digest
from offbook.model.types import Caller
from tests.unit.contrib.proxy.test_enricher import Memory

Reply = Callable[[asyncio.StreamReader, asyncio.StreamWriter, bytes], Awaitable[None]]


class Bench:
    """`reply` is given each request's head, and has its body to read."""

    def __init__(self) -> None:
        self.memory = Memory()
        self.heads: list[bytes] = []
        self.connections = 0
        self.reply: Reply = plainly(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        self.guard = Guard(None, "main")
        self.tls: ssl.SSLContext | None = None
        """Of the API."""
        self.port = 0

    async def start(self) -> None:
        self._api = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self.tls)
        api_port = self._api.sockets[0].getsockname()[1]
        scheme: Literal["http", "https"] = "https" if self.tls else "http"
        self._upstream = Upstream(Endpoint(scheme=scheme, host="127.0.0.1", port=api_port, path="/v1"))
        self.memory.trouble = ProviderUnavailable("not part of this")
        enricher = Enricher(cast(AsyncClient, self.memory), Limits(100_000, 0.85), deadline_seconds=10.0)
        self._server = ProxyServer(Forwarder(self._upstream, enricher), self.guard)
        opened = socket.create_server(("127.0.0.1", 0))
        self.port = opened.getsockname()[1]
        await self._server.start(opened)

    async def close(self) -> None:
        await self._server.close(1)
        self._upstream.close()
        self._api.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.heads.append(head)
                await self.reply(reader, writer, head)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def send(self, *pieces: bytes, until_closed: bool = True) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
            async with asyncio.timeout(120):
                return await reader.read() if until_closed else await reader.readuntil(b"\r\n\r\n")
        finally:
            writer.close()


def plainly(answer: bytes, *, hang_up: bool = False) -> Reply:
    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes) -> None:
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                await reader.readexactly(int(line.partition(b":")[2]))
        writer.write(answer)
        await writer.drain()
        if hang_up:
            raise ConnectionResetError

    return reply


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    await made.start()
    yield made
    await made.close()


GET = b"GET /v1/models?a=%20b HTTP/1.1\r\nHost: localhost\r\nconnection: close\r\n\r\n"
CHAT = b'{"messages":[{"role":"user","content":"Hi"}]}'
POST = (
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\ncontent-type: application/json\r\n"
    b"connection: close\r\ncontent-length: %d\r\n\r\n%b" % (len(CHAT), CHAT)
)


async def test_the_head_is_passed_on_without_what_is_ours(bench: Bench) -> None:
    got = await bench.send(
        b"GET /v1/models?a=%20b HTTP/1.1\r\nHost: localhost\r\nconnection: close\r\nAuthorization: Bearer k\r\n"
        b"X-Case: Kept\r\nOffbook-Token: t\r\noffbook-session: s\r\nTE: trailers\r\n\r\n"
    )
    assert got == b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok"
    host = bench.heads[0].split(b"\r\n")[1]
    assert host.startswith(b"host: 127.0.0.1:")
    rest = [line for line in bench.heads[0].split(b"\r\n") if line != host]
    assert rest == [b"GET /v1/models?a=%20b HTTP/1.1", b"Authorization: Bearer k", b"X-Case: Kept", b"", b""]


async def test_connections_are_kept_on_both_sides(bench: Bench) -> None:
    request = GET.replace(b"connection: close\r\n", b"")
    reader, writer = await asyncio.open_connection("127.0.0.1", bench.port)
    for _ in range(3):
        writer.write(request)
        assert (await reader.readuntil(b"\r\n\r\nok")).startswith(b"HTTP/1.1 200 OK")
    writer.close()
    assert bench.connections == 1


async def test_a_kept_connection_that_was_closed_meanwhile_is_opened_anew(bench: Bench) -> None:
    bench.reply = plainly(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", hang_up=True)
    for _ in range(3):
        assert (await bench.send(GET)).endswith(b"ok")
        assert (await bench.send(POST)).endswith(b"ok")
    assert bench.connections == 6


async def test_what_streams_is_passed_on_piece_by_piece(bench: Bench) -> None:
    go_on = asyncio.Event()

    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes) -> None:
        await reader.readexactly(len(CHAT))
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n5\r\nfirst"
        )
        await writer.drain()
        await go_on.wait()
        writer.write(b"\r\n6\r\nsecond\r\n0\r\n\r\n")

    bench.reply = reply
    reader, writer = await asyncio.open_connection("127.0.0.1", bench.port)
    writer.write(POST)
    async with asyncio.timeout(120):
        assert (await reader.readuntil(b"first")).endswith(b"\r\n\r\n5\r\nfirst")  # while the second is still to come
        go_on.set()
        assert await reader.read() == b"\r\n6\r\nsecond\r\n0\r\n\r\n"
    writer.close()


async def test_an_answer_that_breaks_off_is_broken_off_here_too(bench: Bench) -> None:
    broken = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nfirst\r\n"
    bench.reply = plainly(broken, hang_up=True)
    try:
        got = await bench.send(GET)
    except ConnectionResetError:
        return
    assert not got.endswith(b"0\r\n\r\n")
    assert b"offbook_proxy" not in got


@pytest.mark.parametrize("answer", [b"", b"not http at all\r\n\r\n"])
async def test_an_api_that_says_nothing_is_a_bad_gateway(bench: Bench, answer: bytes) -> None:
    bench.reply = plainly(answer, hang_up=True)
    got = await bench.send(POST)
    assert b'"type":"offbook_proxy"' in got
    assert got.startswith(b"HTTP/1.1 502 ")


async def test_nobody_at_the_api_is_a_bad_gateway(bench: Bench) -> None:
    bench._api.close()
    await bench._api.wait_closed()
    got = await bench.send(GET)
    assert got.startswith(b"HTTP/1.1 502 ")


async def test_answers_without_a_body_and_interim_ones(bench: Bench) -> None:
    bench.reply = plainly(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n")
    assert await bench.send(GET) == b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n"
    bench.reply = plainly(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n")
    got = await bench.send(GET.replace(b"GET", b"HEAD"))
    assert got == b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\nconnection: close\r\n\r\n"


async def test_an_answer_without_a_length_ends_where_its_connection_does(bench: Bench) -> None:
    bench.reply = plainly(b"HTTP/1.0 200 Fine\r\n\r\nto the end", hang_up=True)
    got = await bench.send(GET)
    assert (
        got
        == b"HTTP/1.1 200 Fine\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\na\r\nto the end\r\n0\r\n\r\n"
    )
    got = await bench.send(GET.replace(b"HTTP/1.1", b"HTTP/1.0"))
    assert got == b"HTTP/1.1 200 Fine\r\nconnection: close\r\n\r\nto the end"


async def test_an_upload_in_chunks_arrives_as_it_was_sent(bench: Bench) -> None:
    arrived = bytearray()

    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes) -> None:
        arrived.extend(await reader.readuntil(b"0\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")

    bench.reply = reply
    head = b"POST /v1/files HTTP/1.1\r\nHost: localhost\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n"
    assert (await bench.send(head, b"3\r\nabc\r\n", b"2;x=y\r\nde\r\n0\r\n\r\n")).endswith(b"ok")
    assert bytes(arrived) == b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"


async def test_a_client_is_told_to_go_on(bench: Bench) -> None:
    got = await bench.send(POST.replace(b"connection: close", b"connection: close\r\nexpect: 100-continue"))
    assert got.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK")
    assert b"expect" not in bench.heads[0]


@pytest.mark.parametrize(
    ("request_head", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", b"403"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil.example\r\n\r\n", b"403"),
        (b"CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: localhost\r\n\r\n", b"400"),
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 20_000 + b"\r\n", b"413"),
    ],
)
async def test_what_is_refused_never_reaches_the_api(bench: Bench, request_head: bytes, status: bytes) -> None:
    got = await bench.send(request_head)
    assert got.split(b" ", 2)[1] == status
    assert bench.heads == []


async def test_beyond_loopback_a_token_is_asked_for(bench: Bench) -> None:
    await bench.close()
    callers = {token_digest("owner"): Caller(name="owner")}
    callers[token_digest("other")] = Caller(name="token:x", agents=frozenset({"other"}))
    callers[token_digest("own")] = Caller(name="token:y", agents=frozenset({"main"}))
    bench.guard = Guard(lambda: callers, "main")
    await bench.start()
    request = GET.replace(b"Host: localhost", b"Host: host.example")
    statuses = {}
    for token in (b"", b"wrong", b"other", b"own", b"owner"):
        got = await bench.send(request.replace(b"connection:", b"Offbook-Token: " + token + b"\r\nconnection:"))
        statuses[token] = got.split(b" ", 2)[1]
    assert statuses == {b"": b"401", b"wrong": b"401", b"other": b"403", b"own": b"200", b"owner": b"200"}


def test_where_it_listens() -> None:
    assert read_listen("127.0.0.1:9", None)[:2] == ("127.0.0.1", 9)
    assert read_listen("[::1]:9", None)[:2] == ("::1", 9)
    assert read_listen("9", None)[:2] == ("127.0.0.1", 9)
    for wrong in ("", ":9", "localhost:", "localhost:x", "localhost:70000"):
        with pytest.raises(InvalidInput):
            read_listen(wrong, None)
    with pytest.raises(SettingsError, match="tls-cert"):
        read_listen("0.0.0.0:9", None)
    tls: Any = object()
    assert read_listen("0.0.0.0:9", tls).is_local is False


def test_what_is_an_api() -> None:
    assert read_upstream("https://api.openai.com/v1/").path == "/v1"
    for wrong in ("unix:///x", "ftp://x", "/x", "api.openai.com/v1", ""):
        with pytest.raises(InvalidInput, match="http:// or https://") as raised:
            read_upstream(wrong)
        assert "unix" not in raised.value.detail.removeprefix(repr(wrong))
    for wrong in ("http://", "https://x:y", "https://x/a b"):
        with pytest.raises(InvalidInput):
            read_upstream(wrong)
    for wrong in ("http://u:p@localhost/v1", "https://localhost/v1?api-version=1", "https://localhost/v1#a"):
        with pytest.raises(InvalidInput, match=r"give the API's base URL as https?://localhost:\d+/v1, without"):
            read_upstream(wrong)
    assert Upstream(read_upstream("https://api.openai.com/v1")).host_header == b"api.openai.com"
    assert Upstream(read_upstream("http://[::1]:80/v1")).host_header == b"[::1]"
    assert Upstream(read_upstream("http://localhost:8000")).host_header == b"localhost:8000"


# ── what the API does not take, or says ──


def refusing(status: bytes) -> Reply:
    """As a template does that takes no assistant's message first."""

    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes) -> None:
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        body = await reader.readexactly(int(length.partition(b":")[2]))
        is_taken = b"MEMORY" not in body
        writer.write(b"HTTP/1.1 %b\r\ncontent-length: 2\r\n\r\nok" % (b"200 OK" if is_taken else status))

    return reply


@pytest.mark.parametrize("status", [b"400 Bad Request", b"500 Internal Server Error"])
async def test_what_a_template_does_not_take_is_sent_as_it_came_and_later_at_once(bench: Bench, status: bytes) -> None:
    bench.memory.trouble = None
    bench.reply = refusing(status)
    sent = []
    for _ in range(4):
        before = len(bench.heads)
        assert (await bench.send(POST)).startswith(b"HTTP/1.1 200 OK")
        sent.append(len(bench.heads) - before)
    assert sent == [2, 2, 1, 1]


async def test_a_refusal_of_the_clients_own_request_says_nothing_about_memory(bench: Bench) -> None:
    bench.memory.trouble = None
    bench.reply = plainly(b"HTTP/1.1 500 No\r\ncontent-length: 2\r\n\r\nno")
    for _ in range(3):
        before = len(bench.heads)
        assert (await bench.send(POST)).startswith(b"HTTP/1.1 500 No")
        assert len(bench.heads) - before == 2


async def test_whatever_reading_an_answer_raises_the_client_has_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_given: Any, **_fields: Any) -> None:
        raise LookupError("nonsense")

    bench.reply = plainly(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}")
    request = POST.replace(b"connection: close\r\n", b"")
    for name in ("answer", "feed"):
        monkeypatch.setattr(f"offbook.contrib.proxy.chat_api.Reader.{name}", broken)
        reader, writer = await asyncio.open_connection("127.0.0.1", bench.port)
        async with asyncio.timeout(120):
            for _ in range(2):  # and its connection
                writer.write(request)
                assert (await reader.readuntil(b"{}")).startswith(b"HTTP/1.1 200 OK")
        writer.close()
