"""The Responses API as the scripted one speaks it: its documents, its events, what it keeps and what it refuses."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

MODEL = "scripted-1"
Item = dict[str, Any]


@dataclass(frozen=True)
class Output:
    """What is answered: thoughts first, then words, then calls."""

    thought: str = ""
    text: str = ""
    calls: Sequence[tuple[str, str, str]] = ()
    """Id, name, arguments."""
    custom_calls: Sequence[tuple[str, str, str]] = ()
    """Id, name, input."""


@dataclass
class Responses:
    """Keeps what was said, by the id of the response."""

    kept: dict[str, list[Item]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    """The thoughts that an item came of, both by their ids."""
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def fault(self, request: Item) -> str | None:
        """What the real one refuses, in its words."""
        previous = request.get("previous_response_id")
        if previous is not None and previous not in self.kept:
            return f"Previous response with id '{previous}' not found."
        items = [*self._before(request), *_listed(request["input"])]
        ids = {item.get("id") for item in items}
        called = {item.get("call_id") for item in items if str(item.get("type")).endswith("_call")}
        for number, item in enumerate(items):
            kind, name = item.get("type"), item.get("id")
            if kind in ("function_call_output", "custom_tool_call_output") and item["call_id"] not in called:
                return f"No tool call found for function call output with call_id {item['call_id']}."
            if self.reasons.get(str(name), name) not in ids:
                return f"Item '{name}' of type '{kind}' was provided without its required 'reasoning' item."
            following = items[number + 1] if number + 1 < len(items) else {}
            if kind == "reasoning" and self.reasons.get(str(following.get("id"))) != name:
                return f"Item '{name}' of type 'reasoning' was provided without its required following item."
        return None

    def response(self, request: Item, output: Output) -> Item:
        number = next(self.numbers)
        items = self._items(output, number)
        response_id = f"resp_{number:024x}"
        if request.get("store") is not False:
            self.kept[response_id] = [*self._before(request), *_listed(request["input"]), *items]
            if request.get("conversation"):
                self.kept[_conversation(request)] = self.kept[response_id]
        usage = {
            "input_tokens": len(json.dumps([*self._before(request), request["input"]])) // 4,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 7,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 7,
        }
        return {
            "id": response_id,
            "object": "response",
            "created_at": 1,
            "status": "completed",
            "error": None,
            "incomplete_details": None,
            "instructions": request.get("instructions"),
            "metadata": {},
            "model": MODEL,
            "output": items,
            "parallel_tool_calls": True,
            "previous_response_id": request.get("previous_response_id"),
            "temperature": 1.0,
            "tool_choice": "auto",
            "tools": [],
            "top_p": 1.0,
            "usage": usage,
        }

    def _before(self, request: Item) -> list[Item]:
        return self.kept.get(request.get("previous_response_id") or _conversation(request), [])

    def _items(self, output: Output, number: int) -> list[Item]:
        items: list[Item] = []
        if output.text:
            part = {"type": "output_text", "text": output.text, "annotations": [], "logprobs": []}
            said = {"type": "message", "role": "assistant", "status": "completed", "content": [part]}
            items.append({"id": f"msg_{number:024x}", **said})
        for at, (call_id, name, arguments) in enumerate(output.calls):
            called = {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}
            items.append({"id": f"fc_{number:023x}{at}", "status": "completed", **called})
        for at, (call_id, name, given) in enumerate(output.custom_calls):
            items.append(
                {
                    "id": f"ctc_{number:022x}{at}",
                    "type": "custom_tool_call",
                    "call_id": call_id,
                    "name": name,
                    "input": given,
                }
            )
        if not output.thought:
            return items
        reason = f"rs_{number:024x}"
        self.reasons.update({item["id"]: reason for item in items})
        summary = [{"type": "summary_text", "text": output.thought}]
        return [{"id": reason, "type": "reasoning", "summary": summary, "encrypted_content": "c2VhbGVk"}, *items]


def _conversation(request: Item) -> str:
    given = request.get("conversation") or ""
    return str(given["id"] if isinstance(given, dict) else given)


def _listed(given: Any) -> list[Item]:
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


# ── as a stream ───────────────────────────────────────────────────────────────────────────────


def streamed(response: Item) -> list[bytes]:
    """The events of this response, in the order of the real API, texts and arguments in pieces."""
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    events: list[Item] = [{"type": kind, "response": begun} for kind in ("response.created", "response.in_progress")]
    for index, item in enumerate(response["output"]):
        events.append({"type": "response.output_item.added", "output_index": index, "item": _begun(item)})
        at = {"item_id": item["id"], "output_index": index}
        events += _pieces_of(item, at)
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": response})
    return [
        f"event: {event['type']}\ndata: {json.dumps({**event, 'sequence_number': number})}\n\n".encode()
        for number, event in enumerate(events)
    ]


def _begun(item: Item) -> Item:
    empty: Item = {"message": {"content": []}, "function_call": {"arguments": ""}, "custom_tool_call": {"input": ""}}
    return {**item, **empty.get(item["type"], {})}


def _pieces_of(item: Item, at: Item) -> list[Item]:
    if item["type"] == "message":
        (part,) = item["content"]
        at = {**at, "content_index": 0}
        return [
            {"type": "response.content_part.added", **at, "part": {**part, "text": ""}},
            *(
                {"type": "response.output_text.delta", **at, "delta": piece, "logprobs": []}
                for piece in pieces(part["text"])
            ),
            {"type": "response.output_text.done", **at, "text": part["text"], "logprobs": []},
            {"type": "response.content_part.done", **at, "part": part},
        ]
    if item["type"] == "function_call":
        kind, name = "response.function_call_arguments", "arguments"
    elif item["type"] == "custom_tool_call":
        kind, name = "response.custom_tool_call_input", "input"
    else:
        return []
    given = item[name]
    done = {"type": f"{kind}.done", **at, name: given, "name": item["name"]}
    return [*({"type": f"{kind}.delta", **at, "delta": piece} for piece in pieces(given)), done]


def pieces(text: str) -> list[str]:
    return [text[at : at + 7] for at in range(0, len(text), 7)]
