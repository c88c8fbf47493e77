"""The proxy as a user has it: a real provider, the real `openai` client, an API that says what the test decides."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from offbook.models.tokens import estimate_tokens
from tests.acceptance.daemon import WITHOUT_MODEL, running
from tests.acceptance.proxied import KEY, PATIENCE_SECONDS, WINDOW, Setup, distinct, proxied, until, user
from tests.acceptance.scripted_api import MODEL, Api, Says, Sends, events, whole


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


# ── what passes ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "sent",
    [
        Sends(429, b'{"error": {"message": "slow down",  "code": "rate"}}', headers=(("retry-after", "7"),)),
        Sends(500, b"<html>\xff broken</html>", "text/html"),
        Sends(200, b'{"choices": [ not json'),
        Sends(200, b""),
    ],
)
def test_errors_and_nonsense_pass_byte_for_byte(setup: Setup, sent: Sends) -> None:
    setup.api.reply = lambda received: sent
    assert setup.send(b'{"model":"m","messages":[{"role":"user","content":"Try this."}]}') == (sent.status, sent.body)


def test_the_real_client_raises_what_it_would_without_us(setup: Setup) -> None:
    setup.api.reply = lambda received: Sends(
        429, b'{"error": {"message": "slow down"}}', headers=(("retry-after", "7"),)
    )
    with pytest.raises(openai.RateLimitError) as raised:
        setup.ask([user("Quickly.")])
    assert raised.value.response.headers["retry-after"] == "7"


def test_streams_pass_byte_for_byte(setup: Setup) -> None:
    reply = Says("Grüße 世界 🐈, and so on.", [("call_1", "weather", '{"city": "Lisbon"}')])
    setup.api.reply = lambda received: reply
    body = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"Stream this to me."}]}'
    assert setup.send(body) == (200, b"".join(events(reply)))
    body = b'{"model":"m","messages":[{"role":"user","content":"Give me this at once."}]}'
    assert setup.send(body) == (200, whole(reply))


@pytest.mark.parametrize(
    "body",
    [
        b'{"model": "m", "messages": "none"}',
        b'{"model": "m", "messages": [{"role": "function", "name": "f", "content": "1"}]}',
        b'{"messages": [1, 2]}',
        b"\xff\xfe not json",
        b"[]",
    ],
)
def test_what_is_not_understood_passes_unchanged(setup: Setup, body: bytes) -> None:
    setup.api.reply = lambda received: Sends(400, b'{"error": "no"}')
    assert setup.send(body)[0] == 400
    assert [received.body for received in setup.api.received] == [body]


def test_other_paths_pass_untouched(setup: Setup) -> None:
    setup.api.reply = lambda received: Sends(200, b'{"object": "list", "data": []}')
    with setup.client() as client:
        assert client.models.list().data == []
    assert setup.api.received[-1].path == "/v1/models"
    assert setup.api.received[-1].headers["authorization"] == f"Bearer {KEY}"


def test_strangers_are_refused(setup: Setup) -> None:
    for headers in ({"host": "evil.example"}, {"origin": "https://evil.example"}):
        status, body = setup.send(b'{"messages": []}', headers)
        assert status == 403
        assert json.loads(body)["error"]["code"] == "forbidden"
    assert setup.api.received == []


def test_what_the_memory_made_unacceptable_is_sent_again_as_it_came(setup: Setup) -> None:
    """Some models take no assistant's message first: the client must not suffer from that."""
    setup.ask([user("Remember: my boat is called Unsinkable.")])
    until(lambda: len(setup.log_of("Unsinkable")) == 2)
    body = b'{"model":"m",  "messages":[{"role":"user","content":"What is my boat called?"}]}'
    setup.api.received.clear()
    setup.api.reply = lambda received: distinct(received) if received.body == body else Sends(400, b"{}")
    assert setup.send(body)[0] == 200
    assert "Unsinkable" in setup.api.received[0].text
    assert setup.api.received[1].body == body


