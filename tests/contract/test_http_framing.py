"""HTTP itself: methods, paths, lengths, connections that stay, and those that do not behave."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Iterator

import pytest

from tests.acceptance.daemon import WITHOUT_MODEL, Daemon, assert_problem, bearer, message, running

LIMIT_BYTES = 100_000


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with running(WITHOUT_MODEL | {"OFFBOOK_SERVER_MAX_REQUEST_BYTES": str(LIMIT_BYTES)}) as started:
        yield started


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "PUT", "PATCH", "DELETE", "TRACE"])
def test_other_methods_are_named_what_is_allowed(daemon: Daemon, method: str) -> None:
    for verb, allowed in (("onMessage", "POST"), ("ping", "GET, POST")):
        reply = daemon.send(method, f"/v1/{verb}", headers=bearer(daemon.token))
        assert (reply.status, reply.headers["allow"]) == (405, allowed)
        if method == "HEAD":
            assert reply.body == b""
        else:
            assert_problem(reply, 405)


@pytest.mark.parametrize(
    "path", ["/v1/onmessage", "/v1/onMessage/", "//v1/onMessage", "/v1/../v1/onMessage", "/v2/ping"]
)
def test_paths_are_taken_to_the_letter(daemon: Daemon, path: str) -> None:
    body = {"sessionId": "letters", "message": message()}
    assert_problem(daemon.send("POST", path, body, bearer(daemon.token)), 404)


def test_a_query_is_no_part_of_the_verb(daemon: Daemon) -> None:
    assert daemon.send("GET", "/v1/ping?now", headers=bearer(daemon.token)).status == 200


def test_a_body_over_the_limit_is_refused_whether_announced_or_not(daemon: Daemon) -> None:
    body = b'{"sessionId":"large","message":{"role":"user","content":"' + b"x" * LIMIT_BYTES + b'"}}'
    announced = daemon.send("POST", "/v1/onMessage", body, bearer(daemon.token))
    assert "server.maxRequestBytes" in assert_problem(announced, 413)["detail"]
    chunks = b"".join(
        b"%x\r\n%s\r\n" % (len(part), part) for part in (body[at : at + 9_000] for at in range(0, len(body), 9_000))
    )
    head = f"POST /v1/onMessage HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {daemon.token}\r\n"
    answer = exchange(daemon, head.encode() + b"transfer-encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413")
    assert daemon.ask("getCompressedContext", sessionId="large", maxChars=100).json()["covers"]["lastSeq"] == 0


def test_a_chunked_body_within_the_limit_is_taken(daemon: Daemon) -> None:
    body = b'{"sessionId":"chunked","message":{"role":"user","content":"in pieces"}}'
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    head = f"POST /v1/onMessage HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {daemon.token}\r\n"
    answer = exchange(daemon, head.encode() + b"transfer-encoding: chunked\r\n\r\n" + chunks)
    assert answer.startswith(b"HTTP/1.1 200")
    assert b'"accepted":1' in answer


def test_a_connection_serves_many_requests_refused_ones_too(daemon: Daemon) -> None:
    connection = daemon.connection(over_socket=True)
    for number in range(20):
        body = b"{" if number % 3 == 0 else b'{"sessionId":"kept","message":{"role":"user","content":"x"}}'
        connection.request("POST", "/v1/onMessage", body)
        before = connection.sock
        response = connection.getresponse()
        response.read()
        assert response.status == (400 if number % 3 == 0 else 200)
        assert connection.sock is before
    connection.close()


def test_pipelined_requests_are_answered_in_their_order(daemon: Daemon) -> None:
    head = f"host: localhost\r\nauthorization: Bearer {daemon.token}\r\n"
    first = b'{"sessionId":"piped","message":{"role":"user","content":"one"}}'
    second = b'{"sessionId":"piped","message":{"role":"user","content":"two"}}'
    requests = b"".join(
        f"POST /v1/onMessage HTTP/1.1\r\n{head}content-length: {len(body)}\r\n\r\n".encode() + body
        for body in (first, second)
    )
    last = f"GET /v1/ping HTTP/1.1\r\n{head}connection: close\r\n\r\n".encode()
    answers = exchange(daemon, requests + last)
    assert answers.count(b"HTTP/1.1 200") == 3
    assert answers.index(b'"lastSeq":1') < answers.index(b'"lastSeq":2') < answers.index(b'"latencyMs"')


def test_what_is_not_http_does_not_disturb_the_others(daemon: Daemon) -> None:
    for garbage in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", b"hello\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"x" * 200_000):
        exchange(daemon, garbage, ends=True)
    assert daemon.ask("ping").status == 200


def test_a_client_that_leaves_in_the_middle_leaves_nothing(daemon: Daemon) -> None:
    head = f"host: localhost\r\nauthorization: Bearer {daemon.token}\r\ncontent-length: 1000\r\n\r\n"
    exchange(daemon, f"POST /v1/onMessage HTTP/1.1\r\n{head}".encode() + b'{"sessionId":"half"', ends=True)
    assert daemon.ask("getCompressedContext", sessionId="half", maxChars=100).json()["covers"]["lastSeq"] == 0


@pytest.mark.parametrize(
    "headers",
    [
        "content-length: {size}\r\ntransfer-encoding: chunked\r\n",
        "content-length: {size}\r\ncontent-length: 3\r\n",
        "transfer-encoding: xchunked\r\n",
        "content-length: -1\r\n",
        "content-length: 0x10\r\n",
        "content-length: 99999999999999999999999999\r\n",
    ],
)
def test_a_length_that_can_be_read_two_ways_is_refused(daemon: Daemon, headers: str) -> None:
    """What follows could be smuggled in as a request of its own."""
    body = b'{"sessionId":"smuggled","message":{"role":"user","content":"x"}}'
    head = f"POST /v1/onMessage HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {daemon.token}\r\n"
    answer = exchange(daemon, head.encode() + headers.format(size=len(body)).encode() + b"\r\n" + body)
    assert answer.startswith(b"HTTP/1.1 4")
    assert b"application/problem+json" in answer
    assert daemon.ask("getCompressedContext", sessionId="smuggled", maxChars=100).json()["covers"]["lastSeq"] == 0


def test_older_and_careful_clients_are_served(daemon: Daemon) -> None:
    head = f"host: localhost\r\nauthorization: Bearer {daemon.token}\r\n"
    assert exchange(daemon, f"GET /v1/ping HTTP/1.0\r\n{head}\r\n".encode()).startswith(b"HTTP/1.1 200")
    body = b'{"sessionId":"careful","message":{"role":"user","content":"x"}}'
    asks_first = f"POST /v1/onMessage HTTP/1.1\r\n{head}expect: 100-continue\r\ncontent-length: {len(body)}\r\n\r\n"
    assert exchange(daemon, asks_first.encode() + body).startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200")


def test_clients_that_do_not_wait_for_their_answer_disturb_nobody(daemon: Daemon) -> None:
    body = b'{"sessionId":"hasty","message":{"role":"user","content":"x"}}'
    head = f"POST /v1/onMessage HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n"
    request = f"{head}authorization: Bearer {daemon.token}\r\n\r\n".encode() + body
    for _ in range(100):
        with socket.create_connection(("127.0.0.1", daemon.port)) as hasty:
            hasty.sendall(request * 3)
    assert daemon.ask("onMessage", sessionId="hasty", message=message()).json()["accepted"] == 1
    assert daemon.ask("audit").json()["verified"]
    log = daemon.log.read_text()
    assert "request.fail" not in log
    assert "Traceback" not in log


ANSWERED = re.compile(rb"HTTP/1\.1 [2-5]")


def exchange(daemon: Daemon, request: bytes, *, ends: bool = False) -> bytes:
    """What comes back for some bytes. `ends`: we say that no more will come."""

    async def talk() -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", daemon.port)
        writer.write(request)
        if ends:
            writer.write_eof()
        answer = b""
        closes = b"connection: close" in request
        try:
            # A busy machine takes its time to answer; whether more comes where it has, is waited for less long.
            while data := await asyncio.wait_for(
                reader.read(65_536), 1.0 if ANSWERED.search(answer) and not closes else 30.0
            ):
                answer += data
        except (TimeoutError, ConnectionError):
            pass
        writer.close()
        return answer

    return asyncio.run(talk())
