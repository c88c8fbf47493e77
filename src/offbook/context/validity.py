"""Contexts that a model takes: every result right after its call, every call answered, nothing another model refuses.

A result without its call, or a signature of one model sent to another, is refused on every turn from then on. So what
a provider would refuse is changed, and nothing else: a message that is fine comes back as the same object.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from offbook.context.replayable import (
    QUOTED_RESULT,
    calls_beside,
    has_own_words,
    is_blank,
    quoted,
    replayable,
    shown_block,
    text_block,
)
from offbook.context.tool_pairs import BESIDE, FIELD, Place, Tool, answered, ids, in_order, tools_of

# The dialects are spelt out in one place, `content`.
from offbook.ingest.frames import frame
from offbook.model.content import CALL_ID_KEYS, RESULT_ID_KEYS, is_call, is_result
from offbook.model.types import Block, Message

EMPTY = "…"
"""In place of a message that says nothing, since it stands for its part of the log all the same."""


def made_valid(messages: Sequence[Message], key: bytes = b"") -> list[Message]:
    """The same messages as a model takes them. None is added or left out."""
    return [message for _, message in placed(messages, key)]


def placed(messages: Sequence[Message], key: bytes = b"") -> list[tuple[int, Message]]:
    """`made_valid`, each message with the index it had: a result that came late stands behind its call. `key`: of our
    frames, in which a result without its call is shown."""
    if all(map(_is_plain, messages)):
        return list(enumerate(messages))
    fit = [message if _is_plain(message) else replayable(message) for message in messages]
    tools = [[] if _is_plain(message) else list(tools_of(index, message)) for index, message in enumerate(fit)]
    calls = answered(fit, tools)
    order = in_order(fit, calls)
    names = ids(fit, tools, calls, order)
    return [(index, _not_empty(_named(fit[index], tools[index], names, key))) for index in order]


def _is_plain(message: Message) -> bool:
    """Whether it is words only, of which nothing can be refused."""
    content = message.content
    return (
        isinstance(content, str)
        and message.role != "tool"
        and not message.meta
        and not is_blank(content)
        and not content.startswith("data:")
    )


def _says_nothing(message: Message) -> bool:
    """A tool may answer with nothing, and a message that calls need not say anything."""
    content = message.content
    is_empty = is_blank(content) if isinstance(content, str) else not content
    return is_empty and message.role != "tool" and not calls_beside(message)


def _not_empty(message: Message) -> Message:
    return msgspec.structs.replace(message, content=EMPTY) if _says_nothing(message) else message


# ── the messages again ────────────────────────────────────────────────────────────────────────


def _named(message: Message, tools: Sequence[Tool], names: Mapping[Place, str], key: bytes) -> Message:
    """Every call and result under its name; those that have none as text."""
    if all(tool.id and names.get(tool.place) == tool.id for tool in tools):
        return message
    is_orphaned = not any(tool.place in names for tool in tools) and any(not tool.is_call for tool in tools)
    if is_orphaned and not has_own_words(message):
        return quoted(message, key)
    content: str | list[Block] = message.content
    if isinstance(content, list):
        content = list(_named_blocks(content, tools[0].place[0], names, key))
    beside = [
        (call, names.get((tools[0].place[0], BESIDE, number))) for number, call in enumerate(calls_beside(message))
    ]
    texts = [shown_block(call) for call, name in beside if name is None]
    if isinstance(content, str):
        content = "\n".join(text for text in (content, *texts) if text)
    else:
        content += map(text_block, texts)
    return msgspec.structs.replace(
        message,
        content=content,
        meta=_meta_with(message.meta, [_renamed(call, name) for call, name in beside if name is not None]),
        tool_call_id=_field(message, tools, names),
    )


def _named_blocks(blocks: Sequence[Block], index: int, names: Mapping[Place, str], key: bytes) -> Iterator[Block]:
    introduction = QUOTED_RESULT
    for position, block in enumerate(blocks):
        nested = block.get("tool_calls")
        name = names.get((index, position, 0))
        if "type" not in block and isinstance(nested, list):
            yield from _named_nested(block, nested, [names.get((index, position, at)) for at in range(len(nested))])
        elif not is_call(block) and not is_result(block):
            yield block
        elif name is not None:
            yield _renamed(block, name)
        elif is_call(block):
            yield text_block(shown_block(block))
        else:
            yield text_block(frame(introduction + shown_block(block), kind="memory", key=key))
            introduction = ""


def _named_nested(block: Block, nested: Sequence[Any], names: Sequence[str | None]) -> Iterator[Block]:
    calls = [(call, name) for call, name in zip(nested, names, strict=True) if isinstance(call, dict)]
    kept = [_renamed(call, name) for call, name in calls if name is not None]
    yield {**block, "tool_calls": kept}
    for call, name in calls:
        if name is None:
            yield text_block(shown_block(call))


def _renamed(block: Block, name: str) -> Block:
    keys = CALL_ID_KEYS if is_call(block) else RESULT_ID_KEYS
    own = {"tool_result": "tool_use_id", "function_call_output": "call_id"}.get(block["type"], keys[0])
    key = next((key for key in keys if block.get(key) is not None), own)
    return block if block.get(key) == name else {**block, key: name}


def _meta_with(meta: dict[str, Any] | None, calls: Sequence[Block]) -> dict[str, Any] | None:
    if not meta or "tool_calls" not in meta:
        return meta
    others = {key: value for key, value in meta.items() if key != "tool_calls"}
    return {**others, "tool_calls": calls} if calls else others or None


def _field(message: Message, tools: Sequence[Tool], names: Mapping[Place, str]) -> str | None:
    """The call that a tool's message names: the one that it answers, whatever the field said."""
    if message.role != "tool" or message.tool_call_id is None:
        return message.tool_call_id
    results = [names[tool.place] for tool in tools if not tool.is_call and tool.place in names]
    return names.get((tools[0].place[0], FIELD, 0), results[0])


