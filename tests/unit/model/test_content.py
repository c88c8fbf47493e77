from __future__ import annotations

import base64
import copy
import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.context.provider_shapes import to_openai
from offbook.model.content import (
    BEGINNING_CHARS,
    MAX_DEPTH,
    depth,
    is_binary_path,
    render,
    replace,
    strings,
    text_of,
    tool_calls,
    tool_results,
)
from offbook.model.large_parts import beginning, externalise, internalise
from offbook.model.types import Message

PNG = base64.b64encode(bytes(range(256)) * 12).decode()
DATA_URL = "data:image/png;base64," + PNG

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=30)
json_values = st.recursive(
    scalars,
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=8), children, max_size=4),
    max_leaves=20,
)
block_fields = st.sampled_from(["type", "text", "data", "source", "content", "arguments", "media_type", "x"])
blocks = st.dictionaries(block_fields, json_values | st.sampled_from(["image", "text", "base64", PNG]), max_size=5)
contents = st.text(max_size=60) | st.lists(blocks, max_size=4)


def message(content: Any, **fields: Any) -> Message:
    return Message(role=fields.pop("role", "assistant"), content=content, **fields)


def nested(levels: int) -> Any:
    value: Any = "deep"
    for _ in range(levels):
        value = [value]
    return value


# ── the text ──


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("plain", "plain"),
        ("", ""),
        ([], ""),
        ([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}], "one\ntwo"),
        ([{"type": "input_text", "text": "in"}, {"type": "output_text", "text": "out"}], "in\nout"),
        ([{"text": "a part without a type"}], "a part without a type"),
        ([{"type": "text", "text": ""}, {"type": "text", "text": "kept"}], "kept"),
        ([{"type": "thinking", "thinking": "hm", "signature": "c2ln"}, {"type": "text", "text": "yes"}], "yes"),
        ([{"type": "tool_use", "id": "a", "name": "ls", "input": {}}], ""),
        ([{"type": "tool-result", "toolCallId": "a", "content": "no"}], ""),
        ([{"type": "image", "data": PNG, "mimeType": "image/png"}], ""),
        ([{"type": "text", "text": 5}, {"type": ["odd"], "text": "odd"}, {"type": "poll", "text": "x"}], ""),
    ],
)
def test_text_of(content: Any, expected: str) -> None:
    assert text_of(content) == expected


# ── calls and results ──


