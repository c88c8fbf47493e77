"""Against a server that speaks the protocol over real sockets, well or badly."""

from __future__ import annotations

import logging
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from offbook.model.errors import ModelUnavailable
from offbook.model.summary import Usage
from offbook.models import endpoint
from offbook.models.summarizers.remote import OpenAIChat, Prices, tidied
from offbook.models.tokens import estimate_tokens
from tests.unit.models.chat_server import KEY, TEXT, Answer, Server, completion, prompt, reply, serving

SECRET = "the combination is 7-1-9"
PRICES = Prices(input=2.0, cached=0.5, output=10.0)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(lambda body: completion()) as made:
        yield made


@pytest.fixture
def chat(server: Server) -> Iterator[OpenAIChat]:
    made = OpenAIChat(
        server.url + "/v1", "m", key=KEY, prices=PRICES, timeout_seconds=30, first_pause_seconds=0.01, attempts=3
    )
    yield made
    made.close()


@contextmanager
def dripping(start: bytes, *, drops: bool = False) -> Iterator[str]:
    """A server that says this to whoever comes, and then perhaps a byte every tenth of a second, for a minute."""
    over = threading.Event()

    def serve() -> None:
        with suppress(OSError):
            taken, _ = listening.accept()
            with taken:
                taken.recv(65_536)
                taken.sendall(start)
                for _ in range(600 if drops else 0):
                    taken.sendall(b".")
                    if over.wait(0.1):
                        return

    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as pool:
        listening.settimeout(30)
        pool.submit(serve)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        finally:
            over.set()


def test_the_conversation_is_sent_without_a_system_prompt(server: Server, chat: OpenAIChat) -> None:
    written = chat.write(prompt("[Context Manager] So far:", "I remember.", "And now?\0\ud800"))
    assert written.text == TEXT
    path, headers, body = server.asked[0]
    assert (path, headers["authorization"]) == ("/v1/chat/completions", f"Bearer {KEY}")
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    assert body["messages"][2]["content"] == "And now? \ufffd"
    assert (body["model"], body["max_tokens"], body["stream"]) == ("m", 300, False)


def test_a_server_of_ones_own_gets_no_key(server: Server) -> None:
    chat = OpenAIChat(server.url + "/v1/", "m")
    chat.write(prompt())
    assert "authorization" not in server.asked[0][1]
    assert server.asked[0][0] == "/v1/chat/completions"


@pytest.mark.parametrize(
    ("told", "cached"),
    [
        ({"prompt_tokens": 1_000, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 800}}, 800),
        ({"prompt_tokens": 1_000, "completion_tokens": 100, "prompt_cache_hit_tokens": 800}, 800),
        ({"prompt_tokens": 1_000, "completion_tokens": 100, "prompt_tokens_details": None}, 0),
        ({"prompt_tokens": 1_000, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 9_999}}, 1_000),
        ({"prompt_tokens": 1_000, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": -1}}, 0),
    ],
)
def test_what_was_used_is_told(told: object, cached: int, server: Server, chat: OpenAIChat) -> None:
    server.script.append(lambda body: completion(usage=told))
    usage = chat.write(prompt()).usage
    assert (usage.input_tokens, usage.cached_tokens, usage.output_tokens) == (1_000, cached, 100)
    assert usage.dollars == pytest.approx(((1_000 - cached) * 2 + cached * 0.5 + 100 * 10) / 1e6)
    assert chat.dollars_for(usage) == pytest.approx(usage.dollars)


@pytest.mark.parametrize(
    "told", [None, {}, "none", {"prompt_tokens": None}, {"prompt_tokens": 0, "completion_tokens": "7"}]
)
def test_where_nothing_is_told_it_is_estimated(told: object, server: Server, chat: OpenAIChat) -> None:
    server.script.append(lambda body: completion(usage=told))
    usage = chat.write(prompt("hello there")).usage
    assert (usage.input_tokens, usage.output_tokens) == (estimate_tokens("hello there"), estimate_tokens(TEXT))
    assert usage.dollars > 0


def test_a_cache_without_a_price_costs_what_the_rest_does() -> None:
    used = Usage(input_tokens=1_000_000, cached_tokens=500_000)
    assert Prices(input=2.0).dollars(used) == 2.0
    assert Prices(input=2.0, cached=0.2).dollars(used) == 1.1
    assert Prices().dollars(used) == 0.0


