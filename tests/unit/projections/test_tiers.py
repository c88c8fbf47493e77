from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from offbook.log.audit_chain import micros
from offbook.log.sqlite.store import SqliteStore
from offbook.log.tiers import OFFLOADED, offloaded_through, parsed_note, tier_of
from offbook.model.memory_entry import Hold
from offbook.model.settings import Settings
from offbook.model.settings.sections import Ttl
from offbook.model.status import Tiers
from offbook.model.types import AuditDraft, Scope
from offbook.projections import tiers as ageing
from offbook.projections.indexes import Indexes
from offbook.search.index.agent_index import AgentIndex
from tests.unit.projections.conftest import EVENT, add, indexed, numbered, places_of
from tests.unit.search.index.sayings import said

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
FEW = msgspec.structs.replace(Settings(), prune_threshold=10, prune_keep=6)


class Kept:
    """Of a store what ageing asks: holds and the note."""

    def __init__(self, holds: dict[int, Hold]) -> None:
        self._holds = holds
        self.note: str | None = None
        self.events: list[AuditDraft] = []

    async def agent_note(self, agent_id: str, name: str) -> str | None:
        return self.note

    async def set_agent_note(self, agent_id: str, name: str, value: str | None, event: AuditDraft) -> None:
        assert name == OFFLOADED
        self.note = value
        self.events.append(event)

    async def retrieved_since(self, agent_id: str, since: datetime, *, limit: int) -> list[tuple[int, Hold]]:
        found = [(at, hold) for at, hold in self._holds.items() if hold.retrieved_at and hold.retrieved_at >= since]
        return found[:limit]

    async def pinned(self, agent_id: str, *, limit: int) -> list[int]:
        return [place for place, hold in self._holds.items() if hold.pinned][:limit]

    async def holds(self, agent_id: str, places: list[int]) -> dict[int, Hold]:
        return {place: self._holds[place] for place in places if place in self._holds}


def one_by_one(kept: Kept, arrivals: list[datetime], ttl: Ttl, at: datetime) -> Tiers:
    gone = None if kept.note is None else parsed_note(kept.note)
    gone = None if gone is None else gone.not_after(micros(at))
    count: Counter[str] = Counter()
    for place, arrived in enumerate(arrivals, 1):
        hold = kept._holds.get(place, Hold())
        is_gone = gone is not None and gone.covers(micros(arrived), place)
        count[tier_of(arrived, hold, is_offloaded=is_gone, ttl=ttl, at=at)] += 1
    return Tiers(hot=count["hot"], warm=count["warm"], cold=count["cold"])


hours = st.sampled_from([0.0, 0.5, 1.0, 6.0, 48.0, 1e6, 1e12, float("inf")])
holds = st.builds(
    Hold,
    retrievals=st.integers(min_value=0, max_value=50),
    retrieved_at=st.integers(min_value=0, max_value=30).map(lambda ago: NOON - timedelta(hours=ago)),
    pinned=st.booleans(),
)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=60, deadline=None
)
@given(
    arrived=st.lists(st.integers(min_value=-40, max_value=200), max_size=60),
    has_clock_jumped=st.booleans(),
    ttl=st.builds(Ttl, base_hours=hours, bump_hours=hours, max_hours=hours),
    held=st.dictionaries(st.integers(min_value=1, max_value=60), holds, max_size=20),
    limits=st.tuples(st.integers(min_value=1, max_value=20), st.integers(min_value=0, max_value=20)),
    jump=st.sampled_from([0, -400, 400, 10**6]),
)
async def test_tiers_and_offload_against_one_by_one(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    arrived: list[int],
    has_clock_jumped: bool,
    ttl: Ttl,
    held: dict[int, Hold],
    limits: tuple[int, int],
    jump: int,
) -> None:
    arrivals = [NOON - timedelta(hours=ago) for ago in arrived]
    if not has_clock_jumped:
        arrivals.sort()
    index = AgentIndex(tmp_path_factory.mktemp("index"), silence=timedelta(hours=2))
    index.take(
        [msgspec.structs.replace(said(place), arrived=when, ts=when) for place, when in enumerate(arrivals, 1)], 1
    )
    for place, when in enumerate(arrivals, 1):
        if place in held:  # nothing is retrieved before it has arrived
            retrieved_at = max(when, held[place].retrieved_at or when)
            held[place] = msgspec.structs.replace(held[place], retrieved_at=retrieved_at)
    kept: Any = Kept(held)
    at = NOON
    monkeypatch.setattr(ageing, "now", lambda: at)
    before = one_by_one(kept, arrivals, ttl, at)
    assert await ageing.tiers(kept, "main", index, ttl) == before

    threshold, keep = max(limits), min(limits)
    chosen = msgspec.structs.replace(Settings(), ttl=ttl, prune_threshold=threshold, prune_keep=keep)
    moved = await ageing.offload(kept, "main", index, chosen)
    after = one_by_one(kept, arrivals, ttl, at)
    assert await ageing.tiers(kept, "main", index, ttl) == after
    assert before.hot - after.hot == moved
    assert moved == 0 or (before.hot > threshold and after.hot >= keep)
    if before.hot > threshold:
        staying = sum(held.get(place, Hold()).pinned or when > NOON for place, when in enumerate(arrivals, 1))
        assert after.hot == max(keep, staying), "what is pinned stays, and what is yet to come"
    assert await ageing.offload(kept, "main", index, chosen) == 0, "done twice it changes nothing"
    assert len(kept.events) == (1 if moved else 0)

    at = NOON + timedelta(hours=jump)
    assert await ageing.tiers(kept, "main", index, ttl) == one_by_one(kept, arrivals, ttl, at)
    index.close()


