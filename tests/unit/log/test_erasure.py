"""What is left of a message that is forgotten, and what text of a message can be meant."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.context.validity import made_valid
from offbook.contrib.conformance.check import pair_faults
from offbook.log.erasure import Phrases, folded, forgotten, spans_of, texts_of, windows_of, words_of
from offbook.model.content import tool_calls, tool_results
from offbook.model.receipt import FORGOTTEN_TEXT
from offbook.model.types import Message, now

SECRET = "xyzzy plugh"
KINDS_OF_CALL = ("tool-call", "toolCall", "tool_use", "function_call")
KINDS_OF_RESULT = ("tool-result", "tool_result", "toolResult", "function_call_output")


def call(kind: str, call_id: str, arguments: Any = None) -> dict[str, Any]:
    given_as = {"text": SECRET} if arguments is None else arguments
    id_key = "call_id" if kind == "function_call" else "id"
    return {"type": kind, id_key: call_id, "name": "look_up", "arguments": given_as, "note": SECRET}


def answer(kind: str, call_id: str, content: Any = SECRET) -> dict[str, Any]:
    id_key = {"tool_result": "tool_use_id", "function_call_output": "call_id"}.get(kind, "toolCallId")
    return {"type": kind, id_key: call_id, "content": content, "details": {"deep": [SECRET]}}


# ── what stays ──


def test_a_message_keeps_its_place_role_time_and_ids_and_nothing_it_said() -> None:
    said = Message(role="user", content=SECRET, id="one", ts=now(), name=SECRET, origin=SECRET, meta={SECRET: SECRET})
    left = forgotten(said)
    assert left == Message(role="user", content=FORGOTTEN_TEXT, id="one", ts=said.ts)
    assert list(texts_of(left)) == [FORGOTTEN_TEXT]


def test_blocks_that_neither_call_nor_answer_leave_nothing() -> None:
    blocks = [{"type": "text", "text": SECRET}, {"type": "image", "data": SECRET}, {"type": "hologram", "z": [SECRET]}]
    assert forgotten(Message(role="user", content=blocks)).content == FORGOTTEN_TEXT
    assert forgotten(Message(role="assistant", content=[])).content == FORGOTTEN_TEXT


def test_arguments_that_came_as_json_text_stay_json_text() -> None:
    left = forgotten(Message(role="assistant", content=[call("function_call", "1", '{"q": "xyzzy plugh"}')]))
    assert isinstance(left.content, list)
    assert left.content[1]["arguments"] == "{}"
    left = forgotten(Message(role="assistant", content=[call("tool-call", "1")]))
    assert isinstance(left.content, list)
    assert left.content[1]["arguments"] == {}


@st.composite
def talks(draw: st.DrawFn) -> list[Message]:
    """Calls, alone and several at once, each answered in one of the ways there are."""
    messages: list[Message] = []
    for number in range(draw(st.integers(1, 4))):
        ids = [f"call-{number}-{each}" for each in range(draw(st.integers(1, 3)))]
        words: list[dict[str, Any]] = [{"type": "text", "text": SECRET}] if draw(st.booleans()) else []
        kinds = [draw(st.sampled_from(KINDS_OF_CALL)) for _ in ids]
        calls = [call(kind, each) for kind, each in zip(kinds, ids, strict=True)]
        messages.append(Message(role="assistant", content=[*words, *calls]))
        for each in ids:
            block = answer(draw(st.sampled_from(KINDS_OF_RESULT)), each)
            content: Any = [block] if draw(st.booleans()) else SECRET
            messages.append(Message(role="tool", content=content, tool_call_id=each))
        messages.append(Message(role="user", content=SECRET))
    return messages


@given(talks(), st.data())
def test_calls_and_results_keep_their_other_half(messages: list[Message], data: st.DataObject) -> None:
    gone = data.draw(st.sets(st.integers(0, len(messages) - 1), min_size=1))
    left = [forgotten(message) if at in gone else message for at, message in enumerate(messages)]
    assert [tool_calls(message) for message in left] == [tool_calls(message) for message in messages]
    assert [tool_results(message) for message in left] == [tool_results(message) for message in messages]
    assert list(pair_faults(left)) == []
    assert len(made_valid(left)) == len(messages)
    assert list(pair_faults(made_valid(left))) == []
    assert not any(SECRET in msgspec.json.encode(left[at]).decode() for at in gone)


@given(talks())
def test_forgetting_again_changes_nothing(messages: list[Message]) -> None:
    for message in messages:
        assert forgotten(forgotten(message)) == forgotten(message)


# ── what is meant ──


def is_meant(message: Message, *wanted: str) -> bool:
    return Phrases(wanted).are_said(message)


@given(st.text(min_size=1).filter(str.strip), st.text(min_size=1).filter(str.strip))
def test_a_text_is_meant_however_it_was_typed(text: str, other: str) -> None:
    said = f"before {text} after"
    message = Message(role="user", content=said)
    assert is_meant(message, text)
    assert is_meant(message, "\n".join(said.split()))
    assert is_meant(message, other, text)
    words = tuple(words_of(other))
    is_words = " ".join(words) == folded(other) and words in windows_of(said, len(words))
    assert is_meant(message, other) == (folded(other) in folded(said) or is_words)
    assert not is_meant(message)


def test_every_part_of_a_message_is_looked_at() -> None:
    assert is_meant(Message(role="user", content="", name=SECRET), SECRET)
    assert is_meant(Message(role="user", content="", origin=SECRET), SECRET)
    assert is_meant(Message(role="user", content="", meta={"deep": [{"er": SECRET}]}), SECRET)
    assert is_meant(Message(role="user", content="", meta={SECRET: 1}), SECRET)
    assert is_meant(Message(role="assistant", content=[call("tool-call", "1")]), SECRET)
    assert is_meant(Message(role="user", content="ＸＹＺＺＹ\u3000PLUGH"), SECRET)
    assert is_meant(Message(role="user", content="**Xyzzy**, _plugh_!"), SECRET)
    assert not is_meant(Message(role="user", content="xyzzyplugh"), SECRET)


@pytest.mark.parametrize(
    ("wanted", "arguments"),
    [
        ("4111111111111111", {"card": 4111111111111111}),
        ("0.125", [{"share": 0.125}]),
        ("John Q Public", {"owners": {"John Q Public": True}}),
        ("card", {"card": None}),
        ("Café Straße 9", '{"where": "Caf\\u00e9 Stra\\u00dfe 9"}'),
        ("Café Straße 9", '{"Caf\\u00e9 Stra\\u00dfe 9": 1}'),
        ("4111", '{"card": 4111}'),
        ("Müller", '{"name": "M\\u00fcller"}\n'),
        ("Müller", '{"n": 1}\n{"name": "M\\u00fcller"}\n'),
    ],
)
def test_numbers_keys_and_json_that_came_as_text_are_said_too(wanted: str, arguments: Any) -> None:
    blocks = [call("tool-call", "1", arguments), answer("tool-result", "1", arguments), {"type": "odd", "v": arguments}]
    for block in blocks:
        message = Message(role="assistant", content=[block])
        assert is_meant(message, wanted), block
        assert Phrases([wanted]).as_written(message) == {wanted}
        assert not is_meant(forgotten(message), wanted)


def test_what_a_host_counts_beside_a_message_is_nobodys_word() -> None:
    assert not is_meant(Message(role="user", content="hello", meta={"at": 1731471100000}), "4711")
    assert is_meant(Message(role="user", content="hello", meta={"phone": "0471 14711"}), "4711")


def test_the_names_of_fields_are_nobodys_words() -> None:
    blocks = [call("tool-call", "1", {}), answer("tool-result", "1", "")]
    message = Message(role="assistant", content=blocks, meta={"model": "m-1", "usage": {"input_tokens": 7}})
    for name in ("type", "arguments", "content", "toolCallId", "name", "model", "usage", "input_tokens"):
        assert not is_meant(message, name), name


def test_how_it_was_written_is_known_for_those_who_look_at_bytes() -> None:
    message = Message(role="user", content="XYZZY  plugh, then xyzzy\nPlugh")
    assert Phrases([SECRET]).as_written(message) == {"XYZZY  plugh", "xyzzy\nPlugh"}
    assert Phrases([SECRET]).as_written(Message(role="user", content="xyzzy: **plugh**")) == {"xyzzy: **plugh"}
    assert Phrases(["a.c"]).as_written(Message(role="user", content="a.c abc")) == {"a.c"}
    assert Phrases(["C++ code"]).as_written(Message(role="user", content="C++  code, C code")) == {"C++  code"}


# ── where ──


@given(st.sets(st.tuples(st.sampled_from(["a", "b", "记"]), st.integers(1, 30))))
def test_spans_are_exactly_those_messages(found: set[tuple[str, int]]) -> None:
    spans = spans_of(found)
    told = [(span.session_id, seq) for span in spans for seq in range(span.first_seq, span.last_seq + 1)]
    assert told == sorted(found)
    for before, after in pairwise(spans):
        assert before.session_id != after.session_id or before.last_seq + 1 < after.first_seq
