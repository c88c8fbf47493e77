"""Requests of the Responses API: what is not ours stays as it came, whatever it is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.contrib.proxy.chat_api import Request, with_turn, written
from offbook.contrib.proxy.responses_api import read_responses_request
from tests.unit.contrib.proxy.test_requests import fields, turn, values, words

texts = words.filter(str.strip)
parts = st.lists(st.fixed_dictionaries({"type": st.just("input_text"), "text": texts}), min_size=1, max_size=2)
names = st.text("abc", min_size=1, max_size=3)
items = st.one_of(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "developer", "system"]), "content": texts | parts},
        optional={"type": st.just("message"), "x_cache": values},
    ),
    st.fixed_dictionaries(
        {"type": st.just("message"), "role": st.just("assistant"), "content": texts}, optional={"id": names}
    ),
    st.fixed_dictionaries({"type": st.just("function_call"), "call_id": names, "name": names, "arguments": texts}),
    st.fixed_dictionaries({"type": st.just("function_call_output"), "call_id": names, "output": texts}),
    st.fixed_dictionaries({"type": st.just("custom_tool_call"), "call_id": names, "name": names, "input": texts}),
    st.fixed_dictionaries(
        {"type": st.just("reasoning"), "id": names, "encrypted_content": texts, "summary": st.just([])}
    ),
    st.fixed_dictionaries({"type": st.sampled_from(["web_search_call", "mcp_list_tools", "compaction"]), "id": names}),
)
NOT_OTHERS = ("input", "background", "previous_response_id", "conversation")
others = fields.map(lambda made: {name: value for name, value in made.items() if name not in NOT_OTHERS})


def read(body: Any) -> Request:
    request = read_responses_request(json.dumps(body).encode())
    assert request is not None
    return request


def sent_with(request: Request, memory: str = "MEMORY", recall: str = "RECALL") -> Any:
    return json.loads(written(request, with_turn(request.items, turn(memory, recall))))


@given(others, st.lists(items, min_size=1, max_size=7))
def test_what_is_not_ours_stays_as_it_came(beside: dict[str, Any], given_items: list[dict[str, Any]]) -> None:
    request = read({**beside, "input": given_items})
    sent = sent_with(request)
    assert {**sent, "input": 0} == {**beside, "input": 0}
    kept = [item for item in sent["input"] if item != {"role": "assistant", "content": "MEMORY"}]
    if len(kept) > len(given_items):
        assert kept.pop() == {"role": "user", "content": "RECALL"}
    assert len(kept) == len(given_items)
    changed = [(one, other) for one, other in zip(kept, given_items, strict=True) if one != other]
    assert len(changed) <= 1  # recall, at the end of one message
    for one, other in changed:
        assert {**one, "content": 0} == {**other, "content": 0}
        assert one["role"] == "user"
        is_text = isinstance(other["content"], str)
        assert one["content"] == (
            f"{other['content']}\n\nRECALL"
            if is_text
            else [*other["content"], {"type": "input_text", "text": "RECALL"}]
        )


@given(st.lists(items, min_size=1, max_size=7))
def test_written_without_a_change_it_is_the_same(given_items: list[dict[str, Any]]) -> None:
    request = read({"input": given_items})
    assert json.loads(written(request, request.items))["input"] == given_items


def test_every_byte_of_an_item_that_is_not_changed_stays() -> None:
    thought = b'{"type":"reasoning" ,"id":"rs_1","summary":[], "encrypted_content":"\\u00e9=="}'
    call = b'{"type":"function_call", "call_id":"c","name":"f","arguments":"{ }", "n": 1.50}'
    raw = b'{"input" : [ {"role":"user","content":"Hi"}, %b ,%b, {"role":"user","content":"So?"}]}' % (thought, call)
    request = read_responses_request(raw)
    assert request is not None
    assert [item.before for item in request.items][1] != ()
    sent = written(request, with_turn(request.items, turn("MEMORY", "RECALL")))
    assert thought + b"," + call in sent


def test_a_text_alone_is_what_the_user_asks() -> None:
    request = read({"input": "Hi", "instructions": "Be brief."})
    assert sent_with(request)["input"] == [
        {"role": "assistant", "content": "MEMORY"},
        {"role": "user", "content": "Hi\n\nRECALL"},
    ]
    assert request.items[0].fingerprint == read({"input": [{"role": "user", "content": "Hi"}]}).items[0].fingerprint


def test_memory_stands_behind_the_instructions_and_before_the_thoughts() -> None:
    given_items = [
        {"role": "developer", "content": "Be brief."},
        {"type": "compaction", "encrypted_content": "x"},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "42"},
    ]
    sent = sent_with(read({"input": given_items}), recall="")["input"]
    assert sent == [*given_items[:2], {"role": "assistant", "content": "MEMORY"}, *given_items[2:]]


def test_what_it_follows_at_the_api() -> None:
    assert read({"input": "Hi"}).behind is None
    assert read({"input": "Hi", "previous_response_id": None, "conversation": None}).behind is None
    followed = read({"input": "Hi", "previous_response_id": "resp_1"})
    assert (followed.behind, followed.session_id) == ("response/resp_1", None)
    for conversation in ("conv_1", {"id": "conv_1"}):
        named = read({"input": "Hi", "conversation": conversation})
        assert (named.behind, named.session_id) == ("conversation/conv_1", "conv_1")
    given_name = {"input": "Hi", "conversation": "conv_1", "metadata": {"session_id": "chat:1"}}
    assert read(given_name).session_id == "chat:1"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"\xff",
        b'{"input": []}',
        b'{"input": 7}',
        b'{"messages": [{"role": "user", "content": "Hi"}]}',
        b'{"input": ["Hi"]}',
        b'{"input": [{"type": "item_reference", "id": "msg_1"}]}',
        b'{"input": [{"role": "user", "content": 7}]}',
        b'{"input": "Hi", "background": true}',
        b'{"input": "Hi", "previous_response_id": 7}',
        b'{"input": "Hi", "previous_response_id": ""}',
        b'{"input": "Hi", "conversation": {"id": ["conv_1"]}}',
        b'{"input": [' + b"[" * 100_000,
    ],
)
def test_what_is_not_understood_is_not_read(body: bytes) -> None:
    assert read_responses_request(body) is None


@given(st.binary(), values)
def test_no_bytes_raise(data: bytes, value: Any) -> None:
    read_responses_request(data)
    read_responses_request(b'{"input": ' + data + b"}")
    read_responses_request(json.dumps({"input": value, "conversation": value}).encode())
    read_responses_request(json.dumps({"input": [value], "previous_response_id": value}).encode())