@pytest.mark.parametrize(
    "block",
    [
        {"type": "tool-call", "id": "c1", "name": "ls", "arguments": {}},
        {"type": "toolCall", "id": "c1", "name": "ls", "arguments": {}},
        {"type": "tool_use", "id": "c1", "name": "ls", "input": {}},
        {"type": "server_tool_use", "id": "c1", "name": "web_search", "input": {}},
        {"type": "function_call", "id": "fc_9", "call_id": "c1", "name": "ls", "arguments": "{}"},
        {"type": "function", "id": "c1", "function": {"name": "ls", "arguments": "{}"}},
        {"type": "tool-call", "toolCallId": "c1", "toolName": "ls", "args": {}},
        {"tool_calls": [{"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]},
        {"type": "custom", "id": "c1", "custom": {"name": "sql", "input": "select 1"}},
        {"type": "custom_tool_call", "id": "ctc_9", "call_id": "c1", "name": "sql", "input": "select 1"},
    ],
)
def test_calls_of_every_dialect(block: dict[str, Any]) -> None:
    said = message([{"type": "text", "text": "looking"}, block])
    assert tool_calls(said) == ["c1"]
    assert tool_results(said) == []


@pytest.mark.parametrize(
    "block",
    [
        {"type": "tool-result", "toolCallId": "c1", "content": "ok"},
        {"type": "toolResult", "toolCallId": "c1", "content": [{"type": "text", "text": "ok"}]},
        {"type": "tool_result", "tool_use_id": "c1", "content": "ok"},
        {"type": "web_search_tool_result", "tool_use_id": "c1", "content": "ok"},
        {"type": "function_call_output", "call_id": "c1", "output": "ok"},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "ok"},
    ],
)
def test_results_of_every_dialect(block: dict[str, Any]) -> None:
    said = message([block], role="user")
    assert tool_results(said) == ["c1"]
    assert tool_calls(said) == []
    assert render(said) == "[result of c1] ok"


def test_calls_kept_beside_the_content() -> None:
    calls = [{"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"path": "/tmp"}'}}]
    said = message("", meta={"tool_calls": calls})
    assert tool_calls(said) == ["c1"]
    assert render(said) == '[call ls({"path":"/tmp"})]'


def test_calls_of_custom_tools_are_given_text() -> None:
    called = {"name": "sql", "input": "select 1"}
    beside = message("", meta={"tool_calls": [{"id": "c1", "type": "custom", "custom": called}]})
    assert tool_calls(beside) == ["c1"]
    item = message([{"type": "custom_tool_call", "call_id": "c1", **called}])
    assert render(beside) == render(item) == "[call sql(select 1)]"
    (asked, _) = to_openai([beside, message("1", role="tool", tool_call_id="c1")])
    assert asked["tool_calls"][0]["function"] == {"name": "sql", "arguments": '{"input":"select 1"}'}


def test_a_block_of_a_hosts_own_is_no_call() -> None:
    assert tool_calls(message([{"type": "custom", "id": "c1", "data": {"name": "banner"}}])) == []


def test_a_tool_message_answers_its_call() -> None:
    said = message("42 files", role="tool", tool_call_id="c1")
    assert tool_results(said) == ["c1"]
    assert render(said) == "[result of c1] 42 files"


def test_an_answer_named_twice_counts_once() -> None:
    block = {"type": "tool_result", "tool_use_id": "c1", "content": "ok"}
    said = message([block, {**block, "tool_use_id": "c2"}], role="tool", tool_call_id="c1")
    assert tool_results(said) == ["c1", "c2"]
    assert render(said) == "[result of c1] ok\n[result of c2] ok"


def test_only_a_tool_message_answers_by_its_field() -> None:
    assert tool_results(message("hello", role="user", tool_call_id="c1")) == []


def test_calls_without_an_id_are_not_named() -> None:
    assert tool_calls(message([{"type": "tool_use", "name": "ls", "input": {}}])) == []
    assert tool_calls(message([{"type": "tool_use", "id": 7, "name": "ls", "input": {}}])) == []


# ── as plain text ──


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"type": "text", "text": "hello"}, "hello"),
        ({"type": "tool-call", "id": "c", "name": "ls", "arguments": {"b": 1, "a": [2]}}, '[call ls({"b":1,"a":[2]})]'),
        ({"type": "function_call", "call_id": "c", "name": "ls", "arguments": '{ "a": 1 }'}, '[call ls({"a":1})]'),
        ({"type": "function_call", "call_id": "c", "name": "ls", "arguments": "not JSON"}, "[call ls(not JSON)]"),
        ({"type": "toolCall", "id": "c", "name": "ls"}, "[call ls()]"),
        ({"type": "tool_use", "id": "c", "input": {}}, "[call ?({})]"),
        (
            {"type": "tool_result", "tool_use_id": "c", "content": "boom", "is_error": True},
            "[result of c, failed] boom",
        ),
        ({"type": "tool_result", "tool_use_id": "c", "content": {"rows": 3}}, '[result of c] {"rows":3}'),
        ({"type": "tool_result", "tool_use_id": "c"}, "[result of c]"),
        ({"type": "tool_result", "content": "x"}, "[result of a call] x"),
        (
            {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "a"}, "b", {"n": 1}]},
            '[result of c] a\nb\n{"n":1}',
        ),
        ({"type": "thinking", "thinking": "hm", "signature": "c2lnbmF0dXJl"}, "[thinking] hm"),
        ({"type": "redacted_thinking", "data": "b3BhcXVl"}, "[thinking]"),
        (
            {
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": "weighed it"}],
                "encrypted_content": "x",
            },
            "[thinking] weighed it",
        ),
        ({"type": "image", "data": PNG, "mimeType": "image/png"}, "[image: image/png, 3,072 bytes]"),
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
            "[image: image/png, 3,072 bytes]",
        ),
        ({"type": "image_url", "image_url": {"url": DATA_URL}}, "[image: image/png, 3,072 bytes]"),
        ({"type": "input_image", "image_url": DATA_URL}, "[image: image/png, 3,072 bytes]"),
        ({"type": "image_url", "image_url": {"url": "https://a.example/b.png"}}, "[image: https://a.example/b.png]"),
        (
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,QUJD"}},
            "[file: a.pdf, application/pdf, 3 bytes]",
        ),
        ({"type": "input_audio", "input_audio": {"data": "QUJDRA==", "format": "wav"}}, "[file: 4 bytes]"),
        (
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Dear all"}},
            "[file: text/plain] Dear all",
        ),
        ({"type": "image"}, "[image]"),
        ({"type": "poll", "options": ["a", "b"]}, '{"type":"poll","options":["a","b"]}'),
        ({}, "{}"),
    ],
)
def test_render(block: dict[str, Any], expected: str) -> None:
    assert render(message([block])) == expected


