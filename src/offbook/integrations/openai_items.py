"""Items of OpenAI's Responses API, as the Agents SDK keeps them, as messages of ours and back. Pure.

One item, one message. Its words are the content, in the item's own blocks; what we have no field for lies in `meta`, so
that what comes back is what was given. Calls of every kind are known by their `call_id`, and results with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from offbook.client.messages import message_of
from offbook.compression.replayable import THOUGHT
from offbook.content import CALL_TYPES, TEXT_TYPES, block_text, render
from offbook.types import Block, Message

MARK = "openaiAgents"
Item = dict[str, Any]

_ROLES = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}
_RESULT_ENDING = "_output"


def message_of_item(item: Mapping[str, Any]) -> Message:
    """Raises WrongShape where it cannot be written as JSON."""
    kind, role, content = item.get("type", "message"), item.get("role"), item.get("content")
    if kind == "message" and role in _ROLES and _is_content(content):
        beside = {name: value for name, value in item.items() if name not in ("role", "content")}
        mark = {"role": role, "beside": beside}
        return message_of({"role": _ROLES[role], "content": content, "meta": {MARK: mark}})
    fields: dict[str, Any] = {"role": "assistant", "content": [dict(item)], "meta": {MARK: {"type": kind}}}
    call_id = item.get("call_id")
    if isinstance(call_id, str) and str(kind).endswith(_RESULT_ENDING):
        fields |= {"role": "tool", "toolCallId": call_id}
    elif isinstance(call_id, str) and kind not in CALL_TYPES:  # one that only this API knows
        call = {"type": "function", "id": call_id, "name": item.get("name") or kind}
        fields["meta"]["tool_calls"] = [call]
    return message_of(fields)


def items_of(messages: Sequence[Message]) -> list[Item]:
    """What the API takes. Reasoning that is gone is left out, and with it the names of the items that came of it: the
    API refuses an item by its `id` whose reasoning it is not given."""
    return list(_items(messages))


def item_of(message: Message) -> Item | None:
    """None where nothing of the item is left to give: a thought that no other model may read."""
    mark = (message.meta or {}).get(MARK)
    if not isinstance(mark, dict):
        return _said(message)
    content = message.content
    if "role" in mark:
        role = mark["role"]
        given = content if isinstance(content, str) else [_of_role(block, role) for block in content]
        return {**mark.get("beside", {}), "role": role, "content": given}
    if isinstance(content, list) and len(content) == 1 and content[0].get("type", "message") == mark.get("type"):
        return content[0]
    return None if mark.get("type") == "reasoning" and content == THOUGHT else _said(message)


def _items(messages: Sequence[Message]) -> Iterator[Item]:
    has_reason = True  # whether what an assistant's item came of is there, as far as it is known
    for message in messages:
        is_ours = MARK not in (message.meta or {})
        item = item_of(message)
        if item is None or is_ours:
            has_reason = False
        elif message.role in ("user", "system") or item.get("type") == "reasoning":
            has_reason = True
        if item is not None:
            is_bare = message.role == "assistant" and not has_reason
            yield {name: value for name, value in item.items() if name != "id"} if is_bare else item


def _is_content(content: Any) -> bool:
    return isinstance(content, str) or (isinstance(content, list) and all(isinstance(one, Mapping) for one in content))


def _of_role(block: Block, role: str) -> Block:
    """A text that took the place of something, or was added, in the dialect of its side."""
    if block.get("type") != "text" or block_text(block) is None:
        return block
    return {**block, "type": "output_text" if role == "assistant" else "input_text"}


def _said(message: Message) -> Item:
    role = "user" if message.role == "tool" else message.role
    content = message.content
    if isinstance(content, list) and all(block.get("type") in TEXT_TYPES for block in content):
        return {"role": role, "content": "\n".join(str(block.get("text", "")) for block in content)}
    return {"role": role, "content": content if isinstance(content, str) else render(message)}
