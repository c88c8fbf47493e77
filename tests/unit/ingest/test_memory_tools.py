from __future__ import annotations

import json
from typing import Any

import pytest

from offbook.ingest.entries import prepare
from offbook.ingest.noise import asks_memory, is_of_memory, without_the_forgotten
from offbook.model.types import Message

TEXT = "12 Harbour Street"
KEY = b"k" * 32


def calls(name: str, given: Any) -> list[dict[str, Any]]:
    """One call in every dialect."""
    return [
        {"type": "tool-call", "id": "c", "name": name, "arguments": given},
        {"type": "toolCall", "id": "c", "name": name, "arguments": given},
        {"type": "tool_use", "id": "c", "name": f"mcp__offbook__{name}", "input": given},
        {"type": "function", "id": "c", "function": {"name": name, "arguments": json.dumps(given)}},
        {"type": "function_call", "call_id": "c", "name": name, "arguments": json.dumps(given)},
        # The host's tool that calls others.
        {"type": "toolCall", "id": "c", "name": "tool_call", "arguments": {"id": f"core:{name}", "args": given}},
        {
            "type": "toolCall",
            "id": "c",
            "name": "tool_call",
            "arguments": {"id": f"mcp:offbook__{name}", "args": given},
        },
        {
            "type": "function",
            "id": "c",
            "function": {"name": "tool_call", "arguments": json.dumps({"id": name, "args": given})},
        },
    ]


def said(*blocks: dict[str, Any]) -> Message:
    return Message(role="assistant", content=list(blocks), id="1")


@pytest.mark.parametrize("name", ["memory_recall", "mcp__offbook__memory_pin", "swap_promote", "memory_get"])
def test_tools_of_memory_are_known(name: str) -> None:
    assert is_of_memory(name)
    assert all(map(asks_memory, calls(name, {})))


@pytest.mark.parametrize("name", ["memory_record", "read", "memory", "memory_recall__read", ""])
def test_others_are_not(name: str) -> None:
    assert not is_of_memory(name)
    assert not any(map(asks_memory, calls(name, {})))


def test_what_another_tool_calls_for_is_known() -> None:
    assert asks_memory({"type": "toolCall", "name": "tool_call", "arguments": {"id": "core:memory_search"}})
    assert not asks_memory({"type": "toolCall", "name": "tool_call", "arguments": {"id": "core:read"}})
    assert not asks_memory({"type": "toolCall", "name": "tool_call", "arguments": "{"})


@pytest.mark.parametrize("call", calls("memory_forget", {"matching": TEXT, "confirm": True, "reason": "asked to"}))
def test_a_text_that_was_forgotten_does_not_come_back_with_the_call(call: dict[str, Any]) -> None:
    spoken = {"type": "text", "text": "As you wish."}
    kept = prepare(said(spoken, call), frame_key=KEY, externalise_over=65_536).entry.message
    written = json.dumps(kept.content)
    assert TEXT not in written
    assert all(words in written for words in ("[forgotten]", "asked to", "As you wish.", "memory_forget"))
    assert without_the_forgotten(kept) == kept


@pytest.mark.parametrize(
    "call",
    [
        *calls("memory_forget", {"matching": TEXT}),
        *calls("memory_forget", {"matching": TEXT, "confirm": False}),
        *calls("memory_forget", {"entryIds": ["m1"], "confirm": True}),
        *calls("memory_forget", {"matching": 12, "confirm": True}),
        *calls("memory_forget", [TEXT]),
        *calls("forget", {"matching": TEXT, "confirm": True}),
        {"type": "tool_use", "id": "c", "name": "memory_forget"},
        {"type": "function", "id": "c", "function": {"name": "memory_forget", "arguments": "{"}},
    ],
)
def test_any_other_call_is_kept_as_it_is(call: dict[str, Any]) -> None:
    message = said(call)
    assert without_the_forgotten(message) is message


def test_what_others_write_is_kept_as_it_is() -> None:
    call = calls("memory_forget", {"matching": TEXT, "confirm": True})[0]
    for message in (Message(role="user", content=[call]), Message(role="assistant", content=TEXT)):
        assert without_the_forgotten(message) is message
