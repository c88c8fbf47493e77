from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.contrib.frameworks.openai_agents import item_of, items_of, message_of_item
from offbook.model.content import tool_calls, tool_results
from offbook.model.errors import WrongShape
from offbook.model.types import Message
from tests.unit.contrib.frameworks.strategies import JSON, NAMES, WORDS

BLOCKS = st.one_of(
    st.fixed_dictionaries({"type": st.just("input_text"), "text": WORDS}),
    st.fixed_dictionaries({"type": st.just("output_text"), "text": WORDS, "annotations": st.lists(JSON, max_size=1)}),
    st.fixed_dictionaries(
        {"type": st.just("input_image"), "image_url": st.just("data:image/png;base64,aGk="), "detail": WORDS}
    ),
)
ITEMS = st.one_of(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "system", "developer"]), "content": WORDS | st.lists(BLOCKS)},
        optional={"type": st.just("message"), "id": NAMES, "status": NAMES, "provider_data": JSON},
    ),
    st.fixed_dictionaries(
        {"type": st.just("function_call"), "call_id": NAMES, "name": NAMES, "arguments": WORDS}, optional={"id": NAMES}
    ),
    st.fixed_dictionaries({"type": st.just("function_call_output"), "call_id": NAMES, "output": JSON}),
    st.fixed_dictionaries({"type": st.just("reasoning"), "id": NAMES, "summary": st.lists(JSON, max_size=1)}),
    st.fixed_dictionaries(
        {"type": st.sampled_from(["computer_call", "shell_call_output", "new"]), "call_id": NAMES, "x": JSON}
    ),
)


def stored(message: Message) -> Message:
    return msgspec.json.decode(msgspec.json.encode(message), type=Message)


@given(st.lists(ITEMS, max_size=6))
def test_what_was_given_comes_back(items: list[dict[str, Any]]) -> None:
    assert items_of([stored(message_of_item(item)) for item in items]) == items


@given(NAMES, st.sampled_from(["function", "computer", "custom_tool"]))
def test_a_result_of_any_kind_knows_its_call(call_id: str, kind: str) -> None:
    call = message_of_item({"type": f"{kind}_call", "call_id": call_id, "name": "weigh", "arguments": "{}"})
    result = message_of_item({"type": f"{kind}_call_output", "call_id": call_id, "output": "3 kg"})
    assert (call.role, tool_calls(call)) == ("assistant", [call_id])
    assert (result.role, tool_results(result)) == ("tool", [call_id])


def test_what_came_of_reasoning_that_is_gone_has_no_name() -> None:
    call = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "weigh", "arguments": "{}"}
    thought = message_of_item({"type": "reasoning", "id": "rs_1", "summary": []})
    gone = msgspec.structs.replace(thought, content="[thinking]")
    nameless = {name: value for name, value in call.items() if name != "id"}
    question = message_of_item({"role": "user", "content": "And now?"})
    assert items_of([gone, message_of_item(call)]) == [nameless]
    assert items_of([Message(role="assistant", content="A summary."), message_of_item(call)])[1:] == [nameless]
    assert items_of([gone, question, message_of_item(call)])[1:] == [call]
    assert items_of([thought, message_of_item(call)])[1:] == [call]


def test_ours_is_words_of_its_side() -> None:
    assert item_of(Message(role="assistant", content="A summary.")) == {"role": "assistant", "content": "A summary."}
    assert item_of(Message(role="tool", content="[quoted]")) == {"role": "user", "content": "[quoted]"}
    blocks = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert item_of(Message(role="user", content=blocks)) == {"role": "user", "content": "a\nb"}


def test_a_text_that_was_added_is_in_the_dialect_of_its_side() -> None:
    message = message_of_item({"role": "user", "content": [{"type": "input_text", "text": "a"}]})
    longer = msgspec.structs.replace(message, content=[*message.content, {"type": "text", "text": "b"}])
    item = item_of(longer)
    assert item is not None
    assert [block["type"] for block in item["content"]] == ["input_text", "input_text"]


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(WrongShape):
        message_of_item({"type": "new", "x": object()})
