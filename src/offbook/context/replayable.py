"""What of one message a model can be given, whichever model said it. Pure; what is fit is the same object.

Three things are not: reasoning and its signatures, which every other model refuses; binaries, of which a reference in
words stays; texts without a word in them. Nothing here grows: what is shown in place of a thing is no longer than
`render` shows the thing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from offbook.ingest.frames import frame
from offbook.model.content import (
    FILE_TYPES,
    IMAGE_TYPES,
    MAX_DEPTH,
    OPAQUE_KEYS,
    REASONING_TYPES,
    RESULT_KEYS,
    TEXT_TYPES,
    Path,
    binary_stand_in,
    decoded_bytes,
    has_nameless_result,
    is_binary_path,
    is_call,
    is_result,
    media_type_of,
    render,
    replace,
    strings,
    text_of,
    tool_calls,
    tool_results,
)
from offbook.model.types import Block, Content, Message

# The dialects are spelt out in one place, `content`.

THOUGHT = "[thinking]"
"""In place of a message that was nothing else: what `render` shows of the shortest of them."""

_MEDIA_TYPES = IMAGE_TYPES | FILE_TYPES
_SEALED_KEYS = OPAQUE_KEYS | {"thought_signature"}
_SEALED_KEYS_OF_CALLS = _SEALED_KEYS | {"extra_content"}  # where Gemini's OpenAI dialect keeps the signature
_SEALED_KEYS_OF_META = _SEALED_KEYS | {"reasoning_content", "reasoning_details", "reasoning_opaque"}


def replayable(message: Message) -> Message:
    """The same message without what another model refuses."""
    content = _fit_content(message)
    meta = _fit_meta(message.meta) if message.meta else message.meta
    if content is message.content and meta is message.meta:
        return message
    return msgspec.structs.replace(message, content=content, meta=meta)


def is_blank(text: str) -> bool:
    return not text or text.isspace()


def text_block(text: str) -> Block:
    return {"type": "text", "text": text}


def shown_block(block: Block) -> str:
    """A block as plain text."""
    return render(Message(role="assistant", content=[block]))


def calls_beside(message: Message) -> list[Block]:
    """The calls that OpenAI's chat dialect keeps beside the content."""
    beside = message.meta.get("tool_calls") if message.meta else None
    return [call for call in beside if isinstance(call, dict)] if isinstance(beside, list) else []


def _fit_content(message: Message) -> Content:
    content = message.content
    if isinstance(content, str):
        return _reference(content) if content.startswith("data:") and is_binary_path(content, ()) else content
    fit = _fit_blocks(content, 0)
    if fit:
        return fit
    has_thought = any(block.get("type") in REASONING_TYPES for block in content if _has_kind(block))
    return THOUGHT if has_thought and message.role != "tool" and not calls_beside(message) else ""


def _fit_blocks(blocks: list[Any], nesting: int) -> list[Any]:
    fit = [_fit_block(block, nesting) if isinstance(block, dict) else block for block in blocks]
    if any(isinstance(block, dict) and _is_reasoning(block) for block in blocks):
        # OpenAI refuses a call under the name of an item whose reasoning is gone; `call_id` is what pairs it.
        fit = [_without(one, {"id"}) if isinstance(one, dict) and _is_named_item(one) else one for one in fit]
    kept = [one for one in fit if one is not None]
    is_same = len(kept) == len(blocks) and all(one is block for one, block in zip(kept, blocks, strict=True))
    return blocks if is_same else kept


def _fit_block(block: Block, nesting: int) -> Block | None:
    """None for what is dropped."""
    if _is_reasoning(block) or _is_blank_text(block):
        return None
    kind = block["type"] if _has_kind(block) else ""
    if kind in _MEDIA_TYPES:
        return text_block(shown_block(block)) if _holds_binary(block) else block
    block = _without(block, _SEALED_KEYS_OF_CALLS if is_call(block) else _SEALED_KEYS)
    if nesting < MAX_DEPTH and is_result(block):
        block = _with_fit_result(block, nesting)
    return _without_binaries(block)


