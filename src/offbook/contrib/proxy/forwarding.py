"""One request to the API behind the proxy, and its answer back, piece by piece as it comes.

What is no part of a conversation passes untouched, as long as it is beneath the API's path. Credentials are passed on
with the other headers, and kept nowhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

import structlog

from offbook.contrib.proxy.chat_api import Answer, Reader, is_session_name
from offbook.contrib.proxy.enricher import Enriched, Enricher, Exchange
from offbook.contrib.proxy.responses_api import DIALECTS, Dialect
from offbook.contrib.proxy.upstream import Link, Reply, Upstream, reply_to
from offbook.model.errors import NotFound
from offbook.model.http1 import CONTINUE, LAST_CHUNK, Head, Headers, body_of, chunk, head_bytes, path_of

# ── What of the API's host a request may reach: what lies beneath the path of its base URL ──

TIMES_UNQUOTED = 2
"""Servers in a row that may each take the quotes off."""
NOWHERE = frozenset({b".", b".."})


def is_beneath(target: bytes, base: bytes) -> bool:
    """Other doors of the same host (its administration, its native API) are not what the proxy was opened for."""
    path = path_of(target).partition(b"?")[0]
    if not base:
        return True
    if path != base and not path.startswith(base + b"/"):
        return False
    for _ in range(TIMES_UNQUOTED):
        path = unquote_to_bytes(path)
    # `..` as any server might understand it: quoted, with parameters, with the other slash.
    steps = path.replace(b"\\", b"/").split(b"/")
    return not any(step.partition(b";")[0] in NOWHERE for step in steps)


SESSION_HEADER = b"offbook-session"
OURS = b"offbook-"
"""Headers that are for us: none of them is passed on."""
MOST_READ_BYTES = 32 * 1024 * 1024
"""Of a request that gets memory; what is larger passes unread."""
BODY_SECONDS = 300.0
PATIENCE_SECONDS = 60.0
"""For a client to take the next piece of its answer."""
LINGER_SECONDS = 5.0
"""For a client that was answered early to come to the end of its request: were its connection closed while it sends,
the answer that lies there would be lost to it."""
NOT_TAKEN = frozenset({400, 413, 422, 500})
"""The API refuses the request as it is. With something added to it, that may be what was added: a template that takes
no assistant's message first, or no two in a row, is a 500 at llama.cpp."""
WITHOUT_BODY = frozenset({204, 304})
HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
        b"expect",
    }
)

log = structlog.get_logger("offbook.proxy")


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.has_answer = False
        """Whether it has begun: then it can only be broken off."""


class Awaited(NamedTuple):
    """Whose answer is read as it passes."""

    exchange: Exchange
    dialect: Dialect


