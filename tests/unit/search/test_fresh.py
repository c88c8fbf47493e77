from __future__ import annotations

import pytest

from offbook.model.memory_entry import PlacedMessage
from offbook.model.types import Entry, LoggedMessage, Message
from offbook.search import fresh
from offbook.search.fresh import MOST_SOUGHT, READ_CHARS, with_fresh
from offbook.search.query import read_query
from offbook.search.ranking import NOTHING, Look
from offbook.search.words import query_terms
from tests.unit.search.index.sayings import NOON

FILLER = "It rained in the valley and nobody was about. "


def placed(place: int, text: str) -> PlacedMessage:
    logged = LoggedMessage(seq=place, received_at=NOON, entry=Entry(message=Message(role="user", content=text)))
    return PlacedMessage(place=place, session=1, session_id="chat", logged=logged)


def found(asked: str, *messages: PlacedMessage, wholes: dict[int, Message] | None = None) -> dict[int, float]:
    """Places, and the share of the words each holds."""
    look = Look(query=read_query(asked), terms=query_terms(asked), vector=None, asked_at=0, limit=20)
    return {hit.place: hit.coverage for hit in with_fresh(NOTHING, messages, look, wholes).hits}


@pytest.mark.parametrize("before", [0, READ_CHARS - 40, READ_CHARS - 30, READ_CHARS, 60_000, 300_000])
def test_a_word_counts_wherever_it_stands(before: int) -> None:
    text = f"{(FILLER * 7_000)[:before]} The code word is quokka. {FILLER}"
    assert found("quokka", placed(1, FILLER), placed(2, text)) == {2: 1.0}
    assert found("quokka xylograph", placed(2, text)) == {2: 0.5}


def test_large_texts_count_where_they_are_given() -> None:
    whole = Message(role="user", content=f"{FILLER * 1_000}quokka")
    assert found("quokka", placed(1, "a stand-in")) == {}
    assert found("quokka", placed(1, "a stand-in"), wholes={1: whole}) == {1: 1.0}


def test_how_much_is_searched_is_bounded_and_the_newest_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fresh, "SEARCHED_CHARS", 6_000)
    texts = [f"{FILLER * 150}quokka" for _ in range(4)]
    assert set(found("quokka", *(placed(place, text) for place, text in enumerate(texts)))) == {2, 3}


def test_of_a_pasted_page_only_some_words_are_looked_for() -> None:
    page = " ".join([*(f"parcel{number}" for number in range(5_000)), "quokkaburra40000"])
    look = Look(query=read_query(page), terms=query_terms(page), vector=None, asked_at=0, limit=20)
    ranking = with_fresh(NOTHING, [placed(1, f"{FILLER * 200} quokkaburra40000")], look)
    assert [hit.place for hit in ranking.hits] == [1]
    assert len(ranking.words) <= MOST_SOUGHT