# ── what is wrong ─────────────────────────────────────────────────────────────────────────────


def faults(messages: Sequence[Message]) -> list[str]:
    """What a provider would refuse, as sentences."""
    found: list[str] = []
    called: set[str] = set()
    waiting: dict[str, int] = {}  # the calls of the batch, and where they were made
    previous = ""
    for index, message in enumerate(messages):
        tools = [] if _is_plain(message) else list(tools_of(index, message))
        found += _faults_alone(index, message)
        is_answering = message.role in ("user", "tool") and any(not tool.is_call for tool in tools)
        if not (is_answering or message.role == previous == "assistant"):
            found += [f"message {place} calls {call_id!r}, which is not answered" for call_id, place in waiting.items()]
            waiting = {}
        found += _faults_of_tools(index, message, tools, called, waiting)
        previous = message.role
    return found


def _faults_alone(index: int, message: Message) -> Iterator[str]:
    if _is_plain(message):
        return
    if replayable(message) is not message:
        yield f"message {index} holds reasoning, a signature, a binary or an empty text"
    if _says_nothing(message):
        yield f"message {index} says nothing"


def _faults_of_tools(
    index: int, message: Message, tools: Sequence[Tool], called: set[str], waiting: dict[str, int]
) -> Iterator[str]:
    here: set[str] = set()
    in_blocks = {tool.id for tool in tools if not tool.is_call and tool.place[1] != FIELD}
    for tool in tools:
        if not tool.id:
            yield f"message {index} has a call or a result without an id"
        elif tool.is_call:
            if message.role != "assistant":
                yield f"message {index} calls {tool.id!r}, and is no message of the assistant"
            if tool.id in called:
                yield f"message {index} calls {tool.id!r}, an id that was called before"
            called.add(tool.id)
            here.add(tool.id)
            waiting[tool.id] = index
        elif tool.place[1] != FIELD or tool.id not in in_blocks:
            is_called = tool.id in (here if message.role == "assistant" else waiting)
            if not is_called or message.role == "system":
                yield f"message {index} answers {tool.id!r}, which is not called right before it"
            here.discard(tool.id)
            waiting.pop(tool.id, None)
