"""Expand: 1 for what comes back, 4 for whose it is, 6 for what it leaves in the audit, 7 for what it refuses."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec

from offbook.contrib.conformance.check import (
    BadRequest,
    audit_faults,
    bad,
    call_block,
    check,
    expect,
    expect_no_faults,
    expect_that,
    identified,
    long_talk,
    result,
    said,
    table_faults,
    unchanged,
    unique_id,
    unique_word,
    with_parallel_calls,
    wrong_fields,
)
from offbook.contrib.conformance.checks.refused_fields import NOT_A_COUNT, NOT_A_STRING
from offbook.contrib.conformance.provider import NotOffered, Provider, named
from offbook.model.summary import SourceLine
from offbook.model.types import Part, Scope

MESSAGES, CHARS = 400, 300
SMALL_CHARS = 12_000
"""A tenth of what was said: most of it is not shown verbatim."""
WINDOW, FULL = 32_000, 28_000
TRIES, PAUSE_SECONDS = 100, 0.2
"""Summaries are made in the background: so long the suite waits for one to expand."""
NO_SUCH_SUMMARY = "L1-999999999"
NOT_A_PLACE: tuple[Any, ...] = (*NOT_A_COUNT, None, 0)
WRONG_IN_AN_EXPANSION: dict[str, tuple[Any, ...]] = {
    "agentId": NOT_A_STRING,
    "limit": (*NOT_A_COUNT, 0),
    "after": (*NOT_A_STRING, "nowhere"),
    "span": ("1-2", 1, True, [], [1, 2], {}),
}


# ── 1: what was said ──


@check(1, "expand", "onMessage")
async def a_span_is_expanded_word_for_word(provider: Provider) -> None:
    """`expand` of a span gives its messages as they were sent, in order, each with its number and its session."""
    scope = provider.new_session(provider.new_agent())
    odd = [{"type": "hologram", "layers": [{"z": 1}, None, True]}, call_block("odd", "search", query="größe")]
    messages = [
        identified(f"  {unique_word()}\n\tcafé cafe\u0301 🏳️\u200d🌈 ", name="Ada", meta={"a": [None]}),
        said(odd, "assistant", model="some-model"),
        result("odd", "记忆 \x01 \u2028"),
        *with_parallel_calls("span"),
        said("That was all.", "assistant"),
    ]
    await provider.record(scope, *messages)
    for first, last in ((1, len(messages)), (2, 5), (3, 3), (len(messages), len(messages))):
        lines = (await provider.expand(scope.agent_id, span=_span(scope, first, last))).messages
        _expect_lines(scope, lines, messages, first, last)


@check(1, "expand", "onMessage")
async def an_expansion_goes_on_page_by_page(provider: Provider) -> None:
    """`limit` makes pages, `next` leads to the one after, and all of them together are the span, once and in order."""
    scope = provider.new_session(provider.new_agent())
    messages = long_talk(23, 100)
    await provider.record(scope, *messages)
    for limit in (1, 5, 7, 100):
        lines: list[SourceLine] = []
        going_on: dict[str, Any] = {}
        for _ in range(len(messages) + 1):
            page = await provider.expand(scope.agent_id, span=_span(scope, 2, 22), limit=limit, **going_on)
            expect_that(len(page.messages) <= limit, f"at most {limit} messages", len(page.messages))
            lines += page.messages
            if page.next is None:
                break
            going_on = {"after": page.next}
        _expect_lines(scope, lines, messages, 2, 22)


@check(1, "expand", "onMessage", "getCompressedContext")
async def what_a_context_leaves_out_can_be_expanded(provider: Provider) -> None:
    """Behind every summary of a context or a swap's ledger lie the messages it stands for, word for word."""
    scope = provider.new_session(provider.new_agent())
    messages = long_talk(MESSAGES, CHARS)
    for first in range(0, MESSAGES, 100):
        await provider.record(scope, *messages[first : first + 100])
    parts = await _left_out(provider, scope, SMALL_CHARS)
    await provider.ask("hooks/session-end", named(scope))
    parts += await _summarised(provider, scope, SMALL_CHARS)
    with suppress(NotOffered):  # a provider may have one verb and not the other
        parts += (await provider.swap(scope, FULL, WINDOW)).ledger.summaries
    expect_that(bool(parts), "something that is not shown verbatim", parts)
    for part in {(part.id, part.first_seq, part.last_seq): part for part in parts}.values():
        source = {"summaryId": part.id} if part.id else {"span": _span(scope, part.first_seq, part.last_seq)}
        lines = await _all_lines(provider, scope.agent_id, source)
        _expect_lines(scope, lines, messages, part.first_seq, part.last_seq)


# ── 4: whose ──


