"""HTTP/1.1 framing, for every side that speaks it. Parsing is llhttp's, through httptools.

Three ways to read, by what the reader needs: `RequestParser` gives a server whole requests as their bytes come in,
`AnswerParser` gives a client one whole answer, and `read_head` with `body_of` read a stream piece by piece, for who
passes messages on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from http import HTTPStatus
from typing import NamedTuple, NoReturn, Protocol

import httptools

from offbook.model.errors import InvalidInput, OffbookError, StoreBusy, TooLarge

MAX_HEAD_BYTES = 65_536
"""For the head, and again for what surrounds a body: trailers and chunk extensions."""
PIECE_BYTES = 65_536
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"
ONCE_AT_MOST = (b"host", b"content-length", b"transfer-encoding", b"authorization", b"origin")
UNREADABLE = (httptools.HttpParserError, httptools.HttpParserUpgrade)

Headers = list[tuple[bytes, bytes]]

_STATUS_LINES = {status.value: b"HTTP/1.1 %d %b" % (status, status.phrase.encode()) for status in HTTPStatus}


class Head(NamedTuple):
    """Of a request or of an answer."""

    headers: Headers
    """Names as they came, in their order."""
    fields: Mapping[bytes, bytes] = {}
    """The same by their names in small letters. Where one comes twice, its last."""
    keeps_alive: bool = False
    length: int | None = None
    """Of its body, where it says so."""
    method: bytes = b""
    target: bytes = b""
    status: int = 0
    reason: bytes = b""
    is_http10: bool = False

    def text(self, name: bytes) -> str | None:
        value = self.fields.get(name)
        return None if value is None else value.decode("latin-1")

    @property
    def is_chunked(self) -> bool:
        return b"transfer-encoding" in self.fields

    @property
    def expects_continue(self) -> bool:
        return b"expect" in self.fields and self.fields[b"expect"].lower() == b"100-continue"


class _Parser:
    """llhttp's callbacks, as far as every reader needs them."""

    def __init__(self, *, is_request: bool) -> None:
        self._kind = httptools.HttpRequestParser if is_request else httptools.HttpResponseParser
        self._refusal: OffbookError | None = None
        """Raised through llhttp, which says only that a callback failed."""
        self._restart()

    def _restart(self) -> None:
        self._llhttp: httptools.HttpRequestParser | httptools.HttpResponseParser = self._kind(self)
        self._begin()

    def _begin(self) -> None:
        self.head: Head | None = None
        self._headers: Headers = []
        self._target = b""

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.head is None:  # a trailer has no say in what its head has settled
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        self.head = self._whole_head()

    def _whole_head(self) -> Head:
        headers, llhttp = self._headers, self._llhttp
        fields = {name.lower(): value for name, value in headers}
        if len(fields) != len(headers) or b"transfer-encoding" in fields:
            self._check_framing(fields)
        length = int(fields[b"content-length"]) if b"content-length" in fields else None
        # Asked later, of a message without a body, it would tell of the next one.
        keeps_alive = llhttp.should_keep_alive()
        if isinstance(llhttp, httptools.HttpRequestParser):
            return Head(headers, fields, keeps_alive, length, llhttp.get_method(), self._target)
        return Head(headers, fields, keeps_alive, length, b"", b"", llhttp.get_status_code())

    def _check_framing(self, fields: Mapping[bytes, bytes]) -> None:
        """What two readers could understand in two ways is how requests are smuggled."""
        names = [name.lower() for name, _ in self._headers]
        for name in ONCE_AT_MOST:
            if names.count(name) > 1:
                self._refuse(InvalidInput(f"there are two {name.decode()} headers: send one"))
        encoding = fields.get(b"transfer-encoding", b"chunked").strip().lower()
        if encoding != b"chunked" or (b"transfer-encoding" in fields and b"content-length" in fields):
            self._refuse(InvalidInput("the body's framing is not `chunked` alone"))

    def _refuse(self, refusal: OffbookError) -> NoReturn:
        self._refusal = refusal
        raise refusal


# ── whole messages, as their bytes come in ────────────────────────────────────────────────────


class RequestReceiver(Protocol):
    """What a server's connection does with what comes."""

    def head_received(self, head: Head) -> None:
        """Before its body is read. Refuses by raising an OffbookError."""

    def body_received(self, size_bytes: int) -> None:
        """As much more of its body has come. Refuses as above."""

    def request_received(self, head: Head, body: bytes) -> None: ...


