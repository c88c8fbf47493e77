from __future__ import annotations

from datetime import timedelta

import pytest

from offbook.model.memory_entry import PlacedMessage
from offbook.model.types import Entry, LoggedMessage, Message
from offbook.search.index.rows import BOILERPLATE, DENIAL, MEMORY_QUESTION, QUESTION
from offbook.search.index.text import INDEXED_CHARS, is_indexed, said_by
from offbook.search.words import indexed_terms
from tests.unit.search.index.sayings import NOON


def placed(message: Message, noise: str | None = None) -> PlacedMessage:
    logged = LoggedMessage(seq=3, received_at=NOON, entry=Entry(message=message, noise=noise))
    return PlacedMessage(place=77, session=5, session_id="chat", logged=logged)


def test_a_message_as_it_is_indexed() -> None:
    earlier = NOON - timedelta(days=1)
    one = said_by(placed(Message(role="user", content="My cats sleep.", ts=earlier, name="Ada")))
    assert (one.place, one.session, one.role, one.speaker) == (77, 5, "user", "Ada")
    assert (one.ts, one.arrived) == (earlier, NOON)
    assert one.text == "My cats sleep."
    assert "cat" in one.terms


def test_without_a_time_or_a_speaker() -> None:
    one = said_by(placed(Message(role="assistant", content="Certainly not.")))
    assert (one.ts, one.speaker) == (NOON, "")


def test_the_whole_message_goes_before_its_stand_in_and_has_an_end() -> None:
    stand_in = placed(Message(role="user", content="[text of 300,000 characters]"))
    one = said_by(stand_in, Message(role="user", content="lighthouse " * 30_000))
    assert one.text.startswith("lighthouse lighthouse")
    assert len(one.text) == INDEXED_CHARS


@pytest.mark.parametrize(
    ("text", "role", "flag"),
    [
        ("Where does my sister live?", "user", QUESTION),
        ("Do you remember what I said about my sister?", "user", MEMORY_QUESTION),
        ("I don't have any memory of our previous conversations.", "assistant", DENIAL),
    ],
)
def test_what_kind_of_saying_it_is(text: str, role: str, flag: int) -> None:
    assert said_by(placed(Message(role=role, content=text))).flags & flag  # type: ignore[arg-type]


def test_a_plain_statement_is_of_no_kind() -> None:
    flags = said_by(placed(Message(role="user", content="My sister lives in Lisbon."))).flags
    assert not flags & (QUESTION | DENIAL | MEMORY_QUESTION | BOILERPLATE)


def test_noise_is_not_indexed() -> None:
    assert is_indexed(placed(Message(role="user", content="My sister lives in Lisbon.")))
    assert is_indexed(placed(Message(role="tool", content="42 files")))
    assert not is_indexed(placed(Message(role="user", content="HEARTBEAT_OK"), noise="heartbeat"))
    assert is_indexed(placed(Message(role="system", content="You are a helpful assistant.")))


def test_what_integrations_note_for_themselves_is_not_indexed() -> None:
    kept = {"langgraph": {"namespace": ["memories"], "key": "ada", "what": "kept"}}
    assert not is_indexed(placed(Message(role="system", content="kept: memories/ada", meta=kept)))
    withdrawn = {"openaiAgents": {"withdrawn": "m1"}}
    assert not is_indexed(placed(Message(role="system", content="It was taken back.", meta=withdrawn)))
    told = {"openaiAgents": {"type": "message"}}
    assert is_indexed(placed(Message(role="system", content="You are a helpful assistant.", meta=told)))


def test_what_the_host_says_is_labelled_with_nobodys_name() -> None:
    assert said_by(placed(Message(role="user", content="Ada: I am home."))).label == "Ada"
    assert said_by(placed(Message(role="system", content="Ada: I am home."))).label == ""


@pytest.mark.parametrize("word", ["quokka40000", "里斯本", "Müllerstraße"])
def test_of_a_message_beyond_all_bounds_each_further_word_counts_once(word: str) -> None:
    head = "lighthouse keeper " * (INDEXED_CHARS // 18 + 1)
    one = said_by(placed(Message(role="user", content=f"{head}harbour {word} keeper harbour {word}")))
    assert len(one.text) == INDEXED_CHARS
    assert set(one.further) == {"harbor", *indexed_terms(word)}
    assert len(one.further) == len(set(one.further))
    for cut in range(INDEXED_CHARS - 11, INDEXED_CHARS + 1):
        across = said_by(placed(Message(role="user", content=f"{head[: cut - 1]} quokka40000 and on")))
        assert "quokka40000" in {*across.terms, *across.further}


def test_a_message_within_bounds_has_no_further_words() -> None:
    assert said_by(placed(Message(role="user", content="lighthouse " * 1_000))).further == []
