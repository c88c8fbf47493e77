"""Proof 1: what was told in one session is in the model's request in another, as memory, at the end of the context, while
the system prompt stays the same byte for byte."""

from __future__ import annotations

import pytest

from tests.host.gateway import Gateway
from tests.host.providers import OffbookProvider
from tests.host.scripted_model import Request, ScriptedModel, Text, conversation, last_user_text, system_text, text_of
from tests.host.transcripts import transcript

FACT = "My dog Bruno is afraid of thunder, so we keep the blue blanket in the hall."
QUESTION = "There is a storm coming tonight. What was it with the dog and the blanket?"


def answers(request: Request) -> Text:
    return Text("Noted." if "Bruno" in last_user_text(request) else "I see.")


def without_runtime_line(text: str) -> str:
    """The host itself adds one behind the first message of a session."""
    return text.partition("\n\nRuntime: agent=")[0]


@pytest.fixture(scope="module")
def model_that_answers(model: ScriptedModel) -> ScriptedModel:
    model.reply = answers
    return model


@pytest.mark.parametrize("level", ["recall", "hot-swap"])
def test_a_fact_of_one_session_comes_to_mind_in_another(
    gateway: Gateway, model_that_answers: ScriptedModel, provider: OffbookProvider, level: str
) -> None:
    model = model_that_answers
    gateway.set_level(level)
    first, second = f"told-{level}", f"asked-{level}"
    since = len(model.requests)
    gateway.turn(first, FACT)
    gateway.turn(first, "How are you today? Nothing much happens here.")
    told = len(model.requests)
    gateway.turn(second, QUESTION)
    gateway.turn(second, "Thank you, that is all for now.")

    asked = model.turns(told)[0]
    last = without_runtime_line(last_user_text(asked))
    assert last.startswith(QUESTION)
    recalled = last[len(QUESTION) :]
    assert "<offbook-recall" in recalled
    assert recalled.rstrip().endswith("</offbook-recall>")
    assert "They told you" in recalled
    assert FACT in recalled.replace("\u2019", "'")
    # At the end: no word of the conversation stands behind it.
    assert without_runtime_line(text_of(conversation(asked)[-1])).rstrip().endswith("</offbook-recall>")

    prompts = [system_text(request) for request in model.turns(since)]
    of_sessions = [prompts[: told - since], prompts[told - since :]]
    for of_session in of_sessions:
        assert len(set(of_session)) == 1
    if level == "hot-swap":  # the stable section is part of the conversation there, so all sessions share the prompt
        assert len(set(prompts)) == 1
    assert "Bruno" not in prompts[0]
    assert model.faults() == []

    # What was injected is neither in the host's transcript nor in the log.
    for session in (first, second):
        key = f"agent:main:{session}"
        entries = transcript(gateway, key)
        assert entries
        assert not any("offbook-recall" in str(entry.message) for entry in entries)
        gateway.wait_until(lambda key=key, entries=entries: len(provider.log(key)) == len(entries), "all is stored")
        assert [line["message"]["id"] for line in provider.log(key)] == [entry.entry_id for entry in entries]
        assert not any("offbook-recall" in str(line["message"]) for line in provider.log(key))


def test_capture_records_and_changes_nothing(
    gateway: Gateway, model_that_answers: ScriptedModel, provider: OffbookProvider
) -> None:
    """B11: with `off` and with `capture` the model is asked the very same."""
    model = model_that_answers
    asked: dict[str, Request] = {}
    for level in ("off", "capture"):
        gateway.set_level(level)
        since = len(model.requests)
        gateway.turn(f"plain-{level}", QUESTION)
        asked[level] = model.turns(since)[0]
    assert system_text(asked["off"]) == system_text(asked["capture"])
    assert asked["off"].tool_names == asked["capture"].tool_names
    assert [without_runtime_line(last_user_text(request)) for request in asked.values()] == [QUESTION, QUESTION]
    assert not any(name.startswith(("swap_", "memory_")) for name in asked["off"].tool_names)
    gateway.wait_until(lambda: len(provider.log("agent:main:plain-capture")) == 2, "capture stores the turn")
    assert provider.log("agent:main:plain-off") == []
