"""What was forgotten at the provider comes to mind no more, and no file of the plugin's holds it, on the real host."""

from __future__ import annotations

import pytest

from tests.host.gateway import Gateway
from tests.host.providers import OffbookProvider
from tests.host.rpc import Rpc
from tests.host.scripted_model import Request, ScriptedModel, Text, whole_text

FACT = "My {name} is afraid of thunder, so we keep the {name} blanket in the hall."
QUESTION = "There is a storm coming tonight. What was it with the blanket and the hall?"
WORDS = "The parcel {turn}.{line} weighs {line} kilograms, came on a grey morning, and goes to pier {turn}. "
LONG_TURNS = 10
FORGET_SECONDS = 20


@pytest.fixture(scope="module")
def model_that_answers(model: ScriptedModel) -> ScriptedModel:
    model.reply = lambda request: Text("I see.")
    return model


def files_with(gateway: Gateway, words: str) -> list[str]:
    """Names of the plugin's files that have these bytes."""
    folder = gateway.state / "offbook"
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    return [str(path.relative_to(folder)) for path in files if words.encode() in path.read_bytes()]


def stored(gateway: Gateway, provider: OffbookProvider, session: str, words: str) -> None:
    key = f"agent:main:{session}"
    gateway.wait_until(lambda: words in str(provider.log(key)), 20, f"{words} is stored")


def forgotten(provider: OffbookProvider, words: str) -> None:
    receipt = provider.ask("forget", agentId="main", matching=words, reason="a test")["receipt"]
    assert receipt["reached"]["messages"] >= 1
    assert receipt["residue"] == []


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
    gateway.turn(f"told-{level}", FACT.format(name=name))
    stored(gateway, provider, f"told-{level}", name)
    # Found by another session; and again, where the stable section of memory is already kept.
    assert name in whole_text(asked(gateway, model, f"before-{level}"))
    assert name in whole_text(asked(gateway, model, f"before-{level}"))
    forgotten(provider, name)
    assert name not in whole_text(asked(gateway, model, f"before-{level}"))
    assert name not in whole_text(asked(gateway, model, f"after-{level}"))
    assert files_with(gateway, name) == []
    assert model.faults() == []


def windowed(gateway: Gateway, provider: OffbookProvider, session: str, name: str) -> None:
    """A session whose context was swapped with the words in it: they are in a file of the plugin's."""
    gateway.set_level("hot-swap")
    for turn in range(LONG_TURNS):
        gateway.turn(session, "".join(WORDS.format(turn=turn, line=line) for line in range(32)))
    gateway.turn(session, FACT.format(name=name))
    stored(gateway, provider, session, name)
    with Rpc(gateway) as rpc:
        rpc.call("sessions.compact", {"key": f"agent:main:{session}"})
    assert [file for file in files_with(gateway, name) if file.startswith("sessions/")]


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
    assert "The parcel 0.1 weighs" not in whole_text(here)
    assert "What came before this point is in your memory" in whole_text(here)
    assert files_with(gateway, "Falco") == []
    assert model.faults() == []


def test_what_was_forgotten_while_the_host_was_off_is_gone_from_its_files(
    gateway: Gateway, model_that_answers: ScriptedModel, provider: OffbookProvider
) -> None:
    """Nobody has to speak."""
    windowed(gateway, provider, "left", "Harald")
    gateway.stop()
    forgotten(provider, "Harald")
    gateway.start()
    gateway.wait_until(lambda: files_with(gateway, "Harald") == [], FORGET_SECONDS, "the words are gone")
