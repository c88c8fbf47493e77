from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from offbook.log.sqlite.store import SqliteStore
from offbook.model.errors import ModelUnavailable
from offbook.model.memory_entry import Supersession
from offbook.model.types import AuditEvent, Message, Scope
from offbook.projections import links as linking
from offbook.projections.base import Batch, Erased
from offbook.projections.embedders import Embedders
from offbook.projections.indexes import Indexes
from offbook.projections.link_pairs import MOST_PAIRS
from offbook.projections.links import THROUGH, Links, Vectors
from offbook.search.index.agent_index import AgentIndex
from offbook.statements.clauses import spans_of
from tests.unit.log.sqlite.test_sqlite import tamper
from tests.unit.projections.conftest import add, indexed, places_of
from tests.unit.projections.doubles import KnownJudge, WordsJudge, settings_for
from tests.unit.statements.said import BUDGET, DATABASE

WORK = Scope(agent_id="main", session_id="work")
OTHERS = Scope(agent_id="other", session_id="chat")
LISBON, BERLIN = "I live in Lisbon with my daughter.", "I live in Berlin now."
OLD = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
def judge() -> WordsJudge:
    return WordsJudge()


@pytest.fixture
def links(store: SqliteStore, indexes: Indexes, judge: WordsJudge, tmp_path: Path) -> Links:
    return Links(store, indexes, Embedders(settings_for("none").embedding, tmp_path / "models"), judge)


async def linked(links: Links, indexes: Indexes, agent_id: str = "main") -> dict[str, int]:
    await indexed(indexes, agent_id)
    did: dict[str, int] = {}
    for _ in range(100):
        piece = await links.advance(Batch(agent_id))
        did = {name: did.get(name, 0) + piece.did.get(name, 0) for name in (*did, *piece.did)}
        if piece.is_done:
            return did
    raise AssertionError("never done")


async def links_of(store: SqliteStore, agent_id: str = "main") -> list[Supersession]:
    return await store.supersessions(agent_id, await places_of(store, agent_id))


async def pairs_of(store: SqliteStore) -> list[tuple[int, int]]:
    """Which message, counted from the first, gives way to which."""
    places = await places_of(store)
    return sorted((places.index(one.old_place), places.index(one.new_place)) for one in await links_of(store))


async def noted(store: SqliteStore, agent_id: str = "main") -> list[AuditEvent]:
    events = await store.audit_events(agent_id, limit=1_000)
    return [event for event in events if event.verb == "supersede"]


def by(name: str, text: str) -> Message:
    return Message(role="user", content=text, name=name)


# ── what replaces what ──


async def test_what_was_said_later_replaces_what_was_said_before(
    store: SqliteStore, indexes: Indexes, links: Links
) -> None:
    await add(store, LISBON, BUDGET)
    await add(store, BERLIN, scope=WORK)
    assert await linked(links, indexes) == {"linked": 1}
    (link,) = await links_of(store)
    places = await places_of(store)
    assert (link.old_place, link.new_place, link.kind) == (places[0], places[2], "correction")
    (event,) = await noted(store)
    assert (event.actor, event.session_id) == ("offbook", "work")
    assert event.details == {"seq": 1, "replaced": 1, "kind": "correction"}


async def test_nothing_is_compared_before_its_vectors_are_there(
    store: SqliteStore, indexes: Indexes, judge: WordsJudge, tmp_path: Path
) -> None:
    asked: list[int] = []

    def has_vectors(_index: AgentIndex, count: int) -> bool:
        asked.append(count)
        return len(asked) > 2

    embedders = Embedders(settings_for("none").embedding, tmp_path / "models")
    woken: list[str] = []
    links = Links(store, indexes, embedders, judge, vectors=Vectors(has_vectors, woken.append))
    await add(store, LISBON, BUDGET, BERLIN)
    await indexed(indexes)
    pieces = [await links.advance(Batch("main")) for _ in range(3)]
    assert [(one.is_done, one.did) for one in pieces] == [(False, {}), (False, {}), (True, {"linked": 1})]
    assert set(asked) == {3}, "those before it, too"
    assert woken == ["main"], "once in a while"