class Forwarder:
    def __init__(self, upstream: Upstream, enricher: Enricher) -> None:
        self._upstream = upstream
        self._enricher = enricher
        self._base_path = upstream.endpoint.path.encode()
        self._dialects = {self._base_path + dialect.path: dialect for dialect in DIALECTS}

    async def forward(self, head: Head, client: Client) -> bool:
        """Whether the client's connection can be used again."""
        if not is_beneath(head.target, self._base_path):
            base = self._base_path.decode()
            raise NotFound(f"only what is beneath {base} is passed on: let the base URL of the client end in {base}")
        if head.expects_continue:
            client.writer.write(CONTINUE)
        pieces = body_of(client.reader, head)
        dialect = self._dialect(head)
        if dialect is None:
            return await self._stream(head, pieces, client)
        body, is_whole = await _gathered(pieces)
        if not is_whole:
            return await self._stream(head, _joined(body, pieces), client)
        return await self._turn(head, body, client, dialect)

    def _dialect(self, head: Head) -> Dialect | None:
        """None for what passes unread."""
        kind = (head.fields.get(b"content-type") or b"").partition(b";")[0].strip().lower()
        is_readable = (
            head.method == b"POST"
            and kind == b"application/json"
            and head.fields.get(b"content-encoding") is None
            and (head.length or 0) <= MOST_READ_BYTES
        )
        return self._dialects.get(path_of(head.target).partition(b"?")[0]) if is_readable else None

    # ── there ──

    async def _turn(self, head: Head, body: bytes, client: Client, dialect: Dialect) -> bool:
        name = (head.fields.get(SESSION_HEADER) or b"").decode("utf-8", "replace")
        enriched = await self._enricher.enriched(body, name if is_session_name(name) else None, dialect)
        # Uncompressed, so that the answer can be read while it passes.
        headers = [*self._headers(head, without=b"accept-encoding"), (b"accept-encoding", b"identity")]
        reply = await self._asked(head, headers, enriched.body)
        changed = enriched.exchange if enriched.exchange is not None and enriched.exchange.is_enriched else None
        is_refused = changed is not None and reply.head.status in NOT_TAKEN
        if changed is not None and is_refused:
            log.warning("sent again without memory", action="proxy.refused", status=reply.head.status)
            reply.close()
            enriched = Enriched(body, self._enricher.sent_bare(changed))
            reply = await self._asked(head, headers, body)
        if changed is not None and reply.head.status == 200:
            self._enricher.taken(changed, is_bare=is_refused)
        awaited = Awaited(enriched.exchange, dialect) if enriched.exchange and reply.head.status == 200 else None
        return await self._answer(head, reply, client, awaited)

    async def _asked(self, head: Head, headers: Headers, body: bytes) -> Reply:
        sized = headers if not body and head.length is None else [*headers, (b"content-length", b"%d" % len(body))]
        request = head_bytes(self._first_line(head), sized) + body
        link = await self._upstream.link()
        before = link.reader.received_bytes
        try:
            return await reply_to(link, _written(link, request))
        except ConnectionError:
            # A server may close an idle connection just as we use it. One that began to answer has taken the request.
            if link.is_fresh or link.reader.received_bytes != before:
                raise
        link = await self._upstream.link(fresh=True)
        return await reply_to(link, _written(link, request))

    async def _stream(self, head: Head, pieces: AsyncIterator[bytes], client: Client) -> bool:
        headers = self._headers(head)
        if not head.is_chunked and not head.length:
            return await self._answer(head, await self._asked(head, headers, b""), client)
        length = b"%d" % (head.length or 0)
        framing = (b"transfer-encoding", b"chunked") if head.is_chunked else (b"content-length", length)
        # What streams cannot be sent twice, so it goes over a connection that nobody is about to close.
        link = await self._upstream.link(fresh=True)
        first = head_bytes(self._first_line(head), [*headers, framing])
        reply = await reply_to(link, _upload(link, first, pieces, is_chunked=head.is_chunked))
        return await self._answer(head, reply, client, is_read=reply.is_sent)

    def _first_line(self, head: Head) -> bytes:
        return b"%b %b HTTP/1.1" % (head.method, path_of(head.target))

    def _headers(self, head: Head, *, without: bytes = b"") -> Headers:
        left_out = (b"host", b"content-length", without)
        passed = [
            (name, value)
            for name, value in end_to_end(head)
            if name.lower() not in left_out and not name.lower().startswith(OURS)
        ]
        return [(b"host", self._upstream.host_header), *passed]

    # ── and back ──

    async def _answer(
        self, head: Head, reply: Reply, client: Client, awaited: Awaited | None = None, *, is_read: bool = True
    ) -> bool:
        """`is_read`: all of the client's request. What is left of it would be taken for the next one."""
        try:
            keeps_alive = await self._pass_on(head, reply, client, awaited, is_read=is_read)
            if reply.head.keeps_alive and reply.is_sent:
                self._upstream.give_back(reply.link)
            else:
                reply.link.close()
            if not is_read:
                await asyncio.wait({reply.sending}, timeout=LINGER_SECONDS)
        except BaseException:
            reply.link.close()
            raise
        finally:
            reply.sending.cancel()
        return keeps_alive

    async def _pass_on(
        self, head: Head, reply: Reply, client: Client, awaited: Awaited | None, *, is_read: bool
    ) -> bool:
        response = reply.head
        has_body = head.method != b"HEAD" and response.status not in WITHOUT_BODY
        is_sized = response.length is not None or not has_body
        is_old = head.is_http10
        keeps_alive = is_read and head.keeps_alive and (is_sized or not is_old)
        is_chunked = not is_sized and not is_old
        headers = end_to_end(response)
        if is_chunked:
            headers.append((b"transfer-encoding", b"chunked"))
        if not keeps_alive:
            headers.append((b"connection", b"close"))
        writer, client.has_answer = client.writer, True
        writer.write(head_bytes(b"HTTP/1.1 %d %b" % (response.status, response.reason), headers))
        if has_body:
            looks = None if awaited is None else _reader(awaited.dialect, response)
            is_whole = False
            try:
                async for piece in body_of(reply.link.reader, response, is_to_end=True):
                    writer.write(chunk(piece) if is_chunked else piece)
                    if looks is not None and not _fed(looks, piece):
                        looks = None
                    await _drained(writer)
                is_whole = True
                if is_chunked:
                    writer.write(LAST_CHUNK)
                await _drained(writer)
            finally:
                # Many clients leave at `[DONE]`, before the last chunk: what came to its end was answered.
                if awaited is not None and looks is not None:
                    self._enricher.answered(awaited.exchange, _answer(looks, is_whole=is_whole))
        else:
            await _drained(writer)
        return keeps_alive


