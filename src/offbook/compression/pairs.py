"""Tool calls and their results. A result without its call bricks a session at most providers."""

from __future__ import annotations

from collections.abc import Sequence

from offbook.content import has_nameless_result, render, tool_calls, tool_results
from offbook.types import Message

QUOTED_RESULT = "[a tool's result, its call not shown]\n"


def has_orphan(message: Message, called: set[str]) -> bool:
    """Whether the message answers a call that neither it nor what came before made."""
    return has_nameless_result(message) or not called.union(tool_calls(message)).issuperset(tool_results(message))


def leading_orphans(messages: Sequence[Message]) -> int:
    """How many messages at the start answer calls made before it: where a cut must move forward to."""
    for index, message in enumerate(messages):
        if not has_orphan(message, set()):
            return index
    return len(messages)


def quoted(message: Message) -> Message:
    """The same message as something that was seen: plain text, no claim to be a call or a result."""
    return Message(
        role="assistant" if message.role == "assistant" else "user",
        content=QUOTED_RESULT + render(message),
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