class RequestParser(_Parser):
    """The requests of one connection, one after the other. `remedy` is told to who sends too large a body."""

    def __init__(self, receiver: RequestReceiver, *, max_body_bytes: int, remedy: str) -> None:
        super().__init__(is_request=True)
        self._receiver = receiver
        self._max_body_bytes = max_body_bytes
        self._remedy = remedy
        self._body = bytearray()
        self._framing_bytes = 0
        self.is_within_request = False

    @property
    def body_bytes(self) -> int | None:
        """How much of the body has come. None until its head is there."""
        return None if self.head is None else len(self._body)

    def drop_body(self) -> None:
        """What has come of it is for nobody."""
        self._body = bytearray()

    def feed(self, data: memoryview) -> None:
        """Raises the receiver's refusal, or InvalidInput, or TooLarge. Nothing can be read behind that."""
        self._framing_bytes += len(data)
        try:
            self._feed(data)
        except UNREADABLE as error:
            if self._refusal is None and isinstance(error, httptools.HttpParserCallbackError):  # no memory, for one
                raise StoreBusy("the request could not be taken in: send it again in a moment") from error
            raise self._refusal or InvalidInput(f"this is not a request we can read: {error}") from None
        if self._framing_bytes > MAX_HEAD_BYTES:
            raise TooLarge(f"the request's head has more than {MAX_HEAD_BYTES:,} bytes: send fewer headers")

    def _feed(self, data: memoryview) -> None:
        while data:
            try:
                self._llhttp.feed_data(data)
                return
            except httptools.HttpParserUpgrade as offer:
                # Some clients offer HTTP/2 with every request. We decline by reading it as if they had not.
                head, data = self._head_without_offer(), data[offer.args[0] :]
                self._restart()
                self._llhttp.feed_data(head)

    def _head_without_offer(self) -> bytes:
        version = self._llhttp.get_http_version().encode()
        first_line = b"%b %b HTTP/%b" % (self._method(), self._target, version)
        return head_bytes(first_line, [header for header in self._headers if header[0].lower() != b"upgrade"])

    def on_message_begin(self) -> None:
        self._begin()
        self.is_within_request = True

    def on_headers_complete(self) -> None:
        if self._llhttp.should_upgrade() and self._method() != b"CONNECT":
            return  # the head comes again, without its offer
        self.head = head = self._whole_head()
        if head.length is not None:
            self._check_size(head.length)
        try:
            self._receiver.head_received(head)
        except OffbookError as error:
            self._refuse(error)

    def on_body(self, body: bytes) -> None:
        self._framing_bytes = 0
        self._check_size(len(self._body) + len(body))
        try:
            self._receiver.body_received(len(body))
        except OffbookError as error:
            self._refuse(error)
        self._body += body

    def on_message_complete(self) -> None:
        if self.head is None:  # an offer, as above
            return
        head, body = self.head, bytes(self._body)
        self.head, self._body, self._framing_bytes = None, bytearray(), 0
        self.is_within_request = False
        self._receiver.request_received(head, body)

    def _check_size(self, size_bytes: int) -> None:
        if size_bytes > self._max_body_bytes:
            detail = f"the request is {size_bytes:,} bytes or more, the limit is {self._max_body_bytes:,}"
            self._refuse(TooLarge(f"{detail}: {self._remedy}"))

    def _method(self) -> bytes:
        assert isinstance(self._llhttp, httptools.HttpRequestParser)
        return self._llhttp.get_method()


class AnswerParser(_Parser):
    """One answer, and after `expect_next` the one behind it. Interim ones are passed over."""

    def __init__(self, *, max_body_bytes: int) -> None:
        super().__init__(is_request=False)
        self._max_body_bytes = max_body_bytes
        self._is_followed = False
        self.expect_next()

    def expect_next(self) -> None:
        self._begin()
        self.body = bytearray()
        self.is_whole = False

    @property
    def leaves_connection(self) -> bool:
        """Whether another exchange may follow: not where bytes came that nobody asked for."""
        return self.head is not None and self.head.keeps_alive and not self._is_followed

    @property
    def ends_with_connection(self) -> bool:
        """Whether there is nothing else that would say where it ends."""
        return self.head is not None and self.head.length is None and not self.head.is_chunked

    def feed(self, data: bytes) -> None:
        """Raises InvalidInput, or TooLarge."""
        try:
            self._llhttp.feed_data(data)
        except UNREADABLE as error:
            if not self.is_whole:
                raise self._refusal or InvalidInput(f"the answer is not HTTP: {error}") from None
            self._is_followed = True

    def on_message_begin(self) -> None:
        if self.is_whole:
            self._refuse(InvalidInput("something follows the answer"))

    def on_body(self, body: bytes) -> None:
        self.body += body
        if len(self.body) > self._max_body_bytes:
            self._refuse(TooLarge(f"the answer is longer than {self._max_body_bytes} bytes"))

    def on_message_complete(self) -> None:
        if self.head is not None and self.head.status < 200:
            self._begin()
        else:
            self.is_whole = True


# ── streams ───────────────────────────────────────────────────────────────────────────────────


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
    return _HeadParser(is_request=is_request).parsed(data)


class _HeadParser(_Parser):
    """One head, with all that is passed on of it."""

    _reason = b""

    def on_status(self, reason: bytes) -> None:
        self._reason += reason

    def parsed(self, data: bytes) -> Head:
        try:
            self._llhttp.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # an offer: it is not passed on, so nobody takes it up
        except httptools.HttpParserError as error:
            raise self._refusal or InvalidInput(f"this is not HTTP/1.1: {error}") from None
        if self.head is None:
            raise InvalidInput("the head is not whole")
        return self.head._replace(reason=self._reason, is_http10=self._llhttp.get_http_version() == "1.0")


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
    """Not by llhttp, which cannot be stopped at the end of a message: behind it may be the next one."""
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


# ── writing ───────────────────────────────────────────────────────────────────────────────────


def chunk(piece: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(piece), piece)


def head_bytes(first_line: bytes, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    return b"%b\r\n%b\r\n" % (first_line, b"".join(b"%b: %b\r\n" % header for header in headers))


def status_line(status: int) -> bytes:
    return _STATUS_LINES.get(status) or b"HTTP/1.1 %d " % status


def path_of(target: bytes) -> bytes:
    """With its query. Of a target that names the host too, only the path: the host is the server's to choose."""
    if target.startswith(b"/"):
        return target
    _, separator, rest = target.partition(b"://")
    place, mark, query = rest.partition(b"?")
    return b"/" + place.partition(b"/")[2] + mark + query if separator else b"/"