async def test_what_only_its_form_tells_is_told_as_said_since(
    store: SqliteStore, indexes: Indexes, links: Links
) -> None:
    await add(store, "Our dog is called Bruno.", "Our dog is called Brutus.")
    await linked(links, indexes)
    assert [one.kind for one in await links_of(store)] == ["since"]


@pytest.mark.parametrize(
    ("answer", "goes"), [("Lisbon it is, by the sea.", True), ("Lisbon or Berlin, both are fine.", False)]
)
async def test_the_answer_to_what_was_corrected_goes_with_it(
    answer: str, goes: bool, store: SqliteStore, indexes: Indexes, tmp_path: Path
) -> None:
    moved = "I live in Berlin now, by the river."
    judge = KnownJudge(frozenset([(LISBON, moved)]))
    links = Links(store, indexes, Embedders(settings_for("none").embedding, tmp_path / "models"), judge)
    await add(store, LISBON, Message(role="assistant", content=answer), moved)
    await linked(links, indexes)
    assert await pairs_of(store) == ([(0, 2), (1, 2)] if goes else [(0, 2)])


async def test_of_what_said_more_the_rest_still_holds(store: SqliteStore, indexes: Indexes, links: Links) -> None:
    await add(store, f"{LISBON} {DATABASE}", BERLIN)
    await linked(links, indexes)
    assert [(one.kind, one.note) for one in await links_of(store)] == [("partly", f"0-{len(LISBON)}")]


async def test_of_a_sentence_that_says_two_things_one_may_still_hold(
    store: SqliteStore, indexes: Indexes, links: Links
) -> None:
    said = "My name is Ana and I live in Lisbon."
    await add(store, said, "I live in Berlin now.")
    await linked(links, indexes)
    (link,) = await links_of(store)
    start, end = spans_of(link.note)[0]
    assert (link.kind, said[start:end]) == ("partly", " and I live in Lisbon.")


