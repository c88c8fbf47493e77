"""1, for every shape of content: what came in comes back."""

from __future__ import annotations

from typing import Any

from offbook.contrib.conformance.check import check, expect, expect_no_faults, expect_that
from offbook.contrib.conformance.provider import Provider
from offbook.contrib.conformance.refusal import call_block, calls, identified, result, result_block, said, unique_word
from offbook.model.errors import ProviderRefused

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
