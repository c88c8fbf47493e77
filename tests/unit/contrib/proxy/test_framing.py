from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.contrib.proxy.forwarding import path_of
from offbook.contrib.proxy.framing import (
    LAST_CHUNK,
    Head,
    Reader,
    body_of,
    chunk,
    end_to_end,
    head_bytes,
    parsed_head,
    read_head,
)
from offbook.model.errors import InvalidInput, TooLarge


async def reader_of(data: bytes) -> Reader:
    reader = Reader()
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


async def test_a_head_without_end_is_refused() -> None:
    with pytest.raises(TooLarge):
        await read_head(await reader_of(b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 20_000), is_request=True)
    assert await read_head(await reader_of(b""), is_request=True) is None
    with pytest.raises(InvalidInput):
        await read_head(await reader_of(b"GET / HT"), is_request=True)


def test_what_is_for_one_connection_goes_no_further() -> None:
    head = parsed_head(
        b"GET /v1/realtime HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, X-Mine\r\nUpgrade: websocket\r\nX-Mine: 1\r\n"
        b"TE: trailers\r\nAuthorization: Bearer k\r\n\r\n",
        is_request=True,
    )
    assert end_to_end(head) == [(b"Host", b"h"), (b"Authorization", b"Bearer k")]
    assert (
        head_bytes(b"GET / HTTP/1.1", end_to_end(head))
        == b"GET / HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer k\r\n\r\n"
    )


def test_the_host_is_ours_to_choose() -> None:
    assert path_of(b"http://evil.example/v1/models?a=b") == b"/v1/models?a=b"
    assert path_of(b"/v1/../x") == b"/v1/../x"
    assert path_of(b"*") == b"/"


async def test_what_was_said_before_a_reset_is_read() -> None:
    for framing, body in ((b"content-length: 2", b"no"), (b"transfer-encoding: chunked", b"2\r\nno\r\n0\r\n\r\n")):
        reader = Reader()
        reader.feed_data(b"HTTP/1.1 413 No\r\n%b\r\n\r\n%b" % (framing, body))
        reader.set_exception(ConnectionResetError("gone"))
        head = await read_head(reader, is_request=False)
        assert head is not None
        assert [piece async for piece in body_of(reader, head)] == [b"no"]
        with pytest.raises(ConnectionResetError, match="gone"):
            await read_head(reader, is_request=False)


async def test_a_reset_is_no_end_of_a_body_without_a_length() -> None:
    reader = Reader()
    reader.feed_data(b"half")
    reader.set_exception(ConnectionResetError("gone"))
    pieces = body_of(reader, Head(b"HTTP/1.1 200 OK", [], keeps_alive=False), is_to_end=True)
    assert await anext(pieces) == b"half"
    with pytest.raises(ConnectionResetError, match="gone"):
        await anext(pieces)
