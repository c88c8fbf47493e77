"""What the turning points of the host's sessions leave in Offbook: `/new`, `/reset`, `/compact`, a subagent, and the switch
to `off`."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from tests.host.checks import assert_stored_as_written, audited, long_text, session_status
from tests.host.conftest import PLUGIN_DIR, UNHURRIED
from tests.host.gateway import Gateway
from tests.host.host_config import Setup
from tests.host.providers import OffbookProvider
from tests.host.rpc import Rpc
from tests.host.scripted_model import (
    Reply,
    Request,
    ScriptedModel,
    Text,
    ToolCall,
    ToolCalls,
    conversation,
    last_user_text,
    text_of,
    tool_results,
    user_texts,
)
from tests.host.transcripts import events

ANSWER = "Noted, thank you for telling me."
# As each is told and asked for; of two things that have no word in common, so that neither stands for the other.
TOLD = {
    "new": (
        ("Professor Quill dropped the silver astrolabe into the canal at Delft.", "The divers want ninety guilders."),
        "What did Professor Quill drop, and where?",
    ),
    "reset": (
        ("My aunt Wilhelmina breeds tortoises on a roof in Trieste.", "She feeds them dandelions before sunrise."),
        "What does Wilhelmina breed on that roof?",
    ),
}
TASK = "Count the herons on the salt marsh at Vlieland."
COUNTED = "There are sixty-three herons on the salt marsh."
LINES = 80


@pytest.fixture(scope="module")
def setup(provider: OffbookProvider) -> Setup:
    config = {"home": str(provider.home), **UNHURRIED}
    return Setup(plugin_dir=PLUGIN_DIR, level="hot-swap", plugin_config=config)


@pytest.fixture(autouse=True)
def plain_answers(model: ScriptedModel) -> None:
    model.reply = lambda request: Text(ANSWER)


@pytest.mark.parametrize("command", ["new", "reset"])
def test_a_session_that_is_begun_anew_has_ended_and_is_remembered(
    gateway: Gateway, rpc: Rpc, model: ScriptedModel, provider: OffbookProvider, command: str
) -> None:
    name = f"anew-{command}"
    key = f"agent:main:{name}"
    (first, second), question = TOLD[command]
    gateway.turn(name, first)
    gateway.turn(name, second)
    since = len(model.requests)
    rpc.say(key, f"/{command}")
    assert len(model.requests) == since
    gateway.wait_until(lambda: audited(provider, key, "hooks/session-end") != [], "ending the session")
    gateway.turn(name, question)
    (asked,) = model.turns(since)
    # No old message is there as a message; what it said comes to mind at the end of the new one.
    said = [re.sub(r"^\[[^\]]*\] ", "", text_of(message)) for message in conversation(asked)]
    assert not any(text.startswith((first, second)) for text in said)
    assert not any(message["role"] == "assistant" and ANSWER in text_of(message) for message in conversation(asked))
    last = last_user_text(asked)
    assert last.startswith(question)
    assert first in last[last.index("<offbook-recall") :]
    # It was not put back as a session that the host had lost.
    assert all(start["context"] is None for start in audited(provider, key, "hooks/session-start"))

    # Once, though the host tells of it in two hooks; and what came later has opened it again under the same key.
    assert audited(provider, key, "hooks/session-end") == [{"reason": command}]
    assert session_status(provider, key).get("endedAt") is None
    assert "reset" in {row["event"]["type"] for row in events(gateway, key)}
    assert_stored_as_written(gateway, provider, key)
    assert model.faults() == []


@pytest.mark.parametrize("command", ["new", "reset"])
def test_the_command_itself_does_not_open_the_session_again(
    gateway: Gateway, rpc: Rpc, provider: OffbookProvider, command: str
) -> None:
    """The host writes the command and its own answer behind the end; what a session says of its end is no part of what
    comes after it. An ended session is summarised to its end, an open one is not."""
    name = f"ended-{command}"
    key = f"agent:main:{name}"
    gateway.turn(name, "The last thing to say here is about a copper kettle.")
    rpc.say(key, f"/{command}")
    gateway.wait_until(lambda: len(provider.log(key)) == 4, "storing the command and its answer")
    assert [line.get("noise") for line in provider.log(key)] == [None, None, "command", "command"]
    assert session_status(provider, key).get("endReason") == command
    assert session_status(provider, key).get("endedAt") is not None


def test_two_endings_shortly_after_each_other_are_both_told(
    gateway: Gateway, rpc: Rpc, provider: OffbookProvider
) -> None:
    """A person in a hurry: what was said between them is a conversation of its own."""
    key = "agent:main:hurry"
    for turn in range(2):
        gateway.turn("hurry", f"Attempt {turn} at describing the purple submarine.")
        rpc.say(key, "/new")
    gateway.wait_until(lambda: len(provider.log(key)) == 8, "storing both conversations")
    assert_stored_as_written(gateway, provider, key)
    assert audited(provider, key, "hooks/session-end") == [{"reason": "new"}] * 2


def test_compact_is_answered_at_once_and_the_context_is_smaller(
    gateway: Gateway, rpc: Rpc, model: ScriptedModel, provider: OffbookProvider
) -> None:
    key = "agent:main:compacted"
    for turn in range(5):
        gateway.turn("compacted", long_text(turn, LINES))
    before = model.turns()[-1]
    by_itself = len(audited(provider, key, "swap"))  # so much comes to mind that it may be due already
    since = len(model.requests)
    model.delay_seconds = 30.0  # longer than anything else here takes
    started = time.monotonic()
    try:
        shown = rpc.say(key, "/compact").text
    finally:
        model.delay_seconds = 0.0
    assert time.monotonic() - started < 30.0
    assert len(model.requests) == since
    assert not any(row["event"]["type"] == "compaction" for row in events(gateway, key))
    swaps = audited(provider, key, "swap")
    assert [swap["swapped"] for swap in swaps] == [True], swaps

    gateway.turn("compacted", "And what is next?")
    (after,) = model.turns(since)
    assert "<offbook-memory" in text_of(conversation(after)[1])
    told = re.search(r"Compacted \(([\d.]+)(k?) → ([\d.]+)(k?)\)", shown)
    assert (told is None) == bool(by_itself), shown
    if told is not None:
        tokens_before, tokens_after = (float(told[at]) * (1_000 if told[at + 1] else 1) for at in (1, 3))
        assert tokens_after < tokens_before, shown
        # By the model's own count of what it was sent, give or take the estimate of what it was not.
        assert tokens_before == pytest.approx(before.prompt_tokens, rel=0.25), shown
        assert tokens_after == pytest.approx(after.prompt_tokens, rel=0.25), shown
    assert_stored_as_written(gateway, provider, key)


def test_compact_with_nothing_to_compact_says_so(gateway: Gateway, rpc: Rpc, model: ScriptedModel) -> None:
    gateway.turn("brief", "Only this one line, about a marmalade cat.")
    since = len(model.requests)
    shown = rpc.say("agent:main:brief", "/compact").text
    assert len(model.requests) == since
    assert "Compacted (" not in shown, shown
    gateway.turn("brief", "What was it about?")
    assert any("marmalade cat" in text for text in user_texts(model.turns(since)[0])[:-1])


def test_a_subagent_is_recorded_with_its_parent_and_its_end(
    gateway: Gateway, model: ScriptedModel, provider: OffbookProvider
) -> None:
    def reply(request: Request) -> Reply:
        said = last_user_text(request)
        if said.startswith("Send one out") and not tool_results(request):
            spawn = {"id": "sessions_spawn", "args": {"task": TASK, "label": "herons"}}
            return ToolCalls([ToolCall("tool_call", spawn)])
        return Text(COUNTED if said.startswith("[Subagent Context]") else "I wait for the count.")

    model.reply = reply
    parent = "agent:main:parent"
    gateway.turn("parent", "Send one out to count the herons, please.")

    def children() -> list[dict[str, Any]]:
        return [one for one in provider.status()["sessions"] if ":subagent:" in one["sessionId"]]

    gateway.wait_until(lambda: any(one.get("endedAt") for one in children()), "recording the end of the child")
    (child,) = children()
    key = child["sessionId"]
    assert re.fullmatch(r"agent:main:subagent:[0-9a-f-]{36}", key)
    assert child["parentSessionId"] == parent
    assert child["endReason"] == "subagent ok"
    assert len(audited(provider, key, "hooks/session-end")) == 1
    assert_stored_as_written(gateway, provider, key)
    said = [text_of(line["message"]) for line in provider.log(key)]
    assert TASK in said[0]
    assert said[-1] == COUNTED
    assert session_status(provider, parent).get("parentSessionId") is None
    # The host gives its result to the parent in a turn of its own, a moment later.
    gateway.wait_until(
        lambda: len([r for r in model.turns() if "A background task completed" in last_user_text(r)]) > 0,
        "told of the child's result",
    )
    assert_stored_as_written(gateway, provider, parent)


def test_nothing_is_recorded_any_more_after_the_switch_to_off(
    gateway: Gateway, model: ScriptedModel, provider: OffbookProvider
) -> None:
    gateway.turn("switched", "This is still recorded, as the level says.")
    assert_stored_as_written(gateway, provider, "agent:main:switched")
    stored = provider.status()["counts"]["messages"]
    gateway.set_level("off")
    since = len(model.requests)
    gateway.turn("switched", "This is for nobody's memory.")
    gateway.turn("unrecorded", "Nor is this, in a session of its own.")
    assert not any("<offbook-" in text_of(message) for turn in model.turns(since) for message in turn.messages)
    gateway.set_level("capture")
    # Once it records again, the next message comes through: those before it had all the time there was.
    gateway.turn("recorded", "This is recorded again, as the level says.")
    assert_stored_as_written(gateway, provider, "agent:main:recorded")
    assert provider.log("agent:main:unrecorded") == []
    assert len(provider.log("agent:main:switched")) == 2
    assert provider.status()["counts"]["messages"] == stored + 2
