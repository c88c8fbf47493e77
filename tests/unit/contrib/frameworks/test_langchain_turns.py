"""What the model is given in place of a thread, where a provider answers. The words are those of `placed`."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from offbook.client.blocking_hot_swap import BlockingHotSwapSession
from offbook.client.placement import placed
from offbook.contrib.frameworks import history_matcher
from offbook.contrib.frameworks.history_matcher import Sessions
from offbook.contrib.frameworks.langchain_turns import Turns, in_their_order, with_unrecorded
from offbook.model.turn import PreparedTurn, TurnTokens
from offbook.model.types import Message

SAID: list[BaseMessage] = [
    SystemMessage("Be brief."),
    HumanMessage("First.", id="m1"),
    AIMessage("One.", id="m2"),
    HumanMessage("The code is 4711.", id="m3"),
]


class FakeSession:
    """Swapped: a summary stands for all but the newest `shown`, and a turn was prepared."""

    def __init__(self, shown: int) -> None:
        self.added: list[Message] = []
        self.used: list[int | None] = []
        self.shown = shown

    def add(self, message: Message) -> Message:
        self.added.append(message)
        return message

    def knows(self, message_id: str) -> bool:
        return any(one.id == message_id for one in self.added)

    def recorded(self, most: int) -> list[Message]:
        return []

    def report_usage(self, tokens: int | None) -> None:
        self.used.append(tokens)

    def turn_messages(self) -> list[Message]:
        tokens = TurnTokens(memory=2, recall=2, budget=100)
        turn = PreparedTurn(
            memory="[memory]", recall="[recall]", tokens=tokens, entries=[], intent="plain", degraded=[]
        )
        summary = Message(role="assistant", content="[summary]")
        return placed([summary, *self.added[len(self.added) - self.shown :]], turn)


def turned(session: FakeSession, said: list[BaseMessage], shown: list[BaseMessage] | None = None) -> list[BaseMessage]:
    turns = Turns(cast(Sessions, None), None)
    return turns.given(cast(BlockingHotSwapSession, session), said, said if shown is None else shown)


def words(messages: list[BaseMessage]) -> list[Any]:
    return [one.content for one in messages]


def test_memory_summary_and_recall_stand_in_their_places() -> None:
    messages = turned(FakeSession(2), SAID)
    assert words(messages)[0] == "Be brief."
    assert isinstance(messages[1], HumanMessage)  # no model begins with the assistant
    assert words(messages)[2:] == ["[memory]", "[summary]", "One.", "The code is 4711.\n\n[recall]"]
    assert messages[4] is SAID[2]
    assert messages[5].id == "m3"


@pytest.mark.parametrize("content", ["The code is ****.", [{"type": "text", "text": "The code is ****."}]])
def test_what_the_host_shows_otherwise_is_shown_so_also_with_recall(content: Any) -> None:
    shown = [*SAID[:3], HumanMessage(content, id="m3")]
    session = FakeSession(2)
    newest = turned(session, SAID, shown)[-1]
    assert "4711" not in str(newest.content)
    assert newest.text == "The code is ****.[recall]"
    assert "4711" in str(session.added)


def test_usage_is_of_the_answer_that_was_just_given() -> None:
    usage: Any = {"input_tokens": 40, "output_tokens": 2, "total_tokens": 42}
    session, turns = FakeSession(9), Turns(cast(Sessions, None), None)
    blocking = cast(BlockingHotSwapSession, session)
    old = AIMessage("Old.", id="m0", usage_metadata={**usage, "input_tokens": 7})
    turns.given(blocking, [old, HumanMessage("Go on.", id="m1")], [])
    assert session.used == []  # of a prompt that this session knows nothing of
    answered = [old, HumanMessage("Go on.", id="m1"), AIMessage("Yes.", id="m2", usage_metadata=usage)]
    turns.answered(blocking, answered)
    turns.answered(blocking, answered)
    assert session.used == [40]


def test_of_a_long_thread_that_is_made_anew_all_is_shown_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_matcher, "COMPARED_MESSAGES", 10)
    session, turns = FakeSession(0), Turns(cast(Sessions, None), None)
    blocking = cast(BlockingHotSwapSession, session)
    said: list[tuple[type[BaseMessage], str]] = []
    for number in range(15):
        said.append((HumanMessage, f"Question {number}."))
        thread = [kind(text, id=f"{number}.{at}") for at, (kind, text) in enumerate(said)]
        session.shown = len(said)
        for _ in range(2):  # before each of a turn's requests
            messages = turns.given(blocking, thread, thread)
            assert [str(one.content).removesuffix("\n\n[recall]") for one in messages][3:] == [one[1] for one in said]
            assert messages[-2:-1] in ([], thread[-2:-1], [messages[2]])  # the host's own
        said.append((AIMessage, f"Answer {number}."))
        turns.answered(blocking, [*thread, AIMessage(f"Answer {number}.", id=f"{number}.answer")])
        assert [one.content for one in session.added] == [one[1] for one in said]


# ── the host's order, and what it shows beside the thread ──

IDS = [f"m{number}" for number in range(8)]
CALLS = {"m5": "m6", "m4": "m7"}
"""Which message calls for which result."""


def thread(ids: list[str]) -> dict[str | None, BaseMessage]:
    return {one: message_named(one) for one in ids}


def message_named(name: str) -> BaseMessage:
    if name in CALLS:
        return AIMessage(name, tool_calls=[{"name": "weigh", "args": {}, "id": CALLS[name]}])
    return ToolMessage(name, tool_call_id=name) if name in CALLS.values() else HumanMessage(name)


@given(st.permutations(IDS), st.permutations(IDS), st.sets(st.sampled_from(IDS)), st.integers(0, 8))
def test_nothing_is_lost_or_doubled_and_ours_stay_where_they_are(
    here_ids: list[str], recorded_ids: list[str], swapped: set[str], ours_at: int
) -> None:
    here = thread(here_ids)
    named: list[tuple[str | None, BaseMessage]] = [(one, here[one]) for one in recorded_ids if one not in swapped]
    named.insert(ours_at, (None, AIMessage("[summary]")))
    ordered = in_their_order(named, here)
    assert [one[0] for one in ordered if one[0]] == [one for one in here_ids if one not in swapped]
    assert [one[0] for one in ordered].index(None) == [one[0] for one in named].index(None)


@given(st.permutations(IDS), st.sets(st.sampled_from(IDS)), st.sets(st.sampled_from(IDS)))
def test_what_is_shown_beside_the_thread_stays_behind_what_it_stood_behind(
    here_ids: list[str], unrecorded: set[str], swapped: set[str]
) -> None:
    here = thread(here_ids)
    seen: Any = {one: None for one in here_ids if one not in unrecorded}
    kept = [one for one in here_ids if one in seen and one not in swapped]
    summary: tuple[str | None, BaseMessage] = (None, AIMessage("[summary]"))
    given_now = with_unrecorded([summary, *((one, here[one]) for one in kept)], here, seen)
    gone = {CALLS[one] for one in CALLS if one in swapped and one in seen} & unrecorded
    assert [str(one.content) for one in given_now if one.content != "[summary]"] == [
        one for one in here_ids if one in kept or one in unrecorded - gone
    ]


def test_what_is_shown_at_the_end_stays_there_when_all_was_swapped() -> None:
    here = thread(["m0", "m1"])
    summary: tuple[str | None, BaseMessage] = (None, AIMessage("[summary]"))
    seen: Any = {"m0": None}
    assert words(with_unrecorded([summary], here, seen)) == ["[summary]", "m1"]
