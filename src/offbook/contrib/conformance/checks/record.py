"""1: what was acknowledged is never lost and never doubled."""

from __future__ import annotations

import asyncio
from typing import Any

from offbook.contrib.conformance.check import check, expect, expect_no_faults, expect_that
from offbook.contrib.conformance.cover import found_once
from offbook.contrib.conformance.provider import Provider, named
from offbook.contrib.conformance.refusal import identified, said, unique_id, unique_word
from offbook.model.types import Receipt

MANY = 200
RETRIES_AT_ONCE = 20


def _counts(receipt: Receipt) -> tuple[int, int, int, int]:
    return receipt.accepted, receipt.duplicates, receipt.first_seq, receipt.last_seq


ACCOUNT = "(accepted, duplicates, firstSeq, lastSeq)"


@check(1, "onMessage")
async def receipts_count(provider: Provider) -> None:
    """A receipt counts what was taken and says where it lies, from 1 on, without gaps."""
    scope = provider.new_session()
    expect(f"{ACCOUNT} of the first", (1, 0, 1, 1), _counts(await provider.record_one(scope, said("one"))))
    batch = [said("two", "assistant"), said("three"), said("four", "assistant")]
    expect(f"{ACCOUNT} of three more", (3, 0, 2, 4), _counts(await provider.record(scope, *batch)))


@check(1, "onMessage", "getCompressedContext")
async def a_batch_keeps_its_order(provider: Provider) -> None:
    """Messages of one request are kept in their order, after those that came before."""
    scope = provider.new_session()
    words = [unique_word() for _ in range(40)]
    await provider.record_one(scope, said(words[0]))
    await provider.record(scope, *(said(word) for word in words[1:30]))
    await provider.record(scope, *(said(word, "assistant") for word in words[30:]))
    expect_no_faults(found_once(await provider.context(scope), words))


@check(1, "onMessage", "getCompressedContext")
async def a_retry_is_a_duplicate(provider: Provider) -> None:
    """Messages sent again under the same ids are counted as duplicates, keep their places, and are not stored again."""
    scope = provider.new_session()
    words = [unique_word() for _ in range(4)]
    messages = [identified(word) for word in words]
    expect(f"{ACCOUNT} at first", (3, 0, 1, 3), _counts(await provider.record(scope, *messages[:3])))
    expect(f"{ACCOUNT} of the retry", (0, 3, 1, 3), _counts(await provider.record(scope, *messages[:3])))
    expect(f"{ACCOUNT} of a late retry", (0, 1, 2, 2), _counts(await provider.record_one(scope, messages[1])))
    expect(f"{ACCOUNT} of two old and one new", (1, 2, 2, 4), _counts(await provider.record(scope, *messages[1:])))
    context = await provider.context(scope)
    expect("covers.lastSeq", 4, context.covers.last_seq)
    expect_no_faults(found_once(context, words))


@check(1, "onMessage", "getCompressedContext")
async def an_id_occurs_once_in_a_batch(provider: Provider) -> None:
    """The same id twice in one request is one message and one duplicate."""
    scope = provider.new_session()
    message, word = identified(unique_word()), unique_word()
    receipt = await provider.record(scope, message, said(word), message)
    expect(f"{ACCOUNT}", (2, 1, 1, 2), _counts(receipt))
    expect_no_faults(found_once(await provider.context(scope), [message["content"], word]))


@check(1, "onMessage", "getCompressedContext")
async def retries_at_once_store_once(provider: Provider) -> None:
    """The same message sent many times at once is stored once."""
    scope = provider.new_session()
    message = identified(unique_word())
    receipts = await asyncio.gather(*(provider.record_one(scope, message) for _ in range(RETRIES_AT_ONCE)))
    expect("accepted in all", 1, sum(receipt.accepted for receipt in receipts))
    expect("duplicates in all", RETRIES_AT_ONCE - 1, sum(receipt.duplicates for receipt in receipts))
    expect("the places named", {(1, 1)}, {(receipt.first_seq, receipt.last_seq) for receipt in receipts})
    expect_no_faults(found_once(await provider.context(scope), [message["content"]]))


@check(1, "onMessage", "getCompressedContext")
async def an_id_is_never_overwritten(provider: Provider) -> None:
    """Other content under an id already stored is a duplicate: what was stored first stays."""
    scope = provider.new_session()
    first, second = unique_word(), unique_word()
    message = identified(first)
    await provider.record_one(scope, message)
    receipt = await provider.record_one(scope, {**message, "content": second})
    expect(f"{ACCOUNT} of the second", (0, 1, 1, 1), _counts(receipt))
    context = await provider.context(scope)
    expect_no_faults(found_once(context, [first]))
    expect_that(second not in context.text, "nothing of the second", context.text)


