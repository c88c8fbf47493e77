"""Which result answers which call, which of them stay so, and in which order they stand. Pure.

    call a, call b │ result a │ "wait" │ result b     →     call a, call b │ result a │ result b │ "wait"
    └── one batch: the assistant's messages in a row, and then the messages that answer it

What is not paired is shown as text.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import NamedTuple

from offbook.context.replayable import calls_beside

# The dialects are spelt out in one place, `content`.
from offbook.model.content import CALL_ID_KEYS, RESULT_ID_KEYS, is_call, is_result
from offbook.model.types import Block, Message

BESIDE, FIELD = -1, -2
"""Where a tool is named other than in a block: in `meta`, and in the field of a tool's message."""
Place = tuple[int, int, int]
"""Of a call or a result: its message, its block, and which of the block's `tool_calls` it is."""


class Tool(NamedTuple):
    """A call, or a result of one, as one place of a message names it."""

    place: Place
    id: str | None
    is_call: bool


class _Waiting(NamedTuple):
    """The calls under one id that no result has come for, all of one batch."""

    batch: int
    places: deque[Place]


def tools_of(index: int, message: Message) -> Iterator[Tool]:
    """In the order of the blocks; a tool's message names its call last. What lies among calls and is none has no id."""
    has_result = False
    for position, block in enumerate(message.content if isinstance(message.content, list) else ()):
        nested = block.get("tool_calls")
        if "type" not in block and isinstance(nested, list):
            for number, call in enumerate(nested):
                if isinstance(call, dict):
                    yield Tool((index, position, number), _call_id(call), is_call=True)
        elif is_call(block):
            yield Tool((index, position, 0), _call_id(block), is_call=True)
        elif is_result(block):
            has_result = True
            yield Tool((index, position, 0), _id(block, RESULT_ID_KEYS), is_call=False)
    for number, call in enumerate(calls_beside(message)):
        yield Tool((index, BESIDE, number), _call_id(call), is_call=True)
    if message.role == "tool" and (message.tool_call_id or not has_result):
        yield Tool((index, FIELD, 0), message.tool_call_id or None, is_call=False)


def _call_id(block: Block) -> str | None:
    return _id(block, CALL_ID_KEYS) if is_call(block) else None


def _id(block: Block, keys: tuple[str, ...]) -> str | None:
    found = next((block[key] for key in keys if block.get(key) is not None), None)
    return found if isinstance(found, str) and found else None


# ── which result answers which call ───────────────────────────────────────────────────────────


def answered(messages: Sequence[Message], tools: Sequence[Sequence[Tool]]) -> dict[Place, Place]:
    """The call of each result that has one. A call made again under an open id gives the earlier one up."""
    calls: dict[Place, Place] = {}
    waiting: dict[str, _Waiting] = {}
    batch = 0
    previous = ""
    for message, named in zip(messages, tools, strict=True):
        batch += message.role == "assistant" != previous
        previous = message.role
        if message.role == "assistant":
            for call_id, places in _answered_within(named, calls).items():
                if call_id not in waiting or waiting[call_id].batch != batch:
                    waiting[call_id] = _Waiting(batch, deque())
                waiting[call_id].places.extend(places)
        elif message.role != "system":
            _answer(named, calls, waiting)
    return calls


def _answered_within(named: Sequence[Tool], calls: dict[Place, Place]) -> dict[str, deque[Place]]:
    """What the assistant's message calls. A result in it answers a call in it: a tool that the provider ran."""
    made: dict[str, deque[Place]] = {}
    for tool in named:
        if tool.id and tool.is_call:
            made.setdefault(tool.id, deque()).append(tool.place)
        elif tool.id and made.get(tool.id):
            calls[tool.place] = made[tool.id].popleft()
    return {call_id: places for call_id, places in made.items() if places}


def _answer(named: Sequence[Tool], calls: dict[Place, Place], waiting: dict[str, _Waiting]) -> None:
    """A message can follow one batch only: the newest that it answers."""
    results = [tool for tool in named if not tool.is_call]
    newest = max((waiting[tool.id].batch for tool in results if tool.id in waiting), default=0)
    found: dict[str, Place] = {}
    for tool in results:
        if not tool.id:
            continue
        if tool.place[1] == FIELD and tool.id in found:
            calls[tool.place] = found[tool.id]  # said in the field and in a block: one answer
        elif tool.id in waiting and waiting[tool.id].batch == newest:
            call = calls[tool.place] = waiting[tool.id].places.popleft()
            if not waiting[tool.id].places:
                del waiting[tool.id]
            if tool.place[1] == FIELD and not found:
                calls[results[0].place] = call  # a block that names no such call is what the field says it is
            found.setdefault(tool.id, call)


# ── where they stand, and under which id ──────────────────────────────────────────────────────


def in_order(messages: Sequence[Message], calls: Mapping[Place, Place]) -> list[int]:
    """The messages' order, with those that answer a batch right behind it."""
    last_of_row = list(range(len(messages)))
    for index in range(len(messages) - 2, -1, -1):
        if messages[index].role == messages[index + 1].role == "assistant":
            last_of_row[index] = last_of_row[index + 1]
    calling = _answering(calls)
    answers: dict[int, list[int]] = {}
    for index in sorted(calling):
        answers.setdefault(last_of_row[calling[index]], []).append(index)
    order: list[int] = []
    for index in range(len(messages)):
        if index not in calling:
            order += [index, *answers.get(index, ())]
    return order


def ids(
    messages: Sequence[Message], tools: Sequence[Sequence[Tool]], calls: Mapping[Place, Place], order: Sequence[int]
) -> dict[Place, str]:
    """The id at each place that stays a call or a result. What is not here is shown as text."""
    has_answer = set(calls.values())
    running = _at_the_end(messages, calls, order)
    found: dict[Place, str] = {}
    taken: set[str] = set()
    numbers: dict[str, Iterator[int]] = {}
    for index in order:
        for tool in tools[index]:
            if tool.is_call and tool.id and (tool.place in has_answer or index in running):
                found[tool.place] = _free(tool.id, taken, numbers.setdefault(tool.id, count(2)))
                taken.add(found[tool.place])
    return found | {result: found[call] for result, call in calls.items()}


def _answering(calls: Mapping[Place, Place]) -> dict[int, int]:
    """For each message that answers another one, a message that it answers."""
    return {result[0]: call[0] for result, call in calls.items() if result[0] != call[0]}


def _at_the_end(messages: Sequence[Message], calls: Mapping[Place, Place], order: Sequence[int]) -> set[int]:
    """The messages of the batch that nothing but its answers follows: its calls may still be running."""
    answering = _answering(calls)
    position = len(order) - 1
    while position >= 0 and order[position] in answering:
        position -= 1
    running: set[int] = set()
    while position >= 0 and messages[order[position]].role == "assistant":
        running.add(order[position])
        position -= 1
    return running


def _free(call_id: str, taken: set[str], numbers: Iterator[int]) -> str:
    """Hosts that count anew in each turn use an id twice. The new one is as long, so that it takes no more room."""
    candidate = call_id
    while candidate in taken:
        digits = str(next(numbers))
        candidate = call_id[: -len(digits)] + digits if len(digits) <= len(call_id) else f"{call_id}-{digits}"
    return candidate
