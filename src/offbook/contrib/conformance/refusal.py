"""What a refusal must be, and that it changed nothing."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from offbook.contrib.conformance.check import expect
from offbook.contrib.conformance.provider import PLENTY_CHARS, Provider
from offbook.contrib.conformance.raw import RawAnswer
from offbook.model.types import Scope

# ── Messages to send. Every text holds a word that occurs nowhere else, so that it can be foun ──


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


PROBLEM_FIELDS: dict[str, type] = {"type": str, "title": str, "status": int, "detail": str, "retryable": bool}


class BadRequest(msgspec.Struct, frozen=True):
    """`names`: what the problem's detail must name."""

    label: str
    verb: str
    body: bytes
    names: str = ""


def bad(label: str, verb: str, fields: Any, names: str = "") -> BadRequest:
    return BadRequest(label, verb, msgspec.json.encode(fields), names)


def refusal_faults(label: str, answer: RawAnswer, names: str = "", statuses: range | tuple[int, ...] = ()) -> list[str]:
    """What keeps an answer from being a problem document of a client's error."""
    if answer.status not in (statuses or range(400, 500)):
        wanted = f"a status of {list(statuses)}" if statuses else "a status of 400 to 499"
        return [f"{label}: expected {wanted}, came {answer.status} {_shown(answer.body)}"]
    faults = []
    if answer.content_type.partition(";")[0].strip().lower() != "application/problem+json":
        faults.append(f"{label}: expected application/problem+json, came {answer.content_type!r}")
    try:
        problem = msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return [*faults, f"{label}: the problem is not JSON: {_shown(answer.body)}"]
    if not isinstance(problem, dict):
        return [*faults, f"{label}: the problem is not an object: {_shown(answer.body)}"]
    for field, kind in PROBLEM_FIELDS.items():
        if not isinstance(problem.get(field), kind):
            faults.append(f"{label}: expected the field {field!r} ({kind.__name__}), came {problem.get(field)!r}")
    if problem.get("status") != answer.status:
        faults.append(f"{label}: the problem says {problem.get('status')!r}, HTTP says {answer.status}")
    if names not in str(problem.get("detail")):
        faults.append(f"{label}: expected a detail that names {names!r}, came {problem.get('detail')!r}")
    return faults


async def table_faults(provider: Provider, table: list[BadRequest]) -> list[str]:
    faults = []
    for request in table:
        answer = await provider.send("POST", f"/v1/{request.verb}", request.body)
        faults += refusal_faults(f"{request.verb}, {request.label}", answer, request.names)
    return faults


@asynccontextmanager
async def unchanged(provider: Provider) -> AsyncIterator[Scope]:
    """A session that must be the same, byte for byte, after everything that was refused."""
    scope = provider.new_session()
    await provider.record(scope, said("First."), said("Second.", "assistant"))
    before = await provider.context_bytes(scope, PLENTY_CHARS)
    yield scope
    expect("the session after all refusals", before, await provider.context_bytes(scope, PLENTY_CHARS))


def _shown(body: bytes) -> str:
    return repr(body[:120])
