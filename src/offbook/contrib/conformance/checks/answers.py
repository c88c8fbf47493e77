"""0: every verb answers, in the shape the contract gives it."""

from __future__ import annotations

from typing import Any

import msgspec

from offbook.client.answers import known_fields, value_of
from offbook.contrib.conformance.check import check, expect, expect_that
from offbook.contrib.conformance.provider import PLENTY_CHARS, Provider, named
from offbook.contrib.conformance.refusal import said, unique_word
from offbook.model.status import Health
from offbook.model.types import CompressedContext


@check(0, "ping")
async def ping_answers(provider: Provider) -> None:
    """`ping` says ok, how long it took, the version, the store, the model and the backlog, on POST and on GET."""
    for health in (await provider.ask_value("ping", Health), value_of(await provider.get("/v1/ping"), Health)):
        expect("ok", True, health.ok)
        expect_that(health.latency_ms >= 0 and health.backlog >= 0, "latencyMs and backlog of 0 or more", health)
        expect_that(bool(health.version and health.store), "a version and the name of the store", health)


@check(0, "status", "onMessage")
async def status_answers(provider: Provider) -> None:
    """`status` gives the agent's counts, tiers, backlog, costs and capture reconciliation."""
    scope = provider.new_session(provider.new_agent())
    await provider.record(scope, said("one"), said("two", "assistant"))
    status = await provider.status(scope.agent_id)
    missing = {"counts", "tiers", "backlog", "costs", "capture"} - status.keys()
    expect_that(not missing, "the fields counts, tiers, backlog, costs, capture", sorted(status))
    expect("counts.messages after two messages", 2, status["counts"].get("messages"))


@check(0, "hooks/session-start", "onMessage")
async def session_start_gives_the_context(provider: Provider) -> None:
    """`hooks/session-start` gives null for a session nobody knows, and the context of one that is known."""
    scope = provider.new_session()
    expect("a session nobody knows", None, await _session_start(provider, {**named(scope)}))
    word = unique_word()
    await provider.record(scope, said(f"The boat is called {word}."))
    for fields in ({}, {"maxChars": PLENTY_CHARS}, {"maxChars": 5_000}):
        started = await _session_start(provider, {**named(scope), **fields})
        expect_that(isinstance(started, dict), "a context", started)
        context = msgspec.convert(known_fields(started, CompressedContext), CompressedContext)
        expect_that(word in context.text, f"a context that holds {word!r}", context.text)
        expect_that(len(context.text) <= context.max_chars, "at most maxChars characters", len(context.text))


@check(0, "hooks/session-end", "onMessage")
async def session_end_is_noted(provider: Provider) -> None:
    """`hooks/session-end` answers ok, with a reason and without, and the session can go on after it."""
    scope = provider.new_session()
    await provider.record(scope, said("before"))
    for fields in ({}, {"reason": "idle"}):
        ended = await provider.ask_value("hooks/session-end", dict[str, Any], {**named(scope), **fields})
        expect("ok", True, ended.get("ok"))
    expect("the next message's seq", 2, (await provider.record(scope, said("after"))).last_seq)


@check(0, "hooks/post-compaction", "onMessage")
async def post_compaction_is_noted(provider: Provider) -> None:
    """`hooks/post-compaction` answers ok, with a new context, as text or messages, or none; no message changes."""
    scope = provider.new_session()
    await provider.record(scope, said("one"), said("two", "assistant"))
    before = await provider.messages(scope)
    for fields in ({}, {"newContext": "as text"}, {"newContext": [said("as messages")]}):
        noted = await provider.ask_value("hooks/post-compaction", dict[str, Any], {**named(scope), **fields})
        expect("ok", True, noted.get("ok"))
    expect("the messages afterwards", before, await provider.messages(scope))


async def _session_start(provider: Provider, fields: dict[str, Any]) -> Any:
    return msgspec.json.decode(await provider.ask("hooks/session-start", fields))
