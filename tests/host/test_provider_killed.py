"""Proof 3: the provider is killed in the middle of a conversation. Turns go on, the outbox keeps what is said and delivers it
after the restart; the log is then the host's own transcript, entry by entry."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.acceptance.daemon import WITHOUT_MODEL
from tests.host.conftest import PLUGIN_DIR
from tests.host.gateway import Gateway
from tests.host.host_config import Setup
from tests.host.providers import OffbookProvider, StartedByOthers
from tests.host.scripted_model import Request, ScriptedModel, Text, ToolCall, ToolCalls, tool_results
from tests.host.transcripts import Entry, transcript

# A turn with nobody there costs the deadlines at most: 0.6 s to recall, and what the host takes by itself.
LONGEST_TURN_SECONDS = 15.0
PATIENT_SECONDS = 150.0


@pytest.fixture(scope="module")
def provider_environ() -> Mapping[str, str]:
    return WITHOUT_MODEL


@pytest.fixture(scope="module")
def setup(provider: OffbookProvider) -> Setup:
    return Setup(plugin_dir=PLUGIN_DIR, level="hot-swap", plugin_config={"home": str(provider.home)})


def with_tools(request: Request) -> Text | ToolCalls:
    if not tool_results(request) and len(request.messages) % 4 == 0:
        return ToolCalls([ToolCall("swap_status", {})])
    return Text(f"Answer number {request.prompt_tokens}.")


def reported(gateway: Gateway) -> dict[str, Any]:
    """What the plugin tells of itself, at most once a second."""
    report: dict[str, Any] = json.loads((gateway.plugin_state / "report.json").read_text())
    return report


def assert_the_same(gateway: Gateway, provider: OffbookProvider, key: str) -> list[Entry]:
    entries = transcript(gateway, key)
    gateway.wait_until(lambda: len(provider.log(key)) >= len(entries), f"{key} is delivered")
    log = [line["message"] for line in provider.log(key)]
    assert [message["id"] for message in log] == [entry.entry_id for entry in entries]
    for message, entry in zip(log, entries, strict=True):
        assert message["content"] == entry.message["content"]
        assert message["role"] == {"toolResult": "tool"}.get(entry.message["role"], entry.message["role"])
    return entries


def test_a_conversation_goes_on_without_the_provider(
    gateway: Gateway, model: ScriptedModel, provider: OffbookProvider
) -> None:
    model.reply = with_tools
    key = "agent:main:killed"
    seconds: list[float] = []
    for turn in range(9):
        if turn == 3:
            provider.kill()
        if turn == 6:
            provider.start()
        seconds.append(
            gateway.turn("killed", f"This is turn number {turn} of a conversation about lighthouses.").seconds
        )
        if turn == 5:
            gateway.wait_until(lambda: reported(gateway)["capture"]["waiting"] > 0, "the report tells of the outbox")
            assert reported(gateway)["turns"]["failed"] > 0  # and the reason is there to see
            assert "offbook.sock" in (reported(gateway)["turns"]["last"]["error"] or "")
    assert max(seconds[3:6]) < LONGEST_TURN_SECONDS
    entries = assert_the_same(gateway, provider, key)
    assert sum(entry.message["role"] == "user" for entry in entries) == 9
    assert model.faults() == []
    assert model.repairs() == []
    counts = provider.status()["counts"]
    assert counts["messages"] == len(entries)


def test_killed_with_the_gateway_the_outbox_is_delivered_by_the_next_one(
    gateway: Gateway, model: ScriptedModel, provider: OffbookProvider
) -> None:
    """Both die at once, and only the files are left."""
    model.reply = with_tools
    provider.kill()
    for turn in range(3):
        gateway.turn("both", f"The night has {turn} owls in it, and the harbour is quiet.")
    gateway.kill()
    gateway.start()
    provider.start()
    gateway.turn("both", "And one more, after all that.")
    entries = assert_the_same(gateway, provider, "agent:main:both")
    assert sum(entry.message["role"] == "user" for entry in entries) == 4
    assert_the_same(gateway, provider, "agent:main:killed")


def test_a_provider_that_hangs_holds_nobody_up(
    gateway: Gateway, model: ScriptedModel, provider: OffbookProvider
) -> None:
    """It takes connections and says nothing: every call runs into its own deadline."""
    model.reply = with_tools
    gateway.turn("hangs", "A turn while all is well, about the ferry.")
    provider.pause()
    try:
        answer = gateway.turn("hangs", "A turn while the provider sleeps, about the ferry.")
    finally:
        provider.resume()
    assert answer.seconds < LONGEST_TURN_SECONDS
    assert_the_same(gateway, provider, "agent:main:hangs")


def test_the_plugin_starts_the_provider_and_starts_it_again(gateway: Gateway, model: ScriptedModel) -> None:
    """Where the user wants that: nobody else has started it, and nobody else starts it again when it is killed."""
    provider = StartedByOthers()
    model.reply = with_tools
    try:
        config = {"home": str(provider.home), "startDaemon": True}
        gateway.use(model, Setup(plugin_dir=PLUGIN_DIR, level="capture", plugin_config=config))
        gateway.wait_until(provider.is_there, "it was started", PATIENT_SECONDS)
        for turn in range(4):
            if turn == 2:
                provider.kill()
            gateway.turn("kept", f"This is turn number {turn} with a provider that nobody started.")
        gateway.wait_until(provider.is_there, "it was started again", PATIENT_SECONDS)
        assert_the_same(gateway, provider, "agent:main:kept")
    finally:
        gateway.set_level("off")
        provider.close()