class ScoringJudge(NamedTuple):
    """Of each text that begins so, how likely it is replaced."""

    scores: dict[str, float]

    def replaces(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        return [
            next((score for begins, score in self.scores.items() if one.startswith(begins)), 0.0) for one, _ in pairs
        ]


@pytest.mark.parametrize(("next_best", "kind"), [(0.30, "partly"), (0.93, "since")])
async def test_where_it_is_unclear_which_of_several_is_meant_none_is_over(
    next_best: float, kind: str, store: SqliteStore, indexes: Indexes, tmp_path: Path
) -> None:
    allergy, meat = "I am allergic to peanuts.", "I do not eat meat."
    judge = ScoringJudge({f"{allergy} {meat}": 0.9, allergy: next_best, meat: 0.96})
    links = Links(store, indexes, Embedders(settings_for("none").embedding, tmp_path / "models"), judge)
    await add(store, f"{allergy} {meat}", "I eat meat again since March.")
    await linked(links, indexes)
    (link,) = await links_of(store)
    assert (link.kind, spans_of(link.note)) == (kind, [(26, 44)] if kind == "partly" else [])


async def test_what_only_adds_asks_or_is_said_again_replaces_nothing(
    store: SqliteStore, indexes: Indexes, links: Links, judge: WordsJudge
) -> None:
    await add(store, LISBON, BUDGET, BERLIN.upper(), BERLIN, "Where do I live now?", DATABASE)
    await linked(links, indexes)
    assert await pairs_of(store) == [(0, 2), (0, 3)]
    assert (BERLIN.upper(), BERLIN) not in judge.pairs


async def test_an_old_statement_is_found_among_many(
    store: SqliteStore, indexes: Indexes, links: Links, judge: WordsJudge
) -> None:
    await add(store, "My favourite colour is green.", scope=WORK)
    for number in range(40):
        await add(store, *(f"Something else about topic{number} and thing{one}." for one in range(10)))
    await linked(links, indexes)
    await indexes.commit("main", at_once=True)
    judge.pairs.clear()
    await add(store, "My favourite colour is blue now.")
    await linked(links, indexes)
    assert await pairs_of(store) == [(0, 401)]
    assert len(judge.pairs) <= MOST_PAIRS


# ── who ──


async def test_nobody_speaks_for_another(store: SqliteStore, indexes: Indexes, links: Links) -> None:
    await add(store, by("Ada", LISBON), by("Grace", BERLIN))
    await add(store, Message(role="assistant", content="You live in Lisbon with your daughter."))
    await linked(links, indexes)
    assert await links_of(store) == []
    await add(store, by("Ada", BERLIN))
    await linked(links, indexes)
    assert await pairs_of(store) == [(0, 3), (2, 3)], "what the agent said a person may correct"


async def test_never_across_agents(store: SqliteStore, indexes: Indexes, links: Links) -> None:
    await add(store, LISBON)
    await add(store, BERLIN, scope=OTHERS)
    for agent_id in ("main", "other"):
        await linked(links, indexes, agent_id)
        assert await links_of(store, agent_id) == []
        assert await noted(store, agent_id) == []


@pytest.mark.parametrize(
    "foreign",
    [
        Message(role="user", content=[{"type": "tool-result", "toolCallId": "x", "content": BERLIN}]),
        Message(role="user", content=[{"type": "tool_result", "tool_use_id": "x", "content": BERLIN}]),
        Message(role="user", content=BERLIN, origin="web"),
        Message(role="user", content=BERLIN, tool_call_id="x"),
        Message(role="tool", content=BERLIN, tool_call_id="x"),
    ],
)
async def test_what_is_not_ones_own_neither_replaces_nor_is_replaced(
    store: SqliteStore, indexes: Indexes, links: Links, foreign: Message
) -> None:
    await add(store, LISBON, foreign)
    await linked(links, indexes)
    assert await links_of(store) == []
    await add(store, "I live in Rome now.")
    await linked(links, indexes)
    assert await pairs_of(store) == [(0, 2)]


async def test_ones_own_origin_is_ones_own(store: SqliteStore, indexes: Indexes, links: Links) -> None:
    blocks = [{"type": "tool-result", "toolCallId": "x", "content": "done"}, {"type": "text", "text": BERLIN}]
    await add(store, LISBON, Message(role="user", content=blocks, origin="user"))
    await linked(links, indexes)
    assert await pairs_of(store) == [(0, 1)]


# ── when ──


async def test_old_history_that_comes_late_gives_way(store: SqliteStore, indexes: Indexes, links: Links) -> None:
    await add(store, BERLIN)
    await linked(links, indexes)
    await add(store, Message(role="user", content=LISBON, ts=OLD), scope=WORK)
    await linked(links, indexes)
    assert await pairs_of(store) == [(1, 0)]
    (link,) = await links_of(store)
    assert link.at > OLD + timedelta(days=365)


async def test_an_old_correction_corrects_nothing_newer(store: SqliteStore, indexes: Indexes, links: Links) -> None:
    await add(store, LISBON, Message(role="user", content=BERLIN, ts=OLD))
    await linked(links, indexes)
    assert await links_of(store) == []


async def test_a_clock_ahead_of_ours_delays_no_link(store: SqliteStore, indexes: Indexes, links: Links) -> None:
    ahead = datetime.now(UTC) + timedelta(hours=1)
    await add(store, LISBON, Message(role="user", content=BERLIN, ts=ahead))
    await add(store, "I live in Rome now.")
    await linked(links, indexes)
    assert await pairs_of(store) == [(0, 1), (0, 2), (1, 2)]
    assert all(link.at <= datetime.now(UTC) for link in await links_of(store))


# ── once, however often it is done ──


async def test_run_again_or_anew_it_links_once(store: SqliteStore, indexes: Indexes, links: Links) -> None:
    await add(store, LISBON, BERLIN)
    await linked(links, indexes)
    before, head = await links_of(store), await store.audit_head("main")
    assert len(before) == 1
    for note in (None, "", "x", "-3", "９", "9" * 40):
        await store.set_agent_note("main", THROUGH, note, None)
        assert await linked(links, indexes) == {}
    await links.rebuild("main")
    assert await linked(links, indexes) == {}
    assert await links_of(store) == before
    assert await store.audit_head("main") == head


async def test_made_anew_it_is_what_had_grown(
    store: SqliteStore, indexes: Indexes, links: Links, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linking, "MESSAGES_AT_A_TIME", 3)
    cities = ("Rome", "Oslo", "Graz", "Bonn", "Lyon", "Kyiv")
    for city in cities:
        await add(store, f"I live in {city} now.", BUDGET, f"The weather of {city} is fine.")
        await linked(links, indexes)
    before = await pairs_of(store)
    assert {new for _, new in before} == {3, 6, 9, 12, 15}
    await links.rebuild("main")
    await linked(links, indexes)
    assert await pairs_of(store) == before


async def test_what_is_forgotten_takes_its_links_with_it_and_who_is_named_is_compared_again(
    store: SqliteStore, indexes: Indexes, links: Links, judge: WordsJudge
) -> None:
    await add(store, LISBON, BERLIN)
    await linked(links, indexes)
    places = await places_of(store)
    erased = Erased("main", [], lambda _text: False, places=places[:1], relinked=places[1:])
    assert [one.what for one in await links.check("main", erased)] == ["it leads from or to it"]
    judge.pairs.clear()
    await links.forget(erased)
    assert judge.pairs == [(LISBON, BERLIN)]
    assert len(await links_of(store)) == 1


async def test_after_a_forget_what_is_named_is_compared_without_vectors(
    store: SqliteStore, indexes: Indexes, judge: WordsJudge, tmp_path: Path
) -> None:
    embedders = Embedders(settings_for("none").embedding, tmp_path / "models")
    links = Links(store, indexes, embedders, judge, vectors=Vectors(lambda *_: False, lambda _: None))
    await add(store, LISBON, BERLIN)
    await indexed(indexes)
    places = await places_of(store)
    await store.set_agent_note("main", THROUGH, "1", None)
    await links.forget(Erased("main", [], lambda _text: False, places=places[:1], relinked=places[1:]))
    assert judge.pairs == [(LISBON, BERLIN)]
    assert await store.agent_note("main", THROUGH) == "1", "and nothing else anew"


async def test_a_cursor_that_was_damaged_is_found(store: SqliteStore, indexes: Indexes, links: Links) -> None:
    await add(store, LISBON, BERLIN)
    assert await links.check("main") == []
    await linked(links, indexes)
    assert await links.check("main") == []
    for note in ("999999999", "x"):
        await store.set_agent_note("main", THROUGH, note, None)
        assert [one.where for one in await links.check("main")] == ["links"]


# ── what is in the way costs nothing ──


async def test_a_damaged_message_keeps_nothing_else_from_being_linked(
    store: SqliteStore, indexes: Indexes, links: Links, tmp_path: Path
) -> None:
    await add(store, LISBON)
    await add(store, "I live by the sea.")
    await indexed(indexes)
    places = await places_of(store)
    tamper(tmp_path / "offbook.db", f"UPDATE messages SET content = '{{' WHERE place = {places[1]}")
    await add(store, BERLIN)
    await linked(links, indexes)
    assert [link.old_place for link in await store.supersessions("main", places)] == places[:1]


async def test_stray_and_oversized_messages_cost_nothing(
    store: SqliteStore, indexes: Indexes, links: Links, judge: WordsJudge
) -> None:
    await add(store, LISBON, "", " \n", "?", "ok", "```\n" + BERLIN + "\n```", BERLIN, noise="heartbeat")
    await add(store, "word " * 200_000, f"{'word ' * 20_000}. {BERLIN}", "猫" * 50_000)
    await linked(links, indexes)
    assert await links_of(store) == []
    assert max((len(text) for pair in judge.pairs for text in pair), default=0) <= 1_000


async def test_without_its_model_nothing_is_linked_and_nothing_waits(
    store: SqliteStore, indexes: Indexes, links: Links, judge: WordsJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_pairs: object) -> list[float]:
        raise ModelUnavailable("not there")

    monkeypatch.setattr(judge, "replaces", away)
    await add(store, LISBON, BERLIN)
    assert await linked(links, indexes) == {}
    assert await links_of(store) == []
