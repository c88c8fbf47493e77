"""Both clients, the verbs of continuity, a real daemon."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from offbook.client.async_client import AsyncClient
from offbook.client.blocking import Client
from offbook.model.errors import ProviderRefused
from offbook.model.turn import ContinuityState, PreparedTurn
from tests.acceptance.daemon import Daemon, running

FERRY = "My name is Nina, I am a nurse in Graz, and the ferry to the island is called Aurora."
BREAD = (
    "Please find out why my sourdough did not rise.",
    "The sourdough starter smells sour.",
    "Is rye good for sourdough?",
)
ASKED = "Do you remember what the ferry to the island is called?"


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with running() as started:
        yield started


def caught_up(daemon: Daemon) -> None:
    """Topics and anchors follow the log in the background."""
    until = time.monotonic() + 60.0
    while daemon.send("GET", "/v1/ping", over_socket=True).json()["backlog"]:
        assert time.monotonic() < until
        time.sleep(0.05)


def assert_told(turn: PreparedTurn) -> None:
    (entry,) = [one for one in turn.entries if "Aurora" in one.text]
    assert (entry.text, entry.session_id) == (FERRY, "monday")
    assert "Aurora" in turn.recall
    assert turn.intent == "recall"
    assert 0 < turn.tokens.recall <= turn.tokens.budget


def assert_on_about_bread(state: ContinuityState) -> None:
    assert [topic.label for topic in state.topics if topic.is_fixated] == ["sourdough"]
    assert state.session is not None
    assert (state.session.session_id, state.session.exchanges) == ("bread", 3)
    assert [one.session_id for one in state.working] == ["bread"]


def test_the_blocking_client_prepares_turns(daemon: Daemon) -> None:
    with Client(str(daemon.socket_endpoint), agent_id="blocking", home=daemon.home, timeout_seconds=60) as client:
        client.record("monday", ("user", FERRY))
        for text in BREAD:
            client.record("bread", ("user", text))
            client.record("bread", ("assistant", "I see, go on."))
        assert client.flush()
        caught_up(daemon)
        client.pin(keyword="nurse")
        shown = client.prepare_turn("friday", ASKED, explain=True, preview=True)
        assert {part.section for part in shown.parts} == {"memory", "recall"}
        assert (client.prepare_turn("friday", "hm?").intent, client.status()["retrievals"]) == ("brief", 0)
        turn = client.prepare_turn("friday", ASKED, current_tokens=100_000, context_window=200_000)
        assert_told(turn)
        assert (turn.tokens.budget, turn.parts) == (17_600, [])
        assert "nurse in Graz" in turn.memory
        assert client.prepare_turn("friday", "What else is there to know?").memory == turn.memory
        enriched = client.enrich("friday", "ferry to the island")
        assert "Aurora" in enriched.text
        assert (enriched.sparse.results, enriched.tokens > 0) == (2, True)
        assert client.topics("bread").topics[0].label == "sourdough"
        assert [one.text for one in client.anchors().anchors if one.kind == "identity"]
        assert client.anchors("bread").anchors == []
        assert_on_about_bread(client.state("bread"))
        view = client.config()
        assert (view.agent_id, view.settings["tokenBudget"]["minBudgetTokens"]) == ("blocking", 2_000)
        assert client.audit()["verified"]


async def test_the_async_client_prepares_turns_for_each_agent(daemon: Daemon) -> None:
    async with AsyncClient(
        str(daemon.tcp_endpoint), token=daemon.token, home=daemon.home, timeout_seconds=60
    ) as client:
        await client.on_message("monday", ("user", FERRY), agent_id="ada")
        for text in BREAD:
            await client.on_message("bread", ("user", text), agent_id="ada")
            await client.on_message("bread", ("assistant", "I see, go on."), agent_id="ada")
        caught_up(daemon)
        assert_told(await client.prepare_turn("friday", ASKED, agent_id="ada"))
        strange = await client.prepare_turn("friday", ASKED, agent_id="bea")
        assert (strange.memory, strange.recall, strange.entries) == ("", "", [])
        assert "Aurora" in (await client.enrich("friday", "the ferry to the island", agent_id="ada")).text
        assert (await client.enrich("friday", "the ferry to the island", agent_id="bea")).text == ""
        assert (await client.topics(agent_id="ada")).topics[0].label == "sourdough"
        assert (await client.topics(agent_id="bea")).topics == []
        assert (await client.anchors("monday", agent_id="ada")).anchors[0].kind == "identity"
        assert (await client.anchors(agent_id="bea")).anchors == []
        assert_on_about_bread(await client.state("bread", agent_id="ada"))
        assert (await client.state(agent_id="bea")).session is None
        assert (await client.config(agent_id="bea")).agent_id == "bea"
        with pytest.raises(ProviderRefused, match="contextWindow"):
            await client.prepare_turn("friday", ASKED, context_window=0)
        with pytest.raises(ProviderRefused):
            await client.enrich("friday", " ")
