"""Proof 4: three hundred turns with tool calls through several swaps. No request that a strict provider would refuse, and
what was said at the very beginning still comes to mind."""

from __future__ import annotations

import json
import random

import pytest

from tests.host.conftest import PLUGIN_DIR, UNHURRIED
from tests.host.gateway import Gateway
from tests.host.host_config import Setup
from tests.host.providers import OffbookProvider
from tests.host.scripted_model import (
    Request,
    ScriptedModel,
    Text,
    ToolCall,
    ToolCalls,
    last_user_text,
    tool_results,
    user_texts,
)
from tests.host.transcripts import transcript

TURNS = 300
WINDOW_TOKENS = 32_000
KEY = "agent:main:three-hundred"
FACTS = {
    3: (
        "The spare key of the boathouse hangs behind the barometer.",
        "Where does the spare key of the boathouse hang?",
    ),
    7: ("My sister Ottilie plays the viola in Tromsø.", "What does my sister Ottilie play, and where?"),
    12: (
        "The wifi password of the cabin is on the back of the owl picture.",
        "Where was the wifi password of the cabin?",
    ),
    18: ("We decided to sell the old tractor in spring, not in autumn.", "When did we decide to sell the old tractor?"),
}
KEYWORDS = {3: "barometer", 7: "viola", 12: "owl picture", 18: "spring"}
TOPICS = ("the harbour", "a broken pump", "apple trees", "the night train", "a letter from the council", "roof tiles")


@pytest.fixture(scope="module")
def setup(provider: OffbookProvider) -> Setup:
    home = {"home": str(provider.home), **UNHURRIED}
    return Setup(plugin_dir=PLUGIN_DIR, level="hot-swap", plugin_config=home, context_window_tokens=WINDOW_TOKENS)


def reply(request: Request) -> Text | ToolCalls:
    said = last_user_text(request)
    if "check" in said and not tool_results(request):
        return ToolCalls([ToolCall("ls", {"path": "."}), ToolCall("swap_status", {})])
    return Text(
        f"I have thought about that for a while. {len(said)} characters were said, and here is what I make of it. " * 3
    )


def sentence(turn: int, dice: random.Random) -> str:
    words = " ".join(f"We spoke of {dice.choice(TOPICS)} and of item {dice.randrange(10_000)}." for _ in range(12))
    return f"Turn {turn}. {'Please check the folder. ' if turn % 5 == 0 else ''}{words}"


def test_three_hundred_turns(gateway: Gateway, model: ScriptedModel, provider: OffbookProvider) -> None:
    model.reply = reply
    dice = random.Random(7)
    for turn in range(TURNS):
        text = FACTS[turn][0] if turn in FACTS else sentence(turn, dice)
        gateway.turn("three-hundred", text)
    assert model.faults() == []
    assert model.repairs() == []
    report = gateway.plugin_state / "report.json"  # written once a second
    gateway.wait_until(
        lambda: json.loads(report.read_text())["engine"]["committed"] >= TURNS, "every turn is committed"
    )
    engine = json.loads(report.read_text())["engine"]
    assert 3 <= engine["swaps"] <= TURNS / 5  # in steps that are worth the cache they cost
    assert engine["fallbacks"] == 0
    assert max(request.prompt_tokens for request in model.requests) < WINDOW_TOKENS

    # The facts are long out of what is shown word for word; asked for, they are there.
    for turn, (fact, question) in FACTS.items():
        since = len(model.requests)
        gateway.turn("three-hundred", question)
        request = model.turns(since)[0]
        assert not any(fact in text for text in user_texts(request)[:-1])
        assert KEYWORDS[turn] in last_user_text(request), f"{question} brought nothing to mind"

    entries = transcript(gateway, KEY)
    gateway.wait_until(lambda: len(provider.log(KEY)) >= len(entries), "all is stored")
    assert [line["message"]["id"] for line in provider.log(KEY)] == [entry.entry_id for entry in entries]
