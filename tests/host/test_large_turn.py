"""A single turn whose tools bring more than the window holds: room is made within it, and the agent sees what it did."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from tests.acceptance.daemon import WITHOUT_MODEL
from tests.host.conftest import PLUGIN_DIR, UNHURRIED
from tests.host.gateway import Gateway
from tests.host.host_config import Setup
from tests.host.providers import OffbookProvider
from tests.host.scripted_model import Reply, Request, ScriptedModel, Text, ToolCall, ToolCalls, whole_text

WINDOW_TOKENS = 24_000
FILES = 12
FILE_CHARS = 8_000
LEAST_ROOM_TOKENS = 1_000
KEY = "agent:main:large-turn"


@pytest.fixture(scope="module")
def provider_environ() -> Mapping[str, str]:
    return WITHOUT_MODEL


@pytest.fixture(scope="module")
def setup(provider: OffbookProvider) -> Setup:
    home = {"home": str(provider.home), **UNHURRIED}
    return Setup(plugin_dir=PLUGIN_DIR, level="hot-swap", plugin_config=home, context_window_tokens=WINDOW_TOKENS)


def parts(number: int) -> str:
    return "".join(f"part {number}-{at}: {at * 37 % 1_000} in stock\n" for at in range(FILE_CHARS))[:FILE_CHARS]


def test_a_turn_of_tool_results_larger_than_the_window(
    gateway: Gateway, model: ScriptedModel, provider: OffbookProvider
) -> None:
    model.window_tokens = WINDOW_TOKENS
    for number in range(FILES):
        (gateway.folder / "workspace" / f"parts-{number}.txt").write_text(parts(number))
    calls = [ToolCalls([ToolCall("read", {"path": f"parts-{number}.txt"})]) for number in range(FILES)]
    replies: list[Reply] = [*calls, Text("I have read them all.")]
    model.reply = lambda request: replies.pop(0)
    since = len(model.requests)
    assert gateway.turn("large-turn", "Read all the lists of parts, please.").text == "I have read them all."

    requests = model.turns(since)
    assert len(requests) == FILES + 1
    assert model.refused(since) == []
    assert model.faults() == []
    assert min(request.answer_room_tokens for request in requests) >= LEAST_ROOM_TOKENS
    # The newest result is there word for word, and the calls before it.
    last = requests[-1]
    assert "part 11-200: 400 in stock" in whole_text(last)
    shown = called(last)
    assert len(shown) >= 2
    assert shown == [f"parts-{number}.txt" for number in range(FILES)][-len(shown) :]

    gateway.wait_until(lambda: len(provider.log(KEY)) >= 2 * FILES + 2, "all is stored")
    stored = json.dumps([line["message"]["content"] for line in provider.log(KEY)])
    assert all(json.dumps(parts(number))[1:-1] in stored for number in range(FILES)), "nothing is lost in memory"


def called(request: Request) -> list[str]:
    """The files of the calls that are shown, in order."""
    calls = [call for message in request.messages for call in message.get("tool_calls") or ()]
    return [json.loads(call["function"]["arguments"])["path"] for call in calls]
