"""Connections to an API: whom the proxy trusts, what it passes on, and what it reads before a reset."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from offbook.contrib.proxy.forwarding import end_to_end
from offbook.contrib.proxy.upstream import Reader
from offbook.model import tls
from offbook.model.http1 import Head, body_of, head_bytes, parsed_head, read_head
from tests.unit.contrib.proxy.test_forwarding import GET, POST, Bench


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    yield made
    await made.close()


async def started(bench: Bench, folder: Path, pair: tuple[bytes, bytes]) -> None:
    """An API with this certificate, which lies in `api.pem`."""
    certificate, key = folder / "api.pem", folder / "api-key.pem"
    certificate.write_bytes(pair[0])
    key.write_bytes(pair[1])
    bench.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    bench.tls.load_cert_chain(certificate, key)
    await bench.start()


async def test_an_authority_of_ones_own_is_named_in_the_environment(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "api.pem"))
    await started(bench, tmp_path, tls.make_pair())
    for request in (GET, POST, GET):
        got = await bench.send(request)
        assert got.startswith(b"HTTP/1.1 200 ")
        assert got.endswith(b"ok")
    assert bench.connections == 1  # kept, as without TLS


async def test_a_certificate_of_a_stranger_is_refused_with_what_to_do(bench: Bench, tmp_path: Path) -> None:
    await started(bench, tmp_path, tls.make_pair())
    for request in (GET, POST):
        got = await bench.send(request)
        assert got.startswith(b"HTTP/1.1 502 ")
        assert b"is not trusted (self-signed certificate): name the authority" in got
        assert b"SSL_CERT_FILE=/path/to/ca.pem" in got
    assert bench.heads == []  # nothing was said to it, no key either


@pytest.mark.parametrize(
    ("hosts", "at", "remedy"),
    [
        (("other.example",), None, b"give --upstream the host name that it was made for"),
        (("127.0.0.1",), datetime.now(UTC) - timedelta(days=2_000), b"it has expired"),
    ],
)
async def test_a_certificate_that_no_authority_can_help(
    bench: Bench,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    hosts: tuple[str, ...],
    at: datetime | None,
    remedy: bytes,
) -> None:
    monkeypatch.setattr(tls, "LOOPBACK_HOSTS", ())
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "api.pem"))
    await started(bench, tmp_path, tls.make_pair(hosts, at=at))
    got = await bench.send(GET)
    assert got.startswith(b"HTTP/1.1 502 ")
    assert remedy in got
    assert b"SSL_CERT_FILE" not in got


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
    pieces = body_of(reader, Head([]), is_to_end=True)
    assert await anext(pieces) == b"half"
    with pytest.raises(ConnectionResetError, match="gone"):
        await anext(pieces)
