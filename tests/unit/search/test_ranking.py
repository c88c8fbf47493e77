from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from offbook.log.audit_chain import micros
from offbook.search.evidence import FEATURES
from offbook.search.index.agent_index import AgentIndex
from offbook.search.index.rows import DENIAL, MEMORY_QUESTION, IndexedMessage
from offbook.search.query import read_query
from offbook.search.ranking import Look, Ranking, rank
from offbook.search.weights import CHAT, DAY, IN_TIME, NEAR_TIME
from offbook.search.words import query_terms
from tests.unit.search.index.sayings import NOON, said
from tests.unit.search.small_index import small_index, unit, vectors_of

NOON_MICROS = micros(NOON)

SAID: list[IndexedMessage] = [
    said(1, "The ferry is called Aurora.", session=1),
    said(2, "I bake bread on Sundays.", session=1, minutes=1, role="assistant"),
    said(3, "My niece was sick on the ferry.", session=2, minutes=600),
    msgspec.structs.replace(said(4, "Do you remember the ferry?", session=3, minutes=1_200), flags=MEMORY_QUESTION),
    msgspec.structs.replace(
        said(5, "I have no record of a ferry.", session=3, minutes=1_201, role="assistant"), flags=DENIAL
    ),
    said(6, "The ship to the island is the Aurora.", session=4, minutes=4_000),
    said(7, "It rained.", session=4, minutes=4_001),
]
VECTORS = {
    1: unit(1, 0.1),
    2: unit(0, 0, 1),
    3: unit(0.6, 0.6),
    4: unit(1, 0.05),
    5: unit(1, 0.06),
    6: unit(1, 0.1, 0.02),
    7: unit(0, 0.1, 0, 1),
}


@pytest.fixture
def index(tmp_path: Path) -> Iterator[AgentIndex]:
    opened = small_index(tmp_path / "index", SAID, VECTORS)
    yield opened
    opened.close()


def ranked(index: AgentIndex, query: str, *, by_meaning: bool = True, **fields: object) -> Ranking:
    look = Look(
        query=read_query(query),
        terms=query_terms(query),
        vector=unit(1, 0) if by_meaning else None,
        asked_at=NOON_MICROS + 10 * DAY,
        **fields,  # type: ignore[arg-type]
    )
    return rank(index, vectors_of(index) if by_meaning else None, look)


def places(ranking: Ranking) -> list[int]:
    return [hit.place for hit in ranking.hits]


def test_the_answer_comes_before_questions_and_denials(index: AgentIndex) -> None:
    for by_meaning in (True, False):
        found = places(ranked(index, "What is the ferry called?", by_meaning=by_meaning))
        assert found[0] in (1, 6)
        assert 4 not in found[:2]
        assert 5 not in found[:3]


def test_of_two_that_say_the_same_the_newer_is_shown_and_the_other_told(index: AgentIndex) -> None:
    found = ranked(index, "ferry ship Aurora island")
    assert 6 in places(found)
    assert 1 not in places(found)
    assert {one.place: one.why for one in found.filtered}[1] == "says the same as m6"


def test_a_hit_says_why_it_was_found(index: AgentIndex) -> None:
    found = ranked(index, "ferry")
    assert found.words == ["ferri"]
    assert found.looked_at == len(SAID)
    for hit in found.hits:
        assert set(hit.found_by) == set(hit.ranks) or hit.found_by == ["setting"]
        assert all(place >= 1 for place in hit.ranks.values())
        assert set(hit.evidence) <= set(FEATURES)
    niece = next(hit for hit in found.hits if hit.place == 3)
    assert niece.similarity == pytest.approx(0.707, abs=0.01)
    assert {"text", "meaning"} == set(niece.found_by)
    scores = [hit.score for hit in found.hits]
    assert scores == sorted(scores, reverse=True)
    plain = ranked(index, "ferry", by_meaning=False)
    assert all(hit.similarity is None and hit.part is None for hit in plain.hits)


def test_only_the_session_only_by_then_and_no_more_than_the_limit(index: AgentIndex) -> None:
    assert set(places(ranked(index, "ferry", session=1))) <= {1, 2}
    assert set(places(ranked(index, "ferry", known_at=NOON_MICROS))) == {1}
    assert places(ranked(index, "ferry", known_at=NOON_MICROS - 1)) == []
    assert len(ranked(index, "ferry", limit=2).hits) == 2


def test_where_nothing_is_shared_nothing_is_a_memory_of_it(index: AgentIndex) -> None:
    assert places(ranked(index, "unicorn", by_meaning=False)) == []
    far = Look(query=read_query("unicorn"), terms=["unicorn"], vector=unit(-1), asked_at=NOON_MICROS)
    assert places(rank(index, vectors_of(index), far)) == []


