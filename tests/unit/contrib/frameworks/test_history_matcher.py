"""A history that the host made anew, laid beside what was recorded of it."""

from __future__ import annotations

import gc
import weakref
from itertools import pairwise
from typing import cast

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from offbook.client.blocking_hot_swap import BlockingHotSwapSession
from offbook.contrib.frameworks import history_matcher
from offbook.contrib.frameworks.history_matcher import HistoryMatcher, HistoryMatchers, Taken, in_order
from offbook.model.types import Message


class FakeSession:
    """What a session is here: a log, which others may add to, and what this process has of it for the model."""

    def __init__(self, log: list[Message] | None = None) -> None:
        self.log = log if log is not None else []
        self.slot = list(self.log)
        self.known = {one.id for one in self.log}
        self.waiting: list[Message] | None = None
        """What was said and has not arrived, where it is to wait."""
        self.asked = 0

    def knows(self, message_id: str) -> bool:
        return message_id in self.known

    def add(self, message: Message) -> Message:
        if message.id not in self.known:
            self.known.add(message.id)
            self.slot.append(message)
            arrives = self.log if self.waiting is None else self.waiting
            if message.id not in {one.id for one in self.log}:
                arrives.append(redacted(message))
        return message

    def recorded(self, most: int) -> list[Message]:
        self.asked += 1
        return self.log[-most:]


class Host:
    """Keeps words, "user" or "assistant" by their turn, and gives them other ids each time."""

    def __init__(self, session: FakeSession, name: str = "") -> None:
        self.session = session
        self.matcher = HistoryMatcher()
        self.name = name
        self.turn = 0

    def gives(self, *said: str, ids: list[str] | None = None) -> Taken:
        self.turn += 1
        named = ids or [f"{self.name}{self.turn}.{at}" for at in range(len(said))]
        messages = [message(text, name) for text, name in zip(said, named, strict=True)]
        return self.matcher.take(cast(BlockingHotSwapSession, self.session), named, messages.__getitem__)

    def answers(self, text: str) -> None:
        self.matcher.add(cast(BlockingHotSwapSession, self.session), message(text, f"{self.name}answer {self.turn}"))


def message(text: str, name: str) -> Message:
    """In capitals what the assistant says."""
    return Message(role="assistant" if text.isupper() else "user", content=text, id=name)


def redacted(message: Message) -> Message:
    return msgspec.structs.replace(message, content=str(message.content).replace("4711", "***"))


def words(session: FakeSession) -> list[str]:
    return [str(one.content) for one in session.log]


def shown(session: FakeSession) -> list[str]:
    return [str(one.content) for one in session.slot]


def test_what_is_said_is_recorded_once_however_often_it_is_given() -> None:
    host = Host(FakeSession())
    said: list[str] = []
    for number in range(6):
        said.append("go on" if number > 2 else f"question {number}")
        host.gives(*said)
        host.answers("OK")
        said.append("OK")
        assert words(host.session) == said
    assert host.session.asked == 1  # the provider, once


def test_who_says_the_same_again_says_it_twice() -> None:
    host = Host(FakeSession())
    host.gives("hi")  # and nobody answered
    host.gives("hi", "hi")
    assert words(host.session) == ["hi", "hi"]
    host.gives("hi")  # a host that gives no history at all
    assert words(host.session) == ["hi"] * 3


def test_a_host_that_is_started_again_knows_what_the_provider_has() -> None:
    before = Host(FakeSession())
    before.gives("one", "ONE", "two")
    before.answers("TWO")
    after = Host(FakeSession(before.session.log))
    after.turn = 100
    taken = after.gives("one", "ONE", "two", "TWO", "three")
    assert words(after.session) == ["one", "ONE", "two", "TWO", "three"]
    assert taken.names == {"101.0": "1.0", "101.1": "1.1", "101.2": "1.2", "101.3": "answer 1"}


@pytest.mark.parametrize("turns", ["ABBBA", "ABABAB", "AABCBAC"])
def test_workers_that_take_turns_record_all_once_and_show_all(turns: str) -> None:
    log: list[Message] = []
    workers = {name: Host(FakeSession(log), name) for name in "ABC"}
    said: list[str] = []
    for number, name in enumerate(turns):
        said.append(f"question {number}")
        workers[name].gives(*said)
        assert shown(workers[name].session) == said
        workers[name].answers(f"ANSWER {number}")
        said.append(f"ANSWER {number}")
        assert words(workers[name].session) == said


def test_a_worker_that_was_away_for_long_knows_what_others_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_matcher, "COMPARED_MESSAGES", 10)
    log: list[Message] = []
    workers = {name: Host(FakeSession(log), name) for name in "AB"}
    said: list[str] = []
    for number, name in enumerate("AAAAAA" + "B" * 10 + "AB"):
        said.append(f"question {number}")
        workers[name].gives(*said)
        workers[name].answers(f"ANSWER {number}")
        said.append(f"ANSWER {number}")
        assert [one.content for one in log] == said


def test_what_has_not_arrived_is_known_beside_what_has() -> None:
    log: list[Message] = []
    here, there = Host(FakeSession(log), "here"), Host(FakeSession(log), "there")
    here.gives("one")
    here.answers("ONE")
    there.gives("one", "ONE", "two")
    there.answers("TWO")
    here.session.waiting = []
    here.gives("one", "ONE", "two", "TWO", "three")
    here.gives("one", "ONE", "two", "TWO", "three", "THREE", "four")
    assert [str(one.content) for one in here.session.waiting] == ["three", "THREE", "four"]
    assert shown(here.session) == ["one", "ONE", "two", "TWO", "three", "THREE", "four"]


