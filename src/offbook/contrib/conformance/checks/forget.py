"""Forgetting: 0 to 2 for what goes and what stays, 4 for whose it is, 6 for what it leaves in the audit, 7 for what it
refuses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from offbook.contrib.conformance.check import (
    bad,
    call_block,
    check,
    context_faults,
    expect,
    expect_no_faults,
    expect_that,
    identified,
    result,
    said,
    table_faults,
    unchanged,
    unique_word,
    wrong_fields,
)
from offbook.contrib.conformance.checks.refused_fields import NOT_A_BOOLEAN, NOT_A_STRING
from offbook.contrib.conformance.provider import PLENTY_CHARS, NotOffered, Provider, named
from offbook.model.errors import ProviderRefused
from offbook.model.types import Scope

WAYS = ("matching", "entryIds", "sessionId")
SMALL_CHARS = (1, 60, 200, 1_000)
WRONG_IN_A_FORGETTING: dict[str, tuple[Any, ...]] = {
    "agentId": NOT_A_STRING,
    "reason": (*NOT_A_STRING, None),
    "matching": (*NOT_A_STRING, ""),
    "dryRun": NOT_A_BOOLEAN,
}
WRONG_INSTEAD: tuple[dict[str, Any], ...] = (
    {"sessionId": 7},
    {"sessionId": ""},
    {"entryIds": "x"},
    {"entryIds": [7]},
    {"entryIds": [None]},
)
"""In the place of `matching`."""


# ── 0: what goes ──


@check(0, "forget", "onMessage")
async def a_forgetting_has_its_receipt(provider: Provider) -> None:
    """`forget` answers with a receipt, however what is meant was named, in a dry run too, and also for nothing."""
    for way in WAYS:
        word, scope = unique_word(), provider.new_session(provider.new_agent())
        await provider.record(scope, *_talk(word))
        meant = await _selection_fields(provider, scope, word, way)
        for fields in ({"dryRun": True}, {}, {"dryRun": False}):
            answer = await provider.ask_value("forget", dict[str, Any], {**meant, "reason": "", **fields})
            receipt = answer.get("receipt")
            expect_that(isinstance(receipt, dict) and bool(receipt), f"a receipt ({way}, {fields})", answer)


@check(0, "forget", "onMessage", "getCompressedContext")
async def what_is_forgotten_is_in_no_answer(provider: Provider) -> None:
    """A message that was forgotten is not recalled, comes to no mind, is in no context, and is not expanded."""
    faults = []
    for way in WAYS:
        word, scope = unique_word(), provider.new_session(provider.new_agent())
        await provider.record(scope, *_talk(word))
        expect_that(word in (await provider.context(scope)).text, "the message, before it is forgotten", None)
        async for _ in _answers(provider, scope, word):
            pass  # whatever is kept of an answer has it now
        await _forget(provider, await _selection_fields(provider, scope, word, way))
        async for where, answer in _answers(provider, scope, word):
            faults += [f"forgotten by {way}, {where} holds it"] if word.encode() in answer else []
    expect_no_faults(faults)


@check(0, "forget", "onMessage", "getCompressedContext")
async def a_dry_run_of_forgetting_touches_nothing(provider: Provider) -> None:
    """With `dryRun` the session stays as it is, byte for byte."""
    for way in WAYS:
        word, scope = unique_word(), provider.new_session(provider.new_agent())
        await provider.record(scope, *_talk(word))
        meant = await _selection_fields(provider, scope, word, way)
        before = await provider.context_bytes(scope)
        await _forget(provider, meant, dryRun=True)
        expect(f"the session after a dry run by {way}", before, await provider.context_bytes(scope))


# ── 1 and 2: what stays ──


@check(1, "forget", "onMessage", "getCompressedContext")
async def forgetting_leaves_the_rest(provider: Provider) -> None:
    """All other messages stay as they are and where they are, in the same session and in others."""
    word, scope = unique_word(), provider.new_session(provider.new_agent())
    other = provider.new_session(scope.agent_id)
    talk = _talk(word)
    await provider.record(scope, *talk)
    await provider.record(other, *_talk(unique_word()))
    elsewhere = await provider.context_bytes(other)
    await _forget(provider, await _selection_fields(provider, scope, word, "matching"))
    context = await provider.context(scope)
    expect_no_faults(context_faults(context, scope, len(talk), PLENTY_CHARS))
    stayed = [message["content"] for message in talk if word not in message["content"]]
    came = [message.content for message in context.messages if message.content in stayed]
    expect("the messages that stay, in order", stayed, came)
    expect("another session", elsewhere, await provider.context_bytes(other))


@check(1, "forget", "onMessage", "getCompressedContext")
async def a_forgotten_message_does_not_come_back(provider: Provider) -> None:
    """Sent again with its id, as a host does that has kept it, a forgotten message is a duplicate and stays
    forgotten."""
    word, scope = unique_word(), provider.new_session(provider.new_agent())
    message = identified(f"The spare key is with {word}.")
    await provider.record(scope, said("Where is it?"), message)
    await _forget(provider, await _selection_fields(provider, scope, word, "matching"))
    receipt = await provider.record_one(scope, message)
    expect("accepted and duplicates of what was forgotten", (0, 1), (receipt.accepted, receipt.duplicates))
    faults = [where async for where, answer in _answers(provider, scope, word) if word.encode() in answer]
    expect_no_faults([f"sent again, {where} holds it" for where in faults])


@check(2, "forget", "onMessage", "getCompressedContext")
async def forgetting_keeps_results_with_their_calls(provider: Provider) -> None:
    """Where a call or a result is forgotten, no context of any length has a result without its call."""
    faults = []
    for in_call in (True, False):
        word, scope = unique_word(), provider.new_session(provider.new_agent())
        talk = [
            said("Please look it up."),
            said([call_block("one", "look_up", page=word if in_call else "12")], "assistant"),
            result("one", "It says nothing." if in_call else f"It says {word}."),
            said("There you are.", "assistant"),
        ]
        await provider.record(scope, *talk)
        await _forget(provider, await _selection_fields(provider, scope, word, "matching"))
        for max_chars in (*SMALL_CHARS, PLENTY_CHARS):
            context = await provider.context(scope, max_chars)
            faults += context_faults(context, scope, len(talk), max_chars)
            held = word in context.text or any(word in str(message.content) for message in context.messages)
            faults += [f"maxChars {max_chars}: it holds what was forgotten"] if held else []
    expect_no_faults(faults)


# ── 4: whose it is ──


@check(4, "forget", "recall", "onMessage", "getCompressedContext")
async def forgetting_never_reaches_another_agent(provider: Provider) -> None:
    """What one agent forgets, by words, by session or by the ids of another's entries, no other agent forgets."""
    ours = provider.new_session(provider.new_agent())
    theirs = Scope(agent_id=provider.new_agent(), session_id=ours.session_id)
    word = unique_word()
    for scope in (ours, theirs):
        await provider.record(scope, *_talk(word))
    entries = [entry.id for entry in await provider.recall(theirs, word)]
    expect_that(bool(entries), "entries of the other agent", entries)
    before = await provider.context_bytes(theirs)
    for meant in ({"entryIds": entries}, {"matching": word}, {"sessionId": theirs.session_id}):
        try:
            await _forget(provider, {"agentId": ours.agent_id, **meant})
        except ProviderRefused as refused:
            expect_that("entryIds" in meant and refused.status < 500, f"no refusal of {list(meant)}", refused.status)
        expect(f"the other agent's session after {list(meant)}", before, await provider.context_bytes(theirs))