def test_render_keeps_the_order() -> None:
    said = message(
        [
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "c", "name": "ls", "input": {}},
            {"type": "text", "text": "Then I tell."},
        ]
    )
    assert render(said) == "I look.\n[call ls({})]\nThen I tell."


def test_an_image_reads_the_same_outside_the_log() -> None:
    for block in (
        {"type": "image", "data": PNG, "mimeType": "image/png"},
        {"type": "image_url", "image_url": {"url": DATA_URL}},
        {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "input_image", "image_url": DATA_URL}]},
    ):
        outside, moved = externalise([block], over_chars=100_000)
        assert len(moved) == 1
        assert render(message(outside)) == render(message([block]))
        assert "image/png, 3,072 bytes]" in render(message(outside))


@pytest.mark.parametrize("levels", [MAX_DEPTH - 5, MAX_DEPTH * 3, 2_000])
def test_render_survives_depth(levels: int) -> None:
    for block in (
        {"type": "tool_result", "tool_use_id": "c", "content": nested(levels)},
        {"type": "odd", "content": nested(levels)},
        {"type": "tool_use", "id": "c", "name": "ls", "input": {"x": nested(levels)}},
        {"type": "function", "id": "c", "function": {"name": "ls", "arguments": "[" * levels + "]" * levels}},
    ):
        assert isinstance(render(message([block])), str)


@given(contents)
def test_render_takes_anything(content: Any) -> None:
    said = message(content)
    assert render(said) == render(message(copy.deepcopy(content)))
    assert isinstance(text_of(content), str)
    assert tool_calls(said) + tool_results(said) is not None


# ── walking ──


def test_strings_come_in_document_order() -> None:
    value = [{"a": "1", "b": ["2", {"c": "3"}]}, "4", 5, None]
    assert list(strings(value)) == [((0, "a"), "1"), ((0, "b", 0), "2"), ((0, "b", 1, "c"), "3"), ((1,), "4")]
    assert list(strings("alone")) == [((), "alone")]


def test_replace_leaves_the_original_alone() -> None:
    value = [{"a": "1", "b": ["2", "3"]}, {"c": "4"}]
    before = copy.deepcopy(value)
    changed = replace(value, {(0, "b", 0): "two", (0, "b", 1): "three"})
    assert changed == [{"a": "1", "b": ["two", "three"]}, {"c": "4"}]
    assert value == before
    assert changed[1] is value[1]
    assert replace("alone", {(): "other"}) == "other"


@given(json_values)
def test_replace_undoes_itself(value: Any) -> None:
    before = copy.deepcopy(value)
    originals = dict(strings(value))
    changed = replace(value, {path: text + "!" for path, text in originals.items()}) if originals else value
    assert {path: text[:-1] for path, text in strings(changed)} == originals
    assert (replace(changed, originals) if originals else changed) == before == value


@pytest.mark.parametrize(
    ("value", "expected"), [("x", 0), (None, 0), ([], 1), ({}, 1), ([[], {"a": [1]}], 3), (nested(5_000), 5_000)]
)
def test_depth(value: Any, expected: int) -> None:
    assert depth(value) == expected


def test_walking_does_not_recurse() -> None:
    assert [text for _, text in strings(nested(3_000))] == ["deep"]


# ── binaries ──


