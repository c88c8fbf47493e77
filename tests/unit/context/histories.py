"""Histories that hosts could send: every dialect, every way for calls and results to lose each other."""

from __future__ import annotations

import base64
import json
from typing import Any

from hypothesis import strategies as st

from offbook.model.types import Message

PNG = base64.b64encode(b"\x89PNG" + bytes(300)).decode()
STAND_IN = "[image/png, 3,072 bytes kept outside the log, sha256 0123456789ab…]"

IDS = st.sampled_from(["a", "b", "c1", "c2", "call_0", "functions.exec:0", "call_x|fc_y", "toolu_" + "9" * 60, "a b"])
ODD_IDS = st.sampled_from([None, 7, "", "never"])
ANY_IDS = st.one_of(IDS, IDS, IDS, ODD_IDS)
NAMES = st.sampled_from(["exec", "multi_tool_use.parallel", "ls", "", None, "n" * 90])
OBJECTS = st.sampled_from([{}, {"path": "/tmp"}, {"a": [1, {"b": None}]}])
ARGUMENTS = st.one_of(OBJECTS, st.sampled_from([None, [1], "not JSON", "[1]", '{"path": "/tmp"}', ""]))
WORDS = st.sampled_from(["hello there", "größe", "wait ", "\nand then\n", "data: none", "记忆"])
TEXTS = st.one_of(WORDS, WORDS, st.sampled_from(["", "  \n"]))


def call_blocks() -> st.SearchStrategy[dict[str, Any]]:
    def block(dialect: str, id: Any, name: Any, arguments: Any) -> dict[str, Any]:
        match dialect:
            case "openclaw":
                return {"type": "toolCall", "id": id, "name": name, "arguments": arguments, "thoughtSignature": "c2ln"}
            case "anthropic":
                return {"type": "tool_use", "id": id, "name": name, "input": arguments}
            case "server":
                return {"type": "server_tool_use", "id": id, "name": name, "input": arguments}
            case "responses":
                return {"type": "function_call", "id": "fc_1", "call_id": id, "name": name, "arguments": arguments}
        return {"type": "tool-call", "id": id, "name": name, "arguments": arguments}

    dialects = st.sampled_from(["openclaw", "anthropic", "server", "responses", "ours"])
    return st.builds(block, dialects, ANY_IDS, NAMES, ARGUMENTS)


def chat_calls() -> st.SearchStrategy[dict[str, Any]]:
    def call(id: Any, name: Any, arguments: Any, has_type: bool) -> dict[str, Any]:
        made = {"id": id, "function": {"name": name, "arguments": json.dumps(arguments)}}
        return {**made, "type": "function", "extra_content": {"google": "c2ln"}} if has_type else made

    return st.builds(call, ANY_IDS, NAMES, OBJECTS, st.sampled_from([True, True, True, False]))


def values() -> st.SearchStrategy[Any]:
    """What a tool gives."""
    items = st.one_of(text_blocks(), media_blocks(), reasoning_blocks(), st.just("bare"))
    return st.one_of(TEXTS, st.lists(items, max_size=2), st.just({"rows": 3}), st.none())


def result_blocks() -> st.SearchStrategy[dict[str, Any]]:
    def block(dialect: str, id: Any, value: Any) -> dict[str, Any]:
        match dialect:
            case "openclaw":
                return {"type": "toolResult", "toolCallId": id, "content": value, "isError": True}
            case "anthropic":
                return {"type": "tool_result", "tool_use_id": id, "content": value}
            case "server":
                return {"type": "web_search_tool_result", "tool_use_id": id, "content": value}
            case "responses":
                return {"type": "function_call_output", "call_id": id, "output": value}
        return {"type": "tool-result", "toolCallId": id, "content": value}

    dialects = st.sampled_from(["openclaw", "anthropic", "server", "responses", "ours"])
    return st.builds(block, dialects, ANY_IDS, values())


def text_blocks() -> st.SearchStrategy[dict[str, Any]]:
    kinds = st.sampled_from(["text", "input_text", "output_text"])
    typed = st.builds(lambda kind, text: {"type": kind, "text": text}, kinds, TEXTS)
    signed = st.builds(lambda text: {"type": "text", "text": text, "textSignature": "not base64!"}, TEXTS)
    return st.one_of(typed, signed, st.builds(lambda text: {"text": text}, TEXTS))


def reasoning_blocks() -> st.SearchStrategy[dict[str, Any]]:
    return st.sampled_from(
        [
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "c2ln"},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "so"}], "encrypted_content": "c2ln"},
        ]
    )


def media_blocks() -> st.SearchStrategy[dict[str, Any]]:
    return st.sampled_from(
        [
            {"type": "image", "data": PNG, "mimeType": "image/png"},
            {"type": "image", "data": STAND_IN, "mimeType": "image/png"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64," + PNG}},
            {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}},
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Dear all"}},
            {"type": "resource", "resource": {"uri": "a://b", "mimeType": "image/png", "blob": PNG}},
            {"type": "resource", "resource": {"uri": "a://b", "mimeType": "image/png", "blob": "QQ=="}},
            {"type": "hologram", "layers": [{"z": 1}]},
        ]
    )


