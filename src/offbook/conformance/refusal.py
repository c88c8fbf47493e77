"""What a refusal must be, and that it changed nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from offbook.conformance.check import expect
from offbook.conformance.messages import said
from offbook.conformance.provider import PLENTY_CHARS, Provider
from offbook.conformance.raw import RawAnswer
from offbook.types import Scope

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