@pytest.mark.parametrize(
    ("content", "path", "expected"),
    [
        ([{"type": "image", "data": PNG, "mimeType": "image/png"}], (0, "data"), True),
        ([{"type": "image", "data": PNG, "mimeType": "image/png"}], (0, "mimeType"), False),
        ([{"type": "image", "source": {"type": "base64", "data": PNG}}], (0, "source", "data"), True),
        ([{"type": "document", "source": {"type": "text", "data": "hello"}}], (0, "source", "data"), False),
        ([{"type": "image_url", "image_url": {"url": DATA_URL}}], (0, "image_url", "url"), True),
        ([{"type": "image_url", "image_url": {"url": "https://a.example"}}], (0, "image_url", "url"), False),
        ([{"type": "input_audio", "input_audio": {"data": PNG}}], (0, "input_audio", "data"), True),
        ([{"type": "file", "data": "user password is hunter22"}], (0, "data"), False),
        ([{"type": "file", "data": "gh" + "p_" + "a1" * 18}], (0, "data"), False),
        ([{"type": "poll", "data": "QUJD"}], (0, "data"), False),
        ([{"type": "text", "text": "data:text/plain,hello there"}], (0, "text"), False),
        ([{"type": "text", "text": "data:text/plain;base64, see below"}], (0, "text"), False),
        ([{"type": "thinking", "thinking": "hm", "signature": "Q_-9"}], (0, "signature"), True),
        ([{"type": "letter", "signature": "Yours"}], (0, "signature"), False),
        ([{"type": "toolCall", "thoughtSignature": "Q_-9"}], (0, "thoughtSignature"), True),
        ("QUJD", (), False),
        ([{"data": 5}], (0, "data"), False),
    ],
)
def test_is_binary_path(content: Any, path: tuple[str | int, ...], expected: bool) -> None:
    assert is_binary_path(content, path) is expected


# ── outside the log ──


def test_a_long_text_leaves_its_beginning() -> None:
    text = "A first sentence. " + "word " * 200_000
    outside, [(ref, data)] = externalise(text, over_chars=10_000)
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert isinstance(outside, str)
    assert outside.startswith(
        f"[1,000,018 characters kept outside the log, sha256 {digest[:12]}…] The beginning: A first"
    )
    assert outside.endswith(" word")
    assert len(outside) < BEGINNING_CHARS + 120
    assert (ref.path, ref.sha256, ref.chars, ref.bytes) == ([], digest, len(text), len(data))
    assert internalise(outside, [ref], {digest: data}) == text


def test_what_fits_is_not_touched() -> None:
    content = [{"type": "text", "text": "x" * 100}]
    outside, moved = externalise(content, over_chars=100)
    assert outside is content
    assert moved == []


def test_large_parts_of_nested_results_move_too() -> None:
    content = [
        {
            "type": "tool_result",
            "tool_use_id": "c",
            "content": [
                {"type": "text", "text": "short"},
                {"type": "text", "text": "long " * 1_000},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
            ],
        }
    ]
    before = copy.deepcopy(content)
    outside, moved = externalise(content, over_chars=1_000, binary_over_chars=2_048)
    assert [ref.path for ref, _ in moved] == [[0, "content", 1, "text"], [0, "content", 2, "source", "data"]]
    assert content == before
    assert outside[0]["content"][2]["source"]["data"].startswith("[3,072 bytes kept outside the log, sha256 ")  # type: ignore[index]
    assert internalise(outside, [ref for ref, _ in moved], {ref.sha256: data for ref, data in moved}) == before


def test_where_the_data_is_missing_the_stand_in_stays() -> None:
    outside, [(ref, _)] = externalise("x" * 50, over_chars=10)
    assert internalise(outside, [ref], {}) == outside


@given(contents, st.integers(0, 40), st.integers(0, 40))
def test_out_and_in_again_is_identity(content: Any, over_chars: int, binary_over_chars: int) -> None:
    before = copy.deepcopy(content)
    outside, moved = externalise(content, over_chars, binary_over_chars)
    assert content == before
    data_by_sha256 = {ref.sha256: data for ref, data in moved}
    assert internalise(outside, [ref for ref, _ in moved], data_by_sha256) == before
    for ref, data in moved:
        assert hashlib.sha256(data).hexdigest() == ref.sha256
        assert (ref.chars, ref.bytes) == (len(data.decode()), len(data))


@pytest.mark.parametrize(
    ("text", "max_chars", "expected"),
    [
        ("short", 10, "short"),
        ("One sentence. Another one that is cut", 20, "One sentence."),
        ("some words and then more", 12, "some words"),
        ("unbroken" * 10, 12, "unbrokenunbr"),
        ("今天天气很好。我们去公园散步吧", 10, "今天天气很好。"),
        ("line one\nline two is longer", 14, "line one"),
        ("version 3.14 is out now", 14, "version 3.14"),
    ],
)
def test_beginning(text: str, max_chars: int, expected: str) -> None:
    assert beginning(text, max_chars) == expected


@given(st.text(), st.integers(0, 50))
def test_a_beginning_is_a_beginning(text: str, max_chars: int) -> None:
    shown = beginning(text, max_chars)
    assert text.startswith(shown)
    assert len(shown) <= max(max_chars, 0)
