"""Items of the Responses API and the messages that they are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.contrib.proxy.chat_api import made_item
from offbook.contrib.proxy.conversation import fingerprint
from offbook.contrib.proxy.responses_api import UNSAID, said_by, sent_as
from offbook.model.errors import WrongShape

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)
KINDS = ["message", "function_call", "function_call_output", "custom_tool_call", "reasoning", "mcp_call", "shell_call"]
items = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(KINDS) | values,
        "role": st.sampled_from(["user", "assistant", "developer"]) | values,
        "content": values,
        "call_id": values,
        "id": values,
        "name": values,
        "arguments": values,
        "input": values,
        "output": values,
    },
)


@given(items)
def test_whatever_comes_it_is_a_message_or_not_understood(item: dict[str, Any]) -> None:
    try:
        said = said_by(item)
    except WrongShape:
        return
    assert said is None or said["role"] in ("user", "assistant", "developer", "system", "tool")


def test_texts_calls_and_results() -> None:
    assert said_by({"role": "user", "content": "Hi"}) == {"role": "user", "content": "Hi"}
    parts = [{"type": "input_text", "text": "Hi"}, {"type": "input_image", "image_url": "https://example.com/a.png"}]
    assert said_by({"type": "message", "role": "user", "content": parts}) == {"role": "user", "content": parts}
    assert said_by({"role": "developer", "content": "Be brief."}) == {"role": "developer", "content": "Be brief."}
    call = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "c",
        "name": "f",
        "arguments": "{}",
        "status": "completed",
    }
    assert said_by(call) == {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    }
    result = {"type": "function_call_output", "call_id": "c", "output": "42"}
    assert said_by(result) == {"role": "tool", "tool_call_id": "c", "content": "42"}
    custom = said_by({"type": "custom_tool_call", "call_id": "c", "name": "sql", "input": "select 1"})
    assert custom is not None
    assert custom["tool_calls"] == [{"id": "c", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}]


def test_an_answer_is_its_words_however_it_comes_back() -> None:
    part = {"type": "output_text", "text": "Hello.", "annotations": [{"type": "url_citation"}], "logprobs": []}
    answered = said_by(
        {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": [part]}
    )
    assert answered == {"role": "assistant", "content": "Hello."}
    for other in ("Hello.", [{"type": "output_text", "text": "Hello."}]):
        again = said_by({"role": "assistant", "content": other})
        assert again is not None
        assert fingerprint(again) == fingerprint(answered)
    refusal = said_by({"role": "assistant", "content": [{"type": "refusal", "refusal": "I will not."}]})
    assert refusal == {"role": "assistant", "content": "I will not."}


@pytest.mark.parametrize(
    ("item", "content"),
    [
        ({"type": "shell_call_output", "call_id": "c", "output": [{"stdout": "a"}]}, [{"stdout": "a"}]),
        (
            {"type": "computer_call_output", "call_id": "c", "output": {"type": "input_image"}},
            [{"type": "input_image"}],
        ),
        ({"type": "local_shell_call_output", "id": "c", "output": "done"}, "done"),
        ({"type": "function_call_output", "call_id": "c", "output": None}, ""),
        ({"type": "function_call_output", "call_id": "c", "output": [1, "a"]}, '[1,"a"]'),
    ],
)
def test_results_of_every_tool_know_their_call(item: dict[str, Any], content: Any) -> None:
    assert said_by(item) == {"role": "tool", "tool_call_id": "c", "content": content}


def test_calls_of_tools_that_the_client_runs() -> None:
    said = said_by({"type": "shell_call", "id": "sh_1", "call_id": "c", "status": "completed", "action": {"a": 1}})
    assert said is not None
    called = {"name": "shell", "arguments": {"action": {"a": 1}}}
    assert said["tool_calls"] == [{"id": "c", "type": "function", "function": called}]


def test_what_belongs_to_the_next_and_what_stays() -> None:
    for kind in ("reasoning", "web_search_call", "code_interpreter_call", "mcp_call", "mcp_approval_response"):
        assert said_by({"type": kind, "id": "x_1"}) is None
    for kind in ("compaction", "mcp_list_tools"):
        assert said_by({"type": kind, "id": "x_1"}) is UNSAID
    for unknown in ({"type": "item_reference", "id": "msg_1"}, {"id": "msg_1"}, {"role": "critic", "content": "No."}):
        with pytest.raises(WrongShape):
            said_by(unknown)


def test_ours_as_items() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    asked = made_item({"role": "assistant", "content": "Wait.", "tool_calls": [call]})
    assert sent_as(asked) == [
        {"role": "assistant", "content": "Wait."},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
    ]
    assert sent_as(made_item({"role": "assistant", "content": "", "tool_calls": [call]})) == sent_as(asked)[1:]
    result = made_item({"role": "tool", "tool_call_id": "c", "content": "42"})
    assert sent_as(result) == [{"type": "function_call_output", "call_id": "c", "output": "42"}]
    ending = made_item(
        {"role": "user", "content": [{"type": "input_text", "text": "Hi"}, {"type": "text", "text": "R"}]}
    )
    assert sent_as(ending)[0]["content"][1] == {"type": "input_text", "text": "R"}
    image = "data:image/png;base64,AAAA"
    shown = made_item({"role": "user", "content": [{"type": "text", "text": image}, {"type": "text", "text": "R"}]})
    assert [part["type"] for part in sent_as(shown)[0]["content"]] == ["input_text", "input_text"]
