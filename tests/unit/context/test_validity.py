from __future__ import annotations

import time
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings

from offbook.context.replayable import QUOTED_CHARS, QUOTED_RESULT
from offbook.context.tail import results_in, shown
from offbook.context.validity import EMPTY, faults, made_valid, placed
from offbook.contrib.conformance.check import pair_faults
from offbook.ingest.frames import frame, strip_frames
from offbook.model.content import is_binary_path, render, strings, tool_calls, tool_results
from offbook.model.types import Message
from tests.unit.context.histories import HISTORIES, PNG, STAND_IN


def user(text: str) -> Message:
    return Message(role="user", content=text)


def said(*blocks: dict[str, Any], role: Any = "assistant", **fields: Any) -> Message:
    return Message(role=role, content=list(blocks), **fields)


def calls(*ids: str) -> Message:
    return said(*({"type": "toolCall", "id": id, "name": "look_up", "arguments": {"page": id}} for id in ids))


def result(id: str, text: str = "found it") -> Message:
    return Message(role="tool", content=text, tool_call_id=id)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def in_frame(words: str) -> str:
    return frame(words, kind="memory", key=b"")


def assert_untouched(*messages: Message) -> None:
    came = made_valid(messages)
    assert [id(message) for message in came] == [id(message) for message in messages]
    assert faults(messages) == []


# ── what is fine stays ──


def test_what_is_fine_is_the_same_object() -> None:
    assert_untouched()
    assert_untouched(Message(role="system", content="Be kind."), user("one"), user("two"), calls("a"))
    assert_untouched(user("Find them."), calls("a", "b"), result("b"), result("a", ""), user("Thanks."))


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (said({"type": "toolCall", "id": "c", "name": "ls", "arguments": {}}), result("c")),
        (
            said(text("I look."), {"type": "tool_use", "id": "c", "name": "ls", "input": {}}),
            said({"type": "tool_result", "tool_use_id": "c", "content": "ok"}, text("and?"), role="user"),
        ),
        (
            Message(role="assistant", content="", meta={"tool_calls": [{"id": "c", "type": "function"}]}),
            result("c"),
        ),
        (
            said({"type": "function_call", "id": "fc_1", "call_id": "c", "name": "ls", "arguments": "{}"}),
            said({"type": "function_call_output", "call_id": "c", "output": "ok"}, role="user"),
        ),
        (calls("c"), said({"type": "tool-result", "toolCallId": "c", "content": "ok"}, role="tool", tool_call_id="c")),
        (said({"tool_calls": [{"id": "c", "type": "function"}]}), result("c")),
    ],
)
def test_pairs_of_every_dialect_stay(call: Message, answer: Message) -> None:
    assert_untouched(user("Go."), call, answer, user("Thanks."))
    orphan = made_valid([user("Go."), answer])[1]
    assert orphan.role == ("user" if "and?" in render(answer) else "assistant")
    assert strip_frames(render(orphan), b"")[0] in ("", "and?")  # what the tool gave is framed, and nothing else
    assert "[call " in render(made_valid([call, user("Never mind.")])[0])
    assert tool_calls(made_valid([call, user("Never mind.")])[0]) == []


def test_a_call_at_the_end_is_still_running() -> None:
    assert_untouched(user("Go."), calls("a"))
    assert_untouched(user("Go."), calls("a", "b"), result("b"))


def test_a_tool_that_the_provider_ran_stays_in_its_message() -> None:
    call = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "cats"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "s", "content": "many cats"}
    assert_untouched(said(text("Searching."), call, found, text("Many.")), user("Thanks."))


def test_calls_of_messages_in_a_row_are_one_batch() -> None:
    assert_untouched(
        calls("a"), Message(role="assistant", content="And another."), calls("b"), result("a"), result("b")
    )


def test_blocks_that_nobody_knows_stay() -> None:
    blocks = ({"type": "hologram", "layers": [{"z": 1}]}, {"text": "untyped", "extra": {}}, {"type": "image"})
    assert_untouched(said(*blocks, {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}}))


# ── what a provider would refuse ──


def test_a_result_without_its_call_is_quoted() -> None:
    came = made_valid([user("Hi."), result("lost", "the file is gone"), user("Go on.")])
    assert came[1].role == "assistant"
    assert came[1].content == in_frame(QUOTED_RESULT + "[result of lost] the file is gone")


