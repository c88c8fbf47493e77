"""Proof 7: what `offbook import openclaw` reads from the host's own files is what capture stored, message by message."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.daemon import WITHOUT_MODEL
from tests.host.conftest import PLUGIN_DIR
from tests.host.gateway import Gateway
from tests.host.host_config import Setup
from tests.host.providers import OffbookProvider
from tests.host.rpc import Rpc
from tests.host.scripted_model import (
    Failure,
    Request,
    ScriptedModel,
    Text,
    ToolCall,
    ToolCalls,
    last_user_text,
    tool_results,
)
from tests.host.transcripts import transcript

# Agents that no other file has: all that the host has of them is said here, and all of it is imported.
AGENTS = ("ida", "jon")
SESSIONS = {"agent:ida:imported": "ida", "agent:ida:begun-anew": "ida", "agent:jon:imported": "jon"}


@pytest.fixture(scope="module")
def provider_environ() -> Mapping[str, str]:
    return WITHOUT_MODEL


@pytest.fixture(scope="module")
def setup(provider: OffbookProvider) -> Setup:
    home = {"home": str(provider.home)}
    return Setup(plugin_dir=PLUGIN_DIR, level="capture", plugin_config=home, agents=AGENTS)


@pytest.fixture(scope="module")
def another() -> Iterator[OffbookProvider]:
    provider = OffbookProvider(WITHOUT_MODEL)
    try:
        provider.start()
        yield provider
    finally:
        provider.close()


def reply(request: Request) -> Text | ToolCalls | Failure:
    said = last_user_text(request)
    if "look around" in said and not tool_results(request):
        return ToolCalls([ToolCall("ls", {"path": "."}), ToolCall("read", {"path": "no-such-file.txt"})])
    if "large" in said:
        return Text("A large answer. " * 5_000)  # kept compressed by the host, and apart by us
    return Text(f"I heard: {said[:60]} 🦉 好的")


def imported(gateway: Gateway, provider: OffbookProvider) -> dict[str, Any]:
    command = [str(Path(sys.executable).with_name("offbook")), "--home", str(provider.home)]
    done = subprocess.run(
        [*command, "import", "openclaw", "--state", str(gateway.state), "--json"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={name: value for name, value in os.environ.items() if not name.startswith("OFFBOOK_")},
    )
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def test_the_hosts_history_imported_is_what_capture_stored(
    gateway: Gateway, model: ScriptedModel, provider: OffbookProvider, another: OffbookProvider, rpc: Rpc
) -> None:
    model.reply = reply
    for text in ("Hello, my canoe is red.", "Please look around.", "Now say something large.", "Schönen Gruß, 你好!"):
        gateway.turn("imported", text, agent="ida")
    gateway.turn("imported", "Jon here, my canoe is green.", agent="jon")
    gateway.turn("begun-anew", "Before it begins anew.", agent="ida")
    rpc.say("agent:ida:begun-anew", "/new")
    gateway.turn("begun-anew", "After it has begun anew.", agent="ida")
    stored: dict[str, list[dict[str, Any]]] = {}
    for key, agent in SESSIONS.items():
        entries = transcript(gateway, key)
        gateway.wait_until(
            lambda key=key, agent=agent, entries=entries: len(provider.log(key, agent)) >= len(entries), "stored"
        )
        stored[key] = [line["message"] for line in provider.log(key, agent)]
        assert [message["id"] for message in stored[key]] == [entry.entry_id for entry in entries]

    imported(gateway, another)  # while the gateway runs
    for key, agent in SESSIONS.items():
        assert [line["message"] for line in another.log(key, agent)] == stored[key]

    before = {agent: provider.status(agent)["counts"]["messages"] for agent in AGENTS}
    imported(gateway, provider)
    imported(gateway, another)
    for agent in AGENTS:
        assert provider.status(agent)["counts"]["messages"] == before[agent]
    for key, agent in SESSIONS.items():
        assert len(another.log(key, agent)) == len(stored[key])
