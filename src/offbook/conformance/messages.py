"""Messages to send. Every text holds a word that occurs nowhere else, so that it can be found again."""

from __future__ import annotations

import secrets
from typing import Any


def unique_word() -> str:
    return "word" + "".join(secrets.choice("bcdfghjklmnpqrstvwxz") for _ in range(12))


def unique_id() -> str:
    return f"id-{secrets.token_hex(6)}"


def said(content: Any, role: str = "user", **fields: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **fields}


def identified(content: Any, role: str = "user", **fields: Any) -> dict[str, Any]:
    return said(content, role, id=unique_id(), **fields)


def call_block(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool-call", "id": call_id, "name": name, "arguments": arguments}


def calls(*call_ids: str) -> dict[str, Any]:
    """One message of the assistant that calls several tools at once."""
    return said([call_block(call_id, "look_up", page=number) for number, call_id in enumerate(call_ids)], "assistant")


def result(call_id: str, text: str) -> dict[str, Any]:
    return said(text, "tool", toolCallId=call_id)


def result_block(call_id: str, text: str) -> dict[str, Any]:
    """The other way to answer a call: a block instead of a role."""
    return said([{"type": "tool-result", "toolCallId": call_id, "content": text}], "tool", toolCallId=call_id)


def conversation(turns: int) -> list[dict[str, Any]]:
    """User and assistant in turn, each text of its own length."""
    messages = []
    for turn in range(turns):
        messages.append(said(f"Question {turn} about {unique_word()}. " + "Tell me more. " * (turn % 7)))
        messages.append(said(f"Answer {turn} about {unique_word()}. " + "There is more. " * (turn % 11), "assistant"))
    return messages


def long_talk(messages: int, chars: int) -> list[dict[str, Any]]:
    """User and assistant in turn, every text as long as the other, and no two the same."""
    filler = "The harbour is quiet, the nets are dry, and somebody has painted the boat that lies at the pier. " * 9
    talk = []
    for number in range(messages):
        at = number * 7 % 97
        text = f"Number {number} is about {unique_word()}. {filler[at:]}"
        talk.append(said(text[: chars - 1] + ".", "assistant" if number % 2 else "user"))
    return talk


def with_parallel_calls(prefix: str) -> list[dict[str, Any]]:
    """Several calls in one message, answered one by one, in both ways of answering; then the talk goes on."""
    first, second, third, fourth = (f"{prefix}-{number}" for number in range(4))
    return [
        said(f"Look these up: {unique_word()}."),
        calls(first, second, third),
        result(first, f"First page: {unique_word()}. " + "It goes on. " * 6),
        result_block(second, f"Second page: {unique_word()}. " + "It goes on. " * 9),
        result(third, f"Third page: {unique_word()}. " + "It goes on. " * 3),
        said(f"Three pages, {unique_word()}, and one more.", "assistant"),
        calls(fourth),
        result(fourth, f"Last page: {unique_word()}. " + "It goes on. " * 12),
        said(f"That was all: {unique_word()}.", "assistant"),
    ]
