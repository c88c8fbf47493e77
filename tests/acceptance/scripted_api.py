"""An OpenAI-compatible API of ours that says what the test decides, byte for byte, and keeps what it was sent."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.acceptance.scripted_responses import MODEL, Output, Responses, pieces, streamed

__all__ = ["MODEL", "Api", "Received", "Says", "Sends", "events", "whole"]


@dataclass(frozen=True)
class Received:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def messages(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.json()["messages"]
        return found

    @property
    def input(self) -> list[dict[str, Any]]:
        """Of a request to `/responses`."""
        found = self.json()["input"]
        return [{"role": "user", "content": found}] if isinstance(found, str) else found

    @property
    def text(self) -> str:
        body = self.json()
        return json.dumps(body.get("messages", body.get("input")), ensure_ascii=False)


@dataclass(frozen=True)
class Says:
    """An answer as the API gives it: streamed where the request asks for it."""

    text: str = ""
    calls: Sequence[tuple[str, str, str]] = ()
    """Id, name, arguments."""
    pause_seconds: float = 0.0
    """Between two pieces of a stream."""
    thought: str = ""
    """Before it is said; of `/responses` only, as are calls of custom tools."""
    custom_calls: Sequence[tuple[str, str, str]] = ()
    """Id, name, input."""


@dataclass(frozen=True)
class Sends:
    """Just these bytes."""

    status: int
    body: bytes
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()


@dataclass
class Api:
    reply: Callable[[Received], Says | Sends]
    received: list[Received] = field(default_factory=list)
    streams_open: int = 0
    most_streams_open: int = 0
    broken_off: int = 0
    """Streams whose reader went away."""
    hold: threading.Event | None = None
    """Streams wait for it after their first piece."""
    responses: Responses = field(default_factory=Responses)
    refused: list[str] = field(default_factory=list)
    """What the real API would have said to a request that it does not take."""

    def __post_init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self.port = 0
        started = threading.Event()

        async def start() -> None:
            server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=512)
            self.port = server.sockets[0].getsockname()[1]
            started.set()

        def run() -> None:
            self._loop.create_task(start())
            self._loop.run_forever()

        self._thread = threading.Thread(target=run, daemon=True, name="scripted API")
        self._thread.start()
        assert started.wait(120)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(120)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                method, path, _ = head[0].split(" ", 2)
                headers = {
                    name.lower(): value.strip() for name, _, value in (h.partition(":") for h in head[1:]) if name
                }
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                received = Received(method, path, headers, body)
                self.received.append(received)
                await self._answer(received, self.reply(received), reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(
        self, received: Received, reply: Says | Sends, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if isinstance(reply, Says) and received.path.endswith("/responses"):
            given = self._responded(received.json(), reply)
        elif isinstance(reply, Says):
            given = events(reply) if received.json().get("stream") else Sends(200, whole(reply))
        else:
            given = reply
        if isinstance(given, list):
            await self._stream(given, reply.pause_seconds if isinstance(reply, Says) else 0.0, reader, writer)
            return
        reply = given
        extra = "".join(f"{name}: {value}\r\n" for name, value in reply.headers)
        writer.write(
            f"HTTP/1.1 {reply.status} Scripted\r\ncontent-type: {reply.content_type}\r\n{extra}"
            f"content-length: {len(reply.body)}\r\n\r\n".encode()
            + reply.body
        )
        await writer.drain()

    def _responded(self, request: Any, reply: Says) -> Sends | list[bytes]:
        fault = self.responses.fault(request)
        if fault is not None:
            self.refused.append(fault)
            return Sends(400, json.dumps({"error": {"message": fault, "type": "invalid_request_error"}}).encode())
        output = Output(reply.thought, reply.text, reply.calls, reply.custom_calls)
        response = self.responses.response(request, output)
        return streamed(response) if request.get("stream") else Sends(200, json.dumps(response).encode())

    async def _stream(
        self, given: list[bytes], pause_seconds: float, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.streams_open += 1
        self.most_streams_open = max(self.most_streams_open, self.streams_open)
        try:
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
            for number, event in enumerate(given):
                writer.write(b"%x\r\n%b\r\n" % (len(event), event))
                await writer.drain()
                while number == 1 and self.hold is not None and not self.hold.is_set():
                    await asyncio.sleep(0.01)
                    if reader.at_eof() or writer.is_closing():
                        raise ConnectionResetError
                if pause_seconds:
                    await asyncio.sleep(pause_seconds)
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        except ConnectionError:
            self.broken_off += 1
            raise
        finally:
            self.streams_open -= 1


def whole(reply: Says) -> bytes:
    said: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": None}
    if reply.calls:
        said["tool_calls"] = [
            {"id": name, "type": "function", "function": {"name": called, "arguments": arguments}}
            for name, called, arguments in reply.calls
        ]
    choice = {"index": 0, "message": said, "finish_reason": "tool_calls" if reply.calls else "stop", "logprobs": None}
    return json.dumps(
        {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": MODEL, "choices": [choice]}
    ).encode()


def events(reply: Says) -> list[bytes]:
    """The stream's events, words and pieces of arguments apart."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": piece} for piece in pieces(reply.text)]
    for index, (name, called, arguments) in enumerate(reply.calls):
        begun = {"index": index, "id": name, "type": "function", "function": {"name": called, "arguments": ""}}
        deltas.append({"tool_calls": [begun]})
        deltas += [{"tool_calls": [{"index": index, "function": {"arguments": p}}]} for p in pieces(arguments)]
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "tool_calls" if reply.calls else "stop"})
    documents = [
        {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": MODEL, "choices": [choice]}
        for choice in choices
    ]
    return [*(f"data: {json.dumps(document)}\n\n".encode() for document in documents), b"data: [DONE]\n\n"]
