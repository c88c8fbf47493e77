"""Clients write an answer again in their own way: it is the same answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.contrib.proxy.conversation import fingerprint

Said = dict[str, Any]
scalars = st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.text())
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)


def call(arguments: Any, **function: Any) -> Said:
    called = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": arguments, **function}}
    return {"role": "assistant", "content": None, "tool_calls": [called]}


def answer(text: str, **fields: Any) -> Said:
    return {"role": "assistant", "content": text, **fields}


@given(st.dictionaries(st.text(), values))
def test_arguments_written_anew_are_the_same(arguments: dict[str, Any]) -> None:
    first = fingerprint(call(json.dumps(arguments)))
    assert first == fingerprint(call(json.dumps(arguments, indent=2, sort_keys=True, ensure_ascii=False)))
    assert first == fingerprint(call(arguments))
    assert first != fingerprint(call(json.dumps({**arguments, "one more": 1})))


@pytest.mark.parametrize(
    ("one", "other"),
    [(call('{"a":1}'), call('{"a": 1.0}')), (call(""), call("{}")), (call("{broken"), call("{broken", strict=None))],
)
def test_calls_that_say_the_same(one: Said, other: Said) -> None:
    assert fingerprint(one) == fingerprint(other)


def test_calls_that_do_not() -> None:
    texts = ["{}", '{"a":1}', '{"a":"1"}', '{"a":true}', "{broken", "[" * 100_000, '{"a":"\\ud800"}', "NaN"]
    assert len({fingerprint(call(text)) for text in texts}) == len(texts)


def test_old_function_calls_are_known_too() -> None:
    def old(arguments: str) -> Said:
        return {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": arguments}}

    assert fingerprint(old('{"a":1}')) == fingerprint(old('{"a": 1}'))
    assert fingerprint(old('{"a":1}')) != fingerprint(old('{"a":2}'))


def test_what_a_custom_tool_is_given_is_text() -> None:
    def custom(given: str) -> Said:
        called = {"id": "c", "type": "custom", "custom": {"name": "sql", "input": given}}
        return {"role": "assistant", "content": None, "tool_calls": [called]}

    assert fingerprint(custom("1")) != fingerprint(custom("1 "))


def test_a_name_tells_people_apart_and_not_answers() -> None:
    assert fingerprint(answer("Yes.", name="bot")) == fingerprint(answer("Yes."))
    people = [{"role": "user", "content": "Yes.", "name": name} for name in ("ann", "bob")]
    assert fingerprint(people[0]) != fingerprint(people[1])


@pytest.mark.parametrize(
    "text",
    [
        "<think>Well, well.</think>\n\nYes.",
        "Well, well.</think>\n\nYes.",
        "<think></think>Yes.",
        "<think>a</think><think>b</think>\nYes.",
    ],
)
def test_thoughts_may_be_left_out(text: str) -> None:
    assert fingerprint(answer(text)) == fingerprint(answer("Yes."))
    assert fingerprint(answer(text)) == fingerprint({**answer(""), "content": [{"type": "text", "text": text}]})
    assert fingerprint({"role": "user", "content": text}) != fingerprint({"role": "user", "content": "Yes."})


def test_thoughts_in_parts_may_be_left_out() -> None:
    words, thought = {"type": "text", "text": "Yes."}, {"type": "thinking", "thinking": [{"type": "text", "text": "H"}]}
    for role, is_alike in (("assistant", True), ("user", False)):
        both, bare = ({"role": role, "content": content} for content in ([thought, words], "Yes."))
        assert (fingerprint(both) == fingerprint(bare)) is is_alike


def test_what_is_no_thought_stays() -> None:
    assert fingerprint(answer("<think>open")) != fingerprint(answer(""))
    fingerprint(answer("<think>" * 500_000))  # in no time
    fingerprint(answer("</think>" * 500_000))
