from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from anthropic.types import MessageParam
from hypothesis import given
from openai.types.chat import ChatCompletionMessageParam
from pydantic import TypeAdapter

from offbook.context.provider_shapes import LONGEST_ID_CHARS, OPENING, SHAPES, to_anthropic, to_openai
from offbook.model.content import text_of
from offbook.model.types import Message
from tests.unit.context.histories import HISTORIES, PNG

OPENAI = TypeAdapter(list[ChatCompletionMessageParam])
ANTHROPIC = TypeAdapter(list[MessageParam])
TOOL_ID = re.compile(r"[a-zA-Z0-9_-]+")
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def user(text: str, **fields: Any) -> Message:
    return Message(role="user", content=text, **fields)


def assistant(*blocks: dict[str, Any] | str) -> Message:
    return Message(role="assistant", content=[{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks])


def call(id: str, **fields: Any) -> dict[str, Any]:
    return {"type": "toolCall", "id": id, "name": "ls", "arguments": {"path": id}, **fields}


def result(id: str, text: str) -> Message:
    return Message(role="tool", content=text, tool_call_id=id)


def words_of(shaped: Any) -> str:
    """Every string of a request, one after the other."""
    if isinstance(shaped, str):
        return shaped + "\n"
    if isinstance(shaped, dict):
        return "".join(map(words_of, shaped.values()))
    return "".join(map(words_of, shaped)) if isinstance(shaped, list) else ""


def read_through(validated: Any) -> None:
    """Pydantic looks into an `Iterable` only while it is read."""
    if isinstance(validated, dict):
        for value in validated.values():
            read_through(value)
    elif not isinstance(validated, str) and hasattr(validated, "__iter__"):
        for value in validated:
            read_through(value)


def texts_of(messages: list[Message]) -> Iterator[str]:
    for message in messages:
        blocks = message.content if isinstance(message.content, list) else [{"type": "text", "text": message.content}]
        yield from (text_of([block]).strip() for block in blocks)


def assert_openai_takes(shaped: list[dict[str, Any]]) -> None:
    """Its schema, and what the schema does not say."""
    read_through(OPENAI.validate_python(shaped))
    waiting: list[str] = []
    seen: set[str] = set()
    for message in shaped:
        calls = message.get("tool_calls", [])
        assert isinstance(message["content"], str) or (message["content"] is None and calls)
        assert message["content"] is None or message["content"].strip()
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"])
            continue
        assert not waiting
        assert calls or "tool_calls" not in message
        for made in calls:
            assert message["role"] == "assistant"
            assert isinstance(json.loads(made["function"]["arguments"]), dict)
            assert_tool_is_named(made["id"], made["function"]["name"], seen)
        waiting = [made["id"] for made in calls]
    assert not waiting
    assert all(left["role"] != right["role"] or left["role"] == "tool" for left, right in pairwise(shaped))


def assert_anthropic_takes(request: dict[str, Any]) -> None:
    messages = request["messages"]
    read_through(ANTHROPIC.validate_python(messages))
    assert request.keys() <= {"system", "messages"}
    assert request.get("system", "words").strip()
    assert [message["role"] for message in messages] == [("user", "assistant")[at % 2] for at in range(len(messages))]
    waiting: list[str] = []
    seen: set[str] = set()
    for message in messages:
        blocks = message["content"]
        assert blocks
        kinds = [block["type"] for block in blocks]
        assert kinds == sorted(kinds, key=["tool_result", "text", "tool_use"].index)
        assert sorted(block["tool_use_id"] for block in blocks if block["type"] == "tool_result") == sorted(waiting)
        assert all(block["text"].strip() for block in blocks if block["type"] == "text")
        assert all(block["content"].strip() for block in blocks if block["type"] == "tool_result")
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        assert message["role"] == "assistant" or not waiting
        for block in blocks:
            if block["type"] == "tool_use":
                assert_tool_is_named(block["id"], block["name"], seen)
    assert not waiting
    if messages and messages[-1]["role"] == "assistant":
        last = messages[-1]["content"][-1]["text"]
        assert last == last.rstrip()


def assert_tool_is_named(id: str, name: str, seen: set[str]) -> None:
    assert TOOL_ID.fullmatch(id)
    assert len(id) <= LONGEST_ID_CHARS
    assert TOOL_NAME.fullmatch(name)
    assert id not in seen
    seen.add(id)


# ── examples ──


CONVERSATION = [
    Message(role="system", content="Be kind."),
    Message(role="system", content="Be brief."),
    user("Find them."),
    user("Please.", name="Ada"),
    assistant("I look."),
    assistant({"type": "thinking", "thinking": "hm", "signature": "c2ln"}, call("a:1"), "And wait."),
    assistant(call("b")),
    result("b", "two files"),
    user("Still there?"),
    result("a:1", ""),
    Message(role="system", content="It is noon."),
    assistant("Two. "),
]


def test_a_conversation_as_openai_takes_it() -> None:
    shaped = to_openai(CONVERSATION)
    assert_openai_takes(shaped)
    first, second = shaped[2]["tool_calls"]
    assert first["function"] == {"name": "ls", "arguments": '{"path":"a:1"}'}
    assert shaped == [
        {"role": "system", "content": "Be kind.\n\nBe brief."},
        {"role": "user", "content": "Find them.\n\nAda: Please."},
        {"role": "assistant", "content": "I look.\n\nAnd wait.", "tool_calls": [first, second]},
        {"role": "tool", "tool_call_id": "b", "content": "two files"},
        {"role": "tool", "tool_call_id": first["id"], "content": "(no output)"},
        {"role": "user", "content": "Still there?"},
        {"role": "system", "content": "It is noon."},
        {"role": "assistant", "content": "Two. "},
    ]


def test_a_conversation_as_anthropic_takes_it() -> None:
    request = to_anthropic(CONVERSATION)
    assert_anthropic_takes(request)
    asked, called, answered, last = request["messages"]
    assert request["system"] == "Be kind.\n\nBe brief."
    assert [block["text"] for block in asked["content"]] == ["Find them.", "Ada: Please."]
    assert [block.get("text", block.get("input")) for block in called["content"]] == [
        "I look.",
        "And wait.",
        {"path": "a:1"},
        {"path": "b"},
    ]
    assert [block.get("text", block.get("content")) for block in answered["content"]] == [
        "two files",
        "(no output)",
        "Still there?",
        "[system] It is noon.",
    ]
    assert last["content"] == [{"type": "text", "text": "Two."}]


def test_the_user_speaks_first_at_anthropic() -> None:
    request = to_anthropic([assistant("What I remember: all of it."), user("Go on.")])
    assert_anthropic_takes(request)
    assert request["messages"][0] == {"role": "user", "content": [{"type": "text", "text": OPENING}]}


def test_nothing_is_nothing() -> None:
    assert to_openai([]) == []
    assert to_anthropic([]) == {"messages": []}
    assert to_anthropic([Message(role="system", content="Be kind.")]) == {"system": "Be kind.", "messages": []}


def test_a_message_without_a_word_is_no_turn() -> None:
    messages = [user("One."), assistant({"tool_calls": []}), user("Two.")]
    assert to_openai(messages) == [{"role": "user", "content": "One.\n\nTwo."}]
    assert_anthropic_takes(to_anthropic(messages))


def test_a_call_that_still_runs_is_shown() -> None:
    messages = [user("Go."), assistant(call("a"), call("b")), result("b", "ok")]
    assert '[call ls({"path":"a"})]' in words_of(to_openai(messages))
    assert '[call ls({"path":"a"})]' in words_of(to_anthropic(messages))
    assert_openai_takes(to_openai(messages))
    assert_anthropic_takes(to_anthropic(messages))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"a": 1}, {"a": 1}),
        ('{"a": 1}', {"a": 1}),
        ("", {}),
        (None, {}),
        ("rm -rf", {"input": "rm -rf"}),
        ("[1]", {"input": [1]}),
        ([1], {"input": [1]}),
    ],
)
def test_arguments_are_an_object(arguments: Any, expected: dict[str, Any]) -> None:
    messages = [user("Go."), assistant(call("a", arguments=arguments)), result("a", "ok")]
    assert to_anthropic(messages)["messages"][1]["content"][0]["input"] == expected
    assert json.loads(to_openai(messages)[1]["tool_calls"][0]["function"]["arguments"]) == expected


