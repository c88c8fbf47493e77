from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from offbook.client.endpoint import Endpoint, default_endpoint, default_token
from offbook.client.transport import (
    CONNECTIONS_PER_TRANSPORT,
    Answer,
    AnswerLost,
    Transport,
    content_of,
    known_fields,
    value_of,
)
from offbook.model.errors import InvalidInput, ProviderRefused, ProviderUnavailable
from offbook.model.types import CompressedContext, Receipt
from tests.unit.client.fake_provider import BUSY, DROP, HANG_UP, FakeProvider


@pytest.fixture(params=["unix", "tcp"])
def provider(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FakeProvider]:
    with FakeProvider(socket=tmp_path / "sock" if request.param == "unix" else None) as provider:
        yield provider


def transport_to(provider: FakeProvider, **options: object) -> Transport:
    return Transport(Endpoint.parse(provider.url), **options)  # type: ignore[arg-type]


# ── endpoints ──


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        ("unix:///run/off%20book.sock", Endpoint(scheme="unix", path="/run/off book.sock")),
        ("/run/offbook.sock", Endpoint(scheme="unix", path="/run/offbook.sock")),
        ("http://localhost:8770", Endpoint(scheme="http", host="localhost", port=8770)),
        ("http://localhost:8770/", Endpoint(scheme="http", host="localhost", port=8770)),
        ("https://memory.example", Endpoint(scheme="https", host="memory.example", port=443)),
        ("https://memory.example/team/a/", Endpoint(scheme="https", host="memory.example", port=443, path="/team/a")),
        ("http://[::1]:8770", Endpoint(scheme="http", host="::1", port=8770)),
    ],
)
def test_an_endpoint_is_read(text: str, endpoint: Endpoint) -> None:
    assert Endpoint.parse(text) == endpoint


@pytest.mark.parametrize(
    "text",
    [
        "",
        "localhost:8770",
        "unix://",
        "unix://host/path",
        "ftp://x",
        "http://",
        "http://x:99999",
        "http://x:y",
        "http://x/a b",
    ],
)
def test_what_is_no_endpoint_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        Endpoint.parse(text)


@pytest.mark.parametrize("text", ["unix:///run/offbook.sock", "http://[::1]:8770", "https://memory.example:443/team"])
def test_an_endpoint_is_written_as_it_is_read(text: str) -> None:
    assert str(Endpoint.parse(text)) == text


def test_the_default_endpoint_is_the_url_then_the_socket_then_the_one_in_the_home(tmp_path: Path) -> None:
    home = {"OFFBOOK_HOME": str(tmp_path)}
    assert default_endpoint(home) == Endpoint(scheme="unix", path=str(tmp_path / "offbook.sock"))
    assert default_endpoint({**home, "OFFBOOK_SOCKET": "/s"}) == Endpoint(scheme="unix", path="/s")
    assert default_endpoint({**home, "OFFBOOK_SOCKET": "/s", "OFFBOOK_URL": "http://h:1"}).host == "h"
    assert default_endpoint({}).path == str(Path("~/.offbook/offbook.sock").expanduser())


