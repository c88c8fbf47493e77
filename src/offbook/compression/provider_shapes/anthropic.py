"""As Anthropic's messages take it: the user speaks first, sides alternate, results come first in the turn after.

The system's words are a field of the request. Those said later than at the beginning are quoted in the user's turn, at
their place: moved to the front they would say something else, and would change the beginning that is cached.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from offbook.compression.provider_shapes.turns import NO_OUTPUT, Call, Result, Turn, turns
from offbook.compression.replayable import is_blank
from offbook.types import Message

OPENING = "(From the Context Manager: your memory of this conversation so far follows.)"
"""Said by the user where the assistant's memory comes first."""
SEPARATOR = "\n\n"


def to_anthropic(messages: Sequence[Message]) -> dict[str, Any]:
    """The `system` (left out where there is none) and the `messages` of a request."""
    taken = turns(messages)
    has_system = bool(taken) and taken[0].side == "system"
    request: dict[str, Any] = {"system": SEPARATOR.join(taken[0].texts)} if has_system else {}
    shaped = [_message(role, list(side)) for role, side in groupby(taken[has_system:], key=_role_of)]
    if shaped and shaped[0]["role"] == "assistant":
        shaped.insert(0, {"role": "user", "content": [_text(OPENING)]})
    if shaped and shaped[-1]["role"] == "assistant":
        _trim_end(shaped[-1]["content"][-1])
    return {**request, "messages": shaped}


def _role_of(turn: Turn) -> str:
    return "assistant" if turn.side == "assistant" else "user"


def _message(role: str, side: Sequence[Turn]) -> dict[str, Any]:
    results = [_tool_result(result) for turn in side for result in turn.results]
    texts = [_text(f"[system] {text}" if turn.side == "system" else text) for turn in side for text in turn.texts]
    calls = [_tool_use(call) for turn in side for call in turn.calls]
    return {"role": role, "content": [*results, *texts, *calls]}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _tool_use(call: Call) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}


def _tool_result(result: Result) -> dict[str, Any]:
    text = NO_OUTPUT if is_blank(result.text) else result.text
    block = {"type": "tool_result", "tool_use_id": result.call_id, "content": text}
    return {**block, "is_error": True} if result.has_failed else block


def _trim_end(block: dict[str, Any]) -> None:
    """A last word of the assistant's is one to go on from, and is refused if it ends in a space."""
    if block["type"] == "text":
        block["text"] = block["text"].rstrip()