@pytest.mark.parametrize(
    "bad",
    [
        lambda body: reply({}, 429, Retry_After="0"),
        lambda body: reply({}, 503),
        lambda body: reply({}, 529),
        lambda body: (0, {}, b""),
    ],
    ids=["429", "503", "529", "hangs up"],
)
def test_a_passing_trouble_is_tried_again(bad: Callable[[Any], Answer], server: Server, chat: OpenAIChat) -> None:
    server.script += [bad, bad]
    assert chat.write(prompt()).text == TEXT
    assert len(server.asked) == 3
    server.script += [bad] * 3
    with pytest.raises(ModelUnavailable) as caught:
        chat.write(prompt())
    assert caught.value.retryable
    assert len(server.asked) == 6


def test_a_pause_that_is_asked_for_is_kept(server: Server, chat: OpenAIChat) -> None:
    server.script.append(lambda body: reply({}, 429, Retry_After="1"))
    started = time.monotonic()
    chat.write(prompt())
    assert time.monotonic() - started >= 1.0


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (lambda body: (200, {}, b"<html>"), "not an answer of /chat/completions"),
        (lambda body: (200, {}, b"\xff"), "not an answer"),
        (lambda body: reply({"choices": []}), "not an answer"),
        (lambda body: reply({"choices": [{"message": {"content": ["a", "b"]}}]}), "not an answer"),
        (lambda body: (200, {}, b'{"choices":' + b"[" * 200_000 + b"]" * 200_000 + b"}"), "not an answer"),
        (lambda body: reply({"error": "no model m"}, 404), "404 for model 'm': mend .*summarizer.endpoint and model$"),
        (lambda body: reply({"error": "too long"}, 400), "400 for model 'm': it does not take what was sent"),
        (lambda body: (302, {"Location": "http://127.0.0.1:9/"}, b""), "302"),
        (lambda body: reply({}, 401), "OPENAI_API_KEY"),
    ],
)
def test_what_cannot_be_right_is_refused_at_once(
    bad: Callable[[Any], Answer], told: str, server: Server, chat: OpenAIChat
) -> None:
    server.script.append(bad)
    with pytest.raises(ModelUnavailable, match=told) as caught:
        chat.write(prompt())
    assert len(server.asked) == 1
    assert not caught.value.retryable


def test_models_that_want_the_length_under_another_name_get_it(server: Server, chat: OpenAIChat) -> None:
    server.script += [
        lambda body: reply({"error": {"message": "Unsupported parameter: use 'max_completion_tokens' instead."}}, 400),
        lambda body: reply({"error": {"message": "'temperature' does not support 0.2 with this model."}}, 400),
    ]
    assert chat.write(prompt()).text == TEXT
    assert chat.write(prompt()).text == TEXT
    last = server.asked[-1][2]
    assert len(server.asked) == 4
    assert last["max_completion_tokens"] == 300
    assert not {"max_tokens", "temperature"} & last.keys()


def test_a_model_that_never_adapts_is_not_asked_forever(server: Server, chat: OpenAIChat) -> None:
    server.script += [lambda body: reply({"error": "max_completion_tokens and temperature are wrong"}, 400)] * 10
    with pytest.raises(ModelUnavailable, match="400"):
        chat.write(prompt())
    assert len(server.asked) == 3


def test_an_empty_answer_is_one(server: Server, chat: OpenAIChat) -> None:
    server.script.append(lambda body: completion(None))
    assert chat.write(prompt()).text == ""


def test_an_answer_that_was_cut_ends_with_a_sentence(server: Server, chat: OpenAIChat) -> None:
    server.script.append(lambda body: completion(TEXT + " And then I went to the", finish="length"))
    assert chat.write(prompt()).text == TEXT


def test_thoughts_spoken_aloud_are_left_out() -> None:
    assert tidied("\n<think>Hm. <b></think>\n\nI was there.", is_cut=False) == "I was there."
    assert tidied("<think>without an end", is_cut=False) == "<think>without an end"
    assert tidied("It began before.</think>I was there.", is_cut=False) == "I was there."
    assert tidied("<thinking>a</thinking> <think>b</THINK>\nI was there.", is_cut=False) == "I was there."
    assert tidied("no end of a sentence", is_cut=True) == "no end of a sentence"


def test_an_endless_answer_is_not_read(server: Server, chat: OpenAIChat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "MOST_ANSWER_BYTES", 1_000)
    server.script += [lambda body: completion("x" * 100_000)] * 3
    with pytest.raises(ModelUnavailable, match="more than 1,000 bytes"):
        chat.write(prompt())


