"""HTTP/1.1 over a stream: heads and bodies, read as they come and written again. Heads are parsed by llhttp."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import NamedTuple, SupportsIndex

import httptools

from offbook.model.errors import InvalidInput, TooLarge

MAX_HEAD_BYTES = 65_536
PIECE_BYTES = 65_536
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
LAST_CHUNK = b"0\r\n\r\n"

Headers = list[tuple[bytes, bytes]]


class Reader(asyncio.StreamReader):
    """Tells when the other side has gone, also while nobody reads, and how much came from it. Where it has gone in
    trouble, what it said before is read first: one who refuses what he has not read answers, and resets."""

    def __init__(self) -> None:
        super().__init__(limit=MAX_HEAD_BYTES)
        self.gone = asyncio.Event()
        self.received_bytes = 0
        self._trouble: Exception | None = None

    @property
    def has_unread(self) -> bool:
        unread: bytearray = self._buffer  # type: ignore[attr-defined]
        return bool(unread)

    def feed_data(self, data: Iterable[SupportsIndex]) -> None:
        came = bytes(data)
        self.received_bytes += len(came)
        super().feed_data(came)

    def feed_eof(self) -> None:
        super().feed_eof()
        self.gone.set()

    def set_exception(self, exc: Exception) -> None:
        self._trouble = exc
        self.feed_eof()

    async def read(self, n: int = -1) -> bytes:
        data = await super().read(n)
        if self._trouble is not None and not data and n != 0:
            raise self._trouble
        return data

    async def readuntil(self, separator: bytes = b"\n") -> bytes:  # type: ignore[override]
        try:
            return await super().readuntil(separator)
        except asyncio.IncompleteReadError:
            if self._trouble is not None:
                raise self._trouble from None
            raise


class Head(NamedTuple):
    first_line: bytes
    """Without its line end."""
    headers: Headers
    """Names as they came, in their order."""
    keeps_alive: bool
    method: bytes = b""
    target: bytes = b""
    status: int = 0

    def get(self, name: bytes) -> bytes | None:
        return next((value for key, value in self.headers if key.lower() == name), None)

    def text(self, name: bytes) -> str | None:
        value = self.get(name)
        return None if value is None else value.decode("latin-1")

    @property
    def is_chunked(self) -> bool:
        return self.get(b"transfer-encoding") is not None

    @property
    def length(self) -> int | None:
        value = self.get(b"content-length")
        return None if value is None else int(value)


class _Parsed:
    """What llhttp tells of a head."""

    def __init__(self, *, is_request: bool) -> None:
        self.headers: Headers = []
        self.target = b""
        self.is_whole = self.keeps_alive = False
        self.parser = (httptools.HttpRequestParser if is_request else httptools.HttpResponseParser)(self)

    def on_url(self, url: bytes) -> None:
        self.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self.is_whole = True
        # Asked later, of a message without a body, it would tell of the next one.
        self.keeps_alive = self.parser.should_keep_alive()


async def read_head(reader: asyncio.StreamReader, *, is_request: bool) -> Head | None:
    """None where the other side has gone before it began one."""
    try:
        data = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial.strip():
            raise InvalidInput("the head did not come whole") from None
        return None
    except asyncio.LimitOverrunError:
        raise TooLarge(f"the head has more than {MAX_HEAD_BYTES:,} bytes: send fewer headers") from None
    return parsed_head(data, is_request=is_request)


def parsed_head(data: bytes, *, is_request: bool) -> Head:
    parsed = _Parsed(is_request=is_request)
    parser = parsed.parser
    try:
        parser.feed_data(data)
    except httptools.HttpParserUpgrade:
        pass  # an offer: it is not passed on, so nobody takes it up
    except httptools.HttpParserError as error:
        raise InvalidInput(f"this is not HTTP/1.1: {error}") from None
    if not parsed.is_whole:
        raise InvalidInput("the head is not whole")
    _check(parsed.headers)
    first_line = data.lstrip(b"\r\n").partition(b"\r\n")[0]
    head = Head(first_line, parsed.headers, parsed.keeps_alive)
    if isinstance(parser, httptools.HttpRequestParser):
        return head._replace(method=parser.get_method(), target=parsed.target)
    return head._replace(status=parser.get_status_code())


def _check(headers: Headers) -> None:
    """What two readers could understand in two ways is how requests are smuggled."""
    names = [name.lower() for name, _ in headers]
    for name in (b"host", b"content-length", b"transfer-encoding"):
        if names.count(name) > 1:
            raise InvalidInput(f"there are two {name.decode()} headers: send one")
    framings = dict(zip(names, (value for _, value in headers), strict=True))
    if b"transfer-encoding" in framings:
        if framings[b"transfer-encoding"].strip().lower() != b"chunked" or b"content-length" in framings:
            raise InvalidInput("the body's framing is not `chunked` alone")
    elif not framings.get(b"content-length", b"0").isdigit():
        raise InvalidInput("the content-length is no number")


async def body_of(reader: asyncio.StreamReader, head: Head, *, is_to_end: bool = False) -> AsyncIterator[bytes]:
    """The body's pieces as they arrive. `is_to_end`: without a length it ends where the connection does."""
    if head.is_chunked:
        async for piece in _chunks(reader):
            yield piece
    elif head.length is not None:
        async for piece in _exactly(reader, head.length):
            yield piece
    elif is_to_end:
        while piece := await reader.read(PIECE_BYTES):
            yield piece


async def _exactly(reader: asyncio.StreamReader, left: int) -> AsyncIterator[bytes]:
    while left:
        piece = await reader.read(min(left, PIECE_BYTES))
        if not piece:
            raise ConnectionResetError("the body did not come whole")
        left -= len(piece)
        yield piece


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while True:
        size = _chunk_size(await _line(reader))
        if not size:
            break
        async for piece in _exactly(reader, size):
            yield piece
        if await _line(reader):
            raise InvalidInput("a chunk is longer than it says")
    while await _line(reader):  # trailers have no say in what the head has settled
        pass


async def _line(reader: asyncio.StreamReader) -> bytes:
    try:
        return (await reader.readuntil(b"\r\n"))[:-2]
    except asyncio.IncompleteReadError:
        raise ConnectionResetError("the body did not come whole") from None
    except asyncio.LimitOverrunError:
        raise TooLarge("a line of the body's framing has no end") from None


def _chunk_size(line: bytes) -> int:
    digits = line.partition(b";")[0].strip()
    if not digits or len(digits) > 15 or digits.strip(b"0123456789abcdefABCDEF"):
        raise InvalidInput("a chunk does not say how long it is")
    return int(digits, 16)


def chunk(piece: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(piece), piece)


def head_bytes(first_line: bytes, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    return b"%b\r\n%b\r\n" % (first_line, b"".join(b"%b: %b\r\n" % header for header in headers))


def end_to_end(head: Head) -> Headers:
    """The headers without those that are for one connection only."""
    named = (head.get(b"connection") or b"").lower().split(b",")
    dropped = HOP_BY_HOP.union(name.strip() for name in named)
    return [(name, value) for name, value in head.headers if name.lower() not in dropped]
