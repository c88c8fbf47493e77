"""2: a context covers the session exactly once, in order, within its limit, its pairs whole, always the same bytes."""

from __future__ import annotations

from typing import Any

import msgspec

from offbook.contrib.conformance.check import (
    check,
    context_faults,
    conversation,
    expect,
    expect_no_faults,
    expect_that,
    long_talk,
    pair_faults,
    partition_faults,
    said,
    table_faults,
    unchanged,
    unique_word,
    with_parallel_calls,
    wrong_fields,
)
from offbook.contrib.conformance.checks.refused_fields import NOT_A_BOOLEAN, NOT_A_COUNT, NOT_A_STRING
from offbook.contrib.conformance.provider import PLENTY_CHARS, Provider, named
from offbook.model.content import render
from offbook.model.types import Scope

SWEEP = (1, 2, 10, 50, 100, 200, 500, 1_000, 2_000, 5_000, 20_000, PLENTY_CHARS)
CUTS = 40
ROOM_FOR_THE_REST = 500
"""Characters a provider may use to say who speaks and what is left out."""


async def _recorded(provider: Provider, messages: list[dict[str, Any]]) -> tuple[Scope, int]:
    scope = provider.new_session()
    return scope, (await provider.record(scope, *messages)).last_seq


@check(2, "onMessage", "getCompressedContext")
async def every_limit_is_kept_and_covers_all(provider: Provider) -> None:
    """At any `maxChars`, down to 1, the text is no longer, says its length, and the parts cover every message once."""
    scope, last_seq = await _recorded(provider, [*conversation(20), *with_parallel_calls("a"), *conversation(5)])
    faults = []
    for max_chars in SWEEP:
        faults += context_faults(await provider.context(scope, max_chars), scope, last_seq, max_chars)
    expect_no_faults(faults)


@check(2, "onMessage", "getCompressedContext")
async def long_messages_keep_the_limit_too(provider: Provider) -> None:
    """A message far longer than `maxChars`, in any script, neither breaks the limit nor falls out of the cover."""
    for text in ("It goes on. " * 2_000, "长" * 20_000, "👩\u200d👩\u200d👧 " * 4_000):
        scope, last_seq = await _recorded(provider, [said("Short."), said(text), said(text[:5_000], "assistant")])
        faults = []
        for max_chars in (1, 10, 100, 1_000, 5_100, 10_000):
            faults += context_faults(await provider.context(scope, max_chars), scope, last_seq, max_chars)
        expect_no_faults(faults)