def test_a_failure_is_told() -> None:
    block = {"type": "tool_result", "tool_use_id": "a", "content": "boom", "is_error": True}
    messages = [user("Go."), assistant(call("a")), Message(role="user", content=[block])]
    assert to_anthropic(messages)["messages"][2]["content"][0]["is_error"] is True
    assert to_openai(messages)[2]["content"] == "[failed] boom"


def test_ids_that_look_alike_stay_apart() -> None:
    messages = [
        assistant(call("a b"), call("a:b"), call("a_b")),
        result("a:b", "1"),
        result("a b", "2"),
        result("a_b", "3"),
    ]
    assert_anthropic_takes(to_anthropic(messages))
    shaped = to_openai(messages)
    by_id = {made["id"]: made["function"]["arguments"] for made in shaped[0]["tool_calls"]}
    assert [by_id[message["tool_call_id"]] for message in shaped[1:]] == [
        '{"path":"a:b"}',
        '{"path":"a b"}',
        '{"path":"a_b"}',
    ]


def test_images_are_referred_to() -> None:
    blocks = [
        {"type": "image", "data": PNG, "mimeType": "image/png"},
        {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}},
    ]
    for shape in SHAPES.values():
        words = words_of(shape([Message(role="user", content=blocks)]))
        assert "[image: image/png, 304 bytes]\n[image: https://a.example/b.png]" in words


def test_a_tool_that_the_provider_ran_is_told_in_words() -> None:
    call = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "s", "content": "many cats"}
    messages = [user("Cats?"), assistant(call, found, "Many.")]
    assert to_openai(messages)[1]["content"] == "[call web_search({})]\n[result of s] many cats\nMany."
    assert_anthropic_takes(to_anthropic(messages))


# ── always ──


@given(HISTORIES)
def test_openai_takes_whatever_came(messages: list[Message]) -> None:
    assert_openai_takes(to_openai(messages))


@given(HISTORIES)
def test_anthropic_takes_whatever_came(messages: list[Message]) -> None:
    assert_anthropic_takes(to_anthropic(messages))


@pytest.mark.parametrize("name", ["openai", "anthropic"])
@given(messages=HISTORIES)
def test_no_word_is_lost_and_no_reasoning_or_binary_is_told(name: str, messages: list[Message]) -> None:
    words = words_of(SHAPES[name](messages))
    for text in texts_of(messages):
        assert text in words or text.startswith("data:image")
    assert PNG not in words
    assert "c2ln" not in words
    assert not any(kind in words for kind in ("redacted_thinking", "encrypted_content"))
