"""Items of the Responses API as messages of chat completions, and ours as items. Pure.

One item is one message: a text, a call, a call's result. What the model did on its way to it (its thoughts, searches
that ran at the API) is nothing of its own: it belongs to the item that follows. The API refuses either without the
other, and clients leave it out when they send an answer back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from offbook.errors import WrongShape
from offbook.proxy.requests import Item

Said = dict[str, Any]

UNSAID: Said = {"role": "system", "content": ""}
"""Stays where it is, as instructions do, and is no part of what was said."""
STAYING = frozenset({"compaction", "compaction_trigger", "additional_tools", "configuration_update", "mcp_list_tools"})
"""What they hold is for the API, and may stand for all before them."""
ROLES = frozenset({"user", "assistant", "system", "developer"})
OUTPUT = "_output"
OUTPUT_FIELDS = ("output", "result", "tools")
NOT_ARGUMENTS = frozenset({"type", "id", "call_id", "status"})


def said_by(item: Mapping[str, Any]) -> Said | None:
    """The message that it is; None where it belongs to the one that follows.

    Raises WrongShape where only the API knows what it says, or nobody does.
    """
    kind = item.get("type")
    if kind is None:
        kind = "message" if "role" in item else "item_reference"
    if kind == "message":
        return _message(item)
    if not isinstance(kind, str) or kind == "item_reference":
        raise WrongShape("what this item says lies at the API")
    if kind in STAYING:
        return UNSAID
    call_id = item.get("call_id")
    if kind.endswith(OUTPUT):
        # A local shell's is named by its `id`.
        answered = call_id if isinstance(call_id, str) else item.get("id")
        return {"role": "tool", "tool_call_id": answered, "content": _output(item)} if answered else None
    return _call(kind, call_id, item) if isinstance(call_id, str) else None


def sent_as(item: Item) -> list[Any]:
    """What stands for it in `input`."""
    if not isinstance(item.sent, dict):
        return [*item.before, item.sent]
    return [*item.before, *_made(item.sent)]


# ── reading ───────────────────────────────────────────────────────────────────────────────────


def _message(item: Mapping[str, Any]) -> Said:
    role, content = item.get("role"), item.get("content")
    if not isinstance(role, str) or role not in ROLES:
        raise WrongShape("no role that we know")
    return {"role": role, "content": _words(content) if role == "assistant" else content}


def _words(content: Any) -> Any:
    """An answer without what lies beside its words: notes of its sources, how likely each word was."""
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        return content
    texts = [part.get("text", part.get("refusal")) for part in content]
    return "".join(texts) if all(isinstance(text, str) for text in texts) else content


def _call(kind: str, call_id: str, item: Mapping[str, Any]) -> Said:
    name = item.get("name")
    called: dict[str, Any]
    if kind == "custom_tool_call":
        called = {"type": "custom", "custom": {"name": name, "input": item.get("input")}}
    elif kind == "function_call":
        called = {"type": "function", "function": {"name": name, "arguments": item.get("arguments")}}
    else:  # a tool that the API knows and the client runs: a shell, a computer
        given = {field: value for field, value in item.items() if field not in NOT_ARGUMENTS}
        called = {"type": "function", "function": {"name": name or kind.removesuffix("_call"), "arguments": given}}
    return {"role": "assistant", "content": "", "tool_calls": [{"id": call_id, **called}]}


def _output(item: Mapping[str, Any]) -> Any:
    output = next((item[field] for field in OUTPUT_FIELDS if item.get(field) is not None), "")
    if isinstance(output, dict):
        return [output]
    is_content = isinstance(output, str) or (isinstance(output, list) and all(isinstance(one, dict) for one in output))
    return output if is_content else msgspec.json.encode(output).decode()


# ── making ────────────────────────────────────────────────────────────────────────────────────


def _made(said: Said) -> list[Said]:
    if said.get("role") == "tool":
        return [{"type": "function_call_output", "call_id": said.get("tool_call_id"), "output": said.get("content")}]
    calls = [
        {"type": "function_call", "call_id": call["id"], **call["function"]} for call in said.get("tool_calls") or ()
    ]
    if calls:
        spoken = said.get("content")
        return [*([{"role": said["role"], "content": spoken}] if spoken else []), *calls]
    return [{**said, "content": _parts(said.get("content"))}]


def _parts(content: Any) -> Any:
    """Words that were added beside other parts have the name that chat completions have for them."""
    if not isinstance(content, list):
        return content
    return [{**part, "type": "input_text"} if part.get("type") == "text" else part for part in content]