@check(2, "onMessage", "getCompressedContext")
async def no_cut_parts_a_result_from_its_call(provider: Provider) -> None:
    """Wherever the limit cuts between parallel tool calls and their results, every result shown has its call."""
    scope, last_seq = await _recorded(provider, [*with_parallel_calls("a"), *with_parallel_calls("b")])
    whole = (await provider.context(scope)).chars
    faults = []
    for cut in range(1, CUTS + 1):
        max_chars = max(1, whole * cut // CUTS)
        faults += context_faults(await provider.context(scope, max_chars), scope, last_seq, max_chars)
    expect_no_faults(faults)


@check(2, "onMessage", "getCompressedContext")
async def a_result_whose_call_never_came_is_no_result(provider: Provider) -> None:
    """A tool's result whose call was never recorded is covered, but not shown as a result."""
    orphan = said(f"Nobody asked for {unique_word()}.", "tool", toolCallId="never-called")
    scope, last_seq = await _recorded(provider, [said("Hello."), orphan, said("Odd.", "assistant")])
    faults = []
    for max_chars in (10, 100, 1_000, PLENTY_CHARS):
        faults += context_faults(await provider.context(scope, max_chars), scope, last_seq, max_chars)
    expect_no_faults(faults)


@check(2, "onMessage", "getCompressedContext")
async def the_newest_message_is_shown_as_it_came(provider: Provider) -> None:
    """The newest message is shown word for word where it fits, and the context reaches up to it."""
    for length in (20, 300, 3_000):
        newest = f"{unique_word()} " + "x" * length
        scope, last_seq = await _recorded(provider, [*conversation(15), said(newest)])
        context = await provider.context(scope, len(newest) + ROOM_FOR_THE_REST)
        expect("covers.lastSeq", last_seq, context.covers.last_seq)
        expect_that(bool(context.messages), "messages", context.messages)
        expect("the last message's content", newest, context.messages[-1].content)
        expect_that(newest in context.text, "the newest message in the text", context.text)


@check(2, "onMessage", "getCompressedContext")
async def with_room_for_all_everything_is_shown(provider: Provider) -> None:
    """With room for the whole session the context is the whole session: every message, in order, as it came."""
    messages = [*conversation(30), *with_parallel_calls("a")]
    scope, _ = await _recorded(provider, messages)
    context = await provider.context(scope)
    expect("the contents", [message["content"] for message in messages], [came.content for came in context.messages])
    expect("the kinds of parts", {"verbatim"}, {part.kind for part in context.parts})


@check(2, "onMessage", "getCompressedContext")
async def the_same_log_gives_the_same_bytes(provider: Provider) -> None:
    """The same context asked for again is the same answer, byte for byte, at every limit."""
    scope, _ = await _recorded(provider, [*conversation(20), *with_parallel_calls("a")])
    for max_chars in SWEEP:
        first = await provider.context_bytes(scope, max_chars)
        expect(f"maxChars {max_chars}", first, await provider.context_bytes(scope, max_chars))


# ── Swap ──
# 0 and 2 for what it hands over, 4 for whose it is, 5 for what it leaves alone, 6 and 7 as for every verb.


MESSAGES, CHARS = 400, 300
"""About 30,000 tokens."""
WINDOW = 32_000
DUE, NOT_DUE = 28_000, 16_000
"""0.875 and 0.5 of the window; a swap is due at 0.85."""
MOST_AFTER = int(WINDOW * 0.45)
"""It aims at 0.40, by a count of tokens that need not be ours."""
MOST_CHARS_OF_A_TOKEN = 8
"""Of plain English. No tokenizer gets more into one on average, so a shorter count is not of what was handed over."""
WRONG_IN_A_SWAP: dict[str, tuple[Any, ...]] = {
    "sessionId": (*NOT_A_STRING, None, ""),
    "agentId": NOT_A_STRING,
    "usedTokens": (*NOT_A_COUNT, None),
    "contextWindow": (*NOT_A_COUNT, None, 0),
    "force": NOT_A_BOOLEAN,
    "targetTokens": (*NOT_A_COUNT, 0),
    "tokenRatio": ("1", [], True, 0, -1, 100),
    "generation": NOT_A_COUNT,
}


async def _large(provider: Provider, newest: str) -> Scope:
    """A session of about the window's size, with tool calls near its end."""
    scope = provider.new_session(provider.new_agent())
    talk = [*long_talk(MESSAGES, CHARS), *with_parallel_calls("swap"), said(newest)]
    for first in range(0, len(talk), 100):
        await provider.record(scope, *talk[first : first + 100])
    return scope


# ── 0, 2: what is handed over ──


@check(0, "swap", "onMessage")
async def a_swap_waits_until_it_is_due(provider: Provider) -> None:
    """Below the threshold, and of a session nobody knows, nothing is swapped: a reason is given, and no messages."""
    scope = await _large(provider, "And now?")
    kept = [await provider.swap(scope, used, WINDOW) for used in (0, NOT_DUE, NOT_DUE)]
    kept.append(await provider.swap(provider.new_session(), DUE, WINDOW, force=True))
    for used, answer in zip((0, NOT_DUE, NOT_DUE, DUE), kept, strict=True):
        expect(f"swapped at {used} of {WINDOW}", False, answer.swapped)
        expect_that(bool(answer.reason.strip()), "a reason", answer.reason)
        expect("the messages of no swap", [], answer.messages)
        expect("tokensBefore", used, answer.tokens_before)
        expect_that(answer.took_ms >= 0, "tookMs of 0 or more", answer.took_ms)
    expect("the generations of no swap", {kept[0].generation}, {answer.generation for answer in kept[:3]})


@check(2, "swap", "onMessage")
async def a_swap_hands_over_a_shorter_context(provider: Provider) -> None:
    """When it is due, a valid context of at most about 0.40 of the window, up to the newest message, takes over."""
    newest = f"The last word is {unique_word()}."
    scope = await _large(provider, newest)
    before = await provider.swap(scope, NOT_DUE, WINDOW)
    answer = await provider.swap(scope, DUE, WINDOW)
    expect("swapped", True, answer.swapped)
    expect_that(bool(answer.reason.strip()), "a reason", answer.reason)
    expect("the generation", before.generation + 1, answer.generation)
    expect("tokensBefore", DUE, answer.tokens_before)
    expect_that(answer.tokens_after <= MOST_AFTER, f"at most {MOST_AFTER} tokens after", answer.tokens_after)
    chars = sum(len(render(message)) for message in answer.messages)
    honest = answer.tokens_after * MOST_CHARS_OF_A_TOKEN
    expect_that(chars <= honest, f"at most {honest} characters in {answer.tokens_after} tokens", chars)
    expect_that(bool(answer.messages), "messages", answer.messages)
    expect("the newest message", newest, answer.messages[-1].content)
    expect_no_faults(list(pair_faults(answer.messages)))


@check(2, "swap", "onMessage")
async def the_ledger_accounts_for_every_message(provider: Provider) -> None:
    """The ledger of a swap says of every message, once, whether it is there verbatim or in a summary."""
    scope = await _large(provider, "And now?")
    last_seq = (await provider.record(scope, said("Go on."))).last_seq
    ledger = (await provider.swap(scope, DUE, WINDOW)).ledger
    parts = sorted([*ledger.verbatim, *ledger.summaries], key=lambda part: part.first_seq)
    expect_no_faults(list(partition_faults(parts, last_seq)))
    expect("the kinds of verbatim parts", {"verbatim"}, {part.kind for part in ledger.verbatim})
    expect("the kinds of summaries", {"summary"}, {part.kind for part in ledger.summaries})


@check(0, "swap", "onMessage")
async def a_swap_can_be_forced(provider: Provider) -> None:
    """With `force` it swaps below the threshold too."""
    scope = await _large(provider, "And now?")
    before = await provider.swap(scope, NOT_DUE, WINDOW)
    answer = await provider.swap(scope, NOT_DUE, WINDOW, force=True)
    expect("swapped with force", [True, before.generation + 1], [answer.swapped, answer.generation])
    expect("tokensBefore", NOT_DUE, answer.tokens_before)
    expect_that(answer.tokens_after < NOT_DUE, "fewer tokens after", answer.tokens_after)
    expect_that(bool(answer.messages), "messages", answer.messages)


# ── 4: whose ──


@check(4, "swap", "onMessage")
async def a_swap_never_reaches_another_agent(provider: Provider) -> None:
    """A swap of one agent shows nothing of another with the same session key, and is no swap of the other's."""
    ours = provider.new_session(provider.new_agent())
    theirs = Scope(agent_id=provider.new_agent(), session_id=ours.session_id)
    words = {scope: unique_word() for scope in (ours, theirs)}
    for scope, word in words.items():
        await provider.record(scope, said(f"I say {word}."), said("I see.", "assistant"))
    before = await provider.swap(theirs, 0, WINDOW)
    shown = [render(message) for message in (await provider.swap(ours, DUE, WINDOW, force=True)).messages]
    expect_that(any(words[ours] in text for text in shown), "what its own agent said", shown)
    expect_that(not any(words[theirs] in text for text in shown), "nothing of what the other said", shown)
    expect("the other's generation", before.generation, (await provider.swap(theirs, 0, WINDOW)).generation)


# ── 5: what stays ──


@check(5, "swap", "onMessage")
async def a_swap_asked_for_again_is_the_same(provider: Provider) -> None:
    """With nothing new, a swap asked for again is the same answer but for `tookMs`; after news it is another."""
    scope = await _large(provider, "And now?")
    first = await _without_time(provider, scope)
    for _ in range(2):
        expect("the swap asked for again", first, await _without_time(provider, scope))
    newest = f"News: {unique_word()}."
    await provider.record(scope, *long_talk(10, CHARS), said(newest))
    later = await provider.swap(scope, DUE, WINDOW)
    generation = msgspec.json.decode(first)["generation"]
    expect("the swap after news", [True, generation + 1], [later.swapped, later.generation])
    expect("its newest message", newest, later.messages[-1].content if later.messages else None)


@check(5, "swap", "onMessage", "getCompressedContext")
async def a_swap_takes_nothing_from_the_session(provider: Provider) -> None:
    """What `getCompressedContext` covers, and what it shows where there is room for all, is the same after a swap."""
    scope = await _large(provider, "And now?")
    whole, small = await provider.context(scope), await provider.context(scope, CHARS * 10)
    expect("swapped", True, (await provider.swap(scope, DUE, WINDOW)).swapped)
    again = await provider.context(scope)
    expect("covers", whole.covers, again.covers)
    expect_that(again.messages == whole.messages, "every message as before", len(again.messages))
    narrow = await provider.context(scope, CHARS * 10)
    expect("covers of a small one", small.covers, narrow.covers)
    expect_no_faults(list(partition_faults(narrow.parts, whole.covers.last_seq)))


# ── 6: the audit ──


@check(6, "swap", "audit", "onMessage")
async def every_swap_leaves_one_event(provider: Provider) -> None:
    """A swap leaves one event, whether it swapped, had swapped before, or did not swap."""
    scope = provider.new_session(provider.new_agent())
    await provider.record(scope, said("one"), said("two", "assistant"))
    before = (await provider.audit(scope.agent_id)).head.seq
    faults = []
    for what, fields in {
        "not due": {"usedTokens": NOT_DUE},
        "forced": {"usedTokens": NOT_DUE, "force": True},
        "asked for again": {"usedTokens": NOT_DUE, "force": True},
    }.items():
        await provider.ask("swap", {**named(scope), "contextWindow": WINDOW, **fields})
        report = await provider.audit(scope.agent_id)
        left = [event for event in report.events if event.seq > before and event.verb == "swap"]
        faults += [] if len(left) == 1 else [f"{what}: came {len(left)} events"]
        faults += [f"{what}: of session {event.session_id!r}" for event in left if event.session_id != scope.session_id]
        before = report.head.seq
    expect_no_faults(faults)
    expect("verified", True, (await provider.audit(scope.agent_id)).verified)


# ── 7: refusals ──


@check(7, "swap", "onMessage", "getCompressedContext")
async def a_wrong_swap_is_refused(provider: Provider) -> None:
    """A swap that lacks a field, or has one that is unknown, of the wrong type or beyond sense, is refused."""
    async with unchanged(provider) as scope:
        sound: dict[str, Any] = {**named(scope), "usedTokens": NOT_DUE, "contextWindow": WINDOW}
        await provider.ask("swap", sound)
        required = ("sessionId", "usedTokens", "contextWindow")
        table = wrong_fields("swap", {**sound, "force": True}, WRONG_IN_A_SWAP, required)
        expect_no_faults(await table_faults(provider, table))


async def _without_time(provider: Provider, scope: Scope) -> bytes:
    asked = {**named(scope), "usedTokens": DUE, "contextWindow": WINDOW}
    answer = await provider.ask_value("swap", dict[str, Any], asked)
    expect("swapped", True, answer.get("swapped"))
    return msgspec.json.encode({key: value for key, value in answer.items() if key != "tookMs"})
