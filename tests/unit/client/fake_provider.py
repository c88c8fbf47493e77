"""A provider small enough to misbehave on demand: real HTTP/1.1 on a real socket, in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import msgspec

BUSY = {
    "type": "urn:offbook:problem:store-busy",
    "title": "The store is overloaded or closing; nothing was stored.",
    "status": 503,
    "detail": "later",
    "retryable": True,
}
WRONG_SHAPE = {
    "type": "urn:offbook:problem:wrong-shape",
    "title": "A field of the request is missing, unknown or of the wrong type.",
    "status": 422,
    "detail": "`role` is none of user, assistant, system, tool",
    "retryable": False,
}
UNAUTHORIZED = {
    "type": "urn:offbook:problem:unauthorized",
    "title": "A token is needed, and this one is missing or not known.",
    "status": 401,
    "detail": "no token",
    "retryable": False,
}
FORBIDDEN = {
    "type": "urn:offbook:problem:forbidden",
    "title": "This caller may not do that.",
    "status": 403,
    "detail": "this token is for other agents",
    "retryable": False,
}

ENTRY = {
    "id": "m1",
    "agentId": "main",
    "sessionId": "s",
    "text": "The ferry is called Aurora.",
    "ts": "2026-01-02T03:04:05Z",
    "score": 0.5,
    "foundBy": ["text"],
    "span": {"firstSeq": 1, "lastSeq": 1},
    "tier": "hot",
    "pinned": False,
    "origin": "user",
}
RECALLED: dict[str, dict[str, Any]] = {
    "recall": {"entries": [ENTRY], "tookMs": 1.5, "degraded": []},
    "pin": {"changed": 1, "entryIds": ["m1"]},
    "unpin": {"changed": 0, "entryIds": []},
    "cross": {"enabled": True, "agents": ["bea"]},
    "reindex": {"entries": 3, "embedded": 0, "waiting": 3},
    "maintain": {"agentId": "ada", "runs": [{"task": "index", "did": {"indexed": 3}, "seconds": 0.1}], "health": []},
}

DROP = object()
"""Do what was asked, then hang up without a word: the acknowledgement is lost."""
HANG_UP = object()
"""Hang up before doing anything."""


@dataclass
class Request:
    verb: str
    body: Any
    headers: dict[str, str]
    connection: int


@dataclass
class FakeProvider:
    """`plan` holds what happens to the next requests: DROP, HANG_UP, a problem document, raw bytes, or None."""

    socket: Path | None = None
    tls: ssl.SSLContext | None = None
    token: str | None = None
    delay_seconds: float = 0.0
    is_chunked: bool = False
    closes_each: bool = False
    refused_text: str | None = None
    forbidden_agents: frozenset[str] = frozenset()
    plan: deque[Any] = field(default_factory=deque)
    requests: list[Request] = field(default_factory=list)
    sessions: dict[tuple[str, str], list[dict[str, Any]]] = field(default_factory=dict)
    extra_fields: dict[str, Any] = field(default_factory=dict)
    connections: int = 0
    port: int = 0

    # ── running ──

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        if self.socket is not None:
            return f"unix://{self.socket}"
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def start(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._writers: set[asyncio.StreamWriter] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._shut(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(120)
        self._loop.close()

    def close_idle(self) -> None:
        """Hang up on everybody, as a server does with connections that have been idle too long."""
        asyncio.run_coroutine_threadsafe(self._hang_up(), self._loop).result(10)

    async def _listen(self) -> None:
        if self.socket is not None:
            self.socket.unlink(missing_ok=True)
            self._server = await asyncio.start_unix_server(self._serve, self.socket, limit=2**26)
            return
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, ssl=self.tls, limit=2**26)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _hang_up(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    async def _shut(self) -> None:
        self._server.close()
        await self._hang_up()
        if self.socket is not None:
            self.socket.unlink(missing_ok=True)
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # ── serving ──

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        self._writers.add(writer)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while await self._serve_one(reader, writer, number):
                pass
        self._writers.discard(writer)
        writer.close()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        verb = first.split(" ")[1].removeprefix("/v1/")
        request = Request(verb, msgspec.json.decode(body) if body else None, headers, number)
        self.requests.append(request)
        if self.delay_seconds:
            await asyncio.sleep(self.delay_seconds)
        fault = self.plan.popleft() if self.plan else None
        if fault is HANG_UP:
            return False
        if isinstance(fault, bytes):
            writer.write(fault)
            return False
        if isinstance(fault, dict):
            status, answer = fault["status"], fault
        else:
            status, answer = self._answer(request)
        if fault is DROP:
            return False
        await self._write(writer, status, msgspec.json.encode(answer))
        return not self.closes_each

    async def _write(self, writer: asyncio.StreamWriter, status: int, body: bytes) -> None:
        close = "connection: close\r\n" if self.closes_each else ""
        head = f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{close}"
        if not self.is_chunked:
            writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
            await writer.drain()
            return
        writer.write(f"{head}transfer-encoding: chunked\r\n\r\n".encode())
        for start in range(0, len(body), 7):
            part = body[start : start + 7]
            writer.write(b"%x\r\n%b\r\n" % (len(part), part))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    def _answer(self, request: Request) -> tuple[int, Any]:
        if self.token is not None and request.headers.get("authorization") != f"Bearer {self.token}":
            return 401, UNAUTHORIZED
        body = request.body or {}
        if request.verb == "ping":
            return 200, {"ok": True, "latencyMs": 0.1}
        if request.verb == "onMessage":
            return self._store(body)
        if request.verb in ("getCompressedContext", "hooks/session-start"):
            return 200, self._context(body)
        if request.verb == "hooks/pre-compaction":
            return 200, {"saved": len(body.get("messages", []))}
        if request.verb.startswith("hooks/"):
            return 200, {"ok": True}
        if request.verb in RECALLED:
            return 200, RECALLED[request.verb] | self.extra_fields
        if request.verb == "missing":
            log = self.sessions.get((body.get("agentId", ""), body["sessionId"]), [])
            known = {each.get("id") for each in log}
            return 200, {"missing": [each for each in body["ids"] if each not in known], **self.extra_fields}
        if request.verb in ("status", "audit", "log"):
            return 200, {"verb": request.verb, "body": body}
        return 404, {"type": "urn:offbook:problem:unknown-verb", "title": "There is no such verb.", "status": 404}

    def _store(self, body: dict[str, Any]) -> tuple[int, Any]:
        if not body["sessionId"]:
            return 422, WRONG_SHAPE
        if body.get("agentId", "") in self.forbidden_agents:
            return 403, FORBIDDEN
        log = self.sessions.setdefault((body.get("agentId", ""), body["sessionId"]), [])
        messages = body.get("messages") or [body["message"]]
        if self.refused_text is not None and any(self.refused_text in str(each["content"]) for each in messages):
            return 422, WRONG_SHAPE
        known = {each["id"] for each in log if "id" in each}
        new: list[dict[str, Any]] = []
        for each in messages:
            if each.get("id") not in known:
                new.append(each)
                known |= {each["id"]} if "id" in each else set()
        log.extend(new)
        return 200, {
            "accepted": len(new),
            "duplicates": len(messages) - len(new),
            "firstSeq": len(log) - len(new) + 1,
            "lastSeq": len(log),
            **self.extra_fields,
        }

    def _context(self, body: dict[str, Any]) -> Any:
        log = self.sessions.get((body.get("agentId", ""), body["sessionId"]))
        if not log:
            return None
        return {
            "sessionId": body["sessionId"],
            "agentId": body.get("agentId", "main"),
            "generation": 1,
            "text": "…",
            "messages": log,
            "chars": 1,
            "maxChars": body.get("maxChars", 1000),
            "covers": {"firstSeq": 1, "lastSeq": len(log), **self.extra_fields},
            "parts": [{"kind": "verbatim", "firstSeq": 1, "lastSeq": len(log), "chars": 1, **self.extra_fields}],
            "builtAt": "2026-01-01T00:00:00Z",
            **self.extra_fields,
        }

    # ── what arrived ──

    def texts(self, session_id: str, agent_id: str = "") -> list[Any]:
        return [message["content"] for message in self.sessions.get((agent_id, session_id), [])]

    def claims(self) -> list[dict[str, str]]:
        return [
            dict(part.split("=", 1) for part in request.headers["offbook-capture"].split("; "))
            for request in self.requests
            if "offbook-capture" in request.headers
        ]
