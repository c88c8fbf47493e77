"""What every store promises to recall (`protocols.Store`): what indexes follow, and what is kept beside the log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from offbook.log.audit_chain import GENESIS
from offbook.log.sql import store as sql_store
from offbook.log.store import Store
from offbook.log.verification import verify
from offbook.model.errors import StoreError
from offbook.model.memory_entry import (
    TAKEN_BACK,
    Arrivals,
    Hold,
    HoldCounts,
    PlacedMessage,
    StoredVector,
    Supersession,
    VectorRow,
)
from offbook.model.types import AuditDraft, Scope, now
from tests.contract.test_store import CHAT, NOON, add, entry

OpenStore = Callable[[], Store]
WORK = Scope(agent_id="main", session_id="work")
THEIRS = Scope(agent_id="other", session_id="chat")
FOREIGN_AND_UNKNOWN = [0, -1, 7, 2**62, 2**63, 2**80]
SEARCH = AuditDraft(verb="search", actor="test", details={"keep": 5})
PIN = AuditDraft(verb="pin", actor="test")
LINK = AuditDraft(verb="supersede", actor="test")
UNLINK = AuditDraft(verb="unlink", actor="test")


def vector(place: int, data: bytes = b"\x01\x02", part: int = 0) -> VectorRow:
    return VectorRow(place=place, part=part, data=data)


def link(old: int, new: int, kind: str = "correction", note: str = "") -> Supersession:
    return Supersession(old_place=old, new_place=new, kind=kind, at=NOON, note=note)


async def followed(store: Store, agent_id: str = "main", *, limit: int = 500, after_event: int = 0) -> list[Arrivals]:
    """Every answer up to the end."""
    answers = [await store.arrivals(agent_id, after_event=after_event, limit=limit)]
    while not answers[-1].is_end:
        answers.append(await store.arrivals(agent_id, after_event=answers[-1].through_event, limit=limit))
    return answers


async def arrived(store: Store, agent_id: str = "main", *, limit: int = 500) -> list[PlacedMessage]:
    return [message for answer in await followed(store, agent_id, limit=limit) for message in answer.messages]


async def places(store: Store, *texts: str, scope: Scope = CHAT) -> list[int]:
    """The places of messages with these texts, added here."""
    await add(store, *[entry(text) for text in texts], scope=scope)
    return [message.place for message in await arrived(store, scope.agent_id)][-len(texts) :]


def texts(messages: list[PlacedMessage]) -> list[object]:
    return [message.logged.message.content for message in messages]


async def verbs(store: Store, agent_id: str = "main") -> list[str]:
    return [event.verb for event in await store.audit_events(agent_id, limit=1_000)]


# ── arrivals ──


async def test_messages_are_followed_in_the_order_they_arrived(store: Store) -> None:
    await add(store, entry("one", id="1"), entry("two"))
    await add(store, entry("three"), scope=WORK)
    await add(store, entry("theirs"), scope=THEIRS)
    await store.record("main", AuditDraft(verb="status", actor="test"))
    await add(store, entry("one", id="1"), entry("four"))
    await add(store, entry("five"), scope=WORK)
    (answer,) = await followed(store)
    assert texts(answer.messages) == ["one", "two", "three", "four", "five"]
    assert [message.session_id for message in answer.messages] == ["chat", "chat", "work", "chat", "work"]
    assert [message.logged.seq for message in answer.messages] == [1, 2, 1, 3, 2]
    assert (answer.through_event, answer.is_end) == (5, True)
    chat = [message.logged for message in answer.messages if message.session_id == "chat"]
    assert chat == await store.messages(CHAT)


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
async def test_following_in_pieces_gives_each_message_once(store: Store, limit: int) -> None:
    for number in range(12):
        scope = WORK if number % 3 else CHAT
        await add(store, *[entry(f"{number} {each}") for each in range(number % 4)], scope=scope)
    answers = await followed(store, limit=limit)
    assert [text for answer in answers for text in texts(answer.messages)] == [
        f"{number} {each}" for number in range(12) for each in range(number % 4)
    ]
    assert all(len(answer.messages) <= max(limit, 3) for answer in answers)
    assert [answer.is_end for answer in answers] == [False] * (len(answers) - 1) + [True]


async def test_one_event_is_taken_whole_however_much_it_stored(store: Store) -> None:
    await add(store, *[entry(str(number)) for number in range(50)])
    await add(store, entry("after"))
    first, second = await followed(store, limit=10)
    assert (len(first.messages), first.through_event, first.is_end) == (50, 1, False)
    assert (texts(second.messages), second.through_event, second.is_end) == (["after"], 2, True)


async def test_events_that_stored_nothing_are_looked_at_in_bounds(store: Store) -> None:
    for _ in range(20):
        await store.record("main", AuditDraft(verb="status", actor="test"))
    await add(store, entry("at last"))
    answers = await followed(store, limit=2)
    assert [answer.through_event for answer in answers] == [8, 16, 21]
    assert [texts(answer.messages) for answer in answers] == [[], [], ["at last"]]


async def test_the_end_is_known_also_where_it_falls_on_a_bound(store: Store) -> None:
    for _ in range(4):
        await store.record("main", AuditDraft(verb="status", actor="test"))
    assert await store.arrivals("main", after_event=0, limit=1) == Arrivals(through_event=4, messages=[], is_end=True)


async def test_there_is_nothing_to_follow_at_the_end_beyond_it_and_for_a_stranger(store: Store) -> None:
    await add(store, entry("hello"))
    for agent, after in (("main", 1), ("main", 99), ("nobody", 0)):
        answer = await store.arrivals(agent, after_event=after)
        assert answer == Arrivals(through_event=after, messages=[], is_end=True)


async def test_who_follows_while_messages_arrive_misses_none(store: Store) -> None:
    async def write(name: str) -> None:
        for number in range(40):
            await add(store, entry(f"{name} {number}"), scope=Scope(agent_id="main", session_id=name))

    async def follow() -> list[PlacedMessage]:
        seen: list[PlacedMessage] = []
        through = 0
        while len(seen) < 160:
            answer = await store.arrivals("main", after_event=through, limit=9)
            seen, through = seen + answer.messages, answer.through_event
        return seen

    *_, seen = await asyncio.gather(*[write(f"w{number}") for number in range(4)], follow())
    assert len({message.place for message in seen}) == len(seen) == 160
    for name in ("w0", "w1", "w2", "w3"):
        assert [m.logged.seq for m in seen if m.session_id == name] == list(range(1, 41))


# ── places ──


async def test_a_place_is_stable_and_rises_with_the_session(open_store: OpenStore) -> None:
    store = open_store()
    for number in range(5):
        await add(store, entry(str(number)), scope=WORK if number % 2 else CHAT)
    before = await arrived(store)
    await store.close()
    again = open_store()
    assert await arrived(again) == before
    assert len({message.place for message in before}) == 5
    for name in ("chat", "work"):
        mine = [message.place for message in before if message.session_id == name]
        assert mine == sorted(mine)
    await again.close()


async def test_messages_are_found_by_their_places_in_the_order_asked(store: Store) -> None:
    one, two, three = await places(store, "one", "two", "three")
    found = await store.messages_at("main", [three, 12345, one, two])
    assert texts(found) == ["three", "one", "two"]
    assert sorted(found, key=lambda message: message.place) == await arrived(store)
    assert await store.messages_at("main", []) == []


async def test_more_places_than_fit_in_one_question(store: Store) -> None:
    all_of_them = await places(store, *[str(number) for number in range(1_203)])
    found = await store.messages_at("main", all_of_them[::-1])
    assert [message.place for message in found] == all_of_them[::-1]
    assert len(await store.pin("main", all_of_them, pinned=True, event=PIN)) == 1_203
    assert len(await store.holds("main", all_of_them)) == 1_203


async def test_sessions_have_numbers(store: Store) -> None:
    await add(store, entry("mine"))
    await add(store, entry("theirs"), scope=THEIRS)
    (mine,), (theirs,) = await arrived(store), await arrived(store, "other")
    assert await store.session_number("main", "chat") == mine.session
    assert await store.session_number("other", "chat") == theirs.session != mine.session
    assert await store.session_number("main", "none") is None
    assert await store.session_number("nobody", "chat") is None


# ── isolation ──


async def test_a_place_of_another_agent_is_no_place(store: Store) -> None:
    (mine,) = await places(store, "mine")
    (theirs,) = await places(store, "theirs", scope=THEIRS)
    await store.add_vectors("other", "m", [vector(theirs)])
    await store.recalled("other", [theirs], SEARCH)
    await store.pin("other", [theirs], pinned=True, event=PIN)

    asked = [mine, theirs, *FOREIGN_AND_UNKNOWN]
    assert texts(await store.messages_at("main", asked)) == ["mine"]
    assert await store.holds("main", asked) == {}
    assert await store.pinned("main") == []
    assert await store.retrieved_since("main", NOON - timedelta(days=9_999), limit=9) == []
    assert await store.vectors("main", "m") == []
    assert await store.vector_models("main") == {}

    await store.add_vectors("main", "m", [vector(place) for place in asked])
    assert [each.place for each in await store.vectors("main", "m")] == [mine]
    await store.recalled("main", asked, SEARCH)
    assert await store.pin("main", asked, pinned=True, event=PIN) == [mine]
    assert await store.pin("main", [theirs], pinned=False, event=PIN) == []
    assert set(await store.holds("main", asked)) == {mine}
    assert await store.hold_counts("main") == HoldCounts(pinned=1, retrievals=1)
    assert await store.supersede("main", [link(theirs, mine), link(mine, theirs)], LINK) == 0
    assert await store.drop_vectors("main", "m") == 1

    assert [each.place for each in await store.vectors("other", "m")] == [theirs]
    assert await store.pinned("other") == [theirs]
    assert (await store.holds("other", asked))[theirs].retrievals == 1


async def test_nothing_is_known_of_a_stranger(store: Store) -> None:
    (place,) = await places(store, "mine")
    assert await store.messages_at("nobody", [place]) == []
    assert await store.hold_counts("nobody") == HoldCounts()
    assert await store.supersessions("nobody", [place]) == []
    assert await store.agent_note("nobody", "consent") is None
    assert await store.drop_vectors("nobody", "m") == 0
    await store.add_vectors("nobody", "m", [vector(place)])
    await store.set_agent_note("nobody", "consent", None, None)
    assert await store.supersede("nobody", [link(place, place + 1)], LINK) == 0
    assert await store.agents() == ["main"]


# ── vectors ──


async def test_vectors_come_back_as_they_were_in_the_order_they_were_added(store: Store) -> None:
    one, two = await places(store, "one", "two")
    await store.add_vectors("main", "m", [vector(two, bytes(range(256)), part=1), vector(two, b"")])
    await store.add_vectors("main", "m", [vector(one)])
    await store.add_vectors("main", "n", [vector(one, b"of another model")])
    found = await store.vectors("main", "m")
    assert [(each.place, each.part, each.data) for each in found] == [
        (two, 1, bytes(range(256))),
        (two, 0, b""),
        (one, 0, b"\x01\x02"),
    ]
    assert [each.number for each in found] == sorted({each.number for each in found})
    assert [each.data for each in await store.vectors("main", "n")] == [b"of another model"]
    assert await store.vector_models("main") == {"m": 3, "n": 1}


async def test_the_same_again_replaces_and_is_new_to_who_follows(store: Store) -> None:
    one, two = await places(store, "one", "two")
    await store.add_vectors("main", "m", [vector(one, b"old"), vector(two)])
    last = (await store.vectors("main", "m"))[-1].number
    await store.add_vectors("main", "m", [vector(one, b"in between"), vector(one, b"new")])
    (new,) = await store.vectors("main", "m", after=last)
    assert (new.place, new.data) == (one, b"new")
    assert [each.data for each in await store.vectors("main", "m")] == [b"\x01\x02", b"new"]
    assert await store.vector_models("main") == {"m": 2}


async def test_vectors_are_followed_in_pieces(store: Store) -> None:
    own = await places(store, *[str(number) for number in range(25)])
    await store.add_vectors("main", "m", [vector(place) for place in own])
    seen: list[StoredVector] = []
    while piece := await store.vectors("main", "m", after=seen[-1].number if seen else 0, limit=4):
        assert len(piece) <= 4
        seen += piece
    assert [each.place for each in seen] == own


async def test_dropped_vectors_are_gone_and_their_numbers_never_come_back(open_store: OpenStore) -> None:
    store = open_store()
    own = await places(store, *[str(number) for number in range(30)])
    await store.add_vectors("main", "m", [vector(place, part=part) for place in own for part in range(100)])
    await store.add_vectors("main", "n", [vector(own[0])])
    last = (await store.vectors("main", "m", limit=10_000))[-1].number
    assert await store.drop_vectors("main", "m") == 3_000
    assert await store.drop_vectors("main", "m") == 0
    assert await store.vectors("main", "m") == []
    assert await store.vector_models("main") == {"n": 1}
    await store.close()
    again = open_store()
    await again.add_vectors("main", "m", [vector(own[0])])
    assert [each.place for each in await again.vectors("main", "m", after=last)] == [own[0]]
    assert await again.vector_models("main") == {"m": 1, "n": 1}
    await again.close()


async def test_what_is_added_while_vectors_are_dropped_stays(store: Store) -> None:
    own = await places(store, *[str(number) for number in range(200)])
    await store.add_vectors("main", "m", [vector(place, part=part) for place in own for part in range(25)])

    async def write() -> None:
        for place in own:
            await store.add_vectors("main", "m", [vector(place, b"new", part=99)])

    dropped, _ = await asyncio.gather(store.drop_vectors("main", "m"), write())
    left = await store.vectors("main", "m", limit=10_000)
    assert {each.data for each in left} == {b"new"}
    assert dropped + len(left) == 5_000 + 200
    assert await store.vector_models("main") == {"m": len(left)}


async def test_vectors_leave_no_event(store: Store) -> None:
    (place,) = await places(store, "one")
    await store.add_vectors("main", "m", [vector(place)])
    await store.drop_vectors("main", "m")
    assert await verbs(store) == ["onMessage"]


async def test_vectors_that_cannot_be_kept_leave_nothing(store: Store) -> None:
    (place,) = await places(store, "one")
    with pytest.raises(StoreError):
        await store.add_vectors("main", "m", [vector(place), vector(place, "no bytes", part=1)])  # type: ignore[arg-type]
    assert await store.vectors("main", "m") == []
    assert await store.vector_models("main") == {}


# ── retrievals and pins ──


async def test_a_retrieval_is_counted_once_for_each_place_with_its_event(store: Store) -> None:
    one, two, three = await places(store, "one", "two", "three")
    before = now()
    await store.recalled("main", [one, two, one], SEARCH)
    await store.recalled("main", [two], SEARCH)
    await store.recalled("main", [], SEARCH)
    held = await store.holds("main", [one, two, three])
    assert {place: hold.retrievals for place, hold in held.items()} == {one: 1, two: 2}
    assert all(hold.retrieved_at and before <= hold.retrieved_at <= now() for hold in held.values())
    assert await store.hold_counts("main") == HoldCounts(pinned=0, retrievals=3)
    assert await verbs(store) == ["onMessage", "search", "search", "search"]


async def test_what_was_retrieved_since_comes_newest_first(store: Store) -> None:
    one, two, three = await places(store, "one", "two", "three")
    await store.recalled("main", [three], SEARCH)
    since = now()
    await store.recalled("main", [one], SEARCH)
    await store.recalled("main", [two], SEARCH)
    await store.pin("main", [two], pinned=True, event=PIN)
    found = await store.retrieved_since("main", since, limit=10)
    assert [place for place, _ in found] == [two, one]
    assert dict(found) == await store.holds("main", [one, two])
    assert [place for place, _ in await store.retrieved_since("main", since, limit=1)] == [two]
    assert await store.retrieved_since("main", now() + timedelta(seconds=5), limit=10) == []


async def test_pinning_says_what_changed_and_can_be_repeated(store: Store) -> None:
    one, two, three = await places(store, "one", "two", "three")
    assert await store.pin("main", [three, one, three], pinned=True, event=PIN) == [three, one]
    assert await store.pin("main", [one, two], pinned=True, event=PIN) == [two]
    assert await store.pin("main", [one, two], pinned=True, event=PIN) == []
    assert await store.pinned("main") == [two, one, three]
    assert await store.pinned("main", limit=2) == [two, one]
    assert await store.pin("main", [one], pinned=False, event=PIN) == [one]
    assert await store.pin("main", [one], pinned=False, event=PIN) == []
    assert await store.pin("main", [one], pinned=True, event=PIN) == [one]
    assert await store.pinned("main") == [one, two, three]
    assert (await store.hold_counts("main")).pinned == 3
    events = await store.audit_events("main", after_seq=1)
    assert [event.details["changed"] for event in events] == [2, 1, 0, 1, 0, 1]


async def test_the_pins_of_one_session_come_without_those_of_others(store: Store) -> None:
    one, two, three = await places(store, "a", "b", "c")
    (far,) = await places(store, "d", scope=WORK)
    (theirs,) = await places(store, "e", scope=THEIRS)
    await store.recalled("main", [one, two, three, far], SEARCH)
    for place in (three, far, one):
        await store.pin("main", [place], pinned=True, event=PIN)
    await store.pin("other", [theirs], pinned=True, event=PIN)
    assert await store.pinned("main", session_id="chat") == [one, three]
    assert await store.pinned("main", session_id="chat", limit=1) == [one]
    assert await store.pinned("main", session_id="work") == [far]
    assert await store.pinned("other", session_id="chat") == [theirs]
    for agent_id, session_id in (("main", "nowhere"), ("other", "work"), ("nobody", "chat")):
        assert await store.pinned(agent_id, session_id=session_id) == []
    await store.pin("main", [one], pinned=False, event=PIN)
    assert await store.pinned("main", session_id="chat") == [three]
    assert await store.pinned("main") == [far, three]


async def test_only_what_holds_something_has_a_hold(store: Store) -> None:
    one, two = await places(store, "one", "two")
    await store.pin("main", [one, two], pinned=True, event=PIN)
    await store.recalled("main", [two], SEARCH)
    assert (await store.holds("main", [one]))[one] == Hold(pinned=True)
    await store.pin("main", [one, two], pinned=False, event=PIN)
    held = await store.holds("main", [one, two])
    assert list(held) == [two]
    assert (held[two].retrievals, held[two].pinned) == (1, False)


# ── supersessions ──


async def test_a_supersession_is_found_from_both_ends(store: Store) -> None:
    one, two, three, four = await places(store, "one", "two", "three", "four")
    first, second = link(one, two, note="moved to Bern"), link(two, three, kind="update")
    assert await store.supersede("main", [second, first, link(four, four)], LINK) == 2
    assert await store.supersessions("main", [two]) == [first, second]
    assert await store.supersessions("main", [one, two, three]) == [first, second]
    assert await store.supersessions("main", [three]) == [second]
    assert await store.supersessions("main", [four, *FOREIGN_AND_UNKNOWN]) == []


async def test_a_link_that_nobody_waited_for_is_found(store: Store) -> None:
    one, two = await places(store, "one", "two")
    assert await store.supersessions("main", [one]) == []
    busy = [asyncio.create_task(store.record("main", SEARCH)) for _ in range(600)]
    linking = asyncio.create_task(store.supersede("main", [link(one, two)], LINK))
    await asyncio.sleep(0)
    linking.cancel()
    await asyncio.sleep(0)
    await store.supersessions("main", [one])  # most likely it is not written yet
    await asyncio.gather(*busy)
    await store.record("main", SEARCH)  # what was queued before is written before
    assert await store.newest_supersessions("main") == [link(one, two)]
    assert await store.supersessions("main", [one]) == [link(one, two)]


async def test_links_are_found_however_many_there_are(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_store, "MOST_LINKS_CACHED", 2)
    one, two, three, four = await places(store, "one", "two", "three", "four")
    links = [link(one, two), link(one, three), link(two, four), link(three, four)]
    for count in range(1, len(links) + 1):
        assert await store.supersede("main", links[:count], LINK) == 1
        found = {place: await store.supersessions("main", [place]) for place in (one, two, three, four)}
        assert found == {
            place: [one for one in links[:count] if place in (one.old_place, one.new_place)] for place in found
        }
    assert await store.supersessions("main", []) == []


async def test_the_first_of_two_links_stays_and_only_news_leave_an_event(store: Store) -> None:
    one, two, three = await places(store, "one", "two", "three")
    assert await store.supersede("main", [link(one, two, note="first")], LINK) == 1
    assert await store.supersede("main", [link(one, two, note="again")], LINK) == 0
    assert await store.supersede("main", [], LINK) == 0
    assert await store.supersede("main", [link(one, two), link(one, three), link(one, three)], LINK) == 1
    assert [each.note for each in await store.supersessions("main", [two])] == ["first"]
    assert await verbs(store) == ["onMessage", "supersede", "supersede"]


async def test_links_are_taken_back_by_their_note(store: Store) -> None:
    one, two, three = await places(store, "one", "two", "three")
    kept = link(one, three, note="lesson-0002")
    links = [link(one, two, note="lesson-0001"), link(two, three, "partly", "lesson-0001"), kept]
    assert await store.supersede("main", links, LINK) == 3
    assert await store.withdraw_supersessions("other", "lesson-0001", LINK) == 0
    assert await store.withdraw_supersessions("main", "lesson-000", LINK) == 0
    assert await store.withdraw_supersessions("main", "lesson-0001", LINK) == 2
    assert await store.supersessions("main", [one, two, three]) == [kept]
    assert await store.withdraw_supersessions("main", "lesson-0001", LINK) == 0
    assert await verbs(store) == ["onMessage", "supersede", "supersede"]
    assert (await store.audit_events("main"))[-1].details == {"withdrawn": 2}
    assert await store.supersede("main", links, LINK) == 2
    assert await store.agents() == ["main"]


async def test_what_nobody_noted_is_not_taken_back(store: Store) -> None:
    one, two = await places(store, "one", "two")
    await store.supersede("main", [link(one, two)], LINK)
    assert await store.withdraw_supersessions("main", "", LINK) == 0
    assert await store.supersessions("main", [one]) == [link(one, two)]


async def test_a_link_that_was_taken_back_stays_so(store: Store) -> None:
    one, two, three = await places(store, "one", "two", "three")
    links = [link(one, two, "partly", "lesson-0001"), link(one, three), link(two, three, "since")]
    await store.supersede("main", links, LINK)
    for agent_id, old, new in (("other", one, None), ("nobody", one, None), ("main", two, one), ("main", three, None)):
        assert await store.unlink(agent_id, old, new, UNLINK) == 0
    assert await store.unlink("main", one, two, UNLINK) == 1
    assert await store.unlink("main", one, None, UNLINK) == 1
    assert await store.unlink("main", one, None, UNLINK) == 0
    assert await store.supersede("main", links, LINK) == 0
    assert await store.withdraw_supersessions("main", "lesson-0001", LINK) == 0
    found = await store.supersessions("main", [one, two, three])
    assert [(each.kind, each.note) for each in found] == [
        (TAKEN_BACK, "lesson-0001"),
        (TAKEN_BACK, ""),
        ("since", ""),
    ]
    assert await verbs(store) == ["onMessage", "supersede", "unlink", "unlink"]
    assert (await store.audit_events("main"))[-1].details == {"changed": 1}
    assert await store.agents() == ["main"]


# ── notes ──


async def test_notes_of_an_agent(store: Store) -> None:
    event = AuditDraft(verb="consent", actor="test")
    await store.set_agent_note("main", "consent", "on", event)
    await store.set_agent_note("other", "consent", "on", None)
    await store.set_agent_note("third", "consent", "off", None)
    await store.set_agent_note("main", "model", "on", None)
    assert await store.agents_with_note("consent", "on") == ["main", "other"]
    await store.set_agent_note("other", "consent", "off", None)
    await store.set_agent_note("main", "model", None, None)
    assert await store.agents_with_note("consent", "on") == ["main"]
    assert await store.agents_with_note("model", "on") == []
    assert (await store.agent_note("main", "consent"), await store.agent_note("main", "model")) == ("on", None)
    assert (await verbs(store), await verbs(store, "other")) == (["consent"], [])


async def test_notes_that_are_set_while_they_are_read(store: Store) -> None:
    """Whoever reads after a note was set gets it, or one that was set later."""

    async def set_and_read(name: str) -> None:
        for number in range(20):
            await store.set_agent_note("main", name, str(number) if number % 5 else None, None)
            assert await store.agent_note("main", name) == (str(number) if number % 5 else None)

    async def read(name: str) -> None:
        last = 0
        for _ in range(40):
            value = int(await store.agent_note("main", name) or last)
            assert value >= last
            last = value

    await asyncio.gather(*(each(name) for name in ("one", "two", "three") for each in (set_and_read, read, read)))


# ── with the rest of the store ──


async def test_what_recall_keeps_leaves_counts_and_chain_as_they_are(store: Store) -> None:
    one, two = await places(store, "one", "two")
    before = await store.counts("main")
    for _ in range(150):
        await store.recalled("main", [one, two], SEARCH)
        await store.pin("main", [one], pinned=True, event=PIN)
    await store.supersede("main", [link(one, two)], LINK)
    await store.set_agent_note("main", "consent", "on", AuditDraft(verb="consent", actor="test"))
    after = await store.counts("main")
    assert (after.messages, after.chars, after.sessions) == (before.messages, before.chars, before.sessions)
    assert after.audit_events == before.audit_events + 302 == (await store.audit_head("main")).seq
    assert [fault async for fault in verify(store, "main")] == []
    assert [fault async for fault in store.faults()] == []
    assert texts(await arrived(store, limit=1)) == ["one", "two"]


async def test_it_is_all_there_after_opening_again(open_store: OpenStore) -> None:
    async def kept(store: Store) -> list[object]:
        return [
            await store.vectors("main", "m"),
            await store.vector_models("main"),
            await store.holds("main", own),
            await store.pinned("main"),
            await store.hold_counts("main"),
            await store.supersessions("main", own),
            await store.agent_note("main", "consent"),
        ]

    store = open_store()
    own = await places(store, "one", "two")
    await store.add_vectors("main", "m", [vector(place) for place in own])
    await store.recalled("main", own, SEARCH)
    await store.pin("main", own, pinned=True, event=PIN)
    await store.supersede("main", [link(*own)], LINK)
    await store.set_agent_note("main", "consent", "on", None)
    before = await kept(store)
    await store.close()
    again = open_store()
    assert await kept(again) == before
    await again.close()


async def test_a_write_that_fails_leaves_neither_row_nor_event(store: Store) -> None:
    (one,) = await places(store, "one")
    broken = AuditDraft(verb="search", actor="test", details={"unwritable": object()})
    for write in (
        store.recalled("main", [one], broken),
        store.pin("main", [one], pinned=True, event=broken),
        store.set_agent_note("main", "consent", "on", broken),
    ):
        with pytest.raises(StoreError):
            await write
    assert await store.holds("main", [one]) == {}
    assert await store.hold_counts("main") == HoldCounts()
    assert await store.agent_note("main", "consent") is None
    assert (await store.audit_head("main")).seq == 1


async def test_an_empty_store_answers(store: Store) -> None:
    assert (await store.audit_head("main")) == GENESIS
    assert await arrived(store) == []
    assert await store.pinned("main") == []
    assert await store.agents_with_note("consent", "on") == []


# ── properties ──

steps = st.lists(
    st.tuples(
        st.sampled_from(["recalled", "pin", "unpin"]),
        st.sampled_from(["main", "other"]),
        st.lists(st.integers(min_value=0, max_value=5), max_size=4),
    ),
    max_size=15,
)


@given(steps)
@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
async def test_counts_of_holds_are_those_of_the_rows(tmp_path_factory: pytest.TempPathFactory, history) -> None:  # type: ignore[no-untyped-def]
    from tests.contract.conftest import fresh_stores

    for store in fresh_stores(tmp_path_factory):
        # Three places of each; what an agent is asked to do with those of the other it must not do.
        own = {scope.agent_id: await places(store, "a", "b", "c", scope=scope) for scope in (CHAT, THEIRS)}
        both = own["main"] + own["other"]
        retrievals: dict[int, int] = {}
        order: dict[str, list[int]] = {"main": [], "other": []}
        for verb, agent, chosen in history:
            asked = [both[each] for each in chosen]
            mine = [place for place in dict.fromkeys(asked) if place in own[agent]]
            if verb == "recalled":
                await store.recalled(agent, asked, SEARCH)
                retrievals |= {place: retrievals.get(place, 0) + 1 for place in mine}
            else:
                is_pin = verb == "pin"
                expected = [place for place in mine if (place in order[agent]) != is_pin]
                assert await store.pin(agent, asked, pinned=is_pin, event=PIN) == expected
                order[agent] = [p for p in order[agent] if is_pin or p not in mine] + (expected if is_pin else [])
        for agent, places_of_agent in own.items():
            held = await store.holds(agent, both)
            assert {place: hold.retrievals for place, hold in held.items() if hold.retrievals} == {
                place: count for place, count in retrievals.items() if place in places_of_agent
            }
            assert await store.pinned(agent) == order[agent][::-1]
            assert {place for place, hold in held.items() if hold.pinned} == set(order[agent])
            assert await store.hold_counts(agent) == HoldCounts(
                pinned=len(order[agent]), retrievals=sum(hold.retrievals for hold in held.values())
            )
            assert [fault async for fault in verify(store, agent)] == []
        await store.close()