async def test_offload_with_a_store(store: SqliteStore, indexes: Indexes) -> None:
    for text in numbered(20):
        await add(store, text)
    await add(store, "another's", scope=Scope(agent_id="other", session_id="chat"))
    places = await places_of(store)
    await store.pin("main", places[:2], pinned=True, event=EVENT)
    await indexed(indexes)
    async with indexes.following("main", seconds=1) as (index, _):
        assert await ageing.tiers(store, "main", index, FEW.ttl) == Tiers(hot=20, warm=0, cold=0)
        assert await ageing.offload(store, "main", index, FEW) == 14
        assert await ageing.tiers(store, "main", index, FEW.ttl) == Tiers(hot=6, warm=0, cold=14)
        assert await ageing.offload(store, "main", index, FEW) == 0
    event = (await store.newest_audit_events("main", limit=1))[0]
    assert (event.verb, event.actor) == ("offload", "offbook")
    assert (event.details["moved"], event.details["hot"]) == (14, 20)
    assert await offloaded_through(store, "other") is None
    assert len(await places_of(store)) == 20, "nothing is deleted"


async def test_a_batch_that_arrived_at_once_goes_as_far_as_it_must(store: SqliteStore, indexes: Indexes) -> None:
    await add(store, *numbered(600))
    await indexed(indexes)
    async with indexes.following("main", seconds=5) as (index, _):
        assert await ageing.offload(store, "main", index, Settings()) == 200
        assert await ageing.tiers(store, "main", index, Ttl()) == Tiers(hot=400, warm=0, cold=200)
        assert await ageing.offload(store, "main", index, Settings()) == 0
    through = await offloaded_through(store, "main")
    places = await places_of(store)
    assert through is not None
    assert through.place == places[199]
    for text in numbered(101, "newer"):
        await add(store, text)
    await indexed(indexes)
    async with indexes.following("main", seconds=5) as (index, _):
        assert await ageing.offload(store, "main", index, Settings()) == 101
        assert await ageing.tiers(store, "main", index, Ttl()) == Tiers(hot=400, warm=0, cold=301)


async def test_a_retrieval_keeps_hot_and_a_clock_may_jump(
    store: SqliteStore, indexes: Indexes, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(store, *numbered(10))
    places = await places_of(store)
    await store.recalled("main", places[:3], EVENT)
    await indexed(indexes)
    started = datetime.now(UTC)
    ttl = Ttl()
    expected = {0: (10, 0, 0), 7: (3, 7, 0), 9: (0, 10, 0), 55: (0, 3, 7), 10_000: (0, 0, 10), -10_000: (10, 0, 0)}
    async with indexes.following("main", seconds=1) as (index, _):
        for later, (hot, warm, cold) in expected.items():
            monkeypatch.setattr(ageing, "now", lambda later=later: started + timedelta(hours=later))
            assert await ageing.tiers(store, "main", index, ttl) == Tiers(hot=hot, warm=warm, cold=cold)


async def test_what_is_cold_and_recalled_often_is_warm_again(
    store: SqliteStore, indexes: Indexes, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(store, *numbered(10))
    places = await places_of(store)
    await indexed(indexes)
    started = datetime.now(UTC)
    for _ in range(3):
        await store.recalled("main", places[:2], EVENT)
    long_ago = Ttl(base_hours=0.0, bump_hours=2.0, max_hours=0.000_001)  # all of it went cold at once
    usual = Ttl(base_hours=0.0, bump_hours=2.0, max_hours=48.0)
    await store.set_agent_note("main", OFFLOADED, datetime.now(UTC).isoformat(), None)
    async with indexes.following("main", seconds=1) as (index, _):
        for later, ttl, warm in ((5.9, usual, 2), (6.1, usual, 0), (5.9, long_ago, 0)):
            monkeypatch.setattr(ageing, "now", lambda later=later: started + timedelta(hours=later))
            assert await ageing.tiers(store, "main", index, ttl) == Tiers(hot=0, warm=warm, cold=10 - warm)


async def test_an_unreadable_note_is_as_none(store: SqliteStore, indexes: Indexes) -> None:
    await add(store, *numbered(3))
    await store.set_agent_note("main", OFFLOADED, "yesterday", None)
    await indexed(indexes)
    async with indexes.following("main", seconds=1) as (index, _):
        assert await ageing.tiers(store, "main", index, Ttl()) == Tiers(hot=3, warm=0, cold=0)


async def test_a_clock_that_was_wrong_does_not_make_cold_what_is_yet_to_come(
    store: SqliteStore, indexes: Indexes
) -> None:
    await add(store, *numbered(3))
    future = datetime.now(UTC) + timedelta(days=400)
    await store.set_agent_note("main", OFFLOADED, future.isoformat(), None)
    await indexed(indexes)
    async with indexes.following("main", seconds=1) as (index, _):
        assert await ageing.tiers(store, "main", index, Ttl()) == Tiers(hot=0, warm=0, cold=3)
        assert await ageing.offload(store, "main", index, FEW) == 0
    await add(store, *numbered(2, "newer"))
    await indexed(indexes)
    async with indexes.following("main", seconds=1) as (index, _):
        assert await ageing.tiers(store, "main", index, Ttl()) == Tiers(hot=2, warm=0, cold=3)
