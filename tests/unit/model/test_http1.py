from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.model.errors import InvalidInput, StoreBusy, TooLarge
from offbook.model.http1 import (
    LAST_CHUNK,
    MAX_HEAD_BYTES,
    AnswerParser,
    Head,
    RequestParser,
    body_of,
    chunk,
    parsed_head,
    path_of,
    read_head,
)


async def reader_of(data: bytes) -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=MAX_HEAD_BYTES)
    reader.feed_data(data)
    reader.feed_eof()
    return reader


@given(st.lists(st.binary(min_size=1, max_size=300), max_size=6), st.booleans())
async def test_a_body_comes_out_as_it_went_in(pieces: list[bytes], is_chunked: bool) -> None:
    body = b"".join(pieces)
    framing = b"transfer-encoding: chunked" if is_chunked else b"content-length: %d" % len(body)
    framed = b"".join(map(chunk, pieces)) + LAST_CHUNK if is_chunked else body
    reader = await reader_of(b"POST /v1/x HTTP/1.1\r\nhost: h\r\n" + framing + b"\r\n\r\n" + framed + b"NEXT")
    head = await read_head(reader, is_request=True)
    assert head is not None
    assert b"".join([piece async for piece in body_of(reader, head)]) == body
    assert await reader.read() == b"NEXT"


