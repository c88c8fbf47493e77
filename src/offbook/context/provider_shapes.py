"""Contexts in the shapes that providers of models take: what a host can send as it is."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, Literal, NamedTuple

import msgspec

from offbook.context.replayable import calls_beside, is_blank
from offbook.context.validity import made_valid
from offbook.model.content import (
    ARGUMENT_KEYS,
    CALL_ID_KEYS,
    MAX_DEPTH,
    NAME_KEYS,
    RESULT_ID_KEYS,
    RESULT_KEYS,
    _render_value,
    block_text,
    call_fields,
    depth,
    first_of,
    is_call,
    is_result,
    render,
    tool_results,
)
from offbook.model.types import Block, Message

# ── Messages as turns: who speaks, what is said, what is called, what came of it. Every shape  ──

# The dialects are spelt out in one place, `content`.

Side = Literal["system", "user", "assistant"]

NO_OUTPUT = "(no output)"
LONGEST_ID_CHARS = 40
"""OpenAI has refused ids of more than 40 characters, and now those of more than 64."""
LONGEST_NAME_CHARS = 64


class Call(NamedTuple):
    id: str
    name: str
    arguments: dict[str, Any]


class Result(NamedTuple):
    call_id: str
    text: str
    has_failed: bool


class Turn(NamedTuple):
    """What one side says in a row. `results` answer the calls of the turn before."""

    side: Side
    texts: list[str]
    calls: list[Call]
    results: list[Result]


def turns(messages: Sequence[Message]) -> list[Turn]:
    """Any messages of ours, made valid, by whose turn it is."""
    valid = made_valid(messages)
    answered = {call_id for message in valid if message.role != "assistant" for call_id in tool_results(message)}
    read = (_read(message, answered) for message in valid)
    said = (one for one in read if one.calls or one.results or any(not is_blank(text) for text in one.texts))
    return [_joined(side, list(row)) for side, row in groupby(said, key=attrgetter("side"))]


def _side_of(message: Message) -> Side:
    return "user" if message.role == "tool" else message.role


def _joined(side: Side, row: Sequence[Turn]) -> Turn:
    return Turn(
        side,
        [text for one in row for text in one.texts if not is_blank(text)],
        [call for one in row for call in one.calls],
        [result for one in row for result in one.results],
    )


def _read(message: Message, answered: set[str]) -> Turn:
    if isinstance(message.content, str) and message.role != "tool" and not message.meta:
        return Turn(_side_of(message), [_spoken(message, message.content)], [], [])
    if message.role == "assistant":
        return _of_assistant(message, answered)
    results = list(_results(message))
    rest = _rendered([block for block in _blocks(message) if not is_result(block)])
    if message.role == "tool":
        return Turn("user", [], [], _with_rest(results, rest, message))
    return Turn(_side_of(message), [_spoken(message, rest)], [], results)


def _of_assistant(message: Message, answered: set[str]) -> Turn:
    """A call that is answered by no other message is shown: it runs still, or the provider ran it itself."""
    calls: list[Call] = []
    rest: list[Block] = []
    for block in _blocks(message):
        call_id = first_of(block, CALL_ID_KEYS) if is_call(block) else None
        if isinstance(call_id, str) and call_id in answered:
            calls.append(_call(block, call_id))
        else:
            rest.append(block)
    return Turn("assistant", [_rendered(rest)], calls, [])


def _spoken(message: Message, text: str) -> str:
    """Where several people speak, who does."""
    return f"{message.name}: {text}" if message.name and message.role == "user" and not is_blank(text) else text


def _blocks(message: Message) -> Iterator[Block]:
    """Text, blocks and calls, one after the other, wherever the dialect keeps them."""
    if isinstance(message.content, str):
        yield {"type": "text", "text": message.content}
    for block in message.content if isinstance(message.content, list) else ():
        nested = block.get("tool_calls")
        if "type" in block or not isinstance(nested, list):
            yield block
        else:
            text = block_text(block)
            yield {"type": "text", "text": text or ""}
            yield from (call for call in nested if isinstance(call, dict))
    yield from calls_beside(message)


def _rendered(blocks: Sequence[Block]) -> str:
    return render(Message(role="user", content=list(blocks)))


# ── calls and results ─────────────────────────────────────────────────────────────────────────


def _call(block: Block, call_id: str) -> Call:
    holder = call_fields(block)
    name = first_of(holder, NAME_KEYS)
    shown = _plain(name if isinstance(name, str) else "")[:LONGEST_NAME_CHARS]
    return Call(_tool_id(call_id), shown or "unknown", _arguments(first_of(holder, ARGUMENT_KEYS)))


def _arguments(value: Any) -> dict[str, Any]:
    """Always an object, since providers take nothing else; what is none is its `input`."""
    if isinstance(value, str):  # OpenAI sends them as JSON in a string
        try:
            value = msgspec.json.decode(value) if value else {}
        except (msgspec.DecodeError, RecursionError):
            return {"input": value}
    if depth(value) > MAX_DEPTH:
        return {"input": "[nested too deeply to show]"}
    if isinstance(value, dict):
        return value
    return {} if value is None else {"input": value}


def _results(message: Message) -> Iterator[Result]:
    for block in _blocks(message):
        if is_result(block):
            text = _render_value(first_of(block, RESULT_KEYS), 1)
            has_failed = block.get("is_error") is True or block.get("isError") is True
            yield Result(_tool_id(first_of(block, RESULT_ID_KEYS)), text, has_failed)


def _with_rest(results: Sequence[Result], rest: str, message: Message) -> list[Result]:
    """What a tool's message says outside of its results belongs to the call that its field names."""
    own_id = _tool_id(message.tool_call_id) if message.tool_call_id else results[0].call_id
    meta = message.meta or {}
    has_failed = meta.get("isError") is True or meta.get("is_error") is True
    own = next((result for result in results if result.call_id == own_id), Result(own_id, "", has_failed))
    text = "\n".join(part for part in (rest, own.text) if not is_blank(part))
    others = [result for result in results if result.call_id != own_id]
    return [own._replace(text=text, has_failed=own.has_failed or has_failed), *others]


def _plain(name: str) -> str:
    return "".join([one if one in "_-" or (one.isascii() and one.isalnum()) else "_" for one in name])


def _tool_id(call_id: str) -> str:
    """The same for the same id, and of characters that every provider takes."""
    clean = _plain(call_id)
    if clean == call_id and len(clean) <= LONGEST_ID_CHARS:
        return clean
    digest = hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{clean[: LONGEST_ID_CHARS - 9]}_{digest}"


# ── As Anthropic's messages take it: the user speaks first, sides alternate, results come firs ──

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


# ── As OpenAI's chat completions take it, and whatever speaks that dialect ──


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


SHAPES: dict[str, Callable[[Sequence[Message]], Any]] = {"openai": to_openai, "anthropic": to_anthropic}

__all__ = ["SHAPES", "to_anthropic", "to_openai"]
