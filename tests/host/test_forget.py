"""What was forgotten at the provider comes to mind no more, and no file of the plugin's holds it, on the real host."""

from __future__ import annotations

import pytest

from tests.host.checks import FACT, files_with, forgotten, windowed
from tests.host.gateway import Gateway
from tests.host.providers import OffbookProvider
from tests.host.scripted_model import Request, ScriptedModel, Text, whole_text

QUESTION = "There is a storm coming tonight. What was it with the blanket and the hall?"


@pytest.fixture(scope="module")
def model_that_answers(model: ScriptedModel) -> ScriptedModel:
    model.reply = lambda request: Text("I see.")
    return model


def asked(gateway: Gateway, model: ScriptedModel, session: str) -> Request:
    since = len(model.requests)
    gateway.turn(session, QUESTION)
    return model.turns(since)[0]


@pytest.mark.parametrize("level", ["recall", "hot-swap"])
def test_what_was_forgotten_comes_to_mind_no_more(
    gateway: Gateway, model_that_answers: ScriptedModel, provider: OffbookProvider, level: str
) -> None:
    model = model_that_answers
    name = f"Bruno{level.partition('-')[0]}"
    gateway.set_level(level)
    gateway.turn(f"kept-{level}", FACT.format(name=name))
    gateway.wait_until(lambda: name in str(provider.log(f"agent:main:kept-{level}")), f"storing {name}")
    # Found by another session; and again, where the stable section of memory is already kept.
    assert name in whole_text(asked(gateway, model, f"before-{level}"))
    assert name in whole_text(asked(gateway, model, f"before-{level}"))
    forgotten(provider, name)
    assert name not in whole_text(asked(gateway, model, f"before-{level}"))
    assert name not in whole_text(asked(gateway, model, f"after-{level}"))
    assert files_with(gateway, name) == []
    assert model.faults() == []


def test_a_window_that_holds_it_is_let_go_and_made_anew(
    gateway: Gateway, model_that_answers: ScriptedModel, provider: OffbookProvider
) -> None:
    model = model_that_answers
    windowed(gateway, provider, "windowed", "Falco")
    forgotten(provider, "Falco")
    since = len(model.requests)
    gateway.turn("another", "How are you today?")  # hears of it for all sessions of the agent
    assert files_with(gateway, "Falco") == []
    gateway.turn("windowed", "What else is there to do today?")
    elsewhere, here = model.turns(since)
    assert "Falco" not in whole_text(elsewhere)
    # The host's transcript still has its own words; the new window does not show them.
    assert "Falco" not in whole_text(here)
    assert "[forgotten]" in whole_text(here)
    assert "What came before this point is in your memory" in whole_text(here)
    assert files_with(gateway, "Falco") == []
    assert model.faults() == []