@check(4, "expand", "onMessage", "getCompressedContext")
async def no_expansion_reaches_another_agent(provider: Provider) -> None:
    """Neither the session key nor the summary ids of another agent give anything of what it said."""
    ours = provider.new_session(provider.new_agent())
    theirs = Scope(agent_id=provider.new_agent(), session_id=ours.session_id)
    only_theirs = provider.new_session(theirs.agent_id)
    secret, message_id = unique_word(), unique_id()
    await provider.record_one(ours, said("Nothing to hide.", id=message_id))
    for scope in (theirs, only_theirs):
        await provider.record_one(scope, said(f"I say {secret}.", id=message_id))
        await provider.record(scope, *(said(f"Again, {secret}. " + "It goes on. " * 200) for _ in range(30)))
        await provider.ask("hooks/session-end", named(scope))
    parts = await _summarised(provider, theirs, 1_000)
    asked: list[dict[str, Any]] = [{"summaryId": part.id} for part in parts if part.id]
    asked += [{"span": _span(scope, 1, 31)} for scope in (theirs, only_theirs)]
    asked += [{**fields, "sessionId": theirs.session_id} for fields in asked]
    faults = []
    for fields in asked:
        body = msgspec.json.encode({"agentId": ours.agent_id, **fields})
        answer = await provider.send("POST", "/v1/expand", body)  # it may refuse, too
        faults += [f"{fields}: came what the other agent said"] if secret.encode() in answer.body else []
        faults += [f"{fields}: came {answer.status}"] if answer.status >= 500 else []
    expect_no_faults(faults)
    lines = (await provider.expand(theirs.agent_id, span=_span(theirs, 1, 1))).messages
    expect("what the other agent itself gets", [f"I say {secret}."], [line.message.content for line in lines])


# ── 6: the audit ──


@check(6, "expand", "audit", "onMessage")
async def every_expansion_leaves_one_event(provider: Provider) -> None:
    """`expand` leaves one event a page, whether there was anything to give or not."""
    scope = provider.new_session(provider.new_agent())
    await provider.record(scope, said("one"), said("two", "assistant"))
    spans = [_span(scope, first, last) for first, last in ((1, 2), (1, 1), (7, 9))]
    asked = [("expand", {"agentId": scope.agent_id, "span": span}) for span in spans]
    expect_no_faults(await audit_faults(provider, scope.agent_id, asked))
    expect("verified", True, (await provider.audit(scope.agent_id)).verified)


# ── 7: refusals ──


@check(7, "expand", "onMessage", "getCompressedContext")
async def a_wrong_expansion_is_refused(provider: Provider) -> None:
    """`expand` of both a summary and a span, of neither, of none that exists, of one backwards, or with a field of the
    wrong type or an unknown one is refused."""
    async with unchanged(provider) as scope:
        agent, span = {"agentId": scope.agent_id}, _span(scope, 1, 2)
        await provider.ask("expand", {**agent, "span": span})
        table: list[BadRequest] = [
            bad("both", "expand", {**agent, "summaryId": NO_SUCH_SUMMARY, "span": span}),
            bad("neither", "expand", agent),
            bad("a summary that there is not", "expand", {**agent, "summaryId": NO_SUCH_SUMMARY}),
            bad("a span backwards", "expand", {**agent, "span": _span(scope, 2, 1)}),
            bad("a span of no session", "expand", {**agent, "span": {"firstSeq": 1, "lastSeq": 2}}),
            bad("one in the span", "expand", {**agent, "span": {**span, "surplusField": 1}}, "surplusField"),
        ]
        table += [bad(f"summaryId = {value!r}", "expand", {**agent, "summaryId": value}) for value in NOT_A_STRING]
        table += wrong_fields("expand", {**agent, "span": span}, WRONG_IN_AN_EXPANSION)
        table += [
            bad(f"span.{field} = {value!r}", "expand", {**agent, "span": {**span, field: value}})
            for field in ("firstSeq", "lastSeq")
            for value in NOT_A_PLACE
        ]
        table += [
            bad(f"span.sessionId = {value!r}", "expand", {**agent, "span": {**span, "sessionId": value}})
            for value in (*NOT_A_STRING, "", "k" * 513, "é" * 257)
        ]
        expect_no_faults(await table_faults(provider, table))


def _span(scope: Scope, first_seq: int, last_seq: int) -> dict[str, Any]:
    return {"sessionId": scope.session_id, "firstSeq": first_seq, "lastSeq": last_seq}


async def _left_out(provider: Provider, scope: Scope, max_chars: int) -> list[Part]:
    return [part for part in (await provider.context(scope, max_chars)).parts if part.kind == "summary"]


async def _summarised(provider: Provider, scope: Scope, max_chars: int) -> list[Part]:
    """What is left out, once there are summaries of it, or as it is after a while without."""
    parts: list[Part] = []
    for number in range(1, TRIES + 1):
        # Not the same question twice: a provider may give the same answer to it for some time.
        parts = await _left_out(provider, scope, max_chars + number)
        if any(part.id for part in parts):
            break
        await asyncio.sleep(PAUSE_SECONDS)
    return parts


async def _all_lines(provider: Provider, agent_id: str, source: dict[str, Any]) -> list[SourceLine]:
    lines: list[SourceLine] = []
    going_on: dict[str, Any] = {}
    for _ in range(MESSAGES):
        page = await provider.expand(agent_id, **source, **going_on)
        lines += page.messages
        if page.next is None:
            break
        going_on = {"after": page.next}
    return lines


def _expect_lines(
    scope: Scope, lines: Sequence[SourceLine], messages: Sequence[dict[str, Any]], first: int, last: int
) -> None:
    expect(f"the numbers of {first} to {last}", list(range(first, last + 1)), [line.seq for line in lines])
    expect(f"the sessions of {first} to {last}", {scope.session_id}, {line.session_id for line in lines})
    faults = []
    for line, sent in zip(lines, messages[first - 1 : last], strict=True):
        came = msgspec.to_builtins(line.message)
        differing = [field for field in sent if came.get(field) != sent[field]]
        faults += [f"message {line.seq}: {', '.join(differing)} came as {str(came)[:120]}"] if differing else []
    expect_no_faults(faults)
