"""The harness itself, with a tiny plugin: what the other files lean on holds, and the validator can fail."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.host.gateway import Gateway, HostFailed
from tests.host.host_config import Setup
from tests.host.installing import HOST_VERSION, Host
from tests.host.rpc import CallRefused, Rpc
from tests.host.scripted_model import (
    Reply,
    Request,
    ScriptedModel,
    Text,
    ToolCall,
    ToolCalls,
    echo,
    last_user_text,
    system_text,
    tool_results,
    user_texts,
)
from tests.host.transcripts import events, transcript

MARK = "<<the tiny engine was here>>"
KEPT_COMPRESSED = """select count(*) from transcript_events e join session_windows w on w.session_id = e.session_id
where w.session_key = ? and e.event_zstd is not null"""


def uses_tool(request: Request) -> Reply:
    if last_user_text(request).startswith("Use the tool") and not tool_results(request):
        return ToolCalls([ToolCall("tiny_tool", {"word": "one"}), ToolCall("tiny_tool", {"word": "two"})])
    return echo(request)


@pytest.fixture(scope="module")
def setup() -> Setup:
    return Setup(plugin_dir=Path(__file__).parent / "tiny_plugin", plugin_id="tiny", agents=("main", "second"))


@pytest.fixture(autouse=True)
def _script(model: ScriptedModel) -> None:
    model.reply = uses_tool


def test_the_host_is_the_pinned_one(host: Host) -> None:
    assert json.loads((host.package / "package.json").read_text())["version"] == HOST_VERSION
    assert not (host.folder / "host" / "package-lock.json").exists()


def test_a_turn_is_answered_and_is_in_the_transcript(gateway: Gateway, model: ScriptedModel) -> None:
    answer = gateway.turn("turns", "Use the tool, please.")
    assert answer.text.startswith("I heard: Use the tool, please.")
    assert tool_results(model.turns()[-1]) == ["the tool says one", "the tool says two"]
    entries = transcript(gateway, "agent:main:turns")
    assert [entry.message["role"] for entry in entries] == [
        "user",
        "assistant",
        "toolResult",
        "toolResult",
        "assistant",
    ]
    assert len({entry.entry_id for entry in entries}) == 5
    assert model.faults() == []


def test_a_large_message_is_read_from_the_transcript(gateway: Gateway, model: ScriptedModel) -> None:
    text = " ".join(f"number {number}" for number in range(2_000))
    model.reply = lambda request: Text(text)
    gateway.turn("large", "Count.")
    assert transcript(gateway, "agent:main:large")[-1].message["content"][0]["text"] == text
    database = gateway.state / "agents" / "main" / "agent" / "openclaw-agent.sqlite"
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as read:
        assert read.execute(KEPT_COMPRESSED, ["agent:main:large"]).fetchone()[0] > 0


def test_agents_have_transcripts_of_their_own(gateway: Gateway) -> None:
    gateway.turn("own", "For the second only.", agent="second")
    assert transcript(gateway, "agent:second:own")[0].message["content"] == "For the second only."
    assert transcript(gateway, "agent:main:own") == []


def test_the_engine_is_switched_without_a_restart(gateway: Gateway, model: ScriptedModel) -> None:
    process = gateway.process
    for level, marked in (("hot-swap", True), ("recall", False)):
        gateway.set_level(level)
        gateway.turn("levels", f"At {level}.")
        assert (MARK in system_text(model.turns()[-1])) is marked
    assert gateway.process is process


def dropping(gateway: Gateway, role: str | None) -> None:
    gateway.configure({"plugins": {"entries": {"tiny": {"config": {"drops": role}}}}})


def test_what_an_engine_breaks_is_seen(gateway: Gateway, model: ScriptedModel) -> None:
    gateway.turn("broken", "Use the tool.")
    gateway.set_level("hot-swap")
    try:
        dropping(gateway, "toolResult")
        gateway.turn("broken", "Without the results?")
        assert len(model.turns()[-1].repairs) == 2
        dropping(gateway, "user")
        with pytest.raises(HostFailed, match="the first message is from assistant"):
            gateway.turn("broken", "Without the questions?")
        assert model.turns()[-1].faults
    finally:
        dropping(gateway, None)
        gateway.set_level("off")
        model.requests.clear()


def test_commands_and_methods_answer(rpc: Rpc) -> None:
    assert rpc.say("agent:main:commands", "/tiny-command some words").text == "the command says some words"
    assert rpc.call("tiny.hello", {"x": 1}) == {"heard": {"x": 1}}
    with pytest.raises(CallRefused, match="unknown method"):
        rpc.call("tiny.nothing")


def test_a_session_is_begun_anew(gateway: Gateway, rpc: Rpc, model: ScriptedModel) -> None:
    gateway.turn("anew", "The first thing.")
    rpc.say("agent:main:anew", "/new")
    gateway.turn("anew", "The second thing.")
    assert not any("The first thing." in text for text in user_texts(model.turns()[-1]))
    assert "reset" in {row["event"]["type"] for row in events(gateway, "agent:main:anew")}


def test_a_session_is_compacted(gateway: Gateway, rpc: Rpc, model: ScriptedModel) -> None:
    model.reply = lambda request: Text("word " * 800)
    for number in range(4):
        gateway.turn("tiny-compacted", f"Question {number}.")
    since = len(model.requests)
    assert rpc.call("sessions.compact", {"key": "agent:main:tiny-compacted"})["compacted"]
    assert [request for request in model.requests[since:] if not request.is_turn]
    gateway.turn("tiny-compacted", "After it.")
    assert "Scripted summary" in user_texts(model.turns()[-1])[0]
    assert model.faults() == []


def test_a_subagent_is_spawned(gateway: Gateway, model: ScriptedModel) -> None:
    def reply(request: Request) -> Reply:
        if last_user_text(request).startswith("Spawn") and not tool_results(request):
            return ToolCalls([ToolCall("tool_call", {"id": "sessions_spawn", "args": {"task": "Look around."}})])
        return echo(request)

    model.reply = reply
    since = len(model.requests)
    gateway.turn("tiny-parent", "Spawn one.")
    spawned = [line for request in model.turns(since) for line in tool_results(request) if "childSessionKey" in line]
    assert spawned
    gateway.wait_until(
        lambda: any("Look around." in last_user_text(request) for request in model.turns(since)),
        "running the child",
    )
    # The last that the host asks by itself here: whoever has the gateway next is not disturbed by it.
    gateway.wait_until(
        lambda: any("A background task completed" in last_user_text(request) for request in model.turns(since)),
        "told of the child's result",
    )
