"""What a context must be, whatever is in it. Pure: faults as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from offbook.model.content import tool_calls, tool_results
from offbook.model.types import CompressedContext, Message, Part, Scope


def context_faults(context: CompressedContext, scope: Scope, last_seq: int, max_chars: int) -> list[str]:
    """Everything that is wrong with a context of this session, whose newest message is `last_seq`."""
    found = [*_names(context, scope), *_length(context, max_chars), *_cover(context, last_seq)]
    return [f"maxChars {max_chars}: {fault}" for fault in [*found, *pair_faults(context.messages)]]


def _names(context: CompressedContext, scope: Scope) -> Iterator[str]:
    if (context.agent_id, context.session_id) != (scope.agent_id, scope.session_id):
        yield f"it is of agent {context.agent_id!r}, session {context.session_id!r}; asked for was {scope}"


def _length(context: CompressedContext, max_chars: int) -> Iterator[str]:
    if len(context.text) > max_chars:
        yield f"its text is {len(context.text)} characters long"
    if context.chars != len(context.text):
        yield f"it says {context.chars} characters, its text has {len(context.text)}"
    if context.max_chars != max_chars:
        yield f"it says maxChars {context.max_chars}"


def _cover(context: CompressedContext, last_seq: int) -> Iterator[str]:
    if (context.covers.first_seq, context.covers.last_seq) != (1, last_seq):
        yield f"it covers {context.covers.first_seq} to {context.covers.last_seq}, the session has 1 to {last_seq}"
    yield from partition_faults(context.parts, last_seq)


def partition_faults(parts: Sequence[Part], last_seq: int) -> Iterator[str]:
    """Whether the parts, in their order, are 1 … `last_seq` without gap or overlap."""
    after = 0
    for part in parts:
        if part.first_seq != after + 1:
            what = "overlap" if part.first_seq <= after else "gap"
            yield f"{what}: a part from {part.first_seq} to {part.last_seq} follows {after}"
        if part.last_seq < part.first_seq:
            yield f"a part from {part.first_seq} to {part.last_seq} holds nothing"
        after = part.last_seq
    if after != last_seq:
        yield f"the parts end at {after}, the session at {last_seq}"


def pair_faults(messages: Sequence[Message]) -> Iterator[str]:
    """Whether every tool result comes after its call, or with it: a provider's own tools answer in the same message."""
    called: set[str] = set()
    for position, message in enumerate(messages):
        called.update(tool_calls(message))
        results = tool_results(message)
        if message.role == "tool" and not results:
            yield f"message {position} is a tool's result that names no call"
        for call_id in results:
            if call_id not in called:
                yield f"message {position} answers the call {call_id!r}, which is not before it"


def found_once(context: CompressedContext, words: Sequence[str]) -> list[str]:
    """Which of these words are not in the text exactly once, or not in this order."""
    faults = [f"{word!r} is there {count} times" for word in words if (count := context.text.count(word)) != 1]
    places = [context.text.find(word) for word in words]
    if not faults and places != sorted(places):
        faults.append("they are not in the order they came in")
    return faults