def test_one_that_is_slow_is_given_up(server: Server) -> None:
    may_answer = threading.Event()
    server.script.append(lambda body: completion(str(may_answer.wait(60))))
    chat = OpenAIChat(server.url, "m", timeout_seconds=0.2, attempts=1)
    started = time.monotonic()
    with pytest.raises(ModelUnavailable, match="does not answer") as caught:
        chat.write(prompt())
    assert time.monotonic() - started < 30
    assert caught.value.retryable
    may_answer.set()


def test_a_close_breaks_off_who_waits(server: Server) -> None:
    chat = OpenAIChat(server.url, "m", timeout_seconds=30)
    asked, may_answer = threading.Event(), threading.Event()

    def hang(body: object) -> Answer:
        asked.set()
        may_answer.wait(60)
        return completion()

    server.script.append(hang)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(chat.write, prompt())
        assert asked.wait(120)
        started = time.monotonic()
        chat.close()
        with pytest.raises(ModelUnavailable, match="closed"):
            running.result(timeout=120)
        assert time.monotonic() - started < 30
    may_answer.set()


@pytest.mark.parametrize("status", [302, 400, 401, 404, 413, 422, 429, 500])
def test_no_word_of_a_refusal_is_told(status: int, server: Server, chat: OpenAIChat) -> None:
    """It may quote what was sent, and others read the error."""
    server.script += [lambda body: reply({"error": {"message": "not taken", "input": body["messages"]}}, status)] * 3
    with pytest.raises(ModelUnavailable, match=f"answered {status}") as caught:
        chat.write(prompt(SECRET))
    told = "".join(traceback.format_exception(caught.value))
    assert SECRET not in told
    assert "not taken" not in told


def test_no_word_of_what_is_not_http_is_told() -> None:
    with (
        dripping(f"{SECRET}\r\n\r\n".encode()) as url,
        pytest.raises(ModelUnavailable, match="not HTTP") as caught,
    ):
        OpenAIChat(url, "m", timeout_seconds=5, attempts=1).write(prompt())
    assert SECRET not in caught.value.detail


@pytest.mark.parametrize(
    ("scheme", "start"),
    [
        ("http", b"HTTP/1.1 200 OK\r\nX-Wait: "),
        ("http", b"HTTP/1.1 200 OK\r\n\r\n"),
        ("https", b"\x16\x03\x03\x3f\xff\x02\x00\x3f\xfb"),
    ],
    ids=["head", "body", "handshake"],
)
def test_an_answer_in_drops_is_given_up(scheme: str, start: bytes) -> None:
    with dripping(start, drops=True) as url:
        chat = OpenAIChat(url.replace("http", scheme), "m", timeout_seconds=0.5, attempts=1)
        started = time.monotonic()
        with pytest.raises(ModelUnavailable, match=r"not complete after 0\.5 seconds") as caught:
            chat.write(prompt())
        assert time.monotonic() - started < 30
        assert caught.value.retryable


@pytest.mark.parametrize("status", [400, 401, 403, 404, 500])
def test_the_key_is_in_no_error_and_no_log(
    status: int, server: Server, chat: OpenAIChat, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.script += [lambda body: (status, {}, f"Incorrect API key provided: {KEY}".encode())] * 3
    with pytest.raises(ModelUnavailable) as caught:
        chat.write(prompt())
    assert KEY not in f"{caught.value!r} {caught.value.problem()} {chat!r} {vars(chat)} {caplog.text}"


def test_names_and_addresses() -> None:
    one = OpenAIChat("http://127.0.0.1:1/v1", "m", context_tokens=9_000)
    assert (one.name, one.context_tokens) == ("openai:m", 9_000)
    others = [OpenAIChat("http://127.0.0.1:1/v1", "n"), OpenAIChat("http://127.0.0.1:2/v1", "m")]
    assert one.fingerprint == OpenAIChat("http://127.0.0.1:1/v1/", "m", key=KEY).fingerprint
    assert one.fingerprint not in {other.fingerprint for other in others}
    with pytest.raises(ModelUnavailable, match=r"summarizer\.endpoint names .* use https"):
        OpenAIChat("http://192.168.1.20/v1", "m")
    with pytest.raises(ModelUnavailable, match=r"password.*summarizer\.apiKeyVariable"):
        OpenAIChat("https://me:hunter2@api.example.com/v1", "m")