# ── 6: what it leaves in the audit ──


@check(6, "forget", "audit", "onMessage")
async def every_forgetting_leaves_one_event(provider: Provider) -> None:
    """A `forget` leaves one event, a dry run as well; the chain verifies, and nothing in it is what was forgotten."""
    word, scope = unique_word(), provider.new_session(provider.new_agent())
    await provider.record(scope, *_talk(word))
    meant = {"agentId": scope.agent_id, "matching": word}
    for number, fields in enumerate(({"dryRun": True}, {}), 1):
        await _forget(provider, meant, **fields)
        report = await provider.audit(scope.agent_id)
        expect(f"events after {number} of them", number, sum(event.verb == "forget" for event in report.events))
        expect("verified", True, report.verified)
    trail = await provider.ask("audit", {"agentId": scope.agent_id})
    expect_that(word.encode() not in trail, "an audit without what was forgotten", trail)


# ── 7: what it refuses ──


@check(7, "forget", "onMessage")
async def a_wrong_forgetting_is_refused(provider: Provider) -> None:
    """A `forget` that names nothing, or in two ways, or has no `reason`, a field of the wrong type or an unknown one,
    is refused and forgets nothing."""
    async with unchanged(provider) as scope:
        sound = {"agentId": scope.agent_id, "matching": "First", "reason": "", "dryRun": True}
        await provider.ask("forget", sound)
        sure = {**sound, "dryRun": False}
        without = {key: value for key, value in sure.items() if key != "matching"}
        table = wrong_fields("forget", sure, WRONG_IN_A_FORGETTING, ["reason"])
        table += [bad(f"{wrong!r}", "forget", {**without, **wrong}) for wrong in WRONG_INSTEAD]
        table.append(bad("nothing is named", "forget", without))
        table.append(bad("two ways at once", "forget", {**sure, "sessionId": scope.session_id}))
        expect_no_faults(await table_faults(provider, table))


