"""One restart of the host, and what it must show: nothing is left running, a swapped context stays as it was, and what was
forgotten meanwhile is gone from the plugin's files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from tests.acceptance.daemon import WITHOUT_MODEL
from tests.host.checks import (
    assert_stored_as_written,
    audited,
    files_with,
    forgotten,
    long_text,
    session_status,
    windowed,
)
from tests.host.conftest import PLUGIN_DIR, UNHURRIED
from tests.host.gateway import Gateway
from tests.host.host_config import Setup
from tests.host.providers import OffbookProvider
from tests.host.scripted_model import ScriptedModel, Text, conversation, text_of

KEY = "agent:main:restarted"
LINES = 80


@pytest.fixture(scope="module")
def provider_environ() -> Mapping[str, str]:
    return WITHOUT_MODEL


@pytest.fixture(scope="module")
def setup(provider: OffbookProvider) -> Setup:
    config = {"home": str(provider.home), **UNHURRIED}
    return Setup(plugin_dir=PLUGIN_DIR, level="hot-swap", plugin_config=config, agents=("main", "bob"))


@dataclass(frozen=True)
class Restart:
    shown_before: list[str]
    generation: int
    group_was_gone: bool


@pytest.fixture(scope="module")
def restart(gateway: Gateway, model: ScriptedModel, provider: OffbookProvider) -> Restart:
    """Stopped and started once, between what was said in a session of each agent and what the tests look for. A forget
    lets go of all windows of an agent: so it is the other's."""
    model.reply = lambda request: Text("Noted, thank you for telling me.")
    windowed(gateway, provider, "left", "Harald", agent="bob")
    gateway.turn("restarted", "The harbour master's word for the crane is Sassafras.")
    # Until the first is out of sight and a swap was just made: the turns that follow are too short for another.
    generations = [0]
    while len(generations) < 10 or generations[-1] == generations[-2]:
        gateway.turn("restarted", long_text(len(generations), LINES))
        generations.append(session_status(provider, KEY)["generation"])
        assert len(generations) < 20
    gateway.turn("restarted", "That was all of them.")
    before = [text_of(message) for message in conversation(model.turns()[-1])]
    assert gateway.process is not None
    group = gateway.process.pid
    gateway.stop()
    try:
        os.killpg(group, 0)
        was_gone = False
    except ProcessLookupError:
        was_gone = True
    forgotten(provider, "Harald", agent="bob")
    gateway.start()
    return Restart(before, generations[-1], was_gone)


def test_what_was_forgotten_while_the_host_was_off_is_gone_from_its_files(gateway: Gateway, restart: Restart) -> None:
    """Nobody has to speak."""
    gateway.wait_until(lambda: files_with(gateway, "Harald") == [], "without the words")


def test_a_restart_of_the_host_keeps_what_a_swap_left(
    gateway: Gateway, model: ScriptedModel, provider: OffbookProvider, restart: Restart
) -> None:
    before = restart.shown_before
    assert session_status(provider, KEY)["generation"] == restart.generation >= 1
    assert "<offbook-memory" in before[1]
    assert not any("Sassafras" in text for text in before[2:])  # it is before the cut

    since = len(model.requests)
    gateway.turn("restarted", "Is there anything else for today?")
    (request,) = model.turns(since)
    after = [text_of(message) for message in conversation(request)]
    assert session_status(provider, KEY)["generation"] == restart.generation
    # The same memory, byte for byte, and the same first message after the cut.
    assert after[1] == before[1]
    assert after[2:4] == before[2:4]
    assert len(after) == len(before) + 2
    assert_stored_as_written(gateway, provider, KEY)
    assert audited(provider, KEY, "hooks/session-end") == []
    assert model.faults() == []
    assert model.repairs() == []


def test_nothing_was_left_running(restart: Restart) -> None:
    assert restart.group_was_gone