def test_the_time_asked_for_decides(index: AgentIndex) -> None:
    third_day = (float(NOON_MICROS + 2 * DAY), float(NOON_MICROS + 3 * DAY))
    found = ranked(index, "unicorn", by_meaning=False, times=[(third_day, True)])
    assert set(places(found)[:2]) == {6, 7}
    assert "time" in found.hits[0].found_by


def test_what_tells_of_the_time_asked_for_goes_before_what_does_not(tmp_path: Path) -> None:
    """Said on the fourth day, of the third."""
    third_day = (NOON_MICROS + 2 * DAY, NOON_MICROS + 3 * DAY)
    told = msgspec.structs.replace(said(8, "I met them in Boston.", session=5, minutes=4_500), events=[third_day])
    index = small_index(tmp_path / "told", [*SAID, told])
    asked_about = [(tuple(map(float, third_day)), True)]
    found = ranked(index, "unicorn", by_meaning=False, times=asked_about)
    evidence = {hit.place: hit.evidence["time"] for hit in found.hits}
    assert evidence[8] == evidence[6] == IN_TIME
    assert "time" in next(hit for hit in found.hits if hit.place == 8).found_by
    day_before = (float(NOON_MICROS - DAY), float(NOON_MICROS))
    other = ranked(index, "unicorn", by_meaning=False, times=[(day_before, True)])
    assert all(hit.evidence.get("time", 0.0) < IN_TIME for hit in other.hits if hit.place == 8)
    index.close()


def test_what_the_other_side_said_beside_it_may_be_a_memory_of_it(tmp_path: Path) -> None:
    """An answer seldom repeats the question; what the same side says next is about anything."""
    talk = [
        said(1, "Which jumper shall I pack?", session=1),
        said(2, "The blue one.", session=1, minutes=1, role="assistant"),
        said(3, "It rained all night.", session=2, minutes=600),
        said(4, "A jumper is on the chair.", session=3, minutes=1_200),
        said(5, "Trains are late.", session=3, minutes=1_201),
    ]
    index = small_index(tmp_path / "talk", talk)
    found = ranked(index, "jumper", by_meaning=False)
    assert set(places(found)) == {1, 2, 4}
    assert next(hit for hit in found.hits if hit.place == 2).found_by == ["setting"]
    index.close()


def test_before_and_after_something_that_is_itself_remembered(index: AgentIndex) -> None:
    after = ranked(index, "ferry", event_terms=[("after", query_terms("niece sick"))])
    before = ranked(index, "ferry", event_terms=[("before", query_terms("niece sick"))])
    by_time = [{hit.place: hit.evidence.get("time", 0.0) for hit in some.hits} for some in (before, after)]
    both = set(by_time[0]) & set(by_time[1])
    assert len(both) > 1
    assert {by_time[0][place] + by_time[1][place] for place in both} == {NEAR_TIME}
    assert ranked(index, "ferry", event_terms=[("after", ["unicorn"])]).hits


def test_an_empty_index_has_nothing(tmp_path: Path) -> None:
    index = small_index(tmp_path / "empty", [])
    assert ranked(index, "ferry").hits == []
    index.close()


def test_who_is_named_is_who_is_asked_about(tmp_path: Path) -> None:
    talk: Sequence[IndexedMessage] = [
        said(1, "I went to the lake and swam.", speaker="Caroline"),
        said(2, "I went to the lake and slept.", minutes=1, speaker="Melanie"),
        said(3, "How nice.", minutes=2, speaker="Caroline"),
    ]
    index = small_index(tmp_path / "talk", talk)
    for name, place in (("Caroline", 1), ("Melanie", 2)):
        query = read_query(f"What did {name} do at the lake?", index.rows.speakers)
        look = Look(query=query, terms=["lake"], vector=None, asked_at=NOON_MICROS)
        found = rank(index, None, look)
        assert found.recipe.startswith(CHAT)
        assert found.hits[0].place == place
    index.close()


def test_what_the_host_told_the_agent_is_left_out_where_only_what_was_said_is_looked_for(tmp_path: Path) -> None:
    told = said(8, "The ferry Aurora is what you know best.", session=5, minutes=5_000, role="system")
    opened = small_index(tmp_path / "told", [*SAID, told], {**VECTORS, 8: unit(1, 0)})
    for by_meaning in (True, False):
        assert 8 in places(ranked(opened, "ferry Aurora", by_meaning=by_meaning, limit=20))
        found = places(ranked(opened, "ferry Aurora", by_meaning=by_meaning, limit=20, only_said=True))
        assert found
        assert 8 not in found
    opened.close()
