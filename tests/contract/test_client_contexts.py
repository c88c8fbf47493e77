"""Both clients and hot swap, the verbs of contexts, a real daemon."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from offbook.client.async_client import AsyncClient
from offbook.client.blocking import Client
from offbook.client.blocking_hot_swap import BlockingHotSwapSession
from offbook.client.hot_swap import HotSwapSession
from offbook.client.slot import orphan_in
from offbook.context.validity import faults
from offbook.model.errors import ProviderRefused
from offbook.model.types import Message
from tests.acceptance.daemon import WITHOUT_MODEL, Daemon, running


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with running(WITHOUT_MODEL) as started:
        yield started


@pytest.fixture
def own_daemon() -> Iterator[Daemon]:
    with running(WITHOUT_MODEL) as started:
        yield started


def line(number: int) -> str:
    return f"Port {number}: the harbour master is Ada {number}, and the ferry leaves at {number % 24}:15 from berth {number}."


def ids(messages: list[Message]) -> list[str]:
    return [message.id for message in messages if message.id]


def test_the_verbs_of_contexts(daemon: Daemon) -> None:
    with Client(str(daemon.socket_endpoint), agent_id="verbs", home=daemon.home) as client:
        for number in range(120):
            client.record("chat", ("user", line(number)))
        assert client.flush()
        assert not client.swap("chat", 100, 2_000).swapped
        swap = client.swap("chat", 1_900, 2_000)
        assert swap.swapped
        assert swap.tokens_after <= 800 < swap.tokens_before
        assert swap.messages[-1].content == line(119)
        assert client.swap("chat", 1_900, 2_000).messages == swap.messages
        replay = client.replay("chat", datetime.now(UTC))
        assert (replay.generation, replay.messages, replay.is_exact) == (swap.generation, swap.messages, True)
        expansion = client.expand(span=(3, 5), session_id="chat", limit=2)
        assert [one.message.content for one in expansion.messages] == [line(2), line(3)]
        rest = client.expand(span=(3, 5), session_id="chat", limit=2, after=expansion.next)
        assert ([one.seq for one in rest.messages], rest.next) == ([5], None)
        assert client.compress("chat").agent_id == "verbs"
        with pytest.raises(ProviderRefused, match=r"summarizer\.order"):
            client.compress("chat", again=True, dry_run=True)
        assert client.summaries(session_id="chat").summaries is not None
        with pytest.raises(ProviderRefused):
            client.expand("L1-9999")
        assert client.claim_job() is None


def test_what_arrived_and_who_started_it_by_the_blocking_client(daemon: Daemon) -> None:
    with Client(str(daemon.socket_endpoint), agent_id="reconciled", home=daemon.home) as client:
        assert client.session_start("child", parent_session_id="agent:boss:chat") is None
        client.record("child", {"role": "user", "content": line(1), "id": "1"})
        assert client.flush()
        assert client.missing("child", ["2", "1", "0"]) == ["2", "0"]
        assert client.missing("child", ["1"], agent_id="somebody") == ["1"]
        (session,) = client.status()["sessions"]
        assert (session["sessionId"], session["parentSessionId"]) == ("child", "agent:boss:chat")
        with pytest.raises(ProviderRefused, match="ids"):
            client.missing("child", [])


async def test_what_arrived_and_who_started_it(daemon: Daemon) -> None:
    async with AsyncClient(str(daemon.socket_endpoint), agent_id="later", home=daemon.home) as client:
        await client.on_message("child", {"role": "user", "content": line(1), "id": "1"})
        assert await client.session_start("child", parent_session_id="chat") is not None
        assert await client.missing("child", ("2", "1")) == ["2"]
        (session,) = (await client.status())["sessions"]
        assert session["parentSessionId"] == "chat"


async def test_a_session_swaps_between_messages_and_starts_again_elsewhere(daemon: Daemon) -> None:
    async with AsyncClient(str(daemon.socket_endpoint), agent_id="swaps", home=daemon.home) as memory:
        session = HotSwapSession(memory, "chat", context_window=2_000, deadline_seconds=5.0)
        assert await session.start() == []
        added: list[str] = []
        for number in range(150):
            added += ids([session.add(("user", line(number)))])
            messages = await session.messages()
            shown = ids(messages)
            assert shown == added[-len(shown) :], "the newest, in order, each once"
            assert not faults(messages)
            assert session.used_tokens < 1_700
            added += ids([session.add(("assistant", f"Noted, {number}."))])
        assert session.stats.swaps >= 3
        assert (session.stats.fallbacks, session.stats.compactions) == ({}, 0)
        ledger = session.stats.last_ledger
        assert ledger is not None
        assert ledger.verbatim
        await session.close()
        assert await memory.flush()
        log = await memory.log("chat", limit=1_000)
        assert [one["message"]["id"] for one in log["messages"]] == added

        again = HotSwapSession(memory, "chat", context_window=2_000)
        start = await again.start()
        assert ids(start) == added[-len(ids(start)) :]
        assert "Ada" in str(start[0].content)
        assert again.stats.generation == session.stats.generation


async def test_tools_and_noise_do_not_hinder_a_swap(daemon: Daemon) -> None:
    async with AsyncClient(str(daemon.socket_endpoint), agent_id="tools", home=daemon.home) as memory:
        session = HotSwapSession(memory, "chat", context_window=2_000, deadline_seconds=5.0)
        for number in range(40):
            call = {"id": f"c{number}", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
            session.add(("user", line(number)))
            session.add({"role": "assistant", "content": None, "tool_calls": [call]})
            session.add({"role": "tool", "tool_call_id": f"c{number}", "content": f"{line(number)} " * 2})
            session.add(("user", "HEARTBEAT_OK" if number % 2 else ""))
            assert orphan_in(await session.messages()) is None
            assert session.as_openai()
            assert session.as_anthropic()["messages"]
        assert session.stats.swaps >= 2
        assert session.stats.fallbacks == {}, list(session.events)


async def test_history_may_be_added_again_after_a_restart(daemon: Daemon) -> None:
    async with AsyncClient(str(daemon.socket_endpoint), agent_id="again", home=daemon.home) as memory:
        said = [{"role": "user", "content": line(number), "id": f"m{number}-\ud83d"} for number in range(90)]
        first = HotSwapSession(memory, "chat", context_window=2_000, deadline_seconds=5.0)
        await first.start()
        for one in said:
            first.add(one)
            await first.messages()
        assert (first.stats.swaps > 0, first.stats.fallbacks) == (True, {}), "whatever the ids are"
        await first.close()
        assert await memory.flush()
        again = HotSwapSession(memory, "chat", context_window=2_000, deadline_seconds=5.0)
        start = await again.start(5.0)
        for one in said:
            again.add(one)
        assert await again.messages() == start
        assert start[-1].content == line(89)
        for number in range(90, 150):
            again.add(("user", line(number)))
            assert (await again.messages())[-1].content == line(number)
        assert again.stats.swaps >= 1
        assert (again.stats.fallbacks, again.stats.compactions) == ({}, 0)


async def test_a_model_that_uses_its_ids_again_is_swapped_between_its_calls(daemon: Daemon) -> None:
    async with AsyncClient(str(daemon.socket_endpoint), agent_id="reused", home=daemon.home) as memory:
        session = HotSwapSession(memory, "chat", context_window=2_000, deadline_seconds=5.0)
        call = {"id": "call_0", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        for number in range(60):
            session.add(("user", line(number)))
            session.add({"role": "assistant", "content": None, "tool_calls": [call]})
            swaps = session.stats.swaps
            await session.messages()
            assert session.stats.swaps == swaps, "its tool is at work"
            session.add({"role": "tool", "tool_call_id": "call_0", "content": f"seen {number}"})
            request = await session.openai_messages()
            assert [one["role"] for one in request[-2:]] == ["assistant", "tool"]
            assert request[-1]["content"] == f"seen {number}"
        assert session.stats.swaps >= 1
        assert session.stats.fallbacks == {}, list(session.events)


def test_the_blocking_session_is_the_same(daemon: Daemon) -> None:
    with (
        Client(str(daemon.socket_endpoint), agent_id="blocking", home=daemon.home) as memory,
        BlockingHotSwapSession(memory, "chat", context_window=2_000, deadline_seconds=5.0) as session,
    ):
        for number in range(80):
            session.add(("user", line(number)))
            assert session.messages()[-1].content == line(number)
        assert session.stats.swaps >= 1
        assert session.events[-1].tokens_after < session.events[-1].tokens_before
        session.report_usage(1_000)
        assert session.used_tokens >= 1_000


async def test_stopped_and_gone_the_agent_goes_on_and_what_it_said_arrives(own_daemon: Daemon) -> None:
    async with AsyncClient(str(own_daemon.socket_endpoint), agent_id="main", home=own_daemon.home) as memory:
        session = HotSwapSession(memory, "chat", context_window=2_000)
        own_daemon.process.send_signal(signal.SIGSTOP)  # there, and silent: the worst kind of away
        added: list[str] = []
        longest_seconds = 0.0
        for number in range(200):
            added += ids([session.add(("user", line(number)))])
            started = time.monotonic()
            messages = await session.messages()
            longest_seconds = max(longest_seconds, time.monotonic() - started)
            assert messages[-1].content == line(number)
            assert session.used_tokens < 2_000
        assert longest_seconds < 30  # of 200: each waits for a quarter of a second, and none for the daemon
        assert session.stats.compactions >= 2
        assert session.stats.fallbacks["slow"] >= 1
        os.kill(own_daemon.process.pid, signal.SIGCONT)
        assert await memory.flush(20)
        log = await memory.log("chat", limit=1_000)
        assert [one["message"]["id"] for one in log["messages"]] == added
        await session.close()
