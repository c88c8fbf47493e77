"""What a strict model provider would refuse: the validator of every request that reaches the scripted model.

The rules are those that OpenAI's and Anthropic's APIs answer with a 400 for, on the OpenAI shape that the host sends.
Consecutive user messages are no fault: both take them, and the host itself ends every request with one of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

ROLES = ("system", "developer", "user", "assistant", "tool")
SYSTEM_ROLES = ("system", "developer")

# With this the host answers a call whose result is not in the history it was given.
INVENTED_RESULT = "[openclaw] missing tool result in session history"

Message = Mapping[str, Any]


def faults(body: Mapping[str, Any]) -> list[str]:
    """One line for each fault, with the position of the message; empty where a strict provider would take it."""
    messages: Sequence[Message] = body.get("messages") or []
    if not messages:
        return ["no messages"]
    return [*_role_faults(messages), *_empty_faults(messages), *_order_faults(messages), *_pair_faults(messages)]


def repairs(body: Mapping[str, Any]) -> list[str]:
    """What the host mended before it sent the request: no provider would refuse it, and yet something was lost. By
    itself it does so only after a tool call that was cut off; otherwise a context engine left a result out."""
    return [
        f"{at}: the host made up the result of {m.get('tool_call_id')!r}"
        for at, m in enumerate(body.get("messages") or [])
        if m.get("role") == "tool" and INVENTED_RESULT in str(m.get("content"))
    ]


def _role_faults(messages: Sequence[Message]) -> list[str]:
    return [f"{at}: unknown role {m.get('role')!r}" for at, m in enumerate(messages) if m.get("role") not in ROLES]


def _empty_faults(messages: Sequence[Message]) -> list[str]:
    return [
        f"{at}: empty {m.get('role')} message"
        for at, m in enumerate(messages)
        if m.get("role") != "tool" and not m.get("tool_calls") and _is_empty(m.get("content"))
    ]


def _is_empty(content: Any) -> bool:
    if isinstance(content, list):
        return all(part.get("type") == "text" and not str(part.get("text", "")).strip() for part in content)
    return not str(content or "").strip()


def _order_faults(messages: Sequence[Message]) -> list[str]:
    found: list[str] = []
    talk = [(at, m) for at, m in enumerate(messages) if m.get("role") not in SYSTEM_ROLES]
    if not talk:
        return ["no message but the system's"]
    if talk[0][1].get("role") != "user":
        found.append(f"{talk[0][0]}: the first message is from {talk[0][1].get('role')}, not from the user")
    found += [
        f"{at}: an assistant message directly after an assistant message"
        for (_, before), (at, m) in pairwise(talk)
        if before.get("role") == m.get("role") == "assistant"
    ]
    return found


def _pair_faults(messages: Sequence[Message]) -> list[str]:
    """Each call is answered once, before anybody else speaks; nothing is answered that was not called."""
    found: list[str] = []
    waiting: dict[str, int] = {}
    for at, message in enumerate(messages):
        if message.get("role") == "tool":
            answered = str(message.get("tool_call_id"))
            if waiting.pop(answered, None) is None:
                found.append(f"{at}: a tool result for {answered!r}, which the message before it did not call")
            continue
        found += [
            f"{made_at}: the call {call!r} is not answered before message {at}" for call, made_at in waiting.items()
        ]
        waiting = {}
        for call in message.get("tool_calls") or []:
            name = str(call.get("id"))
            if name in waiting:
                found.append(f"{at}: the call id {name!r} twice in one message")
            waiting[name] = at
    return [*found, *(f"{at}: the call {call!r} is never answered" for call, at in waiting.items())]
