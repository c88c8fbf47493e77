from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.messages import (
    BinaryContent,
    ImageUrl,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from offbook.contrib.frameworks.pydantic_ai import MADE_AT, is_readable, made, model_messages_of, recorded_parts
from offbook.model.content import is_binary_path, tool_calls, tool_results
from offbook.model.types import Message
from tests.unit.contrib.frameworks.strategies import JSON, NAMES, WORDS

TIMES = st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))
USER_CONTENT = st.one_of(
    WORDS,
    st.builds(ImageUrl, url=st.just("https://example.org/a.png")),
    st.builds(BinaryContent, data=st.binary(max_size=40), media_type=st.sampled_from(["image/png", "application/pdf"])),
)
REQUEST_PARTS: st.SearchStrategy[Any] = st.one_of(
    st.builds(UserPromptPart, content=WORDS | st.lists(USER_CONTENT, min_size=1, max_size=3), timestamp=TIMES),
    st.builds(ToolReturnPart, tool_name=NAMES, content=JSON, tool_call_id=NAMES, timestamp=TIMES),
)
RESPONSE_PARTS: st.SearchStrategy[Any] = st.one_of(
    st.builds(TextPart, content=WORDS, id=st.none() | NAMES),
    st.builds(ThinkingPart, content=WORDS, signature=st.none() | WORDS, provider_name=st.none() | NAMES),
    st.builds(ToolCallPart, tool_name=NAMES, args=WORDS | st.dictionaries(NAMES, JSON, max_size=2), tool_call_id=NAMES),
)
MESSAGES: st.SearchStrategy[ModelMessage] = st.one_of(
    st.builds(ModelRequest, parts=st.lists(REQUEST_PARTS, min_size=1, max_size=3)),
    st.builds(
        ModelResponse,
        parts=st.lists(RESPONSE_PARTS, min_size=1, max_size=3),
        timestamp=TIMES,
        model_name=st.none() | NAMES,
    ),
)


def stored(message: Message) -> Message:
    return msgspec.json.decode(msgspec.json.encode(message), type=Message)


def parts_of(messages: list[ModelMessage]) -> list[Any]:
    dumped = ModelMessagesTypeAdapter.dump_python(messages, mode="json")
    return [(message["kind"], part) for message in dumped for part in message["parts"]]


@given(st.lists(MESSAGES, max_size=4))
def test_what_was_given_comes_back(messages: list[ModelMessage]) -> None:
    ours = [stored(said.message) for said in recorded_parts(messages)]
    assert parts_of(model_messages_of(ours)) == parts_of(messages)


@given(st.lists(MESSAGES, max_size=5))
def test_each_part_has_an_id_of_its_own_which_stays_the_same(messages: list[ModelMessage]) -> None:
    ids = [said.message.id for said in recorded_parts(messages)]
    assert len(set(ids)) == len(ids) == len(parts_of(messages))
    kept = ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(messages))
    assert [said.message.id for said in recorded_parts(kept)] == ids
    assert [said.message.id for said in recorded_parts([*messages, ModelRequest(parts=[UserPromptPart("new")])])][
        :-1
    ] == ids


@given(st.lists(MESSAGES, max_size=4))
def test_what_we_made_is_known_again(messages: list[ModelMessage]) -> None:
    ours = [said.message for said in recorded_parts(messages)]
    assert recorded_parts(made(ours)) == []


def test_instructions_are_the_hosts_own() -> None:
    assert recorded_parts([ModelRequest(parts=[SystemPromptPart("Be brief.")])]) == []


def test_calls_and_results_are_known() -> None:
    call = ModelResponse(parts=[ToolCallPart("weigh", {"n": 1}, "c1")])
    result = ModelRequest(parts=[ToolReturnPart("weigh", {"kg": 3}, "c1")])
    ours = [said.message for said in recorded_parts([call, result])]
    assert (tool_calls(ours[0]), tool_results(ours[1])) == (["c1"], ["c1"])
    assert [message.role for message in ours] == ["assistant", "tool"]


def test_a_binary_is_told_from_words() -> None:
    data = bytes(range(256)) * 4
    image = ModelRequest(parts=[UserPromptPart(["Look.", BinaryContent(data, media_type="image/png")])])
    content = recorded_parts([image])[0].message.content
    assert isinstance(content, list)
    assert is_binary_path(content, (1, "data"))
    assert base64.b64decode(content[1]["data"]) == data


def test_words_in_the_place_of_a_part_are_words_of_its_side() -> None:
    result = recorded_parts([ModelRequest(parts=[ToolReturnPart("weigh", "3 kg", "c1")])])[0].message
    quoted = Message(role="user", content="[a tool's result] 3 kg", id=result.id)
    assert [part.content for part in model_messages_of([quoted])[0].parts] == ["[a tool's result] 3 kg"]
    thought = recorded_parts([ModelResponse(parts=[ThinkingPart("hm")])])[0].message
    assert is_readable(thought)
    assert not is_readable(msgspec.structs.replace(thought, content="[thinking]"))
    assert made([Message(role="assistant", content="A summary.")])[0].timestamp == MADE_AT