def nested_calls() -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(lambda calls: {"tool_calls": calls}, st.lists(chat_calls(), max_size=2))


def contents() -> st.SearchStrategy[Any]:
    block = st.one_of(
        text_blocks(), call_blocks(), call_blocks(), result_blocks(), reasoning_blocks(), media_blocks(), nested_calls()
    )
    plain = st.one_of(TEXTS, st.just("data:image/png;base64," + PNG))
    return st.one_of(plain, st.lists(block, max_size=4))


def metas() -> st.SearchStrategy[dict[str, Any] | None]:
    calls = st.builds(lambda calls: {"tool_calls": calls, "channel": "x"}, st.lists(chat_calls(), max_size=2))
    return st.one_of(
        st.none(),
        st.none(),
        st.none(),
        calls,
        st.just({"reasoning_content": "hm"}),
        st.just({"tool_calls": [7]}),
        st.just({"channel": "x"}),
    )


def messages() -> st.SearchStrategy[Message]:
    anything = st.builds(
        lambda role, content, tool_call_id, meta, name: Message(
            role=role, content=content, tool_call_id=tool_call_id, meta=meta, name=name
        ),
        st.sampled_from(["user", "assistant", "assistant", "system", "tool", "tool"]),
        contents(),
        st.one_of(st.none(), IDS, IDS),
        metas(),
        st.sampled_from([None, None, "Ada"]),
    )
    calls = st.builds(
        lambda blocks: Message(role="assistant", content=blocks), st.lists(call_blocks(), min_size=1, max_size=3)
    )
    chat = st.builds(
        lambda text, calls: Message(role="assistant", content=text, meta={"tool_calls": calls}),
        TEXTS,
        st.lists(chat_calls(), min_size=1, max_size=3),
    )
    tool = st.builds(lambda id, text: Message(role="tool", content=text, tool_call_id=id), IDS, TEXTS)
    answer = st.builds(
        lambda blocks: Message(role="user", content=blocks), st.lists(result_blocks(), min_size=1, max_size=3)
    )
    return st.one_of(anything, calls, chat, tool, tool, answer)


def paired(id: str, dialect: str) -> tuple[dict[str, Any], dict[str, Any]]:
    match dialect:
        case "anthropic":
            call = {"type": "tool_use", "id": id, "name": "ls", "input": {"path": "/tmp"}}
            return call, {"type": "tool_result", "tool_use_id": id, "content": "42 files"}
        case "responses":
            call = {"type": "function_call", "id": "fc_1", "call_id": id, "name": "ls", "arguments": "{}"}
            return call, {"type": "function_call_output", "call_id": id, "output": "42 files"}
    call = {"type": "toolCall", "id": id, "name": "ls", "arguments": {}}
    return call, {"type": "toolResult", "toolCallId": id, "content": [{"type": "text", "text": "42 files"}]}


@st.composite
def exchanges(draw: st.DrawFn) -> list[Message]:
    """Calls and their results as they should be, but for one or two things that happened in between."""
    ids = draw(st.lists(IDS, min_size=1, max_size=3))
    dialect = draw(st.sampled_from(["openclaw", "anthropic", "responses", "chat"]))
    calls, results = zip(*(paired(id, dialect) for id in ids), strict=True)
    if dialect == "chat":
        beside = [{"id": id, "type": "function", "function": {"name": "ls", "arguments": "{}"}} for id in ids]
        made = [Message(role="assistant", content=draw(TEXTS), meta={"tool_calls": beside})]
    elif draw(st.booleans()):
        made = [Message(role="assistant", content=list(calls))]
    else:
        made = [Message(role="assistant", content=[call]) for call in calls]
    match draw(st.sampled_from(["tool", "block of a tool", "one by one", "at once"])):
        case "tool":
            answers = [Message(role="tool", content=draw(TEXTS), tool_call_id=id) for id in ids]
        case "block of a tool":
            answers = [
                Message(role="tool", content=[result], tool_call_id=id) for id, result in zip(ids, results, strict=True)
            ]
        case "one by one":
            answers = [Message(role="user", content=[result]) for result in results]
        case _:
            answers = [Message(role="user", content=[*results, {"type": "text", "text": "and then"}])]
    answers = draw(st.permutations(answers))
    row = [*made, *answers]
    for _ in range(draw(st.integers(0, 2))):
        position = draw(st.integers(0, len(row)))
        match draw(st.sampled_from(["lost", "twice", "between"])):
            case "lost":
                del row[position : position + 1]
            case "twice":
                row[position:position] = row[position : position + 1]
            case _:
                row.insert(position, draw(messages()))
    return row


HISTORIES = st.lists(st.one_of(messages().map(lambda one: [one]), exchanges(), exchanges()), max_size=5).map(
    lambda rows: [message for row in rows for message in row]
)
