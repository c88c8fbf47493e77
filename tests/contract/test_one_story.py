"""One story, told through every surface: whoever tells it, the store holds the same afterwards, and the same verbs were
asked for."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pytest
from mcp import ClientSession
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

from offbook import Client, open_memory
from offbook.model.types import Message
from tests.acceptance.daemon import WITHOUT_MODEL, Daemon, running
from tests.acceptance.scripted_api import MODEL, Api, Says
from tests.acceptance.test_proxy import proxied

STORY = (
    ("user", "My cat is called Ada, and she was born in Aveiro. 🐈"),
    ("assistant", "What a lovely name for a cat."),
    ("user", "我的护照号码在蓝色的盒子里。"),
    ("assistant", "I will remember the blue box."),
    ("user", "The code of the gate is 4711-zebra."),
    ("assistant", "Noted, the code of the gate."),
)
PINNED = "Aveiro"
GONE = "4711-zebra"
ASKED = "Where was the cat born?"
SESSION = "story"
BESIDE = {"export", "audit", "expand"}
"""Asked for by the test, and by a command that shows what it is about to erase."""


class Teller(Protocol):
    def say(self, role: str, text: str, id_: str) -> None: ...
    def pin(self, keyword: str) -> None: ...
    def recall(self, query: str) -> str: ...
    def forget(self, matching: str) -> None: ...


def told(teller: Teller) -> None:
    for number, (role, text) in enumerate(STORY):
        teller.say(role, text, f"m{number}")
        teller.say(role, text, f"m{number}")  # a retry is no second message
    teller.pin(PINNED)
    assert STORY[0][1] in teller.recall(ASKED)
    teller.forget(GONE)
    assert GONE not in teller.recall("What is the code of the gate?")


class OverHttp:
    def __init__(self, daemon: Daemon, agent: str) -> None:
        self._daemon, self._agent = daemon, agent

    def say(self, role: str, text: str, id_: str) -> None:
        self._ask("onMessage", sessionId=SESSION, message={"role": role, "content": text, "id": id_})

    def pin(self, keyword: str) -> None:
        self._ask("pin", keyword=keyword)

    def recall(self, query: str) -> str:
        return str(self._ask("recall", sessionId=SESSION, query=query, scope="agent"))

    def forget(self, matching: str) -> None:
        self._ask("forget", matching=matching, reason="a test")

    def _ask(self, verb: str, **fields: Any) -> Any:
        reply = self._daemon.ask(verb, agentId=self._agent, **fields)
        assert reply.status == 200, reply.body
        return reply.json()


class OverPython:
    def __init__(self, daemon: Daemon, agent: str) -> None:
        self._client = Client(str(daemon.socket_endpoint), agent_id=agent)

    def say(self, role: str, text: str, id_: str) -> None:
        self._client.on_message(SESSION, {"role": role, "content": text, "id": id_})

    def pin(self, keyword: str) -> None:
        self._client.pin(keyword=keyword)

    def recall(self, query: str) -> str:
        return str(self._client.recall(SESSION, query))

    def forget(self, matching: str) -> None:
        self._client.forget(matching=matching, reason="a test")


class OverCommands:
    def __init__(self, daemon: Daemon, agent: str) -> None:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("OFFBOOK_")}
        self._environ = inherited | {"OFFBOOK_HOME": str(daemon.home), "OFFBOOK_AGENT": agent}

    def say(self, role: str, text: str, id_: str) -> None:
        self._run("record", SESSION, text, "--role", role, "--id", id_)

    def pin(self, keyword: str) -> None:
        self._run("pin", "--keyword", keyword)

    def recall(self, query: str) -> str:
        return self._run("recall", query, "--json")

    def forget(self, matching: str) -> None:
        self._run("forget", "--matching", matching, "--reason", "a test", "--yes")

    def _run(self, *arguments: str) -> str:
        offbook = Path(sys.executable).with_name("offbook")
        done = subprocess.run([offbook, *arguments], env=self._environ, capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return str(msgspec.json.decode(done.stdout)) if "--json" in arguments else done.stdout.decode()


class OverMcp:
    def __init__(self, daemon: Daemon, agent: str) -> None:
        self._url = f"http://127.0.0.1:{daemon.port}/mcp"
        self._headers, self._agent = {"authorization": f"Bearer {daemon.token}"}, agent

    def say(self, role: str, text: str, id_: str) -> None:
        self._use("memory_record", sessionId=SESSION, role=role, content=text, id=id_)

    def pin(self, keyword: str) -> None:
        self._use("memory_pin", keyword=keyword)

    def recall(self, query: str) -> str:
        return self._use("memory_recall", query=query, sessionId=SESSION)

    def forget(self, matching: str) -> None:
        self._use("memory_forget", matching=matching, reason="a test", confirm=True)

    def _use(self, tool: str, **arguments: Any) -> str:
        async def call() -> str:
            async with (
                create_mcp_http_client(headers=self._headers) as http,
                streamable_http_client(self._url, http_client=http) as streams,
                ClientSession(*streams[:2]) as session,
            ):
                await session.initialize()
                result = await session.call_tool(tool, {"agentId": self._agent, **arguments})
                assert not result.is_error, result.content
                return "\n".join(getattr(block, "text", "") for block in result.content)

        return asyncio.run(call())


TELLERS: dict[str, Callable[[Daemon, str], Teller]] = {
    "http": OverHttp,
    "python": OverPython,
    "cli": OverCommands,
    "mcp": OverMcp,
}


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with running(WITHOUT_MODEL) as started:
        yield started


@pytest.fixture(scope="module")
def expected(daemon: Daemon) -> dict[str, Any]:
    """As Python in the same process tells it, without any surface."""

    async def tell() -> dict[str, Any]:
        folder = daemon.home.parent / "embedded"
        async with open_memory(folder, environ=WITHOUT_MODEL) as memory:
            chat = memory.scope(SESSION, "embedded")
            for number, (role, text) in enumerate(STORY):
                for _ in range(2):
                    await memory.on_message(chat, [Message(role=role, content=text, id=f"m{number}")])
            await memory.pin("embedded", keyword=PINNED)
            await memory.recall(chat, ASKED)
            await memory.forget("embedded", matching=GONE, reason="a test")
            await memory.recall(chat, "What is the code of the gate?")
            page = await memory.export("embedded")
            events = (await memory.audit("embedded", limit=1_000)).events
            return held(msgspec.to_builtins(page), msgspec.to_builtins(events))

    return asyncio.run(tell())


def held(page: dict[str, Any], events: list[dict[str, Any]]) -> dict[str, Any]:
    """What does not depend on when and by whom it was told."""
    messages = [record for record in page["records"] if record["type"] == "message"]
    return {
        "messages": [
            (one["seq"], one["message"]["role"], one["message"]["content"], one["message"]["id"], one.get("noise"))
            for one in messages
        ],
        "pinned": [one["seq"] for one in messages if one.get("pinned")],
        "verbs": {event["verb"] for event in events if event["actor"] != "offbook"} - BESIDE,
    }


@pytest.mark.parametrize("surface", TELLERS)
def test_a_story_is_the_same_whoever_tells_it(daemon: Daemon, expected: dict[str, Any], surface: str) -> None:
    told(TELLERS[surface](daemon, surface))
    page = daemon.ask("export", agentId=surface).json()
    events = daemon.ask("audit", agentId=surface, limit=1_000).json()["events"]
    assert held(page, events) == expected
    assert len(expected["messages"]) == len(STORY)
    assert expected["verbs"] == {"onMessage", "pin", "recall", "forget"}


def test_through_the_proxy_the_same_is_said(daemon: Daemon, expected: dict[str, Any]) -> None:
    """A client of a model has no word for pins; what is said is the same, and what is forgotten elsewhere is gone."""
    answers = iter([text for role, text in STORY if role == "assistant"])
    api = Api(lambda received: Says(next(answers)))
    try:
        with proxied(daemon, api, "--agent", "proxy") as setup:
            sent: list[Any] = []
            for asked, answer in zip(STORY[::2], STORY[1::2], strict=True):
                sent.append({"role": "user", "content": asked[1]})
                made = setup.kept.chat.completions.create(
                    model=MODEL, messages=sent, extra_headers={"Offbook-Session": SESSION}
                )
                assert made.choices[0].message.content == answer[1]
                sent.append({"role": "assistant", "content": answer[1]})
    finally:
        api.close()
    daemon.ask("forget", agentId="proxy", matching=GONE, reason="a test")
    page = daemon.ask("export", agentId="proxy").json()
    events = daemon.ask("audit", agentId="proxy", limit=1_000).json()["events"]
    there = held(page, events)
    without_ids = [(seq, role, content, noise) for seq, role, content, _, noise in expected["messages"]]
    assert [(seq, role, content, noise) for seq, role, content, _, noise in there["messages"]] == without_ids
    assert there["verbs"] >= {"onMessage", "prepareTurn"}