def test_of_two_results_only_the_lost_one_is_quoted() -> None:
    blocks = [{"type": "tool_result", "tool_use_id": id, "content": "ok"} for id in ("a", "lost", "lost too")]
    came = made_valid([calls("a"), said(*blocks, role="user")])[1]
    quoted = [text(in_frame(QUOTED_RESULT + "[result of lost] ok")), text(in_frame("[result of lost too] ok"))]
    assert came.content == [blocks[0], *quoted]


def test_a_call_that_is_never_answered_is_shown() -> None:
    came = made_valid([calls("a", "b"), result("b"), user("What now?")])
    assert came[0].content == [text('[call look_up({"page":"a"})]'), calls("b").content[0]]
    beside = {"tool_calls": [{"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]}
    came = made_valid([Message(role="assistant", content="I look.", meta={**beside, "x": 1}), user("No.")])
    assert came[0] == Message(role="assistant", content="I look.\n[call ls({})]", meta={"x": 1})


def test_a_late_result_stands_behind_its_call() -> None:
    messages = [calls("a", "b"), result("a"), user("Wait."), calls("c"), result("b"), result("c")]
    assert [index for index, _ in placed(messages)] == [0, 1, 4, 2, 3, 5]
    assert all(messages[index] is message for index, message in placed(messages))


def test_a_message_that_answers_two_batches_stays_with_the_newer() -> None:
    blocks = [{"type": "tool_result", "tool_use_id": id, "content": f"of {id}"} for id in ("a", "b")]
    came = made_valid([calls("a"), user("Wait."), calls("b"), said(*blocks, role="user")])
    assert tool_calls(came[0]) == []
    assert tool_results(came[3]) == ["b"]
    assert "[result of a] of a" in render(came[3])


def test_an_id_used_again_gets_another_for_the_pair() -> None:
    messages = [calls("call_0"), result("call_0"), calls("call_0"), result("call_0"), calls("call_2"), result("call_2")]
    came = made_valid(messages)
    assert [tool_calls(message) + tool_results(message) for message in came] == [
        ["call_0"], ["call_0"], ["call_2"], ["call_2"], ["call_3"], ["call_3"]
    ]  # fmt: skip
    assert came[0] is messages[0]


def test_a_second_answer_is_quoted() -> None:
    came = made_valid([calls("a"), result("a"), result("a", "again"), user("Hm.")])
    assert came[2].content == in_frame(QUOTED_RESULT + "[result of a] again")


def test_the_field_of_a_tools_message_says_which_call_its_block_answers() -> None:
    block = {"type": "tool-result", "toolCallId": "other name", "content": "ok"}
    came = made_valid([calls("a"), said(block, role="tool", tool_call_id="a"), user("Hm.")])
    assert tool_results(came[1]) == ["a"]
    assert came[1].content == [{**block, "toolCallId": "a"}]


def test_reasoning_and_signatures_go() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    signed = {"type": "toolCall", "id": "a", "name": "ls", "arguments": {}, "thoughtSignature": "c2ln"}
    came = made_valid([said(thought, {**text("Yes."), "textSignature": "{}"}, signed), result("a")])
    assert came[0].content == [text("Yes."), {"type": "toolCall", "id": "a", "name": "ls", "arguments": {}}]
    item = {"type": "function_call", "id": "fc_1", "call_id": "b", "name": "ls", "arguments": "{}"}
    came = made_valid([said({"type": "reasoning", "summary": []}, item), result("b")])
    assert came[0].content == [{key: value for key, value in item.items() if key != "id"}]
    assert made_valid([said(thought)])[0].content == "[thinking]"
    assert made_valid([Message(role="assistant", content="Yes.", meta={"reasoning_content": "hm"})])[0].meta is None


def test_binaries_are_referred_to() -> None:
    for data in (PNG, STAND_IN):
        image = {"type": "image", "data": data, "mimeType": "image/png"}
        came = made_valid([said(image, role="user"), calls("a"), said(image, role="tool", tool_call_id="a")])
        assert came[0].content == came[2].content == [text(render(said(image)))]
    url = "data:image/png;base64," + PNG
    assert made_valid([user(url)])[0].content == "[image/png, 304 bytes]"
    resource = {"type": "resource", "resource": {"mimeType": "image/png", "blob": PNG}}
    assert made_valid([said(resource)])[0].content == [
        {"type": "resource", "resource": {"mimeType": "image/png", "blob": "[304 bytes]"}}
    ]


@pytest.mark.parametrize("content", ["", " \n", [], [text("")], [text(" "), {"type": "input_text", "text": ""}]])
def test_nothing_is_empty_but_a_tools_answer(content: Any) -> None:
    assert made_valid([Message(role="user", content=content)])[0].content == EMPTY
    came = made_valid([calls("a"), Message(role="tool", content=content, tool_call_id="a")])[1]
    assert came.content == (content if isinstance(content, str) else "")


def test_what_a_result_holds_is_made_fit_too() -> None:
    held = ["bare", {"type": "thinking", "thinking": "hm", "signature": "c2ln"}, text(" "), text("ok")]
    block = {"type": "tool_result", "tool_use_id": "a", "content": held}
    came = made_valid([calls("a"), said(block, role="user")])[1]
    assert came.content == [{**block, "content": ["bare", text("ok")]}]
    came = made_valid([calls("a"), said({**block, "content": held[1:3]}, role="user")])[1]
    assert came.content == [{**block, "content": ""}]


def test_the_system_answers_no_call() -> None:
    answer = said({"type": "tool_result", "tool_use_id": "a", "content": "ok"}, role="system")
    assert faults([calls("a"), answer]) != []
    came = made_valid([calls("a"), answer])
    assert tool_calls(came[0]) == tool_results(came[1]) == []


def test_a_call_by_the_user_is_none() -> None:
    message = said({"type": "tool_use", "id": "a", "name": "ls", "input": {}}, role="user")
    assert made_valid([message])[0].content == [text("[call ls({})]")]


# ── always ──


@given(HISTORIES)
def test_whatever_came_is_made_valid(messages: list[Message]) -> None:
    valid = made_valid(messages)
    assert faults(valid) == []
    assert list(pair_faults(valid)) == []
    assert [id(message) for message in made_valid(valid)] == [id(message) for message in valid]
    assert sorted(index for index, _ in placed(messages)) == list(range(len(messages)))


@given(HISTORIES)
def test_what_has_no_faults_is_not_touched(messages: list[Message]) -> None:
    is_untouched = all(came is message for came, message in zip(made_valid(messages), messages, strict=True))
    assert is_untouched == (faults(messages) == [])


@given(HISTORIES)
def test_nothing_in_it_is_refused(messages: list[Message]) -> None:
    """By rules of its own, apart from `faults`."""
    valid = made_valid(messages)
    named = Counter(call_id for message in valid for call_id in tool_calls(message))
    assert set(named.values()) <= {1}
    for message in valid:
        assert message.content or message.role == "tool" or message.meta
        for path, words in strings(message.content):
            assert not (words and is_binary_path(message.content, path))
        for block in message.content if isinstance(message.content, list) else ():
            assert block.get("type") not in ("thinking", "redacted_thinking", "reasoning")
            assert not {"thoughtSignature", "textSignature"} & block.keys()
    waiting: set[str] = set()
    for position, message in enumerate(valid):
        answers = set(tool_results(message)) - set(tool_calls(message))
        if message.role == "assistant":
            waiting |= set(tool_calls(message)) - set(tool_results(message))
        elif answers:
            assert answers <= waiting
            waiting -= answers
        else:
            assert not waiting, position


@given(HISTORIES)
def test_every_text_is_still_there(messages: list[Message]) -> None:
    for index, message in placed(messages):
        came = render(message)
        blocks = messages[index].content
        for block in blocks if isinstance(blocks, list) else [text(blocks)]:
            words = block.get("text", "").strip()
            assert words in came or words.startswith("data:image")


@given(HISTORIES)
def test_it_takes_hardly_more_room(messages: list[Message]) -> None:
    """What `tail.cost` reckons with."""
    for index, message in placed(messages):
        before = messages[index]
        extra = QUOTED_CHARS * results_in(before)
        longest_id = max((len(id) for id in tool_results(message)), default=0)
        assert len(shown(message)) <= len(shown(before)) + max(extra, longest_id, len(EMPTY))


@settings(max_examples=20)
@given(HISTORIES)
def test_the_same_history_gives_the_same_messages(messages: list[Message]) -> None:
    assert made_valid(messages) == made_valid(messages)


# ── as fast as it must be ──


def seconds(messages: list[Message]) -> float:
    started = time.thread_time()  # not the wall clock: the machine may be busy with others
    made_valid(messages)
    return time.thread_time() - started


def test_plain_messages_cost_next_to_nothing() -> None:
    plain = [user("hello there " * 50)] * 300
    assert min(seconds(plain) for _ in range(20)) < 0.01


def test_time_grows_with_the_length_only() -> None:
    def history(pairs: int) -> list[Message]:
        return [
            one for _ in range(pairs) for one in (user("Go."), calls("x", "y"), user("Wait."), result("y"), result("x"))
        ]

    small = min(seconds(history(200)) for _ in range(5))
    large = min(seconds(history(2_000)) for _ in range(3))
    assert large < 30 * small