async def test_a_body_that_breaks_off_is_not_taken_for_whole() -> None:
    for head, body in ((b"content-length: 9", b"four"), (b"transfer-encoding: chunked", b"9\r\nfour")):
        reader = await reader_of(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n" + body)
        response = await read_head(reader, is_request=False)
        assert response is not None
        with pytest.raises(ConnectionResetError):
            [piece async for piece in body_of(reader, response)]


@pytest.mark.parametrize(
    "headers",
    [
        b"host: a\r\nhost: b\r\n",
        b"authorization: Bearer a\r\nAuthorization: Bearer b\r\n",
        b"content-length: 1\r\ncontent-length: 2\r\n",
        b"content-length: 1\r\ntransfer-encoding: chunked\r\n",
        b"transfer-encoding: gzip, chunked\r\n",
        b"content-length: -1\r\n",
        b"content-length: 1_0\r\n",
        b"bad header: x\r\n",
    ],
)
def test_what_can_be_understood_in_two_ways_is_refused(headers: bytes) -> None:
    with pytest.raises(InvalidInput):
        parsed_head(b"POST / HTTP/1.1\r\n" + headers + b"\r\n", is_request=True)


@pytest.mark.parametrize("size", [b"", b"-1", b"0x5", b"zz", b"1" * 16, b"+5"])
async def test_a_chunk_says_how_long_it_is(size: bytes) -> None:
    head = parsed_head(b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n", is_request=True)
    with pytest.raises(InvalidInput):
        [piece async for piece in body_of(await reader_of(size + b"\r\nhello\r\n0\r\n\r\n"), head)]


def test_an_answers_head_is_passed_on_whole() -> None:
    head = parsed_head(b"HTTP/1.0 404 Not Here\r\nX-Mine: 1\r\nx-mine: 2\r\n\r\n", is_request=False)
    assert (head.status, head.reason, head.is_http10) == (404, b"Not Here", True)
    assert head.headers == [(b"X-Mine", b"1"), (b"x-mine", b"2")]


async def test_a_head_without_end_is_refused() -> None:
    with pytest.raises(TooLarge):
        await read_head(await reader_of(b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 20_000), is_request=True)
    assert await read_head(await reader_of(b""), is_request=True) is None
    with pytest.raises(InvalidInput):
        await read_head(await reader_of(b"GET / HT"), is_request=True)


def test_the_host_is_ours_to_choose() -> None:
    assert path_of(b"http://evil.example/v1/models?a=b") == b"/v1/models?a=b"
    assert path_of(b"/v1/../x") == b"/v1/../x"
    assert path_of(b"http://evil.example?a=/v1/models") == b"/?a=/v1/models"
    assert path_of(b"*") == b"/"


# ── whole messages ──


class Received:
    def __init__(self) -> None:
        self.requests: list[tuple[bytes, bytes, bool]] = []

    def head_received(self, head: Head) -> None: ...
    def body_received(self, size_bytes: int) -> None: ...
    def request_received(self, head: Head, body: bytes) -> None:
        self.requests.append((head.target, body, head.keeps_alive))


@given(st.lists(st.tuples(st.binary(max_size=50), st.booleans(), st.booleans()), max_size=5), st.integers(1, 200))
def test_requests_come_whole_however_their_bytes_are_cut(
    sent: list[tuple[bytes, bool, bool]], piece_bytes: int
) -> None:
    data = b""
    for number, (body, is_chunked, offers_upgrade) in enumerate(sent):
        offer = b"connection: upgrade\r\nupgrade: h2c\r\n" if offers_upgrade else b""
        framing = b"transfer-encoding: chunked" if is_chunked else b"content-length: %d" % len(body)
        framed = (chunk(body) if body else b"") + LAST_CHUNK if is_chunked else body
        data += b"POST /%d HTTP/1.1\r\nhost: h\r\n%b%b\r\n\r\n%b" % (number, offer, framing, framed)
    received = Received()
    parser = RequestParser(received, max_body_bytes=100, remedy="")
    for at in range(0, len(data), piece_bytes):
        parser.feed(memoryview(data)[at : at + piece_bytes])
    assert received.requests == [(b"/%d" % number, body, True) for number, (body, _, _) in enumerate(sent)]


@given(st.binary(max_size=100), st.booleans(), st.integers(1, 100))
def test_an_answer_comes_whole_behind_interim_ones(body: bytes, is_chunked: bool, piece_bytes: int) -> None:
    framing = b"transfer-encoding: chunked" if is_chunked else b"content-length: %d" % len(body)
    framed = (chunk(body) if body else b"") + LAST_CHUNK if is_chunked else body
    data = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Made\r\n" + framing + b"\r\n\r\n" + framed
    answer = AnswerParser(max_body_bytes=100)
    for at in range(0, len(data), piece_bytes):
        assert not answer.is_whole
        answer.feed(data[at : at + piece_bytes])
    assert answer.is_whole
    assert answer.leaves_connection
    assert answer.head is not None
    assert (answer.head.status, bytes(answer.body)) == (201, body)


@pytest.mark.parametrize("surplus", [b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", b"HTTP/1", b"garbage"])
def test_what_follows_an_answer_spoils_the_connection_but_not_the_answer(surplus: bytes) -> None:
    answer = AnswerParser(max_body_bytes=100)
    answer.feed(b"HTTP/1.1 404 No\r\ncontent-length: 2\r\n\r\nno" + surplus)
    assert answer.is_whole
    assert not answer.leaves_connection
    assert answer.head is not None
    assert (answer.head.status, bytes(answer.body)) == (404, b"no")


def test_an_answer_without_a_length_ends_with_its_connection() -> None:
    answer = AnswerParser(max_body_bytes=100)
    assert not answer.ends_with_connection
    answer.feed(b"HTTP/1.1 200 OK\r\n\r\nall of it")
    assert not answer.is_whole
    assert answer.ends_with_connection


def test_an_answer_that_is_none_is_refused() -> None:
    with pytest.raises(TooLarge):
        AnswerParser(max_body_bytes=3).feed(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfour")
    for data in (b"SSH-2.0-x\r\n", b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n"):
        with pytest.raises(InvalidInput):
            AnswerParser(max_body_bytes=100).feed(data)


def test_our_own_fault_is_not_the_clients() -> None:
    class OutOfMemory:
        def head_received(self, head: Head) -> None: ...
        def body_received(self, size_bytes: int) -> None: ...

        def request_received(self, head: Head, body: bytes) -> None:
            raise MemoryError

    parser = RequestParser(OutOfMemory(), max_body_bytes=100, remedy="")
    with pytest.raises(StoreBusy) as caught:
        parser.feed(memoryview(b"POST /v1/ping HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n\r\n{}"))
    assert (caught.value.status, caught.value.retryable) == (503, True)
