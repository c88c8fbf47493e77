"""Calls of tools and what came of them, in whatever dialect they came: what working state reads of an exchange."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

# The dialects are spelt out in one place, `content`.
from offbook.model.content import (
    ARGUMENT_KEYS,
    CALL_ID_KEYS,
    NAME_KEYS,
    RESULT_ID_KEYS,
    RESULT_KEYS,
    blocks_of,
    call_fields,
    first_of,
    is_call,
    is_result,
    own_text,
    strings,
    without_stand_ins,
)
from offbook.model.types import Block, Message

LONGEST_ARGUMENTS_CHARS = 20_000
"""Arguments sent as JSON in a longer string are the text of a file: how they begin says what is done."""
READ_RESULT_CHARS = 2000
"""How a result begins, and as much again of how it ends: where it says whether it worked."""
STRINGS_READ = 40
MAX_CALLS = 32
"""Of one message."""

_FAILED_KEYS = ("is_error", "isError", "failed")
_STATUS_FAILED = frozenset(("error", "failed", "failure", "denied", "rejected", "cancelled", "canceled", "timeout"))
_FAILED_BEGINNINGS = ("error", "traceback", "exception", "fatal", "failed", "permission denied", "command not found")
"""What programs print first where they fail, in any language of their user."""
_EXIT_CODE = re.compile(r"\bexit(?:ed)?[ _]?(?:with[ _])?(?:code|status)?[\"']?\s?[:=]?\s?(-?\d+)", re.IGNORECASE)


class Call(NamedTuple):
    id: str
    name: str
    arguments: Mapping[str, Any]
    """A call whose arguments are no object has them under its only key, "input"."""


class Result(NamedTuple):
    id: str | None
    text: str
    """Its beginning and its end."""
    is_failed: bool


def calls_of(message: Message) -> list[Call]:
    """The calls a message makes, in order. One without an id cannot be paired by it; it has the id ""."""
    return [_call(block) for block in blocks_of(message) if is_call(block)][:MAX_CALLS]


def results_of(message: Message) -> list[Result]:
    """The results a message carries, in order."""
    found = [_result(block) for block in blocks_of(message) if is_result(block)][:MAX_CALLS]
    if found or message.role != "tool":
        return found
    meta = message.meta or {}
    text = _ends(own_text(message.content))
    return [Result(message.tool_call_id, text, _is_marked_failed(meta) or is_failure(text))]


def is_failure(text: str) -> bool:
    """Whether what a program printed says that it did not work."""
    first = text.lstrip(" \n\t[<({\"'*❌✗")[:40].lower()
    code = _EXIT_CODE.search(text)
    return first.startswith(_FAILED_BEGINNINGS) or (code is not None and int(code[1][-9:]) != 0)


def strings_in(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The first strings and numbers of a call's arguments, each with the key it is under."""
    found = 0
    for key, value in arguments.items():
        if isinstance(value, bool):
            continue
        if isinstance(value, int | float):
            yield str(key), str(value)
            found += 1
        for _, text in strings(value):
            yield str(key), without_stand_ins(text)
            found += 1
            if found >= STRINGS_READ:
                return


def _call(block: Block) -> Call:
    holder = call_fields(block)
    call_id, name, given = first_of(block, CALL_ID_KEYS), first_of(holder, NAME_KEYS), first_of(holder, ARGUMENT_KEYS)
    if isinstance(given, str):  # OpenAI sends them as JSON in a string
        given = _decoded(given)
    arguments = given if isinstance(given, dict) else {} if given is None else {"input": given}
    return Call(call_id if isinstance(call_id, str) else "", name if isinstance(name, str) else "", arguments)


def _decoded(given: str) -> Any:
    if len(given) > LONGEST_ARGUMENTS_CHARS:
        return given[:LONGEST_ARGUMENTS_CHARS]
    try:
        return msgspec.json.decode(given)
    except (msgspec.DecodeError, RecursionError):
        return given


def _result(block: Block) -> Result:
    call_id = first_of(block, RESULT_ID_KEYS)
    value = first_of(block, RESULT_KEYS)
    marked = _is_marked_failed(block) or (isinstance(value, dict) and _is_marked_failed(value))
    text = _ends(without_stand_ins(_text(value)))
    return Result(call_id if isinstance(call_id, str) else None, text, marked or is_failure(text))


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, dict) and isinstance(item.get("text"), str) for item in value):
        return "\n".join(item["text"] for item in value)
    # Keys say what a value is: `"pid": 4242`. Spelt one by one, as an encoder would recurse into any depth.
    lines = [f'"{path[-1] if path else ""}": "{text}"' for path, text in _leaves(value)]
    return "\n".join(lines)


def _leaves(value: Any) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(value, dict):
        plain = [(str(key), item) for key, item in value.items() if isinstance(item, int | float)]
        yield from (((key,), str(item).lower()) for key, item in plain[:STRINGS_READ])
    for found, leaf in enumerate(strings(value)):
        if found >= STRINGS_READ:
            return
        yield leaf


def _is_marked_failed(holder: Mapping[str, Any]) -> bool:
    if any(holder.get(key) is True for key in _FAILED_KEYS) or holder.get("success") is False:
        return True
    status = holder.get("status")
    code = first_of(holder, ("exitCode", "exit_code"))
    return (isinstance(status, str) and status.lower() in _STATUS_FAILED) or (isinstance(code, int) and code != 0)


def _ends(text: str) -> str:
    if len(text) <= 2 * READ_RESULT_CHARS:
        return text
    return f"{text[:READ_RESULT_CHARS]}\n…\n{text[-READ_RESULT_CHARS:]}"
