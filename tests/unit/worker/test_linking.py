from __future__ import annotations

from pathlib import Path

from offbook.entries import Supersession
from offbook.store.sqlite import SqliteStore
from offbook.types import AuditEvent, Message, Scope
from offbook.worker.indexes import Indexes

from ..store.test_sqlite import tamper
from .conftest import CHAT, add, indexed, places_of

WORK = Scope(agent_id="main", session_id="work")
OTHERS = Scope(agent_id="other", session_id="chat")


async def links_of(store: SqliteStore, agent_id: str = "main") -> list[Supersession]:
    return await store.supersessions(agent_id, await places_of(store, agent_id))


async def noted(store: SqliteStore, agent_id: str = "main") -> list[AuditEvent]:
    events = await store.audit_events(agent_id, limit=1_000)
    return [event for event in events if event.verb == "supersede"]


async def test_a_correction_of_what_was_just_said_is_linked(store: SqliteStore, indexes: Indexes) -> None:
    await add(store, "The meeting is on Friday.")
    await indexed(indexes)
    await add(store, "Sorry, I meant Monday.")
    await indexed(indexes)
    places = await places_of(store)
    (link,) = await links_of(store)
    assert (link.old_place, link.new_place) == (places[0], places[1])
    assert link.kind != "restate"


async def test_a_new_value_replaces_that_of_another_session(store: SqliteStore, indexes: Indexes) -> None:
    await add(store, "I live in Lisbon.", "Nice weather again today.")
    await add(store, "I live in Berlin now.", scope=WORK)
    await indexed(indexes)
    places = await places_of(store)
    (link,) = await links_of(store)
    assert (link.old_place, link.new_place, link.kind) == (places[0], places[2], "restate")
    (event,) = await noted(store)
    assert (event.actor, event.session_id) == ("offbook", "work")
    assert event.details == {"seq": 1, "replaced": 1, "kind": "restate"}


async def test_in_the_same_batch_too(store: SqliteStore, indexes: Indexes) -> None:
    await add(store, "I live in Lisbon.", "I work at Acme.", "I live in Berlin now.")
    await indexed(indexes)
    places = await places_of(store)
    assert [(link.old_place, link.new_place) for link in await links_of(store)] == [(places[0], places[2])]


async def test_run_twice_it_links_once(store: SqliteStore, indexes: Indexes) -> None:
    await add(store, "I live in Lisbon.", "I live in Berlin now.")
    await indexed(indexes)
    before = await links_of(store)
    for _ in range(2):
        await indexes.rebuild("main")
        await indexed(indexes)
    assert await links_of(store) == before
    assert len(before) == len(await noted(store)) == 1


async def test_never_across_agents(store: SqliteStore, indexes: Indexes) -> None:
    await add(store, "I live in Lisbon.")
    await add(store, "I live in Berlin now.", scope=OTHERS)
    for agent_id in ("main", "other"):
        await indexed(indexes, agent_id)
        assert await links_of(store, agent_id) == []
        assert await noted(store, agent_id) == []


async def test_another_speaker_replaces_nothing(store: SqliteStore, indexes: Indexes) -> None:
    await add(store, Message(role="user", content="I live in Lisbon.", name="Ada"))
    await add(store, Message(role="user", content="I live in Berlin now.", name="Grace"))
    await add(store, Message(role="assistant", content="I live in the cloud now."))
    await indexed(indexes)
    assert await links_of(store) == []


async def test_an_old_statement_is_found_among_many(store: SqliteStore, indexes: Indexes) -> None:
    await add(store, "My favourite colour is green.", scope=WORK)
    for number in range(40):
        await add(store, *(f"Something else about topic{number} and thing{one}." for one in range(10)), scope=CHAT)
    await indexed(indexes)
    await indexes.commit("main", at_once=True)
    await add(store, "My favorite color is blue.", scope=CHAT)
    await indexed(indexes)
    places = await places_of(store)
    assert [(link.old_place, link.new_place) for link in await links_of(store)] == [(places[0], places[-1])]


async def test_a_damaged_message_keeps_nothing_else_from_being_linked(
    store: SqliteStore, indexes: Indexes, tmp_path: Path
) -> None:
    await add(store, "I live in Lisbon.", "I live by the sea.")
    await indexed(indexes)
    places = await places_of(store)
    tamper(tmp_path / "offbook.db", f"UPDATE messages SET content = '{{' WHERE place = {places[1]}")
    await add(store, "I live in Berlin now.")
    assert len(await indexed(indexes)) == 3
    links = await store.supersessions("main", places)
    assert [link.old_place for link in links] == places[:1]


async def test_what_only_adds_is_not_linked(store: SqliteStore, indexes: Indexes) -> None:
    await add(store, "I live in Lisbon.", "I have a cat.", "I have a dog.", "Where do I live?", "I like Lisbon.")
    await indexed(indexes)
    assert await links_of(store) == []
