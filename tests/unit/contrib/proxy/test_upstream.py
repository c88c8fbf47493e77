"""An API behind TLS: whom the proxy trusts, and what it says of whom it does not."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from offbook.model import tls
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
