"""The verbs of recall, as both clients ask for them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from offbook.client.async_client import AsyncClient
from offbook.client.blocking import Client
from offbook.model.errors import ProviderRefused
from tests.unit.client.fake_provider import WRONG_SHAPE, FakeProvider

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OFFBOOK_URL", "OFFBOOK_SOCKET", "OFFBOOK_TOKEN", "OFFBOOK_AGENT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OFFBOOK_HOME", str(tmp_path))


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[FakeProvider]:
    with FakeProvider(socket=tmp_path / "offbook.sock") as provider:
        yield provider


def asked(provider: FakeProvider) -> list[tuple[str, dict[str, Any]]]:
    return [(request.verb, request.body) for request in provider.requests]


async def test_recall_asks_for_what_it_is_given_and_gives_entries(provider: FakeProvider) -> None:
    async with AsyncClient(agent_id="main") as client:
        found = await client.recall("s", "Where is it?")
        await client.recall("s", "x", limit=2, scope="all", at=NOON, include_superseded=True, explain=True)
        await client.recall("s", "x", at="2026-01-01T00:00:00Z", agent_id="other")
    entry = found.entries[0]
    assert (entry.id, entry.text, entry.score, entry.span.last_seq) == ("m1", "The ferry is called Aurora.", 0.5, 1)
    assert entry.ts == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert (entry.superseded_by, entry.why, found.explained) == (None, None, None)
    plain = {"sessionId": "s", "agentId": "main", "limit": 5, "scope": "agent"}
    assert asked(provider) == [
        ("recall", {**plain, "query": "Where is it?"}),
        (
            "recall",
            {
                "sessionId": "s",
                "agentId": "main",
                "query": "x",
                "limit": 2,
                "scope": "all",
                "at": "2026-11-15T12:00:00Z",
                "includeSuperseded": True,
                "explain": True,
            },
        ),
        ("recall", {**plain, "agentId": "other", "query": "x", "at": "2026-01-01T00:00:00Z"}),
    ]


async def test_pins_cross_and_reindex(provider: FakeProvider) -> None:
    async with AsyncClient() as client:
        assert (await client.pin(entry_ids=("m1", "m2"))).entry_ids == ["m1"]
        assert (await client.unpin(keyword="ferry", session_id="s", agent_id="ada")).changed == 0
        assert (await client.cross()).agents == ["bea"]
        assert (await client.cross(False)).enabled
        assert (await client.reindex()).waiting == 3
        assert (await client.reindex(embeddings=True, agent_id="ada")).entries == 3
    assert asked(provider) == [
        ("pin", {"entryIds": ["m1", "m2"]}),
        ("unpin", {"sessionId": "s", "agentId": "ada", "keyword": "ferry"}),
        ("cross", {}),
        ("cross", {"enabled": False}),
        ("reindex", {}),
        ("reindex", {"agentId": "ada", "embeddings": True}),
    ]


def test_the_blocking_client_asks_the_same(provider: FakeProvider) -> None:
    with Client(agent_id="main") as client:
        found = client.recall("s", "x", limit=2, scope="session", at=NOON, include_superseded=True, explain=True)
        assert found.entries[0].id == "m1"
        assert client.pin(keyword="ferry", session_id="s", entry_ids=["m1"]).changed == 1
        assert client.unpin(keyword="ferry", session_id="s", entry_ids=["m1"]).changed == 0
        assert client.cross(True).enabled
        assert client.reindex(embeddings=True).waiting == 3
    meant = {"sessionId": "s", "agentId": "main", "keyword": "ferry", "entryIds": ["m1"]}
    bodies = dict(asked(provider))
    assert bodies["pin"] == bodies["unpin"] == meant
    assert bodies["cross"] == {"agentId": "main", "enabled": True}
    assert bodies["recall"]["scope"] == "session"
    assert bodies["recall"]["explain"] is bodies["recall"]["includeSuperseded"] is True


async def test_maintenance_is_asked_for_by_both(provider: FakeProvider) -> None:
    async with AsyncClient() as client:
        assert (await client.maintain()).runs[0].did == {"indexed": 3}
        await client.maintain(tasks=("index", "tiers"), agent_id="ada")
    assert asked(provider) == [("maintain", {}), ("maintain", {"agentId": "ada", "tasks": ["index", "tiers"]})]


def test_maintenance_is_asked_for_by_the_blocking_client(provider: FakeProvider) -> None:
    with Client(agent_id="main") as client:
        assert client.maintain(tasks=["index"]).runs[0].task == "index"
    assert asked(provider) == [("maintain", {"agentId": "main", "tasks": ["index"]})]


async def test_fields_of_a_newer_provider_are_passed_over(provider: FakeProvider) -> None:
    provider.extra_fields = {"hint": {"of": "tomorrow"}}
    async with AsyncClient() as client:
        assert (await client.recall("s", "x")).entries[0].id == "m1"
        assert (await client.pin(entry_ids=[])).changed == 1


async def test_a_refusal_is_told(provider: FakeProvider) -> None:
    provider.plan.append(WRONG_SHAPE)
    async with AsyncClient() as client:
        with pytest.raises(ProviderRefused, match="wrong type"):
            await client.recall("s", "")


async def test_half_a_character_in_a_query_is_survived(provider: FakeProvider) -> None:
    async with AsyncClient() as client:
        assert (await client.recall("s", "half \ud800 of it")).entries
    assert asked(provider)[0][1]["query"] == "half \ufffd of it"
