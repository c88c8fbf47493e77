"""One HTTP exchange byte for byte, over a connection of its own: for requests that no honest client would send."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable
from contextlib import suppress

import msgspec

from offbook.client.endpoint import Endpoint
from offbook.client.transport import MAX_ANSWER_BYTES
from offbook.model.errors import InvalidInput, ProviderUnavailable, TooLarge
from offbook.model.http1 import PIECE_BYTES, AnswerParser, head_bytes

PAUSE_SECONDS = 0.1
"""Between two pieces of a request: a provider that has seen enough gets to say so."""


class RawAnswer(msgspec.Struct, frozen=True):
    status: int
    content_type: str
    body: bytes


def request_bytes(method: str, path: str, headers: Iterable[tuple[str, str]], body: bytes = b"") -> bytes:
    lines = ((name.encode(), value.encode()) for name, value in headers)
    return head_bytes(f"{method} {path} HTTP/1.1".encode(), lines) + body


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
    except (OSError, InvalidInput, TooLarge) as error:
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
    answer = AnswerParser(max_body_bytes=MAX_ANSWER_BYTES)
    while not answer.is_whole:
        data = await reader.read(PIECE_BYTES)
        if not data:
            break
        answer.feed(data)
    if answer.head is None or not (answer.is_whole or answer.ends_with_connection):
        raise ProviderUnavailable("the connection was closed without a whole answer")
    return RawAnswer(answer.head.status, answer.head.text(b"content-type") or "", bytes(answer.body))
