"""Against a server that speaks the protocol over real sockets, well or badly."""

from __future__ import annotations

import json
import logging
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from offbook.model.errors import ModelUnavailable
from offbook.models import embedder as embedders
from offbook.models import endpoint
from offbook.models.embedder import OpenAIEmbedder

KEY = "sk-secret-0123456789"
SECRET = "the combination is 7-1-9"
Answer = tuple[int, dict[str, str], bytes]


def vector_of(text: str) -> list[float]:
    return [float(len(text)), 3.0, 4.0]


def vectors_of(texts: list[str]) -> list[dict[str, Any]]:
    return [{"object": "embedding", "index": at, "embedding": vector_of(text)} for at, text in enumerate(texts)]


def answer(data: list[dict[str, Any]], status: int = 200, **headers: str) -> Answer:
    return status, headers, json.dumps({"object": "list", "data": data, "model": "m", "usage": {}}).encode()


class Server(ThreadingHTTPServer):
    """Answers in order with what `script` holds, then as it should."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script: list[Callable[[list[str]], Answer]] = []
        self.asked: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.connections: set[Any] = set()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is what some tests are about."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, dict(self.headers), body))
        self.server.connections.add(self.client_address)
        script = self.server.script
        status, headers, content = script.pop(0)(body["input"]) if script else answer(vectors_of(body["input"]))
        if status == 0:
            self.close_connection = True
            return
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        self.close_connection = self.close_connection or "Content_Length" in headers

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    thread = threading.Thread(target=made.serve_forever, args=(0.01,))
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.fixture
def embedder(server: Server) -> Iterator[OpenAIEmbedder]:
    made = OpenAIEmbedder(server.url, "m", dimensions=3, key=KEY, timeout_seconds=5, first_pause_seconds=0.01)
    yield made
    made.close()


def unit(text: str) -> list[float]:
    vector = np.array(vector_of(text))
    return list(vector / np.linalg.norm(vector))


def test_texts_go_in_batches_over_one_connection_and_come_back_as_unit_vectors(
    server: Server, embedder: OpenAIEmbedder
) -> None:
    texts = ["x" * (number % 40 + 1) for number in range(150)]
    vectors = embedder.embed(texts)
    assert vectors.dtype == np.float32
    assert np.allclose(vectors, [unit(text) for text in texts], atol=1e-6)
    assert [len(body["input"]) for _, _, body in server.asked] == [64, 64, 22]
    path, headers, body = server.asked[0]
    assert (path, body["model"], headers["Authorization"]) == ("/v1/embeddings", "m", f"Bearer {KEY}")
    assert len(server.connections) == 1


def test_without_a_key_none_is_sent(server: Server) -> None:
    embedder = OpenAIEmbedder(server.url + "/", "m", dimensions=3)
    embedder.embed(["a"])
    embedder.close()
    path, headers, _ = server.asked[0]
    assert path == "/v1/embeddings"
    assert "Authorization" not in headers


def test_no_texts_ask_nothing(server: Server, embedder: OpenAIEmbedder) -> None:
    assert embedder.embed([]).shape == (0, 3)
    assert server.asked == []


def test_texts_that_endpoints_refuse_are_mended(server: Server, embedder: OpenAIEmbedder) -> None:
    embedder.embed(["", " \n", "a\ud800b", "\ud83d\ude00", "nul\0", "x" * 100_000])
    assert server.asked[0][2]["input"] == [".", ".", "a\ufffdb", "😀", "nul ", "x" * 8_000]


def test_vectors_are_put_in_the_order_of_their_indexes(server: Server, embedder: OpenAIEmbedder) -> None:
    server.script.append(lambda texts: answer(vectors_of(texts)[::-1]))
    assert np.allclose(embedder.embed(["a", "bbb", "cc"]), [unit("a"), unit("bbb"), unit("cc")], atol=1e-6)


@pytest.mark.parametrize(
    "bad",
    [
        lambda texts: answer([], 429, Retry_After="0"),
        lambda texts: answer([], 503),
        lambda texts: answer([], 500, Retry_After="Wed, 21 Oct 2026 07:28:00 GMT"),
        lambda texts: (0, {}, b""),
        lambda texts: (200, {"Content_Length": "1000"}, b'{"data": ['),
    ],
    ids=["429", "503", "500", "hangs up", "ends early"],
)
def test_a_passing_trouble_is_tried_again(
    bad: Callable[[list[str]], Answer], server: Server, embedder: OpenAIEmbedder
) -> None:
    server.script += [bad, bad]
    assert np.allclose(embedder.embed(["a"]), [unit("a")], atol=1e-6)
    assert len(server.asked) == 3


def test_a_connection_that_was_closed_meanwhile_costs_no_attempt(server: Server, embedder: OpenAIEmbedder) -> None:
    embedder.embed(["a"])
    server.script.append(lambda texts: (0, {}, b""))
    embedder._first_pause_seconds = 60  # it would be waited for
    assert np.allclose(embedder.embed(["b"]), [unit("b")], atol=1e-6)


def test_attempts_end_and_may_be_made_again_later(server: Server, embedder: OpenAIEmbedder) -> None:
    server.script += [lambda texts: answer([], 503)] * 10
    with pytest.raises(ModelUnavailable, match="answered 503") as caught:
        embedder.embed(["a"])
    assert len(server.asked) == embedders.ATTEMPTS
    assert caught.value.retryable
    assert caught.value.problem()["retryable"] is True


def data(*vectors: object) -> Callable[[list[str]], Answer]:
    return lambda texts: answer([{"index": at, "embedding": vector} for at, vector in enumerate(vectors)])


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (lambda texts: answer(vectors_of([*texts, "more"])), "3 vectors for 2 texts"),
        (lambda texts: answer(vectors_of(texts)[:1]), "1 vectors for 2 texts"),
        (lambda texts: answer([vectors_of(texts)[0]] * 2), "indexes"),
        (lambda texts: answer([{"embedding": vector_of(text)} for text in texts]), "index"),
        (data([1.0, 2.0, 3.0], [float("nan"), 2.0, 3.0]), "not an answer"),
        (data([1.0, 2.0, 3.0], [None, 2.0, 3.0]), "not an answer"),
        (data([1.0, 2.0, 3.0], "AACAPwAAAEA="), "not an answer"),
        (lambda texts: (200, {}, answer(vectors_of(texts))[2].replace(b"3.0", b"1e999")), "sent"),
        (data([1.0, 2.0, 3.0], [0.0, 0.0, 0.0]), "zeros"),
        (data([1.0, 2.0, 3.0], [1.0, 2.0]), "of 2 numbers, the setting embedding.dimensions says 3"),
        (lambda texts: (200, {}, b"<html>"), "not an answer"),
        (lambda texts: (200, {}, b"\xff"), "not an answer"),
        (lambda texts: (404, {}, b'{"error": "model m not found"}'), "404 for model 'm': mend .*embedding.model$"),
        (lambda texts: (302, {"Location": "http://127.0.0.1:9/"}, b""), "302"),
    ],
)
def test_an_answer_that_cannot_be_right_is_refused_at_once(
    bad: Callable[[list[str]], Answer], told: str, server: Server, embedder: OpenAIEmbedder
) -> None:
    server.script.append(bad)
    with pytest.raises(ModelUnavailable, match=told) as caught:
        embedder.embed(["a", "b"])
    assert len(server.asked) == 1
    assert not caught.value.retryable


def test_numbers_at_the_ends_of_their_range_are_normalised(server: Server, embedder: OpenAIEmbedder) -> None:
    server.script.append(data([1e300, 1e300, 0.0], [0.0, 1e-300, 0.0]))
    vectors = embedder.embed(["a", "b"])
    assert np.allclose(vectors, [[0.5**0.5, 0.5**0.5, 0], [0, 1, 0]], atol=1e-6)


def test_an_endless_answer_is_not_read(
    server: Server, embedder: OpenAIEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint, "MOST_ANSWER_BYTES", 1_000)
    server.script += [lambda texts: (200, {}, b" " * 100_000)] * 4
    with pytest.raises(ModelUnavailable, match="more than 1,000 bytes"):
        embedder.embed(["a"])


def test_nobody_there_is_told_with_what_to_do() -> None:
    embedder = OpenAIEmbedder("http://127.0.0.1:9/v1", "m", dimensions=3, first_pause_seconds=0.001)
    with pytest.raises(ModelUnavailable, match=r"127\.0\.0\.1:9/v1 does not answer.*embedding\.endpoint") as caught:
        embedder.embed(["a"])
    assert caught.value.retryable


def test_closing_ends_the_waiting(server: Server, embedder: OpenAIEmbedder) -> None:
    server.script += [lambda texts: answer([], 429, Retry_After="15")] * 4
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(embedder.embed, ["a"])
        while not server.asked:
            threading.Event().wait(0.01)
        embedder.close()
        with pytest.raises(ModelUnavailable, match="closed"):
            waiting.result(timeout=120)


def test_several_threads_at_once(server: Server, embedder: OpenAIEmbedder) -> None:
    texts = [["x" * (size + at) for at in range(1, 6)] for size in range(12)]
    with ThreadPoolExecutor(6) as pool:
        for given, vectors in zip(texts, pool.map(embedder.embed, texts), strict=True):
            assert np.allclose(vectors, [unit(text) for text in given], atol=1e-6)


# ── the key and the address ──


@pytest.mark.parametrize("status", [400, 404, 422, 500])
def test_no_word_of_a_refusal_is_told(status: int, server: Server, embedder: OpenAIEmbedder) -> None:
    """It may quote what was sent, and others read the error."""
    server.script += [lambda texts: (status, {}, json.dumps({"error": f"not taken: {texts[0]}"}).encode())] * 4
    with pytest.raises(ModelUnavailable, match=str(status)) as caught:
        embedder.embed([SECRET])
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("status", [400, 401, 403, 404, 500])
def test_the_key_is_in_no_error_and_no_log(
    status: int, server: Server, embedder: OpenAIEmbedder, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.script += [lambda texts: (status, {}, f"Incorrect API key provided: {KEY}".encode())] * 4
    with pytest.raises(ModelUnavailable) as caught:
        embedder.embed(["a"])
    assert str(status) in caught.value.detail
    assert ("OPENAI_API_KEY" in caught.value.detail) == (status in (401, 403))
    assert KEY not in f"{caught.value!r} {caught.value.problem()} {caught.value.__cause__!r} {embedder!r} {caplog.text}"


@pytest.mark.parametrize("key", ["sk-line\nsecond-secret", "sk-schlüssel-secret", "sk secret", "sk\x00secret"])
def test_a_key_that_no_header_can_hold_is_refused_unquoted(key: str) -> None:
    with pytest.raises(ModelUnavailable, match="MY_KEY") as caught:
        OpenAIEmbedder("http://localhost/v1", "m", dimensions=3, key=key, key_variable="MY_KEY")
    assert "secret" not in caught.value.detail


def test_a_key_written_where_its_variable_belongs_is_not_shown(server: Server) -> None:
    embedder = OpenAIEmbedder(server.url, "m", dimensions=3, key_variable=KEY)
    server.script.append(lambda texts: (401, {}, b""))
    with pytest.raises(ModelUnavailable, match=r"embedding\.apiKeyVariable") as caught:
        embedder.embed(["a"])
    assert KEY not in caught.value.detail


@pytest.mark.parametrize(
    "url", ["https://api.example.com/v1", "http://127.0.0.1:1/v1", "http://localhost", "http://[::1]:1"]
)
def test_tls_or_this_machine(url: str) -> None:
    OpenAIEmbedder(url, "m", dimensions=3).close()


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://192.168.1.20:11434/v1", "use https"),
        ("http://api.example.com/v1", "use https"),
        ("http://127.0.0.1.example.com/v1", "use https"),
        ("https://me:hunter2@api.example.com/v1", "holds a password"),
        ("ftp://127.0.0.1/v1", "must be like"),
        ("127.0.0.1:11434", "must be like"),
        ("https:///v1", "must be like"),
        ("https://api.example.com/v1?key=hunter2", "must be like"),
        ("https://api.example.com:port/v1", "not a URL"),
        ("https://api.example.com/v 1", "characters"),
    ],
)
def test_other_addresses_are_refused(url: str, told: str) -> None:
    with pytest.raises(ModelUnavailable, match=told) as caught:
        OpenAIEmbedder(url, "m", dimensions=3)
    assert "hunter2" not in caught.value.detail


def test_the_fingerprint_is_of_address_model_and_dimensions() -> None:
    def made(url: str = "http://localhost:1/v1", model: str = "m", dimensions: int = 3) -> str:
        return OpenAIEmbedder(url, model, dimensions=dimensions).fingerprint

    assert (
        made()
        == made("http://localhost:1/v1/")
        == OpenAIEmbedder("http://localhost:1/v1", "m", dimensions=3, key=KEY).fingerprint
    )
    assert len({made(), made("http://localhost:2/v1"), made(model="n"), made(dimensions=4)}) == 4


def test_an_answer_that_is_nested_too_deeply_is_none(server: Server, embedder: OpenAIEmbedder) -> None:
    deep = b'{"x":' + b"[" * 200_000 + b"1" + b"]" * 200_000 + b',"data":[]}'
    server.script.append(lambda texts: (200, {}, deep))
    with pytest.raises(ModelUnavailable, match="not an answer"):
        embedder.embed(["a"])


def test_a_query_is_asked_for_once(server: Server, embedder: OpenAIEmbedder) -> None:
    assert np.allclose(embedder.embed_query("aaa"), [unit("aaa")], atol=1e-6)
    server.script.append(lambda texts: answer([], 503))
    with pytest.raises(ModelUnavailable, match="503"):
        embedder.embed_query("a")
    assert len(server.asked) == 2


def test_a_query_has_less_time(server: Server, embedder: OpenAIEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedders, "QUERY_SECONDS", 0.1)
    embedder.embed(["a"])  # also over a connection that was kept
    may_answer = threading.Event()
    server.script.append(lambda texts: answer(vectors_of(texts)) if may_answer.wait(60) else answer([]))
    started = time.monotonic()
    with pytest.raises(ModelUnavailable, match="does not answer"):
        embedder.embed_query("a")
    assert time.monotonic() - started < 30
    may_answer.set()


def test_a_close_breaks_off_who_waits_for_an_answer(server: Server) -> None:
    embedder = OpenAIEmbedder(server.url, "m", dimensions=3, timeout_seconds=30)
    asked, may_answer = threading.Event(), threading.Event()

    def hang(texts: list[str]) -> Answer:
        asked.set()
        may_answer.wait(60)
        return answer([])

    server.script.append(hang)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(embedder.embed, ["a"])
        assert asked.wait(120)
        started = time.monotonic()
        embedder.close()
        with pytest.raises(ModelUnavailable, match="closed"):
            running.result(timeout=120)
        assert time.monotonic() - started < 30
    may_answer.set()
