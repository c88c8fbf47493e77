"""HTTP over the socket at the least cost to whoever measures: requests made beforehand, answers barely read."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec

LOST = ConnectionResetError("the provider hung up before its answer was whole")


class Answer(NamedTuple):
    status: int
    body: bytes

    def json(self) -> Any:
        return msgspec.json.decode(self.body)


def request(verb: str, body: Any = None, *, headers: str = "") -> bytes:
    """The bytes of one POST; `headers` are whole lines, each with its line end."""
    content = body if isinstance(body, bytes) else msgspec.json.encode(body or {})
    head = f"POST /v1/{verb} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(content)}\r\n{headers}\r\n"
    return head.encode() + content


def answer_in(received: bytes | bytearray) -> Answer | None:
    """The answer, once it is whole. One at a time: what would follow it is not looked at."""
    end_of_head = received.find(b"\r\n\r\n")
    if end_of_head < 0:
        return None
    at = received.find(b"content-length: ", 0, end_of_head) + len(b"content-length: ")
    length = int(received[at : received.find(b"\r\n", at)])
    body = bytes(received[end_of_head + 4 :])
    return Answer(int(received[9:12]), body) if len(body) >= length else None


class BlockingConnection:
    """One kept-alive connection of somebody who waits for each answer."""

    def __init__(self, path: Path, *, timeout_seconds: float = 30.0) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout_seconds)
        try:
            self._socket.connect(str(path))
        except OSError:
            self._socket.close()
            raise

    def exchange(self, sent: bytes) -> Answer:
        self._socket.sendall(sent)
        received = self._socket.recv(65_536)
        while (answer := answer_in(received)) is None:
            more = self._socket.recv(262_144)
            if not more:
                raise LOST
            received += more
        return answer

    def ask(self, verb: str, **fields: Any) -> Answer:
        return self.exchange(request(verb, fields))

    def close(self) -> None:
        self._socket.close()


class Connection(asyncio.Protocol):
    """One kept-alive connection of a task. Raises ConnectionError where the answer does not come."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[Answer] | None = None
        self._received = bytearray()

    @classmethod
    async def open(cls, path: Path) -> Connection:
        _, connection = await asyncio.get_running_loop().create_unix_connection(cls, str(path))
        return connection

    async def exchange(self, sent: bytes) -> Answer:
        if self._transport is None:
            raise LOST
        self._waiter = asyncio.get_running_loop().create_future()
        self._transport.write(sent)
        return await self._waiter

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        answer = answer_in(self._received)
        if answer is not None:
            self._received.clear()
            waiter, self._waiter = self._waiter, None
            if waiter is not None and not waiter.done():
                waiter.set_result(answer)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(LOST)