def test_the_token_of_the_home_goes_only_where_nobody_can_overhear_it(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    home = {"OFFBOOK_HOME": str(tmp_path)}
    assert default_token(Endpoint.parse("http://127.0.0.1:1"), home) == "secret"
    assert default_token(Endpoint.parse("https://memory.example"), home) is None
    assert default_token(Endpoint.parse("http://127.0.0.1.evil.example"), home) is None
    assert default_token(Endpoint.parse("https://[::1]:1"), home) == "secret"
    assert default_token(Endpoint.parse("https://memory.example"), {**home, "OFFBOOK_TOKEN": "t"}) == "t"
    assert default_token(Endpoint.parse("https://localhost:1"), home) == "secret"
    assert default_token(Endpoint.parse("http://memory.example"), home) is None
    assert default_token(Endpoint.parse("/sock"), home) is None
    assert default_token(Endpoint.parse("http://memory.example"), {**home, "OFFBOOK_TOKEN": "t"}) == "t"
    assert default_token(Endpoint.parse("http://127.0.0.1:1"), {"OFFBOOK_HOME": str(tmp_path / "none")}) is None


@pytest.mark.parametrize("where", ["http://127.0.0.1:1", "https://memory.example", "/sock"])
@pytest.mark.parametrize("token", ["", " ", "\n"])
def test_an_empty_token_does_not_become_the_owners(tmp_path: Path, where: str, token: str) -> None:
    (tmp_path / "token").write_text("secret\n")
    with pytest.raises(InvalidInput, match="unset OFFBOOK_TOKEN"):
        default_token(Endpoint.parse(where), {"OFFBOOK_HOME": str(tmp_path), "OFFBOOK_TOKEN": token})


def test_a_token_that_no_header_can_carry_is_refused() -> None:
    with pytest.raises(InvalidInput):
        Transport(Endpoint.parse("/sock"), token="a\r\nb: c")


# ── exchanges ──


async def test_one_connection_serves_one_exchange_after_another(provider: FakeProvider) -> None:
    async with transport_to(provider) as transport:
        for _ in range(5):
            assert (await transport.post("/v1/status", b"{}")).status == 200
            assert (await transport.get("/v1/ping")).status == 200
    assert provider.connections == 1


async def test_concurrent_exchanges_have_a_connection_each_up_to_the_limit(provider: FakeProvider) -> None:
    provider.delay_seconds = 0.05
    async with transport_to(provider) as transport:
        answers = await asyncio.gather(*(transport.get("/v1/ping") for _ in range(3 * CONNECTIONS_PER_TRANSPORT)))
    assert {answer.status for answer in answers} == {200}
    assert 1 < provider.connections <= CONNECTIONS_PER_TRANSPORT


async def test_a_chunked_answer_is_read(provider: FakeProvider) -> None:
    provider.is_chunked = True
    async with transport_to(provider) as transport:
        assert value_of(await transport.get("/v1/ping"), dict)["ok"]
        assert value_of(await transport.get("/v1/ping"), dict)["ok"]
    assert provider.connections == 1


async def test_an_answer_that_ends_with_the_connection_is_read(provider: FakeProvider) -> None:
    provider.plan.append(b'HTTP/1.1 200 OK\r\n\r\n{"ok":true}')
    async with transport_to(provider) as transport:
        assert (await transport.get("/v1/ping")).body == b'{"ok":true}'


async def test_an_interim_answer_is_passed_over(provider: FakeProvider) -> None:
    provider.plan.append(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
    async with transport_to(provider) as transport:
        assert (await transport.get("/v1/ping")) == Answer(status=200, body=b"{}")


async def test_a_server_that_closes_each_connection_is_no_trouble(provider: FakeProvider) -> None:
    provider.closes_each = True
    async with transport_to(provider) as transport:
        for _ in range(3):
            assert (await transport.get("/v1/ping")).status == 200
    assert provider.connections == 3


async def test_a_connection_that_went_stale_is_replaced(provider: FakeProvider) -> None:
    async with transport_to(provider) as transport:
        await transport.get("/v1/ping")
        provider.close_idle()
        assert (await transport.get("/v1/ping")).status == 200


async def test_a_kept_connection_that_breaks_without_an_answer_is_tried_once_more(provider: FakeProvider) -> None:
    async with transport_to(provider) as transport:
        await transport.get("/v1/ping")
        provider.plan.append(HANG_UP)
        assert (await transport.get("/v1/ping")).status == 200
        provider.plan.extend([HANG_UP, HANG_UP])
        with pytest.raises(AnswerLost):
            await transport.get("/v1/ping")
    assert len(provider.requests) == 5


async def test_an_answer_that_breaks_off_is_not_asked_for_again(provider: FakeProvider) -> None:
    async with transport_to(provider) as transport:
        await transport.get("/v1/ping")
        provider.plan.append(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{")
        with pytest.raises(AnswerLost):
            await transport.get("/v1/ping")
    assert len(provider.requests) == 2


async def test_a_new_connection_that_breaks_is_not_tried_again(provider: FakeProvider) -> None:
    provider.plan.append(DROP)
    async with transport_to(provider) as transport:
        with pytest.raises(ProviderUnavailable):
            await transport.post("/v1/status", b"{}")
    assert len(provider.requests) == 1


async def test_an_answer_after_the_deadline_belongs_to_nobody(provider: FakeProvider) -> None:
    async with transport_to(provider, timeout_seconds=0.05) as transport:
        await transport.get("/v1/ping", timeout_seconds=5)
        provider.delay_seconds = 0.3
        with pytest.raises(ProviderUnavailable, match=r"within 0\.05 s"):
            await transport.get("/v1/ping")
        provider.delay_seconds = 0
        await asyncio.sleep(0.4)
        answer = await transport.post("/v1/status", b"{}", timeout_seconds=5)
    assert value_of(answer, dict)["verb"] == "status"


async def test_nobody_at_home_says_what_to_do(tmp_path: Path) -> None:
    for endpoint in [f"unix://{tmp_path}/none", "http://127.0.0.1:1", f"unix://{tmp_path}/{'x' * 200}"]:
        async with Transport(Endpoint.parse(endpoint)) as transport:
            with pytest.raises(ProviderUnavailable, match="offbook serve"):
                await transport.get("/v1/ping")


@pytest.mark.parametrize(
    "garbage",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\x00\xff\xfe" * 100,
        b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\nzzz",
        b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\n",
        b"",
    ],
)
async def test_garbage_is_nobody(provider: FakeProvider, garbage: bytes) -> None:
    provider.plan.append(garbage)
    async with transport_to(provider) as transport:
        with pytest.raises(ProviderUnavailable):
            content_of(await transport.get("/v1/ping"))
        assert (await transport.get("/v1/ping")).status == 200


async def test_an_endless_answer_is_cut_off(provider: FakeProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("offbook.client.transport.MAX_ANSWER_BYTES", 1000)
    provider.plan.append(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 5000)
    async with transport_to(provider) as transport:
        with pytest.raises(ProviderUnavailable, match="longer than"):
            await transport.get("/v1/ping")


async def test_the_token_and_the_host_are_sent(provider: FakeProvider) -> None:
    provider.token = "secret"
    async with transport_to(provider, token="secret") as transport:
        assert (await transport.post("/v1/status", b"{}", headers="x-more: 1\r\n")).status == 200
    headers = provider.requests[0].headers
    assert headers["host"] == ("localhost" if provider.socket else f"127.0.0.1:{provider.port}")
    assert headers["x-more"] == "1"


def test_a_transport_may_be_used_from_one_loop_after_another(provider: FakeProvider) -> None:
    transport = transport_to(provider)
    for _ in range(2):
        assert asyncio.run(transport.get("/v1/ping")).status == 200
    transport.close()


async def test_a_large_body_passes_both_ways(provider: FakeProvider) -> None:
    text = "ö" * 3_000_000
    async with transport_to(provider) as transport:
        answer = await transport.post("/v1/status", b'{"x":"%b"}' % text.encode())
    assert value_of(answer, dict)["body"]["x"] == text


async def test_a_cancelled_exchange_leaves_no_connection_behind(provider: FakeProvider) -> None:
    provider.delay_seconds = 1
    async with transport_to(provider) as transport:
        task = asyncio.create_task(transport.get("/v1/ping"))
        async with asyncio.timeout(120):
            while not provider.requests:
                await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        provider.delay_seconds = 0
        assert (await transport.get("/v1/ping")).status == 200
    assert provider.connections == 2


# ── TLS ──


def certificate(folder: Path) -> tuple[Path, Path]:
    import datetime
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "offbook test")])
    today = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - datetime.timedelta(days=1))
        .not_valid_after(today + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return folder / "cert.pem", folder / "key.pem"


async def test_tls_is_spoken_and_a_stranger_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cert, key = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    with FakeProvider(tls=context) as provider:
        async with transport_to(provider) as transport:
            with pytest.raises(ProviderUnavailable, match=r"certificate of .* is not trusted .* SSL_CERT_FILE="):
                await transport.get("/v1/ping")
        monkeypatch.setenv("SSL_CERT_FILE", str(cert))
        async with transport_to(provider) as transport:
            assert (await transport.get("/v1/ping")).status == 200
            assert (await transport.get("/v1/ping")).status == 200


# ── what answers mean ──


def test_a_problem_document_is_a_refusal() -> None:
    import msgspec

    with pytest.raises(ProviderRefused, match="later") as caught:
        content_of(Answer(status=503, body=msgspec.json.encode(BUSY)))
    assert caught.value.retryable
    with pytest.raises(ProviderRefused) as caught:
        content_of(Answer(status=404, body=b'{"type":"about:blank","title":"Not Found"}'))
    assert caught.value.document["status"] == 404


@pytest.mark.parametrize("body", [b"<html>502 Bad Gateway</html>", b"", b"[1]", b'{"error":"x"}', b"\xff"])
def test_an_error_that_is_no_problem_document_is_nobody(body: bytes) -> None:
    with pytest.raises(ProviderUnavailable, match="502"):
        content_of(Answer(status=502, body=body))


@pytest.mark.parametrize("body", [b"<html>", b"", b"\xff", b'{"accepted":"three"}', b"[]"])
def test_a_success_that_is_not_the_answer_is_nobody(body: bytes) -> None:
    with pytest.raises(ProviderUnavailable):
        value_of(Answer(status=200, body=body), Receipt)


def test_fields_of_a_newer_provider_are_passed_over() -> None:
    body = (
        b'{"accepted":1,"duplicates":0,"firstSeq":1,"lastSeq":1,"news":{"a":1},'
        b'"conflicts":[{"id":"a","seq":1,"news":2}]}'
    )
    receipt = value_of(Answer(status=200, body=body), Receipt)
    assert (receipt.accepted, receipt.conflicts[0].seq) == (1, 1)


def test_known_fields_keeps_free_form_values_whole() -> None:
    message = {"role": "user", "content": [{"type": "text", "x": 1}], "meta": {"any": {"thing": 1}}, "news": 1}
    context = {"messages": [message], "covers": {"firstSeq": 1, "lastSeq": 2, "news": 1}, "news": 1}
    kept = known_fields(context, CompressedContext)
    assert kept == {
        "messages": [{name: value for name, value in message.items() if name != "news"}],
        "covers": {"firstSeq": 1, "lastSeq": 2},
    }


def test_a_forked_child_leaves_the_connections_of_its_parent_alone(provider: FakeProvider) -> None:
    async def ask(transport: Transport) -> int:
        return (await transport.get("/v1/ping")).status

    transport = transport_to(provider)
    loop = asyncio.new_event_loop()
    assert loop.run_until_complete(ask(transport)) == 200
    child = os.fork()
    if child == 0:
        os._exit(0 if asyncio.new_event_loop().run_until_complete(ask(transport)) == 200 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert loop.run_until_complete(ask(transport)) == 200
    assert provider.connections == 2
    loop.run_until_complete(asyncio.sleep(0))
    transport.close()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
