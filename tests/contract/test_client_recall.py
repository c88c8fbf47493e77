"""Both clients, the verbs of recall, a real daemon."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from offbook.client.async_client import AsyncClient
from offbook.client.blocking import Client
from offbook.model.errors import ProviderRefused
from tests.acceptance.daemon import Daemon, running


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with running() as started:
        yield started


def test_the_blocking_client_recalls_and_pins(daemon: Daemon) -> None:
    with Client(str(daemon.socket_endpoint), agent_id="blocking", home=daemon.home, timeout_seconds=60) as client:
        client.record("monday", ("user", "The ferry is called Aurora."))
        assert client.flush()
        (entry,) = client.recall("friday", "What is the ferry called?").entries
        assert (entry.text, entry.session_id, entry.pinned) == ("The ferry is called Aurora.", "monday", False)
        assert client.pin(entry_ids=[entry.id]).entry_ids == [entry.id]
        assert client.recall("friday", "ferry").entries[0].pinned
        assert client.unpin(keyword="aurora").changed == 1
        assert not client.cross().enabled
        assert client.reindex().waiting == 1
        assert client.recall("friday", "ferry").entries[0].id == entry.id
        assert client.audit()["verified"]


async def test_the_async_client_recalls_across_agents(daemon: Daemon) -> None:
    async with AsyncClient(
        str(daemon.tcp_endpoint), token=daemon.token, home=daemon.home, timeout_seconds=60
    ) as client:
        for agent in ("ada", "bea"):
            await client.on_message("s", ("user", f"The lighthouse belongs to {agent}."), agent_id=agent)
            await client.cross(True, agent_id=agent)
        found = await client.recall("s", "lighthouse", scope="all", agent_id="ada", explain=True)
        assert {entry.agent_id for entry in found.entries} == {"ada", "bea"}
        assert found.explained is not None
        assert set(found.explained.recipes) == {"ada", "bea"}
        with pytest.raises(ProviderRefused, match="empty"):
            await client.recall("s", " ")
        with pytest.raises(ProviderRefused, match="no entry's id"):
            await client.pin(entry_ids=["nonsense"])
