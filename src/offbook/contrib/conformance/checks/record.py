"""1: what was acknowledged is never lost and never doubled, and comes back as it was sent."""

from __future__ import annotations

import asyncio
from typing import Any

from offbook.contrib.conformance.check import (
    call_block,
    calls,
    check,
    expect,
    expect_no_faults,
    expect_that,
    found_once,
    identified,
    result,
    result_block,
    said,
    unique_id,
    unique_word,
)
from offbook.contrib.conformance.provider import Provider, named
from offbook.model.errors import ProviderRefused
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


# ── What comes back is what was sent ──


LARGE_CHARS = 5_000_000

TEXTS = {
    "one word": "yes",
    "lines and tabs": "first line\n\tsecond line\r\n\n\nlast line",
    "quotes and backslashes": 'she said "no\\n" and \'yes\' \\ </script> {"a": [1]} %s {} ${x}',
    "accents, composed and not": "café cafe\u0301 Ångström A\u030angstro\u0308m",
    "emoji with joiners": "🙂 👩\u200d👩\u200d👧\u200d👦 🏳️\u200d🌈 👍🏽 🇳🇱",
    "Chinese, Japanese, Korean": "记忆提供者 記憶の提供者 기억 제공자 𠮷野家",
    "right to left": "الذاكرة هنا שלום עולם \u202bmixed\u202c text",
    "control characters": "a\x01b\x1bc\x7fd\x85e\u2028f\ufeffg",
    "NUL": "before\x00after",
    "highest code points": "\ufffd \uffff \U0010ffff",
    "spaces only": "   \n ",
    "markup": "<b>bold</b> **bold** [link](https://example.org/?a=1&b=2) `code`",
    "a long text": "All work and no play. " * 3_000,
}

BLOCKS: dict[str, list[dict[str, Any]]] = {
    "text blocks": [{"type": "text", "text": "first"}, {"type": "text", "text": "second"}],
    "a tool call": [{"type": "text", "text": "Let me see."}, call_block("call-a", "search", query="größe", deep=[1])],
    "an unknown block": [{"type": "hologram", "angle": 0.5, "layers": [{"z": 1}, None, True], "note": "übrig"}],
    "a block without a type": [{"text": "untyped", "extra": {"nested": {"deeply": [[], {}]}}}],
    "numbers": [{"type": "sample", "values": [0, -1, 1.5, 1e-7, 9007199254740991, -9007199254740991]}],
}


@check(1, "onMessage", "getCompressedContext")
async def every_text_comes_back(provider: Provider) -> None:
    """Text in any script, with any character JSON can hold, comes back as it was sent."""
    faults = []
    for label, text in TEXTS.items():
        word = unique_word()
        faults += await _what_differs(provider, label, said(f"{word} {text} {word}"))
    expect_no_faults(faults)


@check(1, "onMessage", "getCompressedContext")
async def every_block_comes_back(provider: Provider) -> None:
    """Text blocks, tool calls and blocks that no contract knows come back as they were sent."""
    faults = []
    for label, blocks in BLOCKS.items():
        faults += await _what_differs(provider, label, said(blocks, "assistant"))
    expect_no_faults(faults)


@check(2, "onMessage", "getCompressedContext")
async def no_signature_of_reasoning_is_handed_to_another_model(provider: Provider) -> None:
    """What one model signed as its reasoning is not in a context, where every other model refuses it; the answer is."""
    word, signature = unique_word(), "c2lnbmF0dXJl" * 3
    thought = {"type": "thinking", "thinking": "Hm.", "signature": signature}
    scope = provider.new_session()
    await provider.record(scope, said("Well?"), said([thought, {"type": "text", "text": word}], "assistant"))
    context = await provider.context(scope)
    expect_that(word in context.text, "the answer in the text", context.text)
    shown = [str(message.content) for message in context.messages]
    expect_that(not any(signature in text for text in shown), "no signature in the messages", shown)


@check(1, "onMessage", "getCompressedContext")
async def every_tool_result_comes_back(provider: Provider) -> None:
    """A tool's result comes back after its call, whether it is a message or a block of one."""
    faults = []
    for label, answer in (("a message", result), ("a block", result_block)):
        newest = answer("call-1", f"21 degrees, {unique_word()}")
        faults += await _what_differs(provider, f"a result as {label}", newest, said("The weather?"), calls("call-1"))
    expect_no_faults(faults)


@check(1, "onMessage", "getCompressedContext")
async def every_field_comes_back(provider: Provider) -> None:
    """A message's id, name, model, origin and meta come back as they were sent, and its time is the same moment."""
    scope = provider.new_session()
    fields: dict[str, Any] = {
        "name": "Ada",
        "model": "some-model",
        "origin": "some-host",
        "meta": {"channel": ["a", {"b": None}]},
    }
    message = identified("All fields.", **fields, ts="2024-02-29T12:30:00.250+02:00")
    await provider.record_one(scope, message)
    came = (await provider.messages(scope))[-1]
    for field in ("id", "role", "content", *fields):
        expect(field, message[field], getattr(came, field))
    expect_that(came.ts is not None and came.ts.timestamp() == 1709202600.25, "ts, the same moment", came.ts)


@check(1, "onMessage", "getCompressedContext")
async def a_large_text_is_kept_or_refused(provider: Provider) -> None:
    """A text of five million characters is kept whole, or refused as too large: never cut, never lost."""
    scope = provider.new_session()
    word = unique_word()
    text = word + "It goes on. " * (LARGE_CHARS // 12) + word
    try:
        await provider.record_one(scope, said(text))
    except ProviderRefused as refusal:
        expect("status", 413, refusal.document.get("status"))
        return
    came = await provider.messages(scope)
    expect("messages", 1, len(came))
    expect_that(came[0].content == text, "the whole text", came[0].content)


async def _what_differs(provider: Provider, label: str, newest: dict[str, Any], *earlier: dict[str, Any]) -> list[str]:
    """One session for each, because the newest message of a session is the one that is shown as it came."""
    scope = provider.new_session()
    try:
        await provider.record(scope, *earlier, newest)
    except ProviderRefused as refusal:
        return [f"{label}: refused ({refusal.detail})"]
    messages = await provider.messages(scope)
    if len(messages) != len(earlier) + 1:
        return [f"{label}: {len(earlier) + 1} messages sent, {len(messages)} came"]
    came = messages[-1]
    if (came.role, came.content, came.tool_call_id) == (newest["role"], newest["content"], newest.get("toolCallId")):
        return []
    return [f"{label}: sent {str(newest)[:120]}, came {str(came)[:120]}"]
