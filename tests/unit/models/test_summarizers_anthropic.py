"""Against a server that speaks the protocol over real sockets, well or badly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from offbook.model.errors import ModelUnavailable
from offbook.models.summarizers.remote import Anthropic, Prices
from offbook.models.tokens import estimate_tokens
from tests.unit.models.chat_server import KEY, TEXT, Answer, Server, prompt, reply, serving

PRICES = Prices(input=1.0, cached=0.1, output=5.0)
USED = {
    "input_tokens": 100,
    "cache_creation_input_tokens": 2_000,
    "cache_read_input_tokens": 30_000,
    "output_tokens": 400,
}


def message(text: str = TEXT, stop: str = "end_turn", usage: object = USED) -> Answer:
    parts = [{"type": "thinking", "thinking": "hm", "signature": "x"}, {"type": "text", "text": text}]
    return reply({"type": "message", "role": "assistant", "content": parts, "stop_reason": stop, "usage": usage})


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(lambda body: message()) as made:
        yield made


@pytest.fixture
def claude(server: Server) -> Iterator[Anthropic]:
    made = Anthropic(server.url, "c", key=KEY, prices=PRICES, timeout_seconds=5, first_pause_seconds=0.01)
    yield made
    made.close()


def test_the_end_of_the_memories_is_marked_for_the_cache(server: Server, claude: Anthropic) -> None:
    asked = prompt("So far:", "I remember.", "And:", "I remember more.", "And now?", stable=4)
    assert claude.write(asked).text == TEXT
    path, headers, body = server.asked[0]
    assert (path, headers["x-api-key"], headers["anthropic-version"]) == ("/v1/messages", KEY, "2023-06-01")
    assert "authorization" not in headers
    assert "system" not in body
    assert (body["model"], body["max_tokens"]) == ("c", 300)
    marked = [at for at, sent in enumerate(body["messages"]) if "cache_control" in sent["content"][0]]
    assert marked == [3]
    assert body["messages"][3] == {
        "role": "assistant",
        "content": [{"type": "text", "text": "I remember more.", "cache_control": {"type": "ephemeral"}}],
    }


def test_without_memories_nothing_is_marked(server: Server, claude: Anthropic) -> None:
    claude.write(prompt("And now?"))
    assert "cache_control" not in server.asked[0][2]["messages"][0]["content"][0]


def test_what_was_read_anew_written_and_read_from_the_cache_is_one_count(claude: Anthropic) -> None:
    usage = claude.write(prompt()).usage
    assert (usage.input_tokens, usage.cached_tokens, usage.output_tokens) == (32_100, 30_000, 400)
    # 100 as they are, 2,000 with a quarter more, 30,000 at a tenth, 400 at five times.
    assert usage.dollars == pytest.approx((100 + 2_500 + 3_000 + 2_000) / 1e6)


@pytest.mark.parametrize("told", [None, {}, "x", {"input_tokens": None, "cache_read_input_tokens": "9"}])
def test_where_nothing_is_told_it_is_estimated(told: object, server: Server, claude: Anthropic) -> None:
    server.script.append(lambda body: message(usage=told))
    usage = claude.write(prompt("hello there")).usage
    assert (usage.input_tokens, usage.output_tokens) == (estimate_tokens("hello there"), estimate_tokens(TEXT))


def test_an_answer_that_was_cut_ends_with_a_sentence(server: Server, claude: Anthropic) -> None:
    server.script.append(lambda body: message(TEXT + " And then", stop="max_tokens"))
    assert claude.write(prompt()).text == TEXT


@pytest.mark.parametrize("status", [429, 500, 529])
def test_a_passing_trouble_is_tried_again(status: int, server: Server, claude: Anthropic) -> None:
    server.script += [lambda body: reply({"type": "error"}, status, Retry_After="0")] * 2
    assert claude.write(prompt()).text == TEXT
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (lambda body: (200, {}, b"{"), "not an answer of /v1/messages"),
        (lambda body: reply({"content": "text"}), "not an answer"),
        (
            lambda body: reply({"error": {"message": "prompt is too long"}}, 400),
            "400 for model 'c': it does not take what was sent",
        ),
        (lambda body: (401, {}, KEY.encode()), "ANTHROPIC_API_KEY"),
        (lambda body: (404, {}, KEY.encode()), r"summarizer\.anthropicEndpoint and model"),
    ],
)
def test_what_cannot_be_right_is_refused_at_once(
    bad: Callable[[Any], Answer], told: str, server: Server, claude: Anthropic
) -> None:
    server.script.append(bad)
    with pytest.raises(ModelUnavailable, match=told) as caught:
        claude.write(prompt())
    assert len(server.asked) == 1
    assert KEY not in caught.value.detail
    assert not caught.value.retryable


def test_a_model_that_takes_no_temperature_gets_none(server: Server, claude: Anthropic) -> None:
    server.script += [lambda body: reply({"error": {"message": "temperature is deprecated for this model"}}, 400)]
    assert claude.write(prompt()).text == TEXT
    assert "temperature" in server.asked[0][2]
    assert "temperature" not in server.asked[1][2]
    server.script += [lambda body: reply({"error": {"message": "temperature"}}, 400)] * 5
    with pytest.raises(ModelUnavailable):
        claude.write(prompt())
    assert len(server.asked) == 3


def test_an_address_with_its_version_is_the_same(server: Server) -> None:
    Anthropic(server.url + "/v1/", "c", key=KEY).write(prompt())
    assert server.asked[0][0] == "/v1/messages"