# ── what is remembered ────────────────────────────────────────────────────────────────────────


def test_a_second_conversation_knows_what_the_first_one_said(setup: Setup) -> None:
    history: list[Any] = [{"role": "system", "content": "Be brief."}, user("My cat is called Ada.")]
    said = setup.ask(history).choices[0].message
    history += [said, user("She lives in Lisbon, in the Rua Augusta.")]
    text = setup.stream(history)
    until(lambda: len(setup.log_of("Rua Augusta")) == 4)
    told = [(message["role"], message["content"]) for message in setup.log_of("Rua Augusta")]
    assert told == [
        ("user", "My cat is called Ada."),
        ("assistant", said.content),
        ("user", "She lives in Lisbon, in the Rua Augusta."),
        ("assistant", text),
    ]
    given = {"model": MODEL, "temperature": 0.70, "messages": [user("What is my cat called?")], "x_own": [1.0, 1e3]}
    setup.send(json.dumps(given).encode())
    received = setup.api.received[-1]
    assert "Ada" in received.text
    assert {**received.json(), "messages": 0} == {**given, "messages": 0}
    assert received.messages[-1]["content"].startswith("What is my cat called?")
    assert KEY not in "".join(
        path.read_text(errors="replace") for path in setup.daemon.home.rglob("*") if path.is_file()
    )


def test_tools_stay_together_and_are_recorded_once(setup: Setup) -> None:
    calls = [("call_a", "weather", '{"city": "Porto"}'), ("call_b", "tides", '{"city": "Faro"}')]
    setup.api.reply = lambda received: Says("", calls)
    history: list[Any] = [user("How is the weather in Porto, and the tide in Faro?")]
    with setup.client() as client, client.chat.completions.stream(model=MODEL, messages=history) as stream:
        said = stream.get_final_completion().choices[0].message
    assert [call.id for call in said.tool_calls or []] == ["call_a", "call_b"]
    history.append(said.model_dump(exclude_none=True, exclude={"parsed"}))
    history += [{"role": "tool", "tool_call_id": name, "content": f"Result of {name}."} for name, _, _ in calls]
    setup.api.reply = distinct
    for _ in range(2):  # a client that tries again
        setup.ask(history)
    until(lambda: len(setup.log_of("tide in Faro")) == 6)
    roles = [message["role"] for message in setup.log_of("tide in Faro")]
    assert roles == ["user", "assistant", "tool", "tool", "assistant", "assistant"]  # both answers were given
    kept = setup.log_of("tide in Faro")[1]["meta"]["tool_calls"]
    assert [(call["id"], call["function"]["arguments"]) for call in kept] == [(a, c) for a, _, c in calls]
    sent = [message["role"] for message in setup.api.received[-1].messages if message["role"] != "assistant"]
    assert sent == ["user", "tool", "tool"]


def test_a_conversation_that_was_named_is_that_session(setup: Setup) -> None:
    with setup.client() as client:
        named = {"Offbook-Session": "chat:../名前".encode().decode("latin-1")}
        client.chat.completions.create(
            model=MODEL, messages=[user("Named by its metadata.")], metadata={"session_id": "chat:../名前"}
        )
    body = json.dumps({"model": MODEL, "messages": [user("And again.")]}).encode()
    assert setup.send(body, named)[0] == 200
    until(lambda: len(setup.log_of("Named by its metadata.")) == 4)
    page = setup.daemon.ask("log", sessionId="chat:../名前").json()
    assert [line["message"]["content"] for line in page["messages"]][::2] == ["Named by its metadata.", "And again."]
    assert all("offbook-session" not in received.headers for received in setup.api.received)


