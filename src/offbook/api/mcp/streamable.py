"""The daemon's `/mcp`: the SDK's streamable HTTP, of which our listener needs whole requests and whole answers only.

Stateless, with a JSON answer to each POST: nothing is kept between requests, so a restart of the daemon breaks no
client, and each request is served for the caller whose token it came with. A client that wants a stream (GET) or to end
a session (DELETE) is told that there are none, as the protocol allows.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from offbook.api.mcp.asking import DEFAULT_SESSION, Ask
from offbook.api.mcp.server import build_server
from offbook.api.messages import JSON, Answer, Request
from offbook.model.errors import InvalidInput, WrongMethod

UNSENT = frozenset({b"content-type", b"content-length", b"connection", b"transfer-encoding"})
"""Headers that our listener writes itself."""
PLAIN_TEXT = b"text/plain; charset=utf-8"
"""What the SDK says without naming its type is words for a person."""


async def answered(request: Request, ask: Ask, *, agent_id: str | None) -> Answer:
    if request.method != "POST":
        raise WrongMethod(f"{request.method} {request.path}: there are no streams and no sessions here, use POST")
    given = request.header(b"content-type") or ""
    if given.partition(";")[0].strip().lower() != "application/json":
        raise InvalidInput(f"the header content-type is {given!r}: send the message as application/json")
    manager = StreamableHTTPSessionManager(
        build_server(ask, agent_id=agent_id, session_id=DEFAULT_SESSION),
        json_response=True,
        stateless=True,
        max_request_body_size=sys.maxsize,  # the listener has its own limit, and its own guard of Host and Origin
    )
    exchange = Exchange(request)
    async with manager.run():
        await manager.handle_request(exchange.scope(), exchange.receive, exchange.send)
    return exchange.answer()


class Exchange:
    """One request as an ASGI application is given it, and its answer put together."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._is_read = False
        self._status = 500
        self._headers: list[tuple[bytes, bytes]] = []
        self._body = bytearray()

    def scope(self) -> dict[str, Any]:
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": self._request.method,
            "scheme": "http",
            "path": self._request.path,
            "raw_path": self._request.path.encode("latin-1"),
            "query_string": b"",
            "root_path": "",
            "headers": list(self._request.headers.items()),
        }

    async def receive(self) -> dict[str, Any]:
        if self._is_read:
            # Whether the client is still there is the listener's to know: it cancels the request where it is not.
            await asyncio.get_running_loop().create_future()
        self._is_read = True
        return {"type": "http.request", "body": self._request.body, "more_body": False}

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._headers = [(bytes(name).lower(), bytes(value)) for name, value in message.get("headers", ())]
        elif message["type"] == "http.response.body":
            self._body += message.get("body", b"")

    def answer(self) -> Answer:
        content_type = dict(self._headers).get(b"content-type", PLAIN_TEXT if self._body else JSON)
        extra = b"".join(b"%b: %b\r\n" % header for header in self._headers if header[0] not in UNSENT)
        return Answer(self._status, bytes(self._body), content_type, extra)
