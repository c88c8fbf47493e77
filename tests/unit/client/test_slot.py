from __future__ import annotations

from offbook.client.slot import AWAITED_FOR_MESSAGES, Slot, orphan_in
from offbook.model.types import Message


def message(text: str, message_id: str | None = None) -> Message:
    return Message(role="user", content=text, id=message_id)


def calling(call_id: str) -> Message:
    block = {"type": "tool-call", "id": call_id, "name": "look", "arguments": {}}
    return Message(role="assistant", content=[block])


def result(call_id: str) -> Message:
    return Message(role="tool", content="seen", tool_call_id=call_id)


def slot_of(*messages: Message) -> Slot:
    slot = Slot()
    for number, one in enumerate(messages, 1):
        slot = slot.with_added(one, f"m{number}")
    return slot


def test_what_takes_the_place_of_the_past_reaches_as_far_as_it_shows() -> None:
    slot = slot_of(*map(message, "abcd"))
    assert slot.reach_of([message("memory"), message("b", "m2"), message("a", "m1")]) == 2
    assert slot.reach_of([message("memory")]) is None
    after = slot.replaced([message("memory"), message("b", "m2")], 2)
    assert [one.content for one in after.messages] == ["memory", "b", "c", "d"]
    assert (after.covered, after.last_id, after.total) == (2, "m2", 4)
    assert after.reach_of([message("b", "m2")]) == 2
    assert after.reach_of([message("a", "m1")]) is None, "that is the past already"
    assert after.tokens < after.with_added(message("e"), "m5").tokens


def test_a_context_from_before_is_known_by_its_newest_id() -> None:
    slot = Slot().replaced([message("x", "old"), message("y")], 0)
    assert slot.last_id == "old"
    assert slot.reach_of([message("x", "old")]) == 0


def test_what_the_provider_never_took_stays_until_the_agent_compacts() -> None:
    slot = slot_of(message("a"), calling("c"), result("c"), message("d"))
    after = slot.replaced([message("memory"), message("d", "m4")], 4, {"m2"})
    assert [(one.role, one.id) for one in after.messages] == [("user", None), ("user", "m4"), ("assistant", None)]
    assert isinstance(after.messages[-1].content, str), "its result is text elsewhere"
    again = after.with_added(message("e"), "m5").replaced([message("memory"), message("e", "m5")], 5)
    assert len(again.messages) == 3
    assert again.compacted([message("all")], 5).messages == [message("all")]


def test_a_call_is_waited_for_but_not_for_ever() -> None:
    slot = slot_of(message("a"), calling("c"))
    assert (slot.has_open_calls, slot.settled) == (True, 1)
    assert slot.up_to(1) == [message("a")]
    assert not slot.with_added(result("c"), "m3").has_open_calls
    for number in range(AWAITED_FOR_MESSAGES):
        slot = slot.with_added(message("x"), f"x{number}")
    assert not slot.has_open_calls


def test_a_result_whose_call_is_gone_is_quoted() -> None:
    slot = slot_of(calling("c")).compacted([message("all")], 1).with_added(result("c"), "m2")
    assert orphan_in(slot.whole) == 1
    assert orphan_in(slot.messages) is None
    assert "seen" in str(slot.messages[1].content)


def test_an_id_that_is_used_again_is_open_again() -> None:
    slot = slot_of(calling("call_0"), result("call_0"), message("b"), calling("call_0"))
    assert (slot.has_open_calls, slot.settled) == (True, 3)
    assert not slot.with_added(result("call_0"), "m5").has_open_calls
    twice = slot_of(calling("call_0"), calling("call_0"), result("call_0"))
    assert twice.settled == 0, "the result is of the latest"
    assert not twice.with_added(result("call_0"), "m4").has_open_calls
    assert slot_of(result("call_0"), calling("call_0")).has_open_calls, "a result comes after its call"


def test_what_was_added_again_goes_in_whatever_order_it_came() -> None:
    slot = slot_of(message("old"), message("new"), message("older")).without({"m1", "m3", "m9"})
    after = slot.replaced([message("memory"), message("newest", "m9")], slot.covered)
    assert [one.content for one in after.messages] == ["memory", "newest", "new"]
    assert (after.covered, after.last_id, after.total) == (1, "m9", 3)
    refused = slot_of(message("refused"), message("old")).without({"m2"}, {"m1"})
    assert refused.covered == 2
    assert [one.is_unrecorded for one in refused.replaced([message("memory")], 2, {"m1"}).added] == [True]
