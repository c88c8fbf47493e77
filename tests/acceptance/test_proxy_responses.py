"""`/responses` through the proxy, as OpenAI's newer clients use it: a real provider, the real client library, and an API
that refuses what the real one refuses."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from offbook.models.tokens import estimate_tokens
from tests.acceptance.daemon import WITHOUT_MODEL, running
from tests.acceptance.proxied import KEY, WINDOW, Setup, distinct, proxied, until, user
from tests.acceptance.scripted_api import MODEL, Api, Received, Says, Sends
from tests.acceptance.scripted_responses import Output, streamed

PATH = "/v1/responses"


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    made = Api(distinct)
    yield made
    made.close()


@pytest.fixture(scope="module")
def setup(api: Api) -> Iterator[Setup]:
    with running(WITHOUT_MODEL) as daemon, proxied(daemon, api, "--window", str(WINDOW)) as made:
        yield made


@pytest.fixture(autouse=True)
def _as_usual(api: Api) -> None:
    api.reply, api.hold = distinct, None
    api.received.clear()
    api.refused.clear()


def respond(setup: Setup, given: Any, **fields: Any) -> Any:
    return setup.kept.responses.create(model=MODEL, input=given, **fields)


def stream(setup: Setup, given: Any, **fields: Any) -> Any:
    with setup.kept.responses.stream(model=MODEL, input=given, **fields) as events:
        return events.get_final_response()


def dumped(response: Any) -> list[Any]:
    """The answer as a client keeps it."""
    return [item.model_dump(exclude_none=True) for item in response.output]


# ── what passes ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "body",
    [
        b'{"model":"m",  "input":[{"type":"item_reference","id":"msg_1"},{"role":"user","content":"Go on."}]}',
        b'{"model":"m",  "input":"In the background.", "background" : true}',
        b'{"model":"m",  "input":7}',
        b'{"model":"m",  "prompt":{"id":"pmpt_1"}}',
        b"\xff not json",
    ],
)
def test_what_is_not_understood_passes_unchanged(setup: Setup, body: bytes) -> None:
    setup.api.reply = lambda received: Sends(429, b'{"error": {"message":  "slow down"}}')
    assert setup.send(body, path=PATH) == (429, b'{"error": {"message":  "slow down"}}')
    assert [received.body for received in setup.api.received] == [body]


def test_what_is_asked_about_responses_passes_untouched(setup: Setup) -> None:
    document = setup.api.responses.response({"input": "Hi", "store": False}, Output(text="Hello."))
    setup.api.reply = lambda received: Sends(200, json.dumps(document).encode())
    kept = setup.kept.responses
    kept.retrieve("resp_1")
    kept.cancel("resp_1")
    kept.delete("resp_1")
    asked = [(received.method, received.path, received.body) for received in setup.api.received]
    assert asked == [
        ("GET", "/v1/responses/resp_1", b""),
        ("POST", "/v1/responses/resp_1/cancel", b""),
        ("DELETE", "/v1/responses/resp_1", b""),
    ]
    body = b'{"model":"m", "input":[{"role":"user","content":"Shorter, please."}]}'
    for path in ("/v1/responses/compact", "/v1/responses/input_tokens"):
        assert setup.send(body, path=path)[0] == 200
        assert setup.api.received[-1].body == body


def test_streams_pass_byte_for_byte(setup: Setup) -> None:
    document = setup.api.responses.response(
        {"input": "", "store": False},
        Output("Hm.", "Grüße 世界 🐈.", [("call_1", "weather", "{}")]),
    )
    given = b"".join(streamed(document))
    setup.api.reply = lambda received: Sends(200, given, "text/event-stream")
    assert setup.send(b'{"model":"m","stream":true,"input":"Stream this to me."}', path=PATH) == (200, given)


def test_what_the_memory_made_unacceptable_is_sent_again_as_it_came(setup: Setup) -> None:
    respond(setup, "Remember: my boat is called Unsinkable.")
    until(lambda: len(setup.log_of("Unsinkable")) == 2)
    body = b'{"model":"m",  "input":"What is my boat called?"}'
    setup.api.received.clear()
    setup.api.reply = lambda received: distinct(received) if received.body == body else Sends(400, b"{}")
    assert setup.send(body, path=PATH)[0] == 200
    assert "Unsinkable" in setup.api.received[0].text
    assert setup.api.received[1].body == body


# ── histories that come with the request ──────────────────────────────────────────────────────


def test_a_second_conversation_knows_what_the_first_one_said(setup: Setup) -> None:
    history: list[Any] = [user("My cat is called Ada.")]
    history += dumped(respond(setup, history, instructions="Be brief.", store=False))
    history.append({"role": "user", "content": [{"type": "input_text", "text": "She lives in Lisbon, Rua Augusta."}]})
    stream(setup, history, instructions="Be brief.", store=False)
    until(lambda: len(setup.log_of("Rua Augusta")) == 4)
    roles = [message["role"] for message in setup.log_of("Rua Augusta")]
    assert roles == ["user", "assistant", "user", "assistant"]
    assert setup.log_of("Rua Augusta")[1]["content"] == history[1]["content"][0]["text"]
    respond(setup, "Where in Lisbon does my cat Ada live?")
    assert "Rua Augusta" in setup.api.received[-1].text
    assert setup.api.received[-1].input[-1]["content"].startswith("Where in Lisbon does my cat Ada live?")
    assert setup.api.refused == []


def test_thoughts_calls_and_results_stay_together_and_are_recorded_once(setup: Setup) -> None:
    calls = [("call_a", "weather", '{"city": "Porto"}'), ("call_b", "tides", '{"city": "Faro"}')]
    custom = [("call_c", "sql", "select tide from faro")]
    setup.api.reply = lambda received: Says("Let me see.", calls, thought="Two cities.", custom_calls=custom)
    history: list[Any] = [user("How is the weather in Porto, and the tide in Faro?")]
    history += dumped(stream(setup, history, store=False))
    assert [item["type"] for item in history[1:]] == [
        "reasoning",
        "message",
        "function_call",
        "function_call",
        "custom_tool_call",
    ]
    history += [{"type": "function_call_output", "call_id": name, "output": f"Of {name}."} for name, _, _ in calls]
    history.append({"type": "custom_tool_call_output", "call_id": "call_c", "output": "Of call_c."})
    setup.api.reply = distinct
    for _ in range(2):  # a client that tries again
        respond(setup, history, store=False)
    until(lambda: len(setup.log_of("tide in Faro")) == 10)
    told = setup.log_of("tide in Faro")
    roles = [message["role"] for message in told]
    assert roles == ["user", *["assistant"] * 4, *["tool"] * 3, *["assistant"] * 2]  # both answers were given
    assert [message["toolCallId"] for message in told[5:8]] == ["call_a", "call_b", "call_c"]
    assert told[4]["meta"]["tool_calls"][0]["custom"] == {"name": "sql", "input": "select tide from faro"}
    assert setup.api.received[-1].input[-len(history) + 1 :] == history[1:]  # not a field of them changed
    assert setup.api.refused == []


def test_a_conversation_goes_on_after_the_proxy_was_started_anew(setup: Setup) -> None:
    history: list[Any] = [user("The meeting is in room Galileo.")]
    history += [*dumped(respond(setup, history, store=False)), user("Which room?")]
    until(lambda: len(setup.log_of("Galileo")) == 2)
    with proxied(setup.daemon, setup.api) as another:
        respond(another, history, store=False)
        until(lambda: len(setup.log_of("Galileo")) == 4)


def test_a_long_conversation_is_swapped_and_nothing_is_parted(setup: Setup) -> None:
    history: list[Any] = []
    swapped = 0
    for number in range(18):
        text = f"Entry {number}: parcel P{number:03} weighs {number * 3 + 1} kg and goes to pier {number % 7}. "
        history.append(user(text + "It was seen by the night watch, who wrote it down with care. " * 14))
        is_call = number % 3 == 2
        called = [(f"call_{number}", "write", f'{{"parcel": {number}}}'), (f"more_{number}", "weigh", "{}")]

        def reply(received: Received, is_call: bool = is_call, called: Any = called) -> Says:
            return (
                Says("I write it.", called, thought="A call.")
                if is_call
                else Says(distinct(received).text, thought="No.")
            )

        setup.api.reply = reply
        history += dumped(respond(setup, history, instructions="You keep the books.", store=False))
        if is_call:
            setup.api.reply = distinct
            for name, _, _ in called:
                history.append({"type": "function_call_output", "call_id": name, "output": f"Done: P{number:03}."})
            history += dumped(respond(setup, history, instructions="You keep the books.", store=False))
        sent = setup.api.received[-1].input
        assert sum(estimate_tokens(str(item)) for item in sent) < 2 * WINDOW
        swapped += len(sent) < len(history) - 4
        newest = [item["content"] for item in history if item.get("role") == "user"]
        users = [item["content"] for item in sent if item.get("role") == "user"]
        assert users[-1].startswith(newest[-1])
        if swapped:
            kept = [at for at, text in enumerate(newest) if any(one.startswith(text) for one in users)]
            assert kept == list(range(kept[0], len(newest)))  # the newest, without a gap
    assert swapped, "it never came to a swap"
    assert setup.api.refused == []  # no result without its call, no thought without what came of it, nor the reverse
    said = [item for item in history if item.get("type") != "reasoning"]
    until(lambda: len(setup.log_of("parcel P017")) == len(said))


# ── histories that lie at the API ─────────────────────────────────────────────────────────────


def test_a_conversation_at_the_api_is_followed_by_its_responses(setup: Setup) -> None:
    respond(setup, "Remember: the ferry to Barreiro leaves at 07:40.")
    until(lambda: len(setup.log_of("Barreiro")) == 2)
    until(lambda: not setup.daemon.ask("ping").json()["backlog"])  # a new conversation opens with what was made of it
    setup.api.reply = lambda received: Says("I look.", [("call_f", "ferries", "{}")], thought="A tool.")
    first = respond(setup, "When does my ferry to Barreiro leave?")
    assert first.output[-1].type == "function_call"
    assert "07:40" in setup.api.received[-1].text
    opening = setup.api.received[-1].input[0]
    assert opening["role"] == "assistant"  # memory, which the API keeps from now on
    setup.api.reply = distinct
    result = [{"type": "function_call_output", "call_id": "call_f", "output": "Ferry: on time."}]
    second = stream(setup, result, previous_response_id=first.id)
    assert setup.api.received[-1].input == result
    # What so short a question is about, the conversation tells, once it was read.
    until(lambda: len(setup.log_of("Ferry: on time.")) == 5)
    until(lambda: not setup.daemon.ask("ping").json()["backlog"])
    third = respond(setup, "And to Barreiro, tomorrow?", previous_response_id=second.id)
    (sent,) = setup.api.received[-1].input
    assert sent["content"].startswith("And to Barreiro, tomorrow?")
    assert "07:40" in sent["content"]
    until(lambda: len(setup.log_of("Ferry: on time.")) == 7)
    roles = [message["role"] for message in setup.log_of("Ferry: on time.")]
    assert roles == ["user", "assistant", "assistant", "tool", "assistant", "user", "assistant"]
    with proxied(setup.daemon, setup.api) as another:  # which knows nothing of it
        respond(another, "Thanks, from the pier of Cacilhas.", previous_response_id=third.id)
        until(lambda: len(setup.log_of("Cacilhas")) == 2)
    assert setup.api.refused == []


def test_a_response_that_the_api_does_not_know_is_its_own_error(setup: Setup) -> None:
    with pytest.raises(openai.BadRequestError, match="not found"):
        respond(setup, "Go on with Xanadu.", previous_response_id="resp_gone")
    assert setup.log_of("Xanadu") == []


def test_a_conversation_that_the_api_named_is_that_session(setup: Setup) -> None:
    respond(setup, "Named at the API.", conversation="conv_1")
    stream(setup, "And again.", conversation={"id": "conv_1"})
    until(lambda: len(setup.log_of("Named at the API.")) == 4)
    with proxied(setup.daemon, setup.api) as another:
        respond(another, "Named at the API.", conversation="conv_1")
    page = setup.daemon.ask("log", sessionId="conv_1").json()
    told = [line["message"]["content"] for line in page["messages"]]
    assert told[::2] == ["Named at the API.", "And again.", "Named at the API."]


# ── programs ──────────────────────────────────────────────────────────────────────────────────


def test_an_agent_of_the_agents_sdk_needs_no_change(setup: Setup) -> None:
    agents = pytest.importorskip("agents")
    agents.set_tracing_disabled(True)

    @agents.function_tool
    def berth(ship: str) -> str:
        """Where a ship lies."""
        return f"{ship} lies at berth 12."

    def reply(received: Received) -> Says:
        is_asked = any(item.get("type") == "function_call_output" for item in received.input)
        return distinct(received) if is_asked else Says("", [("call_s", "berth", '{"ship": "Sagres"}')], thought="Ask.")

    async def run() -> None:
        async with openai.AsyncOpenAI(base_url=setup.url, api_key=KEY, max_retries=0) as client:
            model = agents.OpenAIResponsesModel(MODEL, client)
            agent = agents.Agent(name="Harbour", instructions="Be brief.", model=model, tools=[berth])
            first = await agents.Runner.run(agent, "Where does the Sagres lie?")
            await agents.Runner.run(agent, [*first.to_input_list(), user("And since when?")])

    setup.api.reply = reply
    asyncio.run(run())
    until(lambda: len(setup.log_of("berth 12")) == 6)
    roles = [message["role"] for message in setup.log_of("berth 12")]
    assert roles == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    assert setup.api.refused == []


def test_nothing_is_changed_while_the_provider_is_stuck_or_gone(setup: Setup) -> None:
    """Last: afterwards there is no provider."""
    body = b'{"input" :"What is my cat called, again?", "model":"m"}'
    with proxied(setup.daemon, setup.api, "--deadline", "250") as hurried:
        setup.daemon.process.send_signal(signal.SIGSTOP)
        try:
            assert hurried.send(body, path=PATH)[0] == 200
        finally:
            setup.daemon.process.send_signal(signal.SIGCONT)
    assert setup.api.received[-1].body == body
    setup.daemon.process.kill()
    setup.daemon.process.wait()
    assert setup.send(body, path=PATH)[0] == 200
    assert setup.api.received[-1].body == body
