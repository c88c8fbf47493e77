"""As OpenAI's chat completions take it, and whatever speaks that dialect.

Texts are strings rather than lists of parts, and a side's words in a row are one message: servers with a strict
template refuse anything else. A call's results follow it, one message each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from offbook.compression.provider_shapes.turns import NO_OUTPUT, Call, Result, Turn, turns
from offbook.compression.replayable import is_blank
from offbook.types import Message

SEPARATOR = "\n\n"


def to_openai(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The `messages` of a request."""
    return [shaped for turn in turns(messages) for shaped in _shaped(turn)]


def _shaped(turn: Turn) -> list[dict[str, Any]]:
    results = [_tool_message(result) for result in turn.results]
    text = SEPARATOR.join(turn.texts)
    if turn.calls:
        calls = [_tool_call(call) for call in turn.calls]
        return [*results, {"role": turn.side, "content": text or None, "tool_calls": calls}]
    return [*results, {"role": turn.side, "content": text}] if text else results


def _tool_call(call: Call) -> dict[str, Any]:
    arguments = msgspec.json.encode(call.arguments).decode()
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _tool_message(result: Result) -> dict[str, Any]:
    text = NO_OUTPUT if is_blank(result.text) else result.text
    # The dialect has no field for it.
    content = f"[failed] {text}" if result.has_failed else text
    return {"role": "tool", "tool_call_id": result.call_id, "content": content}
