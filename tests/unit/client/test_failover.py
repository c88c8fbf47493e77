"""A provider with several nodes: where one is not reached, the next is asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from offbook.client.endpoint import Endpoint
from offbook.client.transport import Transport
from offbook.model.errors import ProviderUnavailable
from tests.ports import free_port


@asynccontextmanager
async def answering(port: int, text: str) -> AsyncIterator[list[bytes]]:
    asked: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            asked.append(head)
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(text), text.encode()))

    server = await asyncio.start_server(answer, "127.0.0.1", port)
    try:
        yield asked
    finally:
        server.close()


def urls(*ports: int) -> str:
    return ",".join(f"http://127.0.0.1:{port}" for port in ports)


def test_several_urls_are_one_endpoint() -> None:
    endpoint = Endpoint.parse("https://a.example:1, https://b.example:2")
    assert [endpoint.host, *(other.host for other in endpoint.others)] == ["a.example", "b.example"]
    assert Endpoint.parse(str(endpoint)) == endpoint
    assert Endpoint.parse("/run/a,b.sock").path == "/run/a,b.sock"
    assert not Endpoint.parse("http://127.0.0.1:1,https://b.example:2").is_loopback


async def test_the_next_node_is_asked_and_stays() -> None:
    gone, there = free_port(), free_port()
    async with answering(there, "hello") as asked, Transport(Endpoint.parse(urls(gone, there))) as transport:
        assert (await transport.get("/v1/ping")).body == b"hello"
        assert b"host: 127.0.0.1:%d\r\n" % there in asked[0]
        # The first is back, and the second, which is asked now, is not left for it.
        async with answering(gone, "first") as first:
            assert (await transport.get("/v1/ping")).body == b"hello"
            assert first == []


async def test_where_none_is_reached_it_says_so() -> None:
    async with Transport(Endpoint.parse(urls(free_port(), free_port()))) as transport:
        with pytest.raises(ProviderUnavailable, match="nobody answers"):
            await transport.get("/v1/ping")
