from __future__ import annotations

from offbook.contrib.proxy.conversation import MOST_OWNERS, MOST_UNSENT, Conversation, Owners, chained, continued_by
from offbook.model.types import Message


def test_a_key_has_its_newest_owners_and_no_more() -> None:
    owners = Owners()
    made = [Conversation(None) for _ in range(MOST_OWNERS + 3)]
    for each in made:
        owners.add("greeting", each)
        owners.add("greeting", each)
    assert list(owners.of("greeting")) == made[3:]
    assert owners.newest("greeting") is made[-1]
    assert not made[0].keys
    owners.give("greeting", made[0])
    assert list(owners.of("greeting")) == [made[0]]
    assert not made[-1].keys


def test_who_is_let_go_leaves_nothing_behind() -> None:
    owners = Owners()
    one, other = Conversation(None), Conversation(None)
    for key in ("a", "b"):
        owners.add(key, one)
    owners.add("b", other)
    owners.drop(set(one.keys), one)
    owners.drop({"a"}, other)  # not its own
    assert (list(owners.of("a")), list(owners.of("b"))) == ([], [other])
    assert not one.keys


def test_of_several_the_one_is_meant_that_has_said_nothing_since() -> None:
    chain = chained(["hi", "hello", "ann"], "")
    gone_on, waiting = Conversation("a"), Conversation(None)
    gone_on.path, waiting.path = chained(["hi", "hello", "bob"], ""), chain[:2]
    assert continued_by([gone_on, waiting], chain, 1) is waiting
    waiting.path = chain
    assert continued_by([gone_on, waiting], chain, 1) is waiting  # tried again
    assert continued_by([gone_on, waiting], chained(["hi", "hello", "eve"], ""), 1) is None


def test_what_waits_for_a_name_has_an_end() -> None:
    conversation = Conversation(None)
    conversation.recorded = {"known"}
    for number in range(MOST_UNSENT + 2):
        conversation.tell_later(str(number), Message(role="user", content="a"))
    conversation.tell_later("known", Message(role="user", content="a"))
    assert len(conversation.unsent) == MOST_UNSENT
    assert "0" not in conversation.unsent
    assert "known" not in conversation.unsent
