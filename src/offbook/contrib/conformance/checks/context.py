"""2: a context covers the session exactly once, in order, within its limit, its pairs whole, always the same bytes."""

from __future__ import annotations

from typing import Any

from offbook.contrib.conformance.check import check, expect, expect_no_faults, expect_that
from offbook.contrib.conformance.cover import context_faults
from offbook.contrib.conformance.provider import PLENTY_CHARS, Provider
from offbook.contrib.conformance.refusal import conversation, said, unique_word, with_parallel_calls
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
