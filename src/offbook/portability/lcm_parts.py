"""The parts of a message in lossless-claw, as the blocks they were.

The plugin keeps each block of the host whole in the `metadata` of its part (`raw`), beside columns that older versions
filled alone (`src/message-content.ts` there).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from offbook.portability.wires import decoded, dictionary, text_or_none, without_blanks


class Part(NamedTuple):
    kind: Any
    text: Any
    call_id: Any
    tool: Any
    tool_input: Any
    tool_output: Any
    metadata: Any


Content = str | list[dict[str, Any]]


def content_and_labels(role: str, text: str, parts: list[Part]) -> tuple[Content, dict[str, Any], dict[str, Any]]:
    """What was said, its labels, and what else is to be kept. Without parts, or with empty ones, `text` is all."""
    noted = [_noted(part) for part in parts]
    blocks = [block for part, about in zip(parts, noted, strict=True) if (block := _block(part, about)) is not None]
    content = without_blanks(blocks) if blocks else text
    labels: dict[str, Any] = {}
    meta: dict[str, Any] = {}
    for part, about in zip(parts, noted, strict=True):
        if role == "tool":
            labels.setdefault("toolCallId", text_or_none(about.get("toolCallId")) or text_or_none(part.call_id))
            labels.setdefault("name", text_or_none(about.get("toolName")) or text_or_none(part.tool))
        if about.get("isError") is True:
            meta["isError"] = True
    return content or text, labels, meta


def _noted(part: Part) -> dict[str, Any]:
    try:
        return dictionary(decoded(part.metadata)) if isinstance(part.metadata, str) else {}
    except (ValueError, RecursionError):
        return {}  # the columns beside it say most of it


def _block(part: Part, about: dict[str, Any]) -> dict[str, Any] | None:
    raw = about.get("raw")
    if isinstance(raw, dict) and isinstance(raw.get("type"), str):
        return raw
    said = text_or_none(part.text)
    if part.kind == "tool" and part.tool_output is not None:
        return {"type": "tool-result", "toolCallId": part.call_id, "content": part.tool_output}
    if part.kind == "tool" and part.tool_input is not None:
        return {"type": "tool-call", "id": part.call_id, "name": part.tool, "arguments": part.tool_input}
    if said is None:
        return None
    return {"type": "thinking", "thinking": said} if part.kind == "reasoning" else {"type": "text", "text": said}