def end_to_end(head: Head) -> Headers:
    """The headers without those that are for one connection only."""
    named = (value.lower().split(b",") for name, value in head.headers if name.lower() == b"connection")
    dropped = HOP_BY_HOP.union(name.strip() for names in named for name in names)
    return [(name, value) for name, value in head.headers if name.lower() not in dropped]


def _reader(dialect: Dialect, response: Head) -> Reader:
    is_plain = response.fields.get(b"content-encoding") in (None, b"identity")
    return dialect.reader(response.text(b"content-type") or "", is_plain=is_plain)


def _fed(looks: Reader, piece: bytes) -> bool:
    """Whether it can go on looking: whatever is wrong with that, the client gets its answer."""
    try:
        looks.feed(piece)
    except Exception as error:  # noqa: BLE001 - as above
        log.warning("an answer was not read", action="proxy.unread", error=repr(error))
        return False
    return True


def _answer(looks: Reader, *, is_whole: bool) -> Answer | None:
    try:
        return looks.answer(is_whole=is_whole)
    except Exception as error:  # noqa: BLE001 - as above
        log.warning("an answer was not read", action="proxy.unread", error=repr(error))
        return None


async def _written(link: Link, data: bytes) -> bool:
    """Whether the API takes more. Where not, its answer says why, or that there is none."""
    try:
        link.writer.write(data)
        await link.writer.drain()
    except OSError:
        return False
    return True


async def _upload(link: Link, first: bytes, pieces: AsyncIterator[bytes], *, is_chunked: bool) -> None:
    """What the API does not take is read all the same: behind it is the client's next request."""
    is_taken = await _written(link, first)
    async for piece in pieces:
        # An answer that is there is read before a write that fails would lose it.
        await asyncio.sleep(0)
        is_taken = is_taken and await _written(link, chunk(piece) if is_chunked else piece)
    if is_taken and is_chunked:
        await _written(link, LAST_CHUNK)


async def _gathered(pieces: AsyncIterator[bytes]) -> tuple[bytes, bool]:
    """What came, and whether that is all: beyond the limit the rest stays unread."""
    gathered = bytearray()
    async with asyncio.timeout(BODY_SECONDS):
        async for piece in pieces:
            gathered += piece
            if len(gathered) > MOST_READ_BYTES:
                return bytes(gathered), False
    return bytes(gathered), True


async def _joined(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in rest:
        yield piece


async def _drained(writer: asyncio.StreamWriter) -> None:
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await writer.drain()
    except TimeoutError:
        raise ConnectionResetError("the client does not read its answer") from None