# ── the way there ──


def _talk(word: str) -> list[dict[str, Any]]:
    """Of which one message holds the word."""
    return [
        said(f"Good morning. The ferry leaves at nine, and {unique_word()} is on board."),
        said(f"My name is Ada, and the spare key is with {word}, behind the blue door.", name="Ada"),
        said(f"Thank you, I shall tell {unique_word()}.", "assistant"),
        said(f"The nets are dry, says {unique_word()}."),
    ]


async def _selection_fields(provider: Provider, scope: Scope, word: str, way: str) -> dict[str, Any]:
    if way == "matching":
        return {"agentId": scope.agent_id, "matching": word}
    if way == "sessionId":
        return named(scope)
    entries = await provider.recall(scope, word, scope="session")
    return {"agentId": scope.agent_id, "entryIds": [entry.id for entry in entries if word in entry.text]}


async def _forget(provider: Provider, meant: dict[str, Any], **fields: Any) -> None:
    await provider.ask("forget", {**meant, "reason": "a check", **fields})


async def _answers(provider: Provider, scope: Scope, word: str) -> AsyncIterator[tuple[str, bytes]]:
    """What every verb that a provider has says of a session. The question itself is never part of an answer."""
    place, half = named(scope), word[: len(word) // 2]
    span = {"sessionId": scope.session_id, "firstSeq": 1, "lastSeq": 4}
    turn = {**place, "prompt": f"Who has the spare key, do you remember {half}?"}
    asked: Sequence[tuple[str, dict[str, Any]]] = (
        ("prepareTurn", turn),  # first and last: what it remembers is made anew after a swap
        ("recall", {**place, "query": f"spare key {half}", "limit": 50}),
        ("recall", {**place, "query": word, "limit": 50}),
        ("swap", {**place, "usedTokens": 900, "contextWindow": 1_000, "force": True}),
        ("getCompressedContext", {**place, "maxChars": PLENTY_CHARS}),
        ("getCompressedContext", {**place, "maxChars": 150}),
        ("hooks/session-start", place),
        ("expand", {"agentId": scope.agent_id, "span": span}),
        ("prepareTurn", turn),
    )
    for verb, fields in asked:
        try:
            yield verb, await provider.ask(verb, fields)
        except NotOffered:
            continue