def _with_fit_result(block: Block, nesting: int) -> Block:
    key = next((key for key in RESULT_KEYS if block.get(key) is not None), None)
    if key is None or not isinstance(block[key], list):
        return block
    fit = _fit_blocks(block[key], nesting + 1)
    return block if fit is block[key] else {**block, key: fit or ""}


def _fit_meta(meta: dict[str, Any]) -> dict[str, Any] | None:
    fit = _without(meta, _SEALED_KEYS_OF_META)
    calls = fit.get("tool_calls")
    if isinstance(calls, list):
        fit_calls = _fit_blocks(calls, 0)
        fit = fit if fit_calls is calls else {**fit, "tool_calls": fit_calls}
    return fit or None


# ── small readings ────────────────────────────────────────────────────────────────────────────


def _has_kind(block: Block) -> bool:
    return isinstance(block.get("type"), str)


def _is_reasoning(block: Block) -> bool:
    return _has_kind(block) and block["type"] in REASONING_TYPES


def _is_blank_text(block: Block) -> bool:
    is_text = block["type"] in TEXT_TYPES if _has_kind(block) else block.keys() == {"text"}
    text = block.get("text")
    return is_text and isinstance(text, str) and is_blank(text)


def _is_named_item(block: Block) -> bool:
    return block.get("type") == "function_call" and isinstance(block.get("call_id"), str) and "id" in block


def _holds_binary(block: Block) -> bool:
    """Whether an image or a file is in it, or stood in it before it was moved out: then there is nothing to send."""
    return any(is_binary_path(block, path) or binary_stand_in(text) for path, text in strings(block))


def _without_binaries(block: Block) -> Block:
    found: dict[Path, str] = {
        path: _reference(text) for path, text in strings(block) if text and is_binary_path(block, path)
    }
    fit: Block = replace(block, found) if found else block
    return fit


def _reference(text: str) -> str:
    media_type = media_type_of(text)
    reference = f"[{media_type + ', ' if media_type else ''}{decoded_bytes(text):,} bytes]"
    return reference if len(reference) <= len(text) else "…"


def _without(holder: dict[str, Any], keys: frozenset[str] | set[str]) -> dict[str, Any]:
    if keys.isdisjoint(holder):
        return holder
    return {key: value for key, value in holder.items() if key not in keys}


# ── Tool calls and their results. A result without its call bricks a session at most providers ──

QUOTED_RESULT = "[a tool's result, its call not shown]\n"
QUOTED_CHARS = len(frame(QUOTED_RESULT, kind="memory", key=b"")) + len("assistant")
"""What is quoted takes about so many more."""


def has_orphan(message: Message, called: set[str]) -> bool:
    """Whether the message answers a call that neither it nor what came before made."""
    return has_nameless_result(message) or not called.union(tool_calls(message)).issuperset(tool_results(message))


def leading_orphans(messages: Sequence[Message]) -> int:
    """How many messages at the start answer calls made before it: where a cut must move forward to."""
    for index, message in enumerate(messages):
        if not has_orphan(message, set()):
            return index
    return len(messages)


def has_own_words(message: Message) -> bool:
    """Whether a user says something beside what a tool gave."""
    return message.role == "user" and isinstance(message.content, list) and bool(text_of(message.content))


def quoted(message: Message, key: bytes = b"") -> Message:
    """The same message as something that was seen: framed as memory, nobody's turn, neither call nor result.
    What a user says beside stays theirs."""
    if has_own_words(message):
        framed = [
            text_block(frame(QUOTED_RESULT + shown_block(block), kind="memory", key=key)) if is_result(block) else block
            for block in message.content
            if isinstance(block, dict)
        ]
        return msgspec.structs.replace(message, content=framed)
    return Message(
        role="assistant",
        content=frame(QUOTED_RESULT + render(message), kind="memory", key=key),
        id=message.id,
        ts=message.ts,
    )


def with_orphans_quoted(messages: Sequence[Message]) -> list[Message]:
    """Every result whose call does not come before it is quoted instead."""
    called: set[str] = set()
    paired: list[Message] = []
    for message in messages:
        if has_orphan(message, called):
            paired.append(quoted(message))
        else:
            called.update(tool_calls(message))
            paired.append(message)
    return paired
