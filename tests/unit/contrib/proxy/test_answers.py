from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.contrib.proxy.chat_api import MOST_BYTES, Answer, AnswerReader, Reader
from offbook.contrib.proxy.responses_api import ResponsesReader
from tests.acceptance.scripted_api import Says, events, whole

STREAM = "text/event-stream; charset=utf-8"
calls = st.lists(st.tuples(st.text(min_size=1), st.text(min_size=1), st.text()), max_size=3)


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    pieces, at = [], 0
    for size in sizes:
        pieces.append(data[at : at + size])
        at += size
    return [*pieces, data[at:]]


@given(st.text(), calls, st.lists(st.integers(1, 50)))
def test_a_stream_is_read_as_the_document_however_it_is_cut(
    text: str, called: list[tuple[str, str, str]], sizes: list[int]
) -> None:
    reply = Says(text, called)
    streamed, at_once = AnswerReader(STREAM), AnswerReader("application/json")
    for piece in cut(b"".join(events(reply)), sizes):
        streamed.feed(piece)
    for piece in cut(whole(reply), sizes):
        at_once.feed(piece)
    assert streamed.answer() == at_once.answer()


def test_what_was_said_is_what_a_client_would_send_back() -> None:
    reader = AnswerReader(STREAM)
    reader.feed(b"".join(events(Says("Look: 猫", [("a", "f", "{}"), ("b", "g", '{"x": 1}')]))))
    read = reader.answer()
    assert read is not None
    assert read.message == {
        "role": "assistant",
        "content": "Look: 猫",
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            {"id": "b", "type": "function", "function": {"name": "g", "arguments": '{"x": 1}'}},
        ],
    }


def test_what_did_not_come_whole_is_no_answer() -> None:
    pieces = events(Says("One two three four."))
    reader = AnswerReader(STREAM)
    for piece in pieces[:-2]:
        reader.feed(piece)
    assert reader.answer() is None


def without_reason(data: bytes) -> bytes:
    return data.replace(b'"finish_reason": "stop"', b'"finish_reason": null')


def test_a_whole_document_needs_no_reason_why_it_ended() -> None:
    for message in ({"role": "assistant", "content": "Yes."}, {"content": "Yes."}):
        reader = AnswerReader("application/json")
        reader.feed(json.dumps({"choices": [{"message": message}]}).encode())
        read = reader.answer()
        assert read is not None
        assert read.message == {"role": "assistant", "content": "Yes."}


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n\r\n"])
def test_a_stream_that_says_it_is_done_needs_no_reason_why(end: bytes) -> None:
    pieces = [without_reason(piece) for piece in events(Says("One two three four."))]
    assert pieces[-1].strip() == b"data: [DONE]"
    reader = AnswerReader(STREAM)
    for piece in [*pieces[:-1], pieces[-1].strip() + end]:
        reader.feed(piece)
    read = reader.answer()
    assert read is not None
    assert read.message["content"] == "One two three four."


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_stream_that_says_neither_is_no_answer(is_whole: bool) -> None:
    reader = AnswerReader(STREAM)
    for piece in events(Says("One two three four."))[:-1]:
        reader.feed(without_reason(piece))
    reader.feed(b"" if is_whole else b"data: [DO")
    assert reader.answer(is_whole=is_whole) is None


def test_the_tokens_of_the_prompt_are_read() -> None:
    document = json.loads(whole(Says("Yes.")))
    reader = AnswerReader("application/json")
    reader.feed(json.dumps({**document, "usage": {"prompt_tokens": 321}}).encode())
    read = reader.answer()
    assert read is not None
    assert (read.prompt_tokens, read.model) == (321, "scripted-1")


def several() -> bytes:
    document = json.loads(whole(Says("One.")))
    choice: dict[str, Any] = document["choices"][0]
    other = {**choice["message"], "content": "Two."}
    return json.dumps({**document, "choices": [choice, {**choice, "index": 1, "message": other}]}).encode()


@pytest.mark.parametrize("is_streamed", [True, False])
def test_of_several_answers_all_are_told(is_streamed: bool) -> None:
    reader = AnswerReader(STREAM if is_streamed else "application/json")
    for number, text in enumerate(("One.", "Two.")):
        for event in events(Says(text))[:-1] if is_streamed else ():
            reader.feed(event.replace(b'"index": 0', b'"index": %d' % number))
    if not is_streamed:
        reader.feed(several())
    read = reader.answer()
    assert read is not None
    assert not read.messages
    assert [[message["content"] for message in choice] for choice in read.choices] == [["One."], ["Two."]]


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"not json",
        b"[1]",
        b'{"error": {"message": "no"}}',
        b'{"choices": 7}',
        b"\xff",
        b'{"choices": [{"delta": {"content": {"a": 1}}, "finish_reason": "stop"}]}',
    ],
)
@pytest.mark.parametrize("kind", ["application/json", STREAM])
def test_anything_may_come_and_nothing_is_raised(document: bytes, kind: str) -> None:
    reader = AnswerReader(kind)
    reader.feed(b"data: " + document + b"\n\n" if kind == STREAM else document)
    assert reader.answer() is None


@given(st.binary())
def test_no_bytes_raise(data: bytes) -> None:
    for kind in ("application/json", STREAM, "", "image/png"):
        reader = AnswerReader(kind)
        reader.feed(data)
        reader.feed(b"\ndata: " + data + b"\n")
        assert reader.answer() is None


