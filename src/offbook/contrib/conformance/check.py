"""A check: one promise, the verbs it needs, and how to find out whether a provider holds it."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal

import msgspec

from offbook.contrib.conformance.provider import PLENTY_CHARS, Provider, RawAnswer, asked_since
from offbook.model.content import tool_calls, tool_results
from offbook.model.types import CompressedContext, Message, Part, Scope

Examine = Callable[[Provider], Awaitable[None]]

MOST_SHOWN = 300
"""Characters of an answer that a report shows: enough to recognise it."""
MOST_FAULTS_SHOWN = 8


class Check(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    promise: int
    """1 to 7 as in the contract; 0 for the shape of an answer, on which all of them rest."""
    holds: str
    verbs: tuple[str, ...]
    examine: Examine


class Unmet(Exception):
    """The provider does not hold what was promised."""


class NotApplicable(Exception):
    """This check says nothing about such a provider."""


def check(promise: int, *verbs: str) -> Callable[[Examine], Check]:
    """Makes a check of a function: its name is the id, its docstring says what holds."""

    def as_check(examine: Examine) -> Check:
        name: str = examine.__name__
        holds = " ".join((examine.__doc__ or "").split())
        return Check(id=name.replace("_", "-"), promise=promise, holds=holds, verbs=verbs, examine=examine)

    return as_check


def expect(what: str, expected: object, came: object) -> None:
    if came != expected:
        raise Unmet(f"{what}: expected {_shown(expected)}, came {_shown(came)}")


def expect_that(is_so: bool, what: str, came: object) -> None:
    if not is_so:
        raise Unmet(f"expected {what}, came {_shown(came)}")


def expect_no_faults(faults: Sequence[str]) -> None:
    """All of a table's faults at once: one run tells everything there is to mend."""
    if faults:
        hidden = len(faults) - MOST_FAULTS_SHOWN
        more = [f"and {hidden} more"] if hidden > 0 else []
        raise Unmet("\n".join([*faults[:MOST_FAULTS_SHOWN], *more]))


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}… ({len(text):,} characters)"


# ── What the suite found, as values ──

Outcome = Literal["passed", "failed", "not offered"]


class Result(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What became of one check. `holds` is the promise in words, `detail` what was expected and what came."""

    check: str
    promise: int
    holds: str
    outcome: Outcome
    detail: str
    seconds: float


class Report(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    endpoint: str
    agent_id: str
    """Everything the suite wrote belongs to this agent, or to one whose name begins with it."""
    results: list[Result]
    seconds: float

    def with_outcome(self, outcome: Outcome) -> list[Result]:
        return [result for result in self.results if result.outcome == outcome]

    @property
    def is_conforming(self) -> bool:
        return not self.with_outcome("failed")


# ── What a context must be, whatever is in it ──
# Pure: faults as sentences.


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


# ── Messages to send. Every text holds a word that occurs nowhere else, so that it can be found ──


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


# ── What a refusal must be, and that it changed nothing ──

PROBLEM_FIELDS: dict[str, type] = {"type": str, "title": str, "status": int, "detail": str, "retryable": bool}


class BadRequest(msgspec.Struct, frozen=True):
    """`names`: what the problem's detail must name."""

    label: str
    verb: str
    body: bytes
    names: str = ""


def bad(label: str, verb: str, fields: Any, names: str = "") -> BadRequest:
    return BadRequest(label, verb, msgspec.json.encode(fields), names)


def wrong_fields(
    verb: str, sound: dict[str, Any], wrong: Mapping[str, Iterable[Any]], required: Iterable[str] = ()
) -> list[BadRequest]:
    """A sound request with each of the wrong values, without each field that is required, and with an unknown one."""
    table = [
        bad(f"{field} = {str(value)[:20]!r}", verb, {**sound, field: value})
        for field, values in wrong.items()
        for value in values
    ]
    for field in required:
        without = {key: value for key, value in sound.items() if key != field}
        table.append(bad(f"without {field}", verb, without, field))
    table.append(bad("an unknown field", verb, {**sound, "surplusField": 1}, "surplusField"))
    return table


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


async def audit_faults(provider: Provider, agent_id: str, asked: Iterable[tuple[str, dict[str, Any]]]) -> list[str]:
    """Asks for each verb, and says which of them did not leave exactly one event, under its own name."""
    before = (await provider.audit(agent_id)).head.seq
    faults = []
    for verb, fields in asked:
        await provider.ask(verb, fields)
        report = await provider.audit(agent_id)
        left = asked_since(report, before)
        if left != [verb, "audit"]:
            faults.append(f"{verb} {fields}: between two audits came the events {left}")
        before = report.head.seq
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
