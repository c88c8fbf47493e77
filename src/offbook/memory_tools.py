"""The tools by which a model asks for memory, known again in what it said: ours, and those of a host's memory slot."""

from __future__ import annotations

from typing import Any

import msgspec

from offbook.content import ARGUMENT_KEYS, HOLDERS, NAME_KEYS, call_fields, first_of, is_call
from offbook.erasures import FORGOTTEN_TEXT
from offbook.types import Block, Message

CALLS_ANOTHER = "tool_call"
"""The host's tool that calls a tool it does not show; its result begins with the name of that one."""
_FORGET = "memory_forget"
_NAMES = frozenset(
    {
        *("memory_recall", "memory_context", "memory_expand", "memory_search", "memory_get"),
        *("memory_pin", "memory_status", _FORGET),
        *("swap_status", "swap_dashboard", "swap_promote", "swap_cross"),
    }
)


def is_of_memory(name: str) -> bool:
    """An MCP client puts the server's name and two underscores before it."""
    return _bare(name) in _NAMES


def asks_memory(call: Block) -> bool:
    return _tool_called(call) in _NAMES


def without_the_forgotten(message: Message) -> Message:
    """Of a call that has a text forgotten, not the text: the call is told after it was answered, and would bring it
    back. The very same message where there is none."""
    if message.role != "assistant" or isinstance(message.content, str):
        return message
    blocks = [_without_the_text(block) if is_call(block) else block for block in message.content]
    if all(map(_is_same, blocks, message.content)):
        return message
    return msgspec.structs.replace(message, content=blocks)


def _without_the_text(call: Block) -> Block:
    if _tool_called(call) != _FORGET:
        return call
    holder = next((kind for kind in HOLDERS if isinstance(call.get(kind), dict)), None)
    fields = call if holder is None else call[holder]
    changed = _emptied(fields, levels=2 if first_of(fields, NAME_KEYS) == CALLS_ANOTHER else 1)
    if changed is None:
        return call
    return changed if holder is None else {**call, holder: changed}


def _emptied(fields: Block, levels: int) -> Block | None:
    """Without the text in what is given, or in what is given on. None where there is none."""
    key = next((key for key in ARGUMENT_KEYS if key in fields), None)
    given = None if key is None else _object_in(fields[key])
    if key is None or given is None:
        return None
    emptied: Any = None
    if levels > 1:
        emptied = _emptied(given, levels - 1)
    elif given.get("confirm") is True and isinstance(given.get("matching"), str):
        emptied = {**given, "matching": FORGOTTEN_TEXT}
    if emptied is None:
        return None
    is_text = isinstance(fields[key], str)  # as OpenAI has it
    return {**fields, key: msgspec.json.encode(emptied).decode() if is_text else emptied}


def _tool_called(call: Block) -> str:
    fields = call_fields(call)
    name = str(first_of(fields, NAME_KEYS) or "")
    if name != CALLS_ANOTHER:
        return _bare(name)
    given = _object_in(first_of(fields, ARGUMENT_KEYS))
    return _bare(str(given.get("id", "")).rpartition(":")[2]) if given is not None else ""


def _object_in(arguments: Any) -> dict[str, Any] | None:
    if isinstance(arguments, str):
        try:
            arguments = msgspec.json.decode(arguments)
        except (msgspec.DecodeError, RecursionError):
            return None
    return arguments if isinstance(arguments, dict) else None


def _bare(name: str) -> str:
    return name.rpartition("__")[2]


def _is_same(one: Block, other: Block) -> bool:
    return one is other
