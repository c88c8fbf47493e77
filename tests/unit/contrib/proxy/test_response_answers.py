from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.contrib.proxy.chat_api import MOST_BYTES, Answer
from offbook.contrib.proxy.responses_api import ResponsesReader
from tests.acceptance.scripted_responses import Output, Responses, streamed
from tests.unit.contrib.proxy.test_answers import STREAM, cut

JSON = "application/json"
texts = st.text(max_size=30)
calls = st.lists(st.tuples(st.text(min_size=1), st.text(min_size=1), texts), max_size=2)


def response(output: Output) -> dict[str, Any]:
    return Responses().response({"input": "Hi"}, output)


def read(kind: str, data: bytes, *, is_whole: bool = True) -> Any:
    reader = ResponsesReader(kind)
    reader.feed(data)
    return reader.answer(is_whole=is_whole)


@given(texts, texts, calls, calls, st.lists(st.integers(1, 80)))
def test_a_stream_is_read_as_the_document_however_it_is_cut(
    thought: str, text: str, called: Any, custom: Any, sizes: list[int]
) -> None:
    document = response(Output(thought, text, called, custom))
    reader = ResponsesReader(STREAM)
    for piece in cut(b"".join(streamed(document)), sizes):
        reader.feed(piece)
    answer = reader.answer()
    assert answer == read(JSON, json.dumps(document).encode())
    assert answer is not None
    assert len(answer.messages) == bool(text) + len(called) + len(custom)
    assert answer.response_id == document["id"]
    assert answer.prompt_tokens == document["usage"]["input_tokens"]


def test_what_was_said_is_what_a_client_would_send_back() -> None:
    answer = read(JSON, json.dumps(response(Output("Hm.", "Look: 猫", [("a", "f", "{}")]))).encode())
    assert answer.messages == [
        {"role": "assistant", "content": "Look: 猫"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        },
    ]


def test_items_are_taken_as_they_come_where_the_end_has_none() -> None:
    document = response(Output(text="Yes."))
    pieces = [piece for piece in streamed(document) if b"event: response.completed" not in piece]
    for named in (True, False):  # some servers name their events in the data alone
        ending = {"type": "response.completed", "response": {**document, "output": []}}
        stream = b"".join([*pieces, b"data: " + json.dumps(ending).encode() + b"\n\n"])
        lines = stream if named else b"\n".join(line for line in stream.split(b"\n") if not line.startswith(b"event:"))
        assert read(STREAM, lines).messages == [{"role": "assistant", "content": "Yes."}]


def test_what_came_to_its_limit_was_said() -> None:
    document = {**response(Output(text="One two")), "status": "incomplete"}
    assert read(JSON, json.dumps(document).encode()).messages
    event = {"type": "response.incomplete", "response": document}
    data = b"event: response.incomplete\ndata: " + json.dumps(event).encode() + b"\n\n"
    assert read(STREAM, data).messages
    assert read(STREAM, data + b"event: resp", is_whole=False).messages  # a client that leaves at the end


def test_what_did_not_come_to_its_end_is_no_answer() -> None:
    pieces = streamed(response(Output(text="One two three four.")))
    assert read(STREAM, b"".join(pieces[:-1])) is None
    assert read(STREAM, b"".join(pieces)[:-20], is_whole=False) is None


@pytest.mark.parametrize("status", ["failed", "in_progress", "queued", "cancelled"])
def test_what_failed_is_no_answer(status: str) -> None:
    document = {**response(Output(text="No.")), "status": status}
    assert read(JSON, json.dumps(document).encode()) is None
    event = {"type": "response.failed", "response": document}
    data = b"".join([*streamed(response(Output(text="No.")))[:-1], b"data: " + json.dumps(event).encode() + b"\n\n"])
    assert read(STREAM, data) is None


def test_an_answer_without_a_word_has_its_id() -> None:
    document = {**response(Output()), "output": [{"type": "mcp_approval_request", "id": "mcpr_1"}]}
    answer = read(JSON, json.dumps(document).encode())
    assert (answer.messages, answer.response_id) == ([], document["id"])


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"[1]",
        b'{"error": {"message": "no"}}',
        b'{"output": 7}',
        b'{"output": [7]}',
        b'{"id": "resp_1"}',
        b'{"output": [{"type": "item_reference", "id": "a"}]}',
        b'{"type": "response.output_item.done", "output_index": [], "item": {}}',
        b'{"type": "response.completed", "response": 7}',
        b'{"type": "error", "message": "no"}',
    ],
)
@pytest.mark.parametrize("kind", [JSON, STREAM])
def test_anything_may_come_and_nothing_is_raised(document: bytes, kind: str) -> None:
    assert read(kind, b"data: " + document + b"\n\n" if kind == STREAM else document) is None


@given(st.binary())
def test_no_bytes_raise(data: bytes) -> None:
    for kind in (JSON, STREAM, "", "image/png"):
        reader = ResponsesReader(kind)
        reader.feed(data)
        reader.feed(b"\ndata: " + data + b"\n")
        assert reader.answer() is None


def event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: ".encode() + json.dumps({"type": kind, **fields}).encode() + b"\n\n"


SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "here"}]}


def test_what_is_passed_over_does_not_count() -> None:
    reader = ResponsesReader(STREAM)
    for _ in range(MOST_BYTES // 3_000_000 + 1):
        reader.feed(event("response.image_generation_call.partial_image", b64="A" * 3_000_000))
    reader.feed(event("response.completed", response={"id": "resp_9", "status": "completed", "output": [SAID]}))
    answer = reader.answer()
    assert answer is not None
    assert answer.messages == [{"role": "assistant", "content": "here"}]


def test_an_answer_whose_words_are_not_read_can_be_followed() -> None:
    reader = ResponsesReader(STREAM)
    reader.feed(event("response.created", response={"id": "resp_9", "status": "in_progress", "output": []}))
    for index in range(MOST_BYTES // 3_000_000 + 1):
        item = {"type": "image_generation_call", "result": "A" * 3_000_000}
        reader.feed(event("response.output_item.done", output_index=index, item=item))
    assert reader.answer() == Answer((), response_id="resp_9")
    unknown = {"id": "resp_9", "output": [{"type": "item_reference", "id": "a"}]}
    assert read(JSON, json.dumps(unknown).encode()) == Answer([], response_id="resp_9")


def test_a_model_that_is_no_name_is_left_out() -> None:
    answer = read(JSON, json.dumps({"id": "resp_9", "output": [SAID], "model": {"a": 1}}).encode())
    assert answer == Answer([{"role": "assistant", "content": "here"}], response_id="resp_9")
