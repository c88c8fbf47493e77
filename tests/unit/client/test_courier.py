"""A courier among lanes that may not be written to: who waits, who passes, who makes way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from offbook.client import courier
from offbook.client.courier import BATCH_RECORDS, Courier
from offbook.client.outbox import Outbox
from offbook.client.segment import READ_BYTES, Segment
from offbook.client.transport import Answer
from offbook.model.errors import ProviderError, ProviderUnavailable
from tests.unit.client.fake_provider import FORBIDDEN

BUSY = {"type": "urn:offbook:problem:busy", "title": "Busy.", "status": 503, "retryable": True}


class Provider:
    """In place of a transport. `answers` may refuse what an agent sends, given how many messages that are."""

    def __init__(self) -> None:
        self.answers: Callable[[str, int], dict[str, Any] | None] = lambda agent, count: None
        self.asked: list[tuple[str, int]] = []
        self.taken: dict[str, list[str]] = {}

    def forbid(self, *agents: str) -> None:
        self.answers = lambda agent, count: FORBIDDEN if agent in agents else None

    async def post(self, path: str, body: bytes, **options: Any) -> Answer:
        sent = msgspec.json.decode(body)
        agent, texts = sent["agentId"], [message["content"] for message in sent["messages"]]
        self.asked.append((agent, len(texts)))
        problem = self.answers(agent, len(texts))
        if problem is not None:
            return Answer(problem["status"], msgspec.json.encode(problem))
        taken = self.taken.setdefault(agent, [])
        taken += texts
        receipt = {"accepted": len(texts), "duplicates": 0, "firstSeq": 1, "lastSeq": len(taken)}
        return Answer(200, msgspec.json.encode(receipt))


class Host:
    def __init__(self, folder: Path) -> None:
        self.provider = Provider()
        self.outbox = Outbox(folder, max_bytes=10**8, endpoint="http://x:1")
        self.courier = Courier(self.outbox, self.provider)  # type: ignore[arg-type]
        self.said: dict[str, list[str]] = {}

    def say(self, agent: str, count: int = 1, size: int = 0) -> None:
        for _ in range(count):
            said = self.said.setdefault(agent, [])
            said.append(f"{agent} {len(said)} {'x' * size}")
            message = {"role": "user", "content": said[-1]}
            assert self.outbox.append(
                msgspec.json.encode({"sessionId": "s", "agentId": agent, "message": message}), agent
            )

    def attempt(self, limit_records: int = BATCH_RECORDS) -> bool:
        try:
            asyncio.run(self.courier.deliver_some(limit_records))
        except ProviderError:
            return False
        return True


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path / "host")


@pytest.fixture
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(courier, "HELD_BYTES", 4_000)


# ── more waits than may lie before others ──


@pytest.mark.usefixtures("little_room")
def test_where_everybody_is_refused_nothing_is_set_aside(host: Host) -> None:
    """A proxy on the way may say 403, too, and so does the guard to a host it does not know."""
    host.provider.forbid("ann", "bob", "carl")
    host.say("ann", 60, size=150)
    host.say("bob")
    host.say("carl")
    for _ in range(3):
        host.provider.asked.clear()
        assert not host.attempt(limit_records=1)
        assert [agent for agent, _ in host.provider.asked] == ["ann", "bob", "carl"]
    assert (host.outbox.waiting, host.outbox.rejected) == (62, 0)
    host.provider.forbid()
    while host.outbox.waiting:
        assert host.attempt()
    assert host.provider.taken == host.said


@pytest.mark.usefixtures("little_room")
def test_one_lane_makes_way_once_others_were_taken(host: Host) -> None:
    host.provider.forbid("ann", "bob")
    host.say("ann", 60, size=150)
    host.say("bob")
    assert not host.attempt()
    host.provider.forbid("ann")
    assert not host.attempt()
    assert host.provider.taken == {"bob": host.said["bob"]}
    assert host.outbox.rejected > 0
    assert 3_000 < host.outbox.waiting_bytes < 5_000
    assert host.outbox.waiting + host.outbox.rejected == 60


@pytest.mark.usefixtures("little_room")
@pytest.mark.parametrize("limit_records", [1, BATCH_RECORDS])
def test_there_is_room_where_others_send_one_batch_in_an_attempt(host: Host, limit_records: int) -> None:
    host.provider.forbid("ann", "carl")
    host.say("ann", 300, size=150)
    for _ in range(10):
        host.say("bob")
        host.say("carl")
        assert not host.attempt(limit_records)
        assert not host.attempt(limit_records)  # with nothing of others to bring
        host.say("ann", 10, size=150)
        assert host.outbox.waiting_bytes < 8_000
    assert host.provider.taken == {"bob": host.said["bob"]}
    assert host.outbox.waiting + host.outbox.rejected == 410


def test_what_is_held_is_not_read_again_at_each_attempt(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    read_bytes = 0
    real = Segment._read

    def read(self: Segment, offset: int, size: int) -> bytes:
        nonlocal read_bytes
        read_bytes += size
        return real(self, offset, size)

    monkeypatch.setattr(Segment, "_read", read)
    host.provider.forbid("ann", "bob")
    host.say("ann", 40, size=200_000)
    host.say("bob")
    assert not host.attempt(limit_records=1)
    assert read_bytes > 30 * READ_BYTES
    for _ in range(3):
        read_bytes = 0
        host.say("ann")
        assert not host.attempt(limit_records=1)
        assert read_bytes <= 4 * READ_BYTES
    assert host.provider.asked[-2:] == [("ann", 1), ("bob", 1)]
    host.provider.forbid()
    while host.outbox.waiting:
        assert host.attempt()
    assert host.provider.taken == host.said


# ── how much at a time ──


def unavailable() -> dict[str, Any]:
    raise ProviderUnavailable("no answer in time")


@pytest.mark.parametrize("trouble", [lambda: BUSY, unavailable])
def test_beside_a_lane_that_is_held_others_get_less_at_a_time_after_a_failure(
    host: Host, trouble: Callable[[], dict[str, Any]]
) -> None:
    def answers(agent: str, count: int) -> dict[str, Any] | None:
        return FORBIDDEN if agent in ("ann", "carl") else trouble() if count > 5 else None

    host.provider.answers = answers
    host.say("ann")
    host.say("carl")
    host.say("bob", 40)
    for _ in range(10):
        assert not host.attempt(limit_records=1)
    assert host.provider.taken == {"bob": host.said["bob"]}
    counts = [count for agent, count in host.provider.asked if agent == "bob"]
    assert counts[:5] == [40, 20, 10, 5, 10]
    host.provider.forbid("ann", "carl")
    host.provider.asked.clear()
    host.say("bob", 2 * BATCH_RECORDS)
    assert not host.attempt(limit_records=1)
    assert max(count for agent, count in host.provider.asked if agent == "bob") > 100  # and more again


def test_a_lane_that_is_refused_makes_no_batch_smaller(host: Host) -> None:
    host.provider.forbid("ann", "bob")
    host.say("ann")
    host.say("bob", 40)
    host.say("carl", 40)
    for _ in range(3):
        assert not host.attempt(limit_records=1)
    assert host.provider.asked[:3] == [("ann", 1), ("bob", 40), ("carl", 40)]
    assert host.provider.asked[-1] == ("bob", 40)
