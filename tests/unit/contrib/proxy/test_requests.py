from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.contrib.proxy.chat_api import Request, read_request, with_turn, written
from offbook.model.turn import PreparedTurn, TurnTokens

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**15), 10**15)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
fields = st.dictionaries(st.text().filter(lambda name: name != "messages"), values, max_size=4)
words = st.text().filter(lambda text: "\\ud" not in json.dumps(text))
messages = st.lists(
    st.fixed_dictionaries(
        {
            "role": st.sampled_from(["system", "developer", "user", "assistant"]),
            "content": words
            | st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": words}), min_size=1, max_size=2),
        },
        optional={"x_cache": values, "annotations": st.just([]), "refusal": st.none()},
    ),
    min_size=1,
    max_size=5,
)


def turn(memory: str = "", recall: str = "") -> PreparedTurn:
    tokens = TurnTokens(memory=1, recall=1, budget=9)
    return PreparedTurn(memory=memory, recall=recall, tokens=tokens, entries=[], intent="plain", degraded=[])


def read(body: Any) -> Request:
    request = read_request(json.dumps(body).encode())
    assert request is not None
    return request


@given(fields, messages)
def test_what_is_not_ours_stays_as_it_came(others: dict[str, Any], said: list[dict[str, Any]]) -> None:
    request = read({**others, "messages": said})
    sent = json.loads(written(request, with_turn(request.items, turn("MEMORY", "RECALL"))))
    assert {**sent, "messages": 0} == {**others, "messages": 0}
    kept = [message for message in sent["messages"] if message != {"role": "assistant", "content": "MEMORY"}]
    assert [{**message, "content": 0} for message in kept[: len(said)]] == [
        {**message, "content": 0} for message in said
    ]
    assert kept[len(said) :] in ([], [{"role": "user", "content": "RECALL"}])
    changed = [number for number, (one, other) in enumerate(zip(kept, said, strict=False)) if one != other]
    assert len(changed) <= 1  # recall, at the end of one message
    assert all(said[number]["role"] == "user" for number in changed)


def test_every_byte_of_a_message_that_is_not_changed_stays() -> None:
    raw = b'{"model" : "m", "messages": [ {"role":"assistant" , "content":"\\u00e9", "n": 1.50} ,{"role":"user","content":"Hi"}]}'
    request = read_request(raw)
    assert request is not None
    sent = written(request, with_turn(request.items, turn(recall="RECALL")))
    assert b'{"role":"assistant" , "content":"\\u00e9", "n": 1.50}' in sent
    assert json.loads(sent)["messages"][1] == {"role": "user", "content": "Hi\n\nRECALL"}


def test_nothing_to_add_adds_nothing() -> None:
    request = read({"messages": [{"role": "user", "content": "Hi"}]})
    assert with_turn(request.items, turn()) == request.items


def test_memory_stands_behind_the_instructions_and_recall_where_the_user_asked() -> None:
    said = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "a", "content": "42"},
    ]
    request = read({"messages": said})
    sent = json.loads(written(request, with_turn(request.items, turn("MEMORY", "RECALL"))))["messages"]
    assert [message["role"] for message in sent] == ["developer", "assistant", "user", "assistant", "tool"]
    assert sent[1]["content"] == "MEMORY"
    assert sent[2]["content"] == [*said[1]["content"], {"type": "text", "text": "RECALL"}]
    assert sent[3:] == said[2:]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"\xff",
        b'{"messages": []}',
        b'{"messages": {}}',
        b'{"prompt": "old"}',
        b'{"messages": [{"role": "function", "content": "1"}]}',
        b'{"messages": [{"role": "user", "content": 7}]}',
        b'{"messages": [' + b"[" * 100_000,
    ],
)
def test_what_is_not_understood_is_not_read(body: bytes) -> None:
    assert read_request(body) is None


def test_who_names_the_conversation() -> None:
    said = [{"role": "user", "content": "Hi"}]
    assert read({"messages": said}).session_id is None
    assert read({"messages": said, "metadata": {"session_id": "chat:1"}}).session_id == "chat:1"
    assert read({"messages": said, "metadata": {"session_id": "a\x00b", "thread_id": "t"}}).session_id == "t"
    assert read({"messages": said, "metadata": {"session_id": "x" * 600}}).session_id is None
    assert read({"messages": said, "metadata": 7}).session_id is None
    assert read({"messages": said, "user": "ann"}).session_id is None
    assert read({"messages": said, "user": "ann"}).seed != read({"messages": said, "user": "bob"}).seed
    assert read({"messages": said, "user": 7}).seed == ""


def test_recall_without_a_question_to_stand_behind_is_left_out() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    called = {"role": "assistant", "content": None, "tool_calls": [call]}
    begun = [{"role": "user", "content": "Write JSON"}, {"role": "assistant", "content": '{"a":'}]
    at_work = [called, {"role": "tool", "tool_call_id": "a", "content": "42"}]  # a context stands for the question
    for said in (begun, at_work):
        request = read({"messages": said})
        sent = json.loads(written(request, with_turn(request.items, turn("MEMORY", "RECALL"))))["messages"]
        assert sent == [{"role": "assistant", "content": "MEMORY"}, *said]


def test_a_model_is_its_name_or_none() -> None:
    said = [{"role": "user", "content": "Hi"}]
    assert read({"messages": said, "model": "gemma"}).model == "gemma"
    assert read({"messages": said, "model": 7}).model == read({"messages": said}).model == ""
