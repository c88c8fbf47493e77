"""The provider under examination: asked as a client asks, or byte for byte over a connection of its own, for
requests that no honest client would send."""

from __future__ import annotations

import asyncio
import secrets
import ssl
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from offbook.client.endpoint import Endpoint
from offbook.client.transport import MAX_ANSWER_BYTES, Answer, Transport, content_of, value_of
from offbook.model.errors import InvalidInput, ProviderUnavailable, TooLarge
from offbook.model.http1 import PIECE_BYTES, AnswerParser, head_bytes
from offbook.model.memory_entry import MemoryEntry, Recollection
from offbook.model.status import AuditReport
from offbook.model.summary import Expansion, Swap
from offbook.model.turn import TurnTokens
from offbook.model.types import CompressedContext, Message, Receipt, Scope, Value

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


# ── The provider under examination, asked through the package's own transport ──


T = TypeVar("T")


def asked_since(report: AuditReport, seq: int) -> list[str]:
    """The verbs that were asked for after event `seq`, in their order; not what a provider did by itself meanwhile."""
    events = sorted(report.events, key=lambda event: event.seq)
    ours = {event.actor for event in events if event.verb == "audit"}
    return [event.verb for event in events if event.seq > seq and event.actor in ours]


ANSWER_SECONDS = 60.0
"""A slow provider is not a broken one; one that says nothing for this long is."""
PLENTY_CHARS = 100_000_000
"""More room than any log of this suite needs."""


class Turn(Value, frozen=True):
    """A prepared turn as the contract has it; that something was left out need not be said."""

    memory: str
    recall: str
    tokens: TurnTokens
    entries: list[MemoryEntry]
    intent: str
    degraded: list[str] = msgspec.field(default_factory=list)


class NotOffered(Exception):
    """The provider has no such verb."""

    def __init__(self, verb: str) -> None:
        self.verb = verb
        super().__init__(f"{verb} is answered with 404")


class Provider:
    """Asks as one agent that no host has. Each check asks for sessions, and where it matters agents, of its own."""

    def __init__(self, endpoint: Endpoint, token: str | None) -> None:
        self.endpoint = endpoint
        self.token = token
        self.agent_id = f"conformance-{secrets.token_hex(4)}"
        self._transport = Transport(endpoint, token=token, timeout_seconds=ANSWER_SECONDS)

    def close(self) -> None:
        self._transport.close()

    # ── names nobody else has ──

    def new_agent(self) -> str:
        return f"{self.agent_id}-{secrets.token_hex(4)}"

    def new_session(self, agent_id: str | None = None) -> Scope:
        return Scope(agent_id=agent_id or self.agent_id, session_id=f"conformance/{secrets.token_hex(8)}")

    # ── the verbs ──

    async def ask(self, verb: str, fields: dict[str, Any] | None = None) -> bytes:
        """The body of a success; a refusal is raised."""
        return content_of(await self._post(verb, fields or {}))

    async def ask_value(self, verb: str, kind: type[T], fields: dict[str, Any] | None = None) -> T:
        return value_of(await self._post(verb, fields or {}), kind)

    async def get(self, path: str) -> Answer:
        return await self._transport.get(path)

    async def record(self, scope: Scope, *messages: dict[str, Any]) -> Receipt:
        return await self.ask_value("onMessage", Receipt, {**named(scope), "messages": list(messages)})

    async def record_one(self, scope: Scope, message: dict[str, Any]) -> Receipt:
        return await self.ask_value("onMessage", Receipt, {**named(scope), "message": message})

    async def context(self, scope: Scope, max_chars: int = PLENTY_CHARS) -> CompressedContext:
        fields = {**named(scope), "maxChars": max_chars}
        return await self.ask_value("getCompressedContext", CompressedContext, fields)

    async def context_bytes(self, scope: Scope, max_chars: int = PLENTY_CHARS) -> bytes:
        return await self.ask("getCompressedContext", {**named(scope), "maxChars": max_chars})

    async def messages(self, scope: Scope) -> list[Message]:
        """What the provider holds of a session, as a context with room for all of it shows."""
        return (await self.context(scope)).messages

    async def swap(self, scope: Scope, used_tokens: int, context_window: int, **fields: Any) -> Swap:
        asked = {**named(scope), "usedTokens": used_tokens, "contextWindow": context_window, **fields}
        return await self.ask_value("swap", Swap, asked)

    async def expand(self, agent_id: str, **fields: Any) -> Expansion:
        return await self.ask_value("expand", Expansion, {"agentId": agent_id, **fields})

    async def recall(self, scope: Scope, query: str, /, **fields: Any) -> list[MemoryEntry]:
        asked = {**named(scope), "query": query, **fields}
        return (await self.ask_value("recall", Recollection, asked)).entries

    async def prepare_turn(self, scope: Scope, prompt: str, /, **fields: Any) -> Turn:
        return await self.ask_value("prepareTurn", Turn, {**named(scope), "prompt": prompt, **fields})

    async def audit(self, agent_id: str, **fields: Any) -> AuditReport:
        return await self.ask_value("audit", AuditReport, {"agentId": agent_id, **fields})

    async def status(self, agent_id: str) -> dict[str, Any]:
        return await self.ask_value("status", dict[str, Any], {"agentId": agent_id})

    # ── byte for byte ──

    async def send(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        host: str | None = None,
        authorization: str | None = None,
        headers: Iterable[tuple[str, str]] = (),
    ) -> RawAnswer:
        """`authorization` None: the token the suite was given; empty: none."""
        sent = [*self._headers(host, authorization), ("content-length", str(len(body))), *headers]
        request = request_bytes(method, self._prefix + path, sent, body)
        return await exchange(self.endpoint, [request], timeout_seconds=ANSWER_SECONDS)

    async def send_unending(self, path: str, announced_bytes: int, pieces: Iterator[bytes]) -> RawAnswer:
        """A request that announces more than it will ever be allowed to send."""
        sent = [*self._headers(None, None), ("content-length", str(announced_bytes))]
        head = request_bytes("POST", self._prefix + path, sent)
        return await exchange(self.endpoint, _chained(head, pieces), timeout_seconds=ANSWER_SECONDS)

    @property
    def _prefix(self) -> str:
        return "" if self.endpoint.scheme == "unix" else self.endpoint.path

    def _headers(self, host: str | None, authorization: str | None) -> list[tuple[str, str]]:
        shown = f"Bearer {self.token}" if authorization is None and self.token else authorization
        headers = [("host", host or self.endpoint.authority), ("content-type", "application/json")]
        return [*headers, ("authorization", shown)] if shown else headers

    async def _post(self, verb: str, fields: dict[str, Any]) -> Answer:
        answer = await self._transport.post(f"/v1/{verb}", msgspec.json.encode(fields))
        if answer.status == 404:
            raise NotOffered(verb)
        return answer


def named(scope: Scope) -> dict[str, Any]:
    return {"sessionId": scope.session_id, "agentId": scope.agent_id}


def _chained(head: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    yield head
    yield from pieces
