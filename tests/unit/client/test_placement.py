from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.client.placement import TurnKey, placed, turn_key_of
from offbook.context.provider_shapes import OPENING, to_anthropic, to_openai
from offbook.ingest.frames import frame
from offbook.model.turn import PreparedTurn, TurnTokens
from offbook.model.types import Message
from tests.unit.context.histories import HISTORIES, PNG
from tests.unit.context.test_provider_shapes import (
    assert_anthropic_takes,
    assert_openai_takes,
    assistant,
    call,
    result,
    user,
    words_of,
)

KEY = b"k" * 32
MEMORY = frame("They live in Lisbon.", kind="memory", key=KEY)
RECALL = frame("In May they asked for trains.", kind="recall", key=KEY)
SYSTEM = Message(role="system", content="Be kind.")


def turn_of(memory: str = MEMORY, recall: str = RECALL) -> PreparedTurn:
    return PreparedTurn(
        memory=memory,
        recall=recall,
        tokens=TurnTokens(memory=1, recall=1, budget=1),
        entries=[],
        intent="plain",
        degraded=[],
    )


def words(messages: list[Message]) -> list[tuple[str, Any]]:
    return [(message.role, message.content) for message in messages]


def test_memory_stands_first_and_recall_at_the_end_of_what_the_user_says() -> None:
    given = [user("Hello."), assistant("Hi."), user("Which train?", id="m3", name="Ada")]
    assert words(placed(given, turn_of())) == [
        ("assistant", MEMORY),
        ("user", "Hello."),
        ("assistant", given[1].content),
        ("user", f"Which train?\n\n{RECALL}"),
    ]
    newest = placed(given, turn_of())[-1]
    assert (newest.id, newest.name) == ("m3", "Ada")


def test_instructions_stay_before_the_memory() -> None:
    later = Message(role="system", content="It is noon.")
    given = [SYSTEM, SYSTEM, user("Hello."), later]
    assert words(placed(given, turn_of())) == [
        ("system", "Be kind."),
        ("system", "Be kind."),
        ("assistant", MEMORY),
        ("user", f"Hello.\n\n{RECALL}"),
        ("system", "It is noon."),
    ]


def test_the_memory_of_a_swap_comes_after_it_as_a_message_of_its_own() -> None:
    swapped = Message(role="assistant", content=frame("What was said before.", kind="memory", key=KEY))
    shown = placed([swapped, user("And now?")], turn_of())
    assert words(shown[:2]) == [("assistant", MEMORY), ("assistant", swapped.content)]
    assert len(shown) == 3
    request = to_anthropic(shown)
    assert_anthropic_takes(request)
    assert [block["text"] for block in request["messages"][0]["content"]] == [OPENING]
    assert [block["text"] for block in request["messages"][1]["content"]] == [MEMORY, swapped.content]


def test_blocks_get_one_more_and_nothing_given_is_changed() -> None:
    blocks = [{"type": "text", "text": "What is this?"}, {"type": "image", "data": "aGk="}]
    given = [Message(role="user", content=blocks)]
    before = msgspec.json.encode(given)
    shown = placed(given, turn_of(memory=""))
    assert words(shown) == [("user", [*blocks, {"type": "text", "text": RECALL}])]
    assert msgspec.json.encode(given) == before
    assert len(blocks) == 2


@pytest.mark.parametrize(
    "work",
    [
        [assistant("I look.", call("a")), result("a", "two files")],
        [assistant("I look."), assistant(call("a")), result("a", "two files")],
        [assistant(call("a")), result("a", "two"), assistant(call("b")), result("b", "three")],
        [
            assistant({"type": "tool_use", "id": "a", "name": "ls", "input": {}}),
            Message(role="user", content=[{"type": "tool_result", "tool_use_id": "a", "content": "two files"}]),
        ],
        [assistant(call("a"))],
    ],
)
def test_while_tools_are_at_work_it_stays_with_what_the_user_said(work: list[Message]) -> None:
    shown = placed([user("Before."), assistant("Yes."), user("Find them."), *work], turn_of(memory=""))
    assert shown[2].content == f"Find them.\n\n{RECALL}"
    assert shown[3:] == work
    assert_openai_takes(to_openai(shown))
    assert_anthropic_takes(to_anthropic(shown))


def test_a_word_of_the_users_beside_results_is_theirs() -> None:
    both = [{"type": "tool_result", "tool_use_id": "a", "content": "two"}, {"type": "text", "text": "Well?"}]
    given = [user("Find them."), assistant(call("a")), Message(role="user", content=both)]
    assert placed(given, turn_of(memory=""))[2].content == [*both, {"type": "text", "text": RECALL}]


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [SYSTEM],
        [user("Hello."), assistant("Hi.")],
        [user("Hello."), assistant("Hi."), SYSTEM],
    ],
)
def test_where_the_user_has_not_spoken_recall_is_a_message_of_its_own(messages: list[Message]) -> None:
    assert placed(messages, turn_of(memory="")) == [*messages, user(RECALL)]


def test_a_message_without_words_is_not_led_by_empty_lines() -> None:
    assert words(placed([user(" ")], turn_of(memory=""))) == [("user", RECALL)]


def test_an_image_given_as_a_string_is_not_sent_as_words() -> None:
    image = f"data:image/png;base64,{PNG}"
    (shaped,) = to_openai(placed([user(image)], turn_of(memory="")))
    assert PNG not in shaped["content"]
    assert shaped["content"].endswith(RECALL)


def test_empty_sections_add_nothing() -> None:
    given = [SYSTEM, user("Hello.")]
    shown = placed(given, turn_of(memory="", recall="\n"))
    assert shown == given
    assert shown is not given


def test_the_next_turn_begins_as_this_one_did() -> None:
    said = [user("Hello."), assistant("Hi."), user("Which train?")]
    one = placed([SYSTEM, *said], turn_of())
    following = placed([SYSTEM, *said, assistant("The 10:04."), user("Thanks.")], turn_of(recall="Something else."))
    assert following[: len(one) - 1] == one[:-1]
    assert following[len(one) - 1] == said[-1]


def test_what_is_asked_is_what_the_user_said_last() -> None:
    image = Message(role="user", content=[{"type": "image", "data": "aGk="}])
    given = [user("First.", id="1"), user("Second.", id="2"), assistant("Yes."), image]
    assert turn_key_of(given, None, 3) == TurnKey("Second.", "2", 3)
    assert turn_key_of(given, "second", 3) == TurnKey("second", "2", 3)
    assert turn_key_of([SYSTEM, assistant("Yes.")], None, 0) is None
    assert turn_key_of([SYSTEM], "Hello.", 0) == TurnKey("Hello.", None, 0)


@given(HISTORIES, st.sampled_from([MEMORY, ""]), st.sampled_from([RECALL, ""]))
def test_whatever_was_said_models_take_it(messages: list[Message], memory: str, recall: str) -> None:
    before = msgspec.json.encode(messages)
    shown = placed(messages, turn_of(memory, recall))
    assert msgspec.json.encode(messages) == before
    for shaped in (to_openai(shown), to_anthropic(shown)):
        text = words_of(shaped)
        assert (text.count(MEMORY), text.count(RECALL)) == (bool(memory), bool(recall))
    assert_openai_takes(to_openai(shown))
    assert_anthropic_takes(to_anthropic(shown))
    ours = [message for message in shown if all(message is not one for one in messages)]
    assert len(ours) == bool(memory) + bool(recall)