def test_what_is_too_long_or_packed_is_not_read() -> None:
    packed = AnswerReader("application/json", is_plain=False)
    packed.feed(whole(Says("Yes.")))
    assert packed.answer() is None
    long = AnswerReader("application/json")
    for _ in range(MOST_BYTES // 1_000_000 + 1):
        long.feed(b" " * 1_000_000)
    long.feed(whole(Says("Yes.")))
    assert long.answer() is None


def test_what_broke_off_behind_its_end_is_an_answer() -> None:
    pieces = events(Says("One two three four."))
    at = next(number for number, piece in enumerate(pieces) if b'"finish_reason": "stop"' in piece)
    for is_finished in (True, False):
        reader = AnswerReader(STREAM)
        for piece in pieces[: at + is_finished]:
            reader.feed(piece)
        reader.feed(b'data: {"usage": {"prom')
        read = reader.answer(is_whole=False)
        assert (read is not None) is is_finished


def custom(streamed: bool) -> bytes:
    whole_call = {"id": "c", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
    if not streamed:
        message = {"role": "assistant", "content": None, "tool_calls": [whole_call]}
        return json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}).encode()
    calls = [
        {"index": 0, "id": "c", "type": "custom", "custom": {"name": "sql", "input": ""}},
        {"index": 0, "custom": {"input": "select "}},
        {"index": 0, "custom": {"input": "1"}},
    ]
    deltas = [{"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]} for call in calls]
    ended = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in [*deltas, ended])


@pytest.mark.parametrize("streamed", [True, False])
def test_calls_of_custom_tools_are_read_as_such(streamed: bool) -> None:
    reader = AnswerReader(STREAM if streamed else "application/json")
    reader.feed(custom(streamed))
    read = reader.answer()
    assert read is not None
    assert read.message["tool_calls"] == [{"id": "c", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}]


DEEP = b"[" * 5_000 + b"]" * 5_000


@pytest.mark.parametrize("reader_of", [AnswerReader, ResponsesReader])
def test_what_is_nested_too_deeply_is_not_read_and_nothing_is_raised(reader_of: type[Reader]) -> None:
    for kind, document in ((STREAM, b'data: {"x":' + DEEP + b"}\n\n"), ("application/json", b'{"x":' + DEEP + b"}")):
        reader = reader_of(kind)
        reader.feed(document)
        assert reader.answer() is None


def test_a_model_or_a_count_that_is_none_is_left_out() -> None:
    said = {"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}], "model": 5}
    reader = AnswerReader("application/json")
    reader.feed(json.dumps({**said, "usage": {"prompt_tokens": "x"}}).encode())
    assert reader.answer() == Answer([{"role": "assistant", "content": "a"}])


def called(*pieces: dict[str, Any]) -> list[dict[str, Any]]:
    """The calls of a stream, one piece an event."""
    reader = AnswerReader(STREAM)
    for piece in pieces:
        reader.feed(b"data: " + json.dumps({"choices": [{"index": 0, "delta": {"tool_calls": [piece]}}]}).encode())
        reader.feed(b"\n\n")
    reader.feed(b"data: [DONE]\n\n")
    read = reader.answer()
    assert read is not None
    found: list[dict[str, Any]] = read.message["tool_calls"]
    return found


def call(call_id: str, name: str, arguments: str, **more: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}, **more}


WEATHER, TIME = call("a", "weather", '{"in":"Rome"}'), call("b", "time", '{"in":"Oslo"}')


@pytest.mark.parametrize("index", [{}, {"index": 0}, {"index": None}])
def test_calls_with_one_index_or_none_are_several(index: dict[str, Any]) -> None:
    rest = {"function": {"arguments": '{"in":'}}, {"function": {"arguments": '"Oslo"}'}}
    begun = call("b", "time", "")
    assert called({**WEATHER, **index}, {**TIME, **index}) == [WEATHER, TIME]
    assert called({**WEATHER, **index}, {**begun, **index}, *({**piece, **index} for piece in rest)) == [WEATHER, TIME]
    back = {"id": "a", "function": {"arguments": '"Rome"}'}}
    assert called(call("a", "weather", '{"in":'), {**TIME, **index}, {**back, **index}) == [WEATHER, TIME]


def test_an_id_that_is_made_anew_for_every_piece_begins_no_call() -> None:
    pieces = [call("a", "time", "", index=0), {"index": 0, "id": "b", "function": {"arguments": '{"in":"Oslo"}'}}]
    assert called(*pieces) == [TIME]


@pytest.mark.parametrize("is_streamed", [True, False])
def test_words_in_parts_are_read_without_the_thoughts(is_streamed: bool) -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
        {"type": "text", "text": "Paris, "},
        {"type": "text", "text": "of course."},
    ]
    choice = {"index": 0, "delta" if is_streamed else "message": {"content": parts}, "finish_reason": "stop"}
    document = json.dumps({"choices": [choice]}).encode()
    reader = AnswerReader(STREAM if is_streamed else "application/json")
    reader.feed(b"data: " + document + b"\n\n" if is_streamed else document)
    assert reader.answer() == Answer([{"role": "assistant", "content": "Paris, of course."}])