def test_what_a_conversation_is_called_does_not_choose_whose_memory_it_is(setup: Setup) -> None:
    name = "agent:bob:anything"
    secret = {"role": "user", "content": "The zebra's secret is Quintessence."}
    assert setup.daemon.ask("onMessage", agentId="bob", sessionId="bob's", message=secret).status == 200
    asks = {"agentId": "bob", "sessionId": "bob's", "query": "the zebra's secret"}
    until(lambda: "Quintessence" in setup.daemon.ask("recall", **asks).body.decode())
    asked = user("What is the zebra's secret?")
    body = json.dumps({"model": MODEL, "messages": [asked], "metadata": {"session_id": name}}).encode()
    assert setup.send(body)[0] == 200
    assert setup.send(json.dumps({"model": MODEL, "messages": [asked]}).encode(), {"Offbook-Session": name})[0] == 200
    assert all("Quintessence" not in received.text for received in setup.api.received)
    until(lambda: len(setup.daemon.ask("log", agentId="main", sessionId=name).json()["messages"]) >= 2)
    assert [session["sessionId"] for session in setup.daemon.ask("status", agentId="bob").json()["sessions"]] == [
        "bob's"
    ]


def test_a_message_of_five_megabytes(setup: Setup) -> None:
    text = "A long letter. " * 340_000 + "Signed, Ottilie."
    setup.ask([user(text)])
    until(lambda: len(setup.log_of("Ottilie")) == 2)
    assert setup.api.received[-1].messages[-1]["content"].startswith(text)

    def is_remembered() -> bool:
        until(lambda: setup.daemon.ask("ping").json()["backlog"] == 0)
        setup.ask([user("Who signed the long letter?")])
        return "A long letter." in setup.api.received[-1].text

    until(is_remembered)


def test_a_conversation_goes_on_after_the_proxy_was_started_anew(setup: Setup) -> None:
    history: list[Any] = [user("The meeting is in room Galileo.")]
    history += [setup.ask(history).choices[0].message.model_dump(exclude_none=True), user("Which room?")]
    until(lambda: len(setup.log_of("Galileo")) == 2)
    with proxied(setup.daemon, setup.api) as another:
        another.ask(history)
        until(lambda: len(setup.log_of("Galileo")) == 4)


def test_who_is_greeted_alike_is_not_in_one_session_also_after_a_restart(setup: Setup) -> None:
    setup.api.reply = lambda received: Says("Hello! How can I help?")
    greeting = [user("Good morning to you")]
    greeted: list[Any] = [*greeting, {"role": "assistant", "content": "Hello! How can I help?"}]
    setup.ask(greeting)
    until(lambda: len(setup.log_of("Good morning to you")) == 2)
    with proxied(setup.daemon, setup.api) as another:
        another.ask(greeting)  # somebody else, and the provider knows that answer
        setup.api.reply = distinct
        another.ask([*greeted, user("My name is Bartholomew.")])
        setup.ask([*greeted, user("My name is Annabella.")])
        until(lambda: len(setup.log_of("Bartholomew")) == 4 and len(setup.log_of("Annabella")) == 4)
    for name in ("Bartholomew", "Annabella"):
        told = [message["content"] for message in setup.log_of(name)]
        assert told[:3] == ["Good morning to you", "Hello! How can I help?", f"My name is {name}."]