@check(1, "onMessage", "getCompressedContext")
async def equal_messages_are_all_kept(provider: Provider) -> None:
    """Messages without ids that are equal are all kept: people do say the same thing twice."""
    scope = provider.new_session()
    word = unique_word()
    await provider.record(scope, said(word), said(word), said(word, "assistant"))
    await provider.record_one(scope, said(word))
    context = await provider.context(scope)
    expect("covers.lastSeq", 4, context.covers.last_seq)
    expect("times it is there", 4, context.text.count(word))


@check(1, "onMessage", "getCompressedContext")
async def messages_at_once_are_all_kept(provider: Provider) -> None:
    """Two hundred requests at once to one session are all kept, each in a place of its own, without gaps."""
    scope = provider.new_session()
    words = [unique_word() for _ in range(MANY)]
    receipts = await asyncio.gather(*(provider.record_one(scope, identified(word)) for word in words))
    expect("accepted in all", MANY, sum(receipt.accepted for receipt in receipts))
    expect("the places", list(range(1, MANY + 1)), sorted(receipt.last_seq for receipt in receipts))
    in_order = [word for _, word in sorted(zip([receipt.last_seq for receipt in receipts], words, strict=True))]
    expect_no_faults(found_once(await provider.context(scope), in_order))


@check(1, "onMessage", "getCompressedContext")
async def an_acknowledged_message_is_there_at_once(provider: Provider) -> None:
    """A message is in the context that is asked for right after its acknowledgement, each time."""
    scope = provider.new_session()
    for number in range(20):
        word = unique_word()
        await provider.record_one(scope, said(word))
        context = await provider.context(scope, 2_000)
        expect("covers.lastSeq", number + 1, context.covers.last_seq)
        expect_that(word in context.text, f"{word!r} in the context asked for next", context.text)


@check(1, "hooks/pre-compaction", "onMessage", "getCompressedContext")
async def pre_compaction_saves_what_is_missing(provider: Provider) -> None:
    """`hooks/pre-compaction` saves the messages whose ids are not stored yet, and none twice."""
    scope = provider.new_session()
    messages = [identified(unique_word()) for _ in range(5)]
    await provider.record(scope, *messages[:3])
    expect("saved of five, three of them stored", 2, await _pre_compaction(provider, scope, messages))
    expect("saved when asked again", 0, await _pre_compaction(provider, scope, messages))
    expect("saved without messages", 0, await _pre_compaction(provider, scope, None))
    expect_no_faults(found_once(await provider.context(scope), [message["content"] for message in messages]))


@check(1, "hooks/pre-compaction", "onMessage", "getCompressedContext")
async def pre_compaction_knows_messages_without_ids(provider: Provider) -> None:
    """`hooks/pre-compaction` knows messages without ids by their place in the log, equal ones among them."""
    scope = provider.new_session()
    words = [unique_word() for _ in range(6)]
    again = said("Go on.")
    log = [said(words[0]), said(words[1], "assistant"), again, said(words[2], "assistant"), again]
    fresh = [said(words[3], "assistant"), again, said(words[4], "assistant"), said(words[5])]
    await provider.record(scope, *log)
    expect("saved of eight, four of them stored", 4, await _pre_compaction(provider, scope, [*log[1:], *fresh]))
    expect("saved when asked again", 0, await _pre_compaction(provider, scope, [*log[1:], *fresh]))
    context = await provider.context(scope)
    expect("covers.lastSeq", len(log) + len(fresh), context.covers.last_seq)
    expect("times 'Go on.' is there", 3, context.text.count("Go on."))
    expect_no_faults(found_once(context, words))


@check(1, "hooks/pre-compaction", "getCompressedContext")
async def pre_compaction_saves_a_session_nobody_knows(provider: Provider) -> None:
    """`hooks/pre-compaction` saves the whole of a session that was never recorded."""
    scope = provider.new_session()
    words = [unique_word() for _ in range(3)]
    expect("saved", 3, await _pre_compaction(provider, scope, [said(word) for word in words]))
    expect_no_faults(found_once(await provider.context(scope), words))


@check(1, "recall", "onMessage")
async def a_message_can_be_recalled_at_once(provider: Provider) -> None:
    """A message can be recalled by a word of its text right after its acknowledgement."""
    scope = provider.new_session()
    word = unique_word()
    await provider.record_one(scope, said(f"The harbour is called {word}.", id=unique_id()))
    found = await provider.ask_value("recall", dict[str, Any], {**named(scope), "query": word, "limit": 5})
    texts = [str(entry.get("text", "")) for entry in found["entries"]]
    expect_that(any(word in text for text in texts), f"an entry that holds {word!r}", texts)


async def _pre_compaction(provider: Provider, scope: Any, messages: list[dict[str, Any]] | None) -> int:
    given = {} if messages is None else {"messages": messages}
    answer = await provider.ask_value("hooks/pre-compaction", dict[str, Any], {**named(scope), **given})
    return int(answer["saved"])
