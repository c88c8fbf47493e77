from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from offbook.contrib.frameworks.langchain_turns import langchain_of, message_id_of, message_of_langchain
from offbook.model.content import text_of, tool_calls, tool_results
from offbook.model.types import Message
from tests.unit.contrib.frameworks.strategies import JSON, NAMES, WORDS

BLOCKS = st.one_of(
    WORDS,
    st.fixed_dictionaries({"type": st.just("text"), "text": WORDS}),
    st.fixed_dictionaries({"type": st.just("image_url"), "image_url": st.fixed_dictionaries({"url": WORDS})}),
    st.fixed_dictionaries({"type": st.just("thinking"), "thinking": WORDS, "signature": WORDS}),
)
CONTENTS = WORDS | st.lists(BLOCKS, max_size=3)
BESIDE = st.fixed_dictionaries(
    {"content": CONTENTS, "id": st.none() | NAMES},
    optional={"name": NAMES, "additional_kwargs": st.dictionaries(NAMES, JSON, max_size=2)},
)
CALLS = st.lists(
    st.builds(
        lambda name, args, call_id: {"name": name, "args": args, "id": call_id, "type": "tool_call"},
        NAMES,
        st.dictionaries(NAMES, JSON, max_size=2),
        NAMES,
    ),
    max_size=2,
    unique_by=lambda call: call["id"],
)
UNREADABLE_CALLS = st.lists(
    st.builds(
        lambda name, args, call_id: {
            "name": name,
            "args": args,
            "id": call_id,
            "error": None,
            "type": "invalid_tool_call",
        },
        NAMES,
        st.none() | WORDS,
        st.none() | NAMES,
    ),
    max_size=2,
)
MESSAGES: st.SearchStrategy[BaseMessage] = st.one_of(
    BESIDE.map(lambda fields: HumanMessage(**fields)),
    BESIDE.map(lambda fields: SystemMessage(**fields)),
    st.builds(
        lambda fields, calls, unreadable: AIMessage(**fields, tool_calls=calls, invalid_tool_calls=unreadable),
        BESIDE,
        CALLS,
        UNREADABLE_CALLS,
    ),
    st.builds(
        lambda fields, call_id, status: ToolMessage(**fields, tool_call_id=call_id, status=status),
        BESIDE,
        NAMES,
        st.sampled_from(["success", "error"]),
    ),
    BESIDE.map(lambda fields: ChatMessage(**fields, role="assistant")),
)


def stored(message: Message) -> Message:
    return msgspec.json.decode(msgspec.json.encode(message), type=Message)


@given(MESSAGES)
def test_what_was_given_comes_back(message: BaseMessage) -> None:
    assert langchain_of(stored(message_of_langchain(message))) == message


def test_calls_and_results_are_known_also_where_they_are_told_twice() -> None:
    call = {"name": "weigh", "args": {}, "id": "c1", "type": "tool_call"}
    block = {"type": "tool_use", "id": "c1", "name": "weigh", "input": {}}
    for message in (AIMessage("", tool_calls=[call]), AIMessage([block], tool_calls=[call])):
        ours = stored(message_of_langchain(message))
        assert tool_calls(ours) == ["c1"]
        assert langchain_of(ours) == message
    assert tool_results(message_of_langchain(ToolMessage("3 kg", tool_call_id="c1"))) == ["c1"]


def test_a_call_that_cannot_be_read_is_a_call_that_may_be_answered() -> None:
    unreadable = {"name": "weigh", "args": "{", "id": "c1", "error": "no JSON", "type": "invalid_tool_call"}
    ours = stored(message_of_langchain(AIMessage("", invalid_tool_calls=[unreadable])))
    assert tool_calls(ours) == ["c1"]


def test_what_is_no_json_is_recorded_as_text() -> None:
    ours = message_of_langchain(HumanMessage("Look.", additional_kwargs={"x": object()}))
    assert (ours.role, ours.content) == ("user", "Look.")


def test_an_artifact_is_left_out() -> None:
    message = ToolMessage("3 kg", tool_call_id="c1", artifact=object())
    assert langchain_of(message_of_langchain(message)) == ToolMessage("3 kg", tool_call_id="c1")


def test_a_piece_of_a_stream_is_a_message_of_its_kind() -> None:
    assert message_of_langchain(AIMessageChunk("Hello")).role == "assistant"


def test_ours_is_a_message_of_its_side() -> None:
    assert langchain_of(Message(role="assistant", content="A summary.")) == AIMessage("A summary.")
    assert langchain_of(Message(role="user", content="[quoted]")) == HumanMessage("[quoted]")
    called = Message(
        role="assistant", content=[{"type": "tool-call", "id": "c1", "name": "weigh", "arguments": {"n": 1}}]
    )
    converted = langchain_of(called)
    assert isinstance(converted, AIMessage)
    assert text_of(called.content) == ""
    assert isinstance(converted.content, str)


def test_any_id_becomes_one_that_the_provider_takes() -> None:
    assert message_id_of(HumanMessage("a", id="m1")) == "m1"
    for odd in ("x" * 600, "a\x00b", "", "🦜" * 200):
        made = message_id_of(HumanMessage("a", id=odd))
        assert made is not None
        assert 0 < len(made) < 100