def test_a_long_conversation_is_swapped_and_nothing_is_parted(setup: Setup) -> None:
    history: list[Any] = [{"role": "system", "content": "You keep the harbour's books."}]
    swapped: list[tuple[list[dict[str, Any]], list[Any]]] = []
    for number in range(44):
        text = f"Entry {number}: parcel P{number:03} weighs {number * 3 + 1} kg and goes to pier {number % 7}. "
        history.append(user(text + "It was seen by the night watch, who wrote it down with care. " * 6))
        is_call = number % 5 == 2
        setup.api.reply = lambda received, is_call=is_call, number=number: (
            Says("", [(f"call_{number}", "write", f'{{"parcel": {number}}}')]) if is_call else distinct(received)
        )
        history.append(setup.ask(history).choices[0].message.model_dump(exclude_none=True))
        if is_call:
            setup.api.reply = distinct
            history.append({"role": "tool", "tool_call_id": f"call_{number}", "content": f"Written: P{number:03}."})
            history.append(setup.ask(history).choices[0].message.model_dump(exclude_none=True))
        sent = setup.api.received[-1].messages
        if len(sent) < len(history) - 2:
            swapped.append((sent, list(history)))
    assert swapped, "it never came to a swap"
    for sent, said in swapped:
        assert sent[0] == said[0]
        called: set[str] = set()
        for message in sent:
            if message["role"] == "tool":
                assert message["tool_call_id"] in called
            called.update(call["id"] for call in message.get("tool_calls") or ())
        assert sum(estimate_tokens(str(message)) for message in sent) < WINDOW
        users = [message["content"] for message in sent if message["role"] == "user"]
        newest = [message["content"] for message in said if message["role"] == "user"]
        assert users[-1].startswith(newest[-1])
        whole_entries = [n for n, text in enumerate(newest) if any(one.startswith(text) for one in users)]
        assert whole_entries == list(range(whole_entries[0], len(newest)))  # the newest, without a gap
        assert len(users) - len(whole_entries) <= 1  # and none twice
    entries = [message["content"] for message in history if message["role"] == "user"]
    until(lambda: len(setup.log_of("parcel P043")) == len(history) - 1)
    kept = [message["content"] for message in setup.log_of("parcel P043") if message["role"] == "user"]
    assert [text.strip() for text in kept] == [text.strip() for text in entries]


# ── what it bears ─────────────────────────────────────────────────────────────────────────────


async def test_a_hundred_streams_are_held_at_once(setup: Setup) -> None:
    setup.api.hold = threading.Event()
    setup.api.most_streams_open = 0

    async def stream(client: openai.AsyncOpenAI, number: int) -> str:
        answer = await client.chat.completions.create(model=MODEL, messages=[user(f"Stream {number}.")], stream=True)
        return "".join([piece.choices[0].delta.content or "" async for piece in answer])

    async with openai.AsyncOpenAI(base_url=setup.url, api_key=KEY, max_retries=0, timeout=60) as client:
        streams = [asyncio.create_task(stream(client, number)) for number in range(100)]
        end = time.monotonic() + PATIENCE_SECONDS
        while setup.api.most_streams_open < 100 and time.monotonic() < end:
            await asyncio.sleep(0.02)
        setup.api.hold.set()
        texts = await asyncio.gather(*streams)
    assert setup.api.most_streams_open == 100
    assert all(text.startswith("Answer ") for text in texts)
    assert len(set(texts)) == 100


def test_a_client_that_goes_away_ends_the_request(setup: Setup) -> None:
    setup.api.hold = threading.Event()
    before = setup.api.broken_off
    with setup.client() as client:
        stream = client.chat.completions.create(model=MODEL, messages=[user("Never mind Zanzibar.")], stream=True)
        next(iter(stream))
        stream.close()
    until(lambda: setup.api.broken_off == before + 1)
    assert setup.log_of("Zanzibar") == []  # a conversation begins with its first answer


def test_nothing_is_changed_while_the_provider_is_stuck_or_gone(setup: Setup) -> None:
    """Last: afterwards there is no provider."""
    body = b'{"messages" :[{"role":"user","content":"What is my cat called, again?"}], "model":"m"}'
    with proxied(setup.daemon, setup.api, "--deadline", "250") as hurried:
        setup.daemon.process.send_signal(signal.SIGSTOP)
        try:
            assert hurried.send(body)[0] == 200
        finally:
            setup.daemon.process.send_signal(signal.SIGCONT)
    assert setup.api.received[-1].body == body
    setup.daemon.process.kill()
    setup.daemon.process.wait()
    assert setup.send(body)[0] == 200
    assert setup.api.received[-1].body == body