def test_what_the_provider_has_otherwise_is_known_as_it_was_said() -> None:
    host = Host(FakeSession())
    host.gives("my key is 4711")
    host.answers("OK")
    for _ in range(2):
        host.gives("my key is 4711", "OK", "go on", "YES", "and now?")
    assert words(host.session) == ["my key is ***", "OK", "go on", "YES", "and now?", "and now?"]


def test_what_the_host_leaves_out_or_the_provider_has_otherwise_is_in_nobodys_way() -> None:
    log = [message(text, text) for text in ("one", "CALL", "RESULT", "ONE", "my key is ***", "TWO")]
    host = Host(FakeSession(log))
    taken = host.gives("one", "ONE", "my key is 4711", "TWO", "three")
    assert words(host.session) == ["one", "CALL", "RESULT", "ONE", "my key is ***", "TWO", "three"]
    assert taken.names["1.2"] == "my key is ***"


def test_an_answer_that_was_not_recorded_yet_is_new() -> None:
    host = Host(FakeSession())
    host.gives("one")
    host.gives("one", "OK", "two")
    host.gives("one", "OK", "two", "OK", "three")
    host.gives("two", "OK", "three", "OK", "four")  # only the newest are given
    assert words(host.session) == ["one", "OK", "two", "OK", "three", "OK", "four"]


def test_another_conversation_of_the_session_is_recorded() -> None:
    host = Host(FakeSession([message(text, text) for text in ("one", "OK")]))
    host.gives("something else", "OK", "and more")
    assert sorted(words(host.session)) == sorted(["one", "OK", "something else", "and more"])


def test_a_history_that_is_given_as_it_was_is_compared_with_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_matcher, "aligned", lambda *_: pytest.fail("compared"))
    host = Host(FakeSession())
    ids = ["a", "b", "c", "d", "e"]
    host.gives("one", ids=ids[:1])
    host.gives("one", "OK", "two", ids=ids[:3])  # the answer comes with the next question
    host.gives("one", "OK", "two", "OK", "one", ids=ids)
    assert words(host.session) == ["one", "OK", "two", "OK", "one"]
    again = Host(FakeSession(host.session.log))
    again.gives("one", "OK", "two", "OK", "one", "TWO", ids=[*ids, "f"])
    again.gives("two", "OK", "one", "TWO", "two", ids=[*ids[2:], "f", "g"])
    assert words(again.session) == ["one", "OK", "two", "OK", "one", "TWO", "two"]
    assert host.session.asked == 0


def test_of_a_long_session_only_the_newest_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_matcher, "COMPARED_MESSAGES", 20)
    host = Host(FakeSession())
    said: list[str] = []
    for number in range(60):
        said.append(f"question {number}")
        taken = host.gives(*said)
        again = host.gives(*said, ids=[f"{host.turn}.{at}" for at in range(len(said))])  # a tool was called
        assert again == taken
        host.answers(f"ANSWER {number}")
        said.append(f"ANSWER {number}")
        assert words(host.session) == said
        assert len(taken.names) <= 20
    assert len(taken.older) == 119 - 1 - 20


def test_it_goes_with_its_session() -> None:
    latelies, session = HistoryMatchers(), cast(BlockingHotSwapSession, FakeSession())
    held = weakref.ref(latelies.of(session))
    latelies.of(session).add(session, message("one", "one"))
    gone = weakref.ref(session)
    del session
    gc.collect()
    assert gone() is None
    assert held() is None


@settings(deadline=None)
@given(st.lists(st.sampled_from(["a", "b", "A", "B"]), max_size=12), st.data())
@example(["a", "A", "a", "A"], None)
def test_nothing_is_lost_or_doubled_whatever_is_said(said: list[str], data: st.DataObject | None) -> None:
    """Some answers are recorded at once, others come with the next question; now and then the host begins anew."""
    host = Host(FakeSession())
    for end in range(1, len(said) + 1):
        is_answer = said[end - 1].isupper()
        if is_answer and (data is None or data.draw(st.booleans())):
            host.answers(said[end - 1])
            host.turn += 1
        else:
            if data is not None and data.draw(st.booleans()):
                host = Host(FakeSession(host.session.log))
                host.turn = end * 100
            host.gives(*said[:end])
        assert words(host.session) == said[:end]


@settings(deadline=None)
@given(st.lists(st.sampled_from(["a", "b", "A", "B"]), max_size=12), st.data())
def test_nothing_is_lost_or_doubled_whoever_it_is_said_to(said: list[str], data: st.DataObject) -> None:
    log: list[Message] = []
    workers = [Host(FakeSession(log), name) for name in "XY"]
    for end in range(1, len(said) + 1):
        host = data.draw(st.sampled_from(workers))
        host.gives(*said[:end])
        assert words(host.session) == said[:end]
        assert shown(host.session) == said[:end]


@given(st.text("abc", max_size=8), st.text("abc", max_size=8))
def test_as_many_as_can_be_are_found_in_order(ours: str, theirs: str) -> None:
    pairs = in_order(ours, theirs)
    assert all(ours[at] == theirs[there] for at, there in pairs)
    assert all(one[0] < other[0] and one[1] < other[1] for one, other in pairwise(pairs))
    longest = [[0] * (len(theirs) + 1) for _ in range(len(ours) + 1)]
    for at, one in enumerate(ours):
        for there, other in enumerate(theirs):
            best = max(longest[at][there + 1], longest[at + 1][there])
            longest[at + 1][there + 1] = longest[at][there] + 1 if one == other else best
    assert len(pairs) == longest[-1][-1]
