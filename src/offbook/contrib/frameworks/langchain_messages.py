"""Messages of LangChain as messages of ours and back. Pure.

The words and blocks are the content as they are; calls lie beside it, where OpenAI's dialect keeps them; what we have
no field for lies in `meta`. Left out is a tool's `artifact`, which no model is given and which need not be JSON.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)

from offbook.client.messages import message_of
from offbook.client.model_shapes import to_openai
from offbook.model.content import CALL_ID_KEYS, first_of, is_call, render
from offbook.model.errors import WrongShape
from offbook.model.types import MAX_KEY_BYTES, Block, Message

MARK = "langchain"
_PLAIN = "isPlain"
"""In a block that stands for a string among blocks."""
_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "tool"}
_CLASSES: dict[str, type[BaseMessage]] = {
    "human": HumanMessage,
    "ai": AIMessage,
    "system": SystemMessage,
    "tool": ToolMessage,
    "function": FunctionMessage,
    "chat": ChatMessage,
}
_OWN_FIELDS = frozenset({"content", "id", "type", "name", "tool_call_id", "tool_calls", "artifact"})


def message_of_langchain(message: BaseMessage) -> Message:
    """What cannot be written as JSON is recorded as text: nothing that was said is left out."""
    kind = _kind_of(message)
    role = _ROLES.get(kind) or _role_of_chat(message)
    content = message.content if isinstance(message.content, str) else [_block(one) for one in message.content]
    labels = {"name": message.name, "toolCallId": getattr(message, "tool_call_id", None)}
    given = {name: value for name, value in labels.items() if value is not None and "\x00" not in value}
    fields = {"role": role, "content": content, "id": message_id_of(message), **given}
    beside = message.model_dump(exclude_defaults=True, exclude=set(_OWN_FIELDS))
    unfit = {name: value for name, value in labels.items() if name not in given and value is not None}
    meta: dict[str, Any] = {MARK: {"type": kind, "id": message.id, **beside, **unfit}}
    calls = [dict(call) for call in getattr(message, "tool_calls", None) or ()]
    # One with arguments that cannot be read is answered, too, and sent: its result needs it.
    calls += [{**call, "type": "tool_call"} for call in getattr(message, "invalid_tool_calls", None) or ()]
    if calls:
        in_blocks = {first_of(one, CALL_ID_KEYS) for one in content if isinstance(one, dict) and is_call(one)}
        is_told = all(call.get("id") in in_blocks for call in calls)
        (meta[MARK] if is_told else meta)["tool_calls"] = calls  # told twice, they would be two calls of one id
    try:
        return message_of({**fields, "meta": meta})
    except WrongShape:
        return message_of({**fields, "content": str(message.content), "meta": {MARK: {"type": kind}}})


def langchain_of(message: Message) -> BaseMessage:
    """A message that LangChain gave us, or one of ours as LangChain has it."""
    mark = (message.meta or {}).get(MARK)
    kind = mark.get("type") if isinstance(mark, dict) else None
    # One that was quoted since has no mark left, or another role.
    if not isinstance(mark, dict) or kind not in _CLASSES or _ROLES.get(kind, message.role) != message.role:
        made = convert_to_messages(to_openai([message]))
        return made[0] if len(made) == 1 else AIMessage(render(message))
    content = message.content if isinstance(message.content, str) else [_unblocked(one) for one in message.content]
    fields = {name: value for name, value in mark.items() if name not in ("type", "toolCallId")}
    if message.name is not None:
        fields["name"] = message.name
    if kind == "tool":
        fields["tool_call_id"] = message.tool_call_id or mark.get("toolCallId", "")
    calls = (message.meta or {}).get("tool_calls") or fields.pop("tool_calls", None)
    if calls:
        fields["tool_calls"] = [call for call in calls if isinstance(call.get("args"), dict)]
    return _CLASSES[kind](content=content, **fields)


def ids_in(messages: Sequence[BaseMessage]) -> list[str]:
    """The messages' own ids, as the provider takes them; for those that have none, what they say and how often it was
    said before."""
    times: Counter[str] = Counter()
    ids = []
    for message in messages:
        own = message_id_of(message)
        if own is None:
            own = _digest(f"{message.type}\n{message.content}\n{getattr(message, 'tool_call_id', '')}")
            times[own] += 1
            own = f"{own}:{times[own]}"
        ids.append(own)
    return ids


def message_id_of(message: BaseMessage) -> str | None:
    if message.id is None or (message.id and "\x00" not in message.id and len(message.id.encode()) <= MAX_KEY_BYTES):
        return message.id
    return _digest(message.id)


def _digest(text: str) -> str:
    return f"langchain:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _kind_of(message: BaseMessage) -> str:
    """A piece of a stream is a message of its kind."""
    return next((kind for kind, its_class in _CLASSES.items() if isinstance(message, its_class)), message.type)


def _role_of_chat(message: BaseMessage) -> str:
    role = getattr(message, "role", "")
    return role if role in ("user", "assistant", "system") else "user"


def _block(block: str | Mapping[Any, Any]) -> Block:
    return {"type": "text", "text": block, _PLAIN: True} if isinstance(block, str) else dict(block)


def _unblocked(block: Block) -> str | dict[str, Any]:
    return block["text"] if block.get(_PLAIN) is True and isinstance(block.get("text"), str) else block
