"""A single turn whose tools bring more than the window holds."""

from __future__ import annotations

import pytest

from tests.host.conftest import PLUGIN_DIR, UNHURRIED
from tests.host.gateway import Gateway
from tests.host.host_config import Setup
from tests.host.providers import OffbookProvider
from tests.host.scripted_model import Request, ScriptedModel, Text, ToolCall, ToolCalls, tool_results

WINDOW_TOKENS = 24_000
CALLS = 10
FILE_CHARS = 12_000


@pytest.fixture(scope="module")
def setup(provider: OffbookProvider) -> Setup:
    home = {"home": str(provider.home), **UNHURRIED}
    return Setup(plugin_dir=PLUGIN_DIR, level="hot-swap", plugin_config=home, context_window_tokens=WINDOW_TOKENS)


def test_a_turn_of_tool_results_larger_than_the_window(
    gateway: Gateway, model: ScriptedModel, provider: OffbookProvider
) -> None:
    model.window_tokens = WINDOW_TOKENS
    for number in range(CALLS):
        lines = "".join(f"part {number}-{at}: {at * 37 % 1_000} in stock\n" for at in range(FILE_CHARS))
        (gateway.folder / "workspace" / f"parts-{number}.txt").write_text(lines[:FILE_CHARS])
    asked: list[int] = []

    def reply(request: Request) -> Text | ToolCalls:
        if len(asked) < CALLS:
            asked.append(len(tool_results(request)))
            return ToolCalls([ToolCall("read", {"path": f"parts-{len(asked) - 1}.txt"})])
        return Text("I have read them all.")

    model.reply = reply
    since = len(model.requests)
    answer = gateway.turn("large-turn", "Read all the lists of parts, please.")
    for request in model.requests[since:]:
        print(request.prompt_tokens, request.answer_room_tokens, [len(text) for text in tool_results(request)], request.is_turn, type(request.reply).__name__)
    print(answer.text, asked, model.refused(since))
    assert model.refused(since) == []
    assert answer.text == "I have read them all."
