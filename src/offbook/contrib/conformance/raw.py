"""One HTTP exchange byte for byte, over a connection of its own: for requests that no honest client would send."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable
from contextlib import suppress

import httptools
import msgspec

from offbook.client.endpoint import Endpoint
from offbook.model.errors import ProviderUnavailable

PAUSE_SECONDS = 0.1
"""Between two pieces of a request: a provider that has seen enough gets to say so."""


class RawAnswer(msgspec.Struct, frozen=True):
    status: int
    content_type: str
    body: bytes


def request_bytes(method: str, path: str, headers: Iterable[tuple[str, str]], body: bytes = b"") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def exchange(endpoint: Endpoint, pieces: Iterable[bytes], *, timeout_seconds: float) -> RawAnswer:
    """Sends the pieces one after the other until there is an answer."""
    try:
        async with asyncio.timeout(timeout_seconds):
            reader, writer = await _connect(endpoint)
            try:
                return await _exchange(reader, writer, pieces)
            finally:
                writer.close()
    except TimeoutError:
        raise ProviderUnavailable(f"{endpoint} gave no answer within {timeout_seconds:g} s") from None
    except (OSError, httptools.HttpParserError) as error:
        raise ProviderUnavailable(f"{endpoint} gave no HTTP answer: {error}") from None


async def _exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pieces: Iterable[bytes]) -> RawAnswer:
    answer = asyncio.create_task(_read(reader))
    try:
        for piece in pieces:
            # Whoever refuses a request may close the connection while it is still being written.
            with suppress(ConnectionError):
                writer.write(piece)
                await writer.drain()
            await asyncio.wait([answer], timeout=PAUSE_SECONDS)
            if answer.done():
                break
        return await answer
    finally:
        answer.cancel()


async def _connect(endpoint: Endpoint) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if endpoint.scheme == "unix":
        return await asyncio.open_unix_connection(endpoint.path)
    tls = ssl.create_default_context() if endpoint.scheme == "https" else None
    return await asyncio.open_connection(endpoint.host, endpoint.port, ssl=tls)


async def _read(reader: asyncio.StreamReader) -> RawAnswer:
    response = _Response()
    parser = httptools.HttpResponseParser(response)
    while not response.is_whole:
        data = await reader.read(65_536)
        if not data:
            if not response.has_headers:
                raise ProviderUnavailable("the connection was closed without an answer")
            break
        parser.feed_data(data)
    return RawAnswer(status=parser.get_status_code(), content_type=response.content_type, body=bytes(response.body))


class _Response:
    """httptools' callbacks."""

    def __init__(self) -> None:
        self.content_type = ""
        self.body = bytearray()
        self.has_headers = False
        self.is_whole = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"content-type":
            self.content_type = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.has_headers = True

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.is_whole = True
