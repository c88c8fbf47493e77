"""The harness itself, with a tiny plugin: what the other files lean on holds, and the validator can fail."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.host import installing
from tests.host.gateway import Gateway, HostFailed
from tests.host.host_config import Setup, merged
from tests.host.installing import HOST_VERSION, Host, InstallFailed
from tests.host.model_rules import INVENTED_RESULT, faults, repairs
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


def said(role: str, text: str = "Hello.", **fields: Any) -> dict[str, Any]:
    return {"role": role, "content": text, **fields}


def calls(*names: str) -> dict[str, Any]:
    made = [{"id": name, "type": "function", "function": {"name": "f", "arguments": "{}"}} for name in names]
    return {"role": "assistant", "content": None, "tool_calls": made}


def result(of: str) -> dict[str, Any]:
    return said("tool", "Done.", tool_call_id=of)


GOOD = [
    [said("system"), said("user")],
    [said("system"), said("user"), said("assistant"), said("user"), said("user")],
    [said("user"), calls("a", "b"), result("b"), result("a"), said("assistant"), said("user")],
    [said("user"), calls("a"), result("a"), calls("a"), result("a"), said("user")],
]
BAD = [
    ([], "no messages"),
    ([said("system")], "no message but the system's"),
    ([said("user"), said("robot")], "unknown role 'robot'"),
    ([said("user"), said("assistant", " ")], "empty assistant message"),
    ([{"role": "user", "content": [{"type": "text", "text": ""}]}], "empty user message"),
    ([said("system"), said("assistant"), said("user")], "the first message is from assistant"),
    ([said("user"), said("assistant"), said("assistant")], "directly after an assistant message"),
    ([said("user"), result("a")], "did not call"),
    ([said("user"), calls("a"), result("a"), result("a")], "did not call"),
    ([said("user"), calls("a"), said("user"), result("a")], "not answered before message 2"),
    ([said("user"), calls("a", "b"), result("a"), said("assistant")], "'b' is not answered before message 3"),
    ([said("user"), calls("a")], "never answered"),
    ([said("user"), calls("a", "a"), result("a")], "twice in one message"),
]


@pytest.mark.parametrize("messages", GOOD)
def test_a_strict_provider_takes(messages: list[dict[str, Any]]) -> None:
    assert faults({"messages": messages}) == []


@pytest.mark.parametrize(("messages", "expected"), BAD)
def test_a_strict_provider_refuses(messages: list[dict[str, Any]], expected: str) -> None:
    found = faults({"messages": messages})
    assert any(expected in fault for fault in found), found


def test_a_result_that_the_host_made_up_is_a_repair() -> None:
    made_up = said("tool", f"{INVENTED_RESULT}; inserted synthetic error result.", tool_call_id="a")
    body = {"messages": [said("user"), calls("a"), made_up, said("user")]}
    assert faults(body) == []
    assert repairs(body) == ["2: the host made up the result of 'a'"]


def test_a_patch_is_merged_and_takes_out() -> None:
    assert merged({"a": {"b": 1, "c": 2}, "d": [1]}, {"a": {"b": None, "e": 3}, "d": [2]}) == {
        "a": {"c": 2, "e": 3},
        "d": [2],
    }


def test_half_an_install_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Path] = []

    def install(host: Host) -> None:
        made.append(host.folder)
        if len(made) == 1:
            raise InstallFailed("cut off")

    monkeypatch.setenv("OFFBOOK_TEST_HOST", str(tmp_path))
    monkeypatch.setattr(installing, "_install", install)
    with pytest.raises(InstallFailed):
        installing.installed()
    assert installing.installed().folder == tmp_path
    assert installing.installed().folder == tmp_path
    assert len(made) == 2
    (tmp_path / "complete").write_text("openclaw of another version\n")
    installing.installed()
    assert len(made) == 3


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
        assert read.execute("select count(*) from transcript_events where event_zstd is not null").fetchone()[0] > 0


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
        gateway.turn("compacted", f"Question {number}.")
    since = len(model.requests)
    assert rpc.call("sessions.compact", {"key": "agent:main:compacted"})["compacted"]
    assert [request for request in model.requests[since:] if not request.is_turn]
    gateway.turn("compacted", "After it.")
    assert "Scripted summary" in user_texts(model.turns()[-1])[0]
    assert model.faults() == []


def test_a_subagent_is_spawned(gateway: Gateway, model: ScriptedModel) -> None:
    def reply(request: Request) -> Reply:
        if last_user_text(request).startswith("Spawn") and not tool_results(request):
            return ToolCalls([ToolCall("tool_call", {"id": "sessions_spawn", "args": {"task": "Look around."}})])
        return echo(request)

    model.reply = reply
    since = len(model.requests)
    gateway.turn("parent", "Spawn one.")
    spawned = [line for request in model.turns(since) for line in tool_results(request) if "childSessionKey" in line]
    assert spawned
    gateway.wait_until(
        lambda: any("Look around." in last_user_text(request) for request in model.turns(since)),
        60,
        "running the child",
    )


def test_nothing_is_left_running(host: Host, gateway: Gateway) -> None:
    """The last one of this file: it ends its gateway."""
    assert gateway.process is not None
    group = gateway.process.pid
    gateway.stop()
    with pytest.raises(ProcessLookupError):
        os.killpg(group, 0)
