from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from offbook.log.sqlite.store import SqliteStore
from offbook.model.memory_entry import PlacedMessage, Supersession
from offbook.model.types import AuditEvent, Message, Scope
from offbook.projections.indexes import Indexes
from offbook.projections.links import Linker
from offbook.search.index.agent_index import AgentIndex
from tests.unit.log.sqlite.test_sqlite import tamper
from tests.unit.projections.conftest import CHAT, add, indexed, places_of

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


async def test_what_was_looked_through_is_not_again_but_for_those_named(
    store: SqliteStore, indexes: Indexes, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(store, "I live in Lisbon.", "I live in Berlin now.")
    await add(store, "The meeting is on Friday.", "Sorry, I meant Monday.")
    await indexed(indexes)
    places = await places_of(store)
    before = await links_of(store)
    assert len(before) == 2
    looked: list[int] = []
    link = Linker.link

    async def noting(self: Linker, agent_id: str, index: AgentIndex, messages: Sequence[PlacedMessage]) -> None:
        looked.extend(placed.place for placed in messages)
        await link(self, agent_id, index, messages)

    monkeypatch.setattr(Linker, "link", noting)
    await indexes.rebuild("main", relinked={places[1]})
    await indexed(indexes)
    assert looked == [places[1]]
    await indexes.rebuild("main", relinked=())
    await add(store, "I live in Rome now.", scope=WORK)
    await indexed(indexes)
    assert looked[1:] == (await places_of(store))[-1:]


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


BLUE = "My favourite colour is blue."
RED = "Actually, my favourite colour is red."


@pytest.mark.parametrize(
    "foreign",
    [
        Message(role="user", content=[{"type": "tool-result", "toolCallId": "x", "content": RED}]),
        Message(role="user", content=[{"type": "tool_result", "tool_use_id": "x", "content": RED}]),
        Message(role="user", content=RED, origin="web"),
        Message(role="user", content=RED, tool_call_id="x"),
        Message(role="user", content="Forget that.", origin="web"),
        Message(role="tool", content=RED, tool_call_id="x"),
    ],
)
async def test_what_is_not_ones_own_replaces_nothing(store: SqliteStore, indexes: Indexes, foreign: Message) -> None:
    await add(store, BLUE, foreign)
    await indexed(indexes)
    assert await links_of(store) == []


async def test_what_is_not_ones_own_is_not_replaced(store: SqliteStore, indexes: Indexes) -> None:
    await add(store, Message(role="user", content=BLUE, origin="web"), RED, Message(role="user", content="Hm."))
    await indexed(indexes)
    assert await links_of(store) == []


async def test_ones_own_origin_is_ones_own(store: SqliteStore, indexes: Indexes) -> None:
    blocks = [{"type": "tool-result", "toolCallId": "x", "content": "done"}, {"type": "text", "text": RED}]
    await add(store, BLUE, Message(role="user", content=blocks, origin="user"))
    await indexed(indexes)
    assert len(await links_of(store)) == 1


async def test_old_history_that_comes_late_gives_way(store: SqliteStore, indexes: Indexes) -> None:
    await add(store, "My favourite colour is green.")
    await add(store, Message(role="user", content=BLUE, ts=datetime(2020, 1, 1, tzinfo=UTC)), scope=WORK)
    await indexed(indexes)
    places = await places_of(store)
    (link,) = await links_of(store)
    assert (link.old_place, link.new_place, link.kind) == (places[1], places[0], "restate")
    assert link.at > datetime(2021, 1, 1, tzinfo=UTC)


async def test_an_old_correction_corrects_nothing_newer(store: SqliteStore, indexes: Indexes) -> None:
    old = datetime(2020, 1, 1, tzinfo=UTC)
    await add(store, "The meeting is on Friday.", "My phone number is 555-1234.")
    await add(store, Message(role="user", content="Sorry, I meant Monday.", ts=old))
    await add(store, Message(role="user", content="Delete my phone number.", ts=old), scope=WORK)
    await indexed(indexes)
    assert await links_of(store) == []


async def test_a_clock_ahead_of_ours_delays_no_link(store: SqliteStore, indexes: Indexes) -> None:
    ahead = datetime.now(UTC) + timedelta(hours=1)
    await add(store, BLUE, Message(role="user", content=RED, ts=ahead))
    await add(store, "My favourite colour is green now.")
    await indexed(indexes)
    places = await places_of(store)
    links = await links_of(store)
    assert {(link.old_place, link.new_place) for link in links} == {
        (places[0], places[1]),
        (places[0], places[2]),
        (places[1], places[2]),
    }
    assert all(link.at <= datetime.now(UTC) for link in links)


async def test_a_fact_is_taken_back_wherever_it_was_said(store: SqliteStore, indexes: Indexes) -> None:
    await add(store, "My phone number is 555-1234.", "My dog is called Rex.")
    await add(store, "Delete my phone number.", "Forget that my dog is called Rex.", scope=WORK)
    await indexed(indexes)
    places = await places_of(store)
    links = await links_of(store)
    assert [(link.old_place, link.new_place, link.kind) for link in links] == [
        (places[0], places[2], "retract"),
        (places[1], places[3], "retract"),
    ]


async def test_an_answer_to_a_question_takes_nothing_back(store: SqliteStore, indexes: Indexes) -> None:
    offered = Message(role="assistant", content="Noted. Do you want me to book the flight?")
    for answer in ("Never mind.", "Forget it.", "Ignore that."):
        await add(store, "I'm allergic to peanuts, this is important.", offered, answer)
    await indexed(indexes)
    assert await links_of(store) == []


async def test_a_batch_of_statements_is_linked_fast(store: SqliteStore, indexes: Indexes) -> None:
    await add(store, *(f"My favourite thing{number} is red and blue." for number in range(200)))
    started = time.process_time()
    await indexed(indexes)
    assert time.process_time() - started < 2  # about 0.4 s: it is in the way of a recall
