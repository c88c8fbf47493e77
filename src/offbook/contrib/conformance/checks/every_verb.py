"""What holds for every verb: 0 for the shape of its answer, 4 for whose it is, 5 for what stays the same, 6 for what it
leaves in the audit."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec

from offbook.client.transport import known_fields, value_of
from offbook.contrib.conformance.check import (
    audit_faults,
    check,
    conversation,
    expect,
    expect_no_faults,
    expect_that,
    said,
    unique_id,
    unique_word,
)
from offbook.contrib.conformance.provider import PLENTY_CHARS, Provider, asked_since, named
from offbook.model.errors import ProviderRefused
from offbook.model.memory_entry import Recollection
from offbook.model.status import Health
from offbook.model.types import AuditEvent, CompressedContext, Receipt, Scope


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


# ── 4: nothing of one agent reaches another ──


LONG_NAME = 200
"""Bytes: longer than an agent's name may be here, and well within a session key."""


class _Pair:
    """Two agents with the same session key and the same message ids, and what each of them said."""

    def __init__(self, ours: Scope, theirs: Scope, our_word: str, their_word: str) -> None:
        self.ours, self.theirs = ours, theirs
        self.our_word, self.their_word = our_word, their_word

    def leaks(self, where: str, answer: bytes) -> list[str]:
        """What is wrong with an answer given to the first agent."""
        return [f"{where} holds what the other agent said"] if self.their_word.encode() in answer else []


async def _pair(provider: Provider) -> _Pair:
    ours = provider.new_session(provider.new_agent())
    theirs = Scope(agent_id=provider.new_agent(), session_id=ours.session_id)
    pair = _Pair(ours, theirs, unique_word(), unique_word())
    message_id = unique_id()
    for scope, word in ((ours, pair.our_word), (theirs, pair.their_word)):
        receipt = await provider.record_one(scope, said(f"I say {word}.", id=message_id))
        expect("accepted from each agent", 1, receipt.accepted)
    return pair


@check(4, "onMessage", "getCompressedContext", "hooks/session-start", "status", "audit")
async def nothing_reaches_another_agent(provider: Provider) -> None:
    """Two agents with the same session key and the same message ids see nothing of each other, through any verb."""
    pair = await _pair(provider)
    agent, room = {"agentId": pair.ours.agent_id}, {"maxChars": PLENTY_CHARS}
    asked: list[tuple[str, dict[str, Any]]] = [
        ("getCompressedContext", {**named(pair.ours), **room}),
        ("hooks/session-start", {**named(pair.ours), **room}),
        ("status", agent),
        ("audit", agent),
        ("audit", named(pair.ours)),
    ]
    faults = []
    for verb, fields in asked:
        faults += pair.leaks(verb, await provider.ask(verb, fields))
    context = await provider.context(pair.ours)
    faults += [] if pair.our_word in context.text else ["the context does not hold what its own agent said"]
    expect_no_faults(faults)


@check(4, "onMessage", "status", "audit")
async def counts_and_chains_are_each_agents_own(provider: Provider) -> None:
    """What one agent does is neither counted nor recorded for another."""
    pair = await _pair(provider)
    before = (await provider.audit(pair.ours.agent_id)).head.seq
    await provider.record(pair.theirs, said("more"), said("and more"))
    await provider.context(pair.theirs)
    report = await provider.audit(pair.ours.agent_id)
    expect("events between two audits of an idle agent", ["audit"], asked_since(report, before))
    expect("the agents in its events", {pair.ours.agent_id}, {event.agent_id for event in report.events})
    status = await provider.status(pair.ours.agent_id)
    expect("the idle agent's counts.messages", 1, status["counts"]["messages"])


@check(4, "onMessage", "getCompressedContext")
async def the_session_key_names_the_agent(provider: Provider) -> None:
    """Left out, the agent is the one in a key `agent:<agentId>:…`; named, it is the one named."""
    agent_id, other = provider.new_agent(), provider.new_agent()
    session_id = f"agent:{agent_id}:{provider.new_session().session_id}"
    word = unique_word()
    await provider.ask("onMessage", {"sessionId": session_id, "message": said(word)})
    by_key = {"sessionId": session_id, "maxChars": PLENTY_CHARS}
    answer = await provider.ask("getCompressedContext", by_key)
    expect_no_faults([] if word.encode() in answer else ["the context by key does not hold the message"])
    explicit = await provider.ask("getCompressedContext", {**by_key, "agentId": agent_id})
    expect("the context by key and by agentId", answer, explicit)
    context = await provider.context(Scope(agent_id=other, session_id=session_id))
    expect("the context of another agent, named with that key", (other, 0), (context.agent_id, len(context.messages)))


@check(4, "onMessage", "recall")
async def a_name_too_long_is_not_somebody_elses(provider: Provider) -> None:
    """A key that names an agent whose name is too long is refused, or is that agent's own: nobody else's."""
    word = unique_word()
    ours, theirs = (
        {"sessionId": f"agent:{provider.new_agent().ljust(LONG_NAME, filler)}:{provider.new_session().session_id}"}
        for filler in "pq"
    )
    try:
        await provider.ask_value("onMessage", Receipt, {**ours, "message": said(f"I say {word}.")})
        found = await provider.ask_value("recall", Recollection, {**theirs, "query": word})
    except ProviderRefused as refused:
        status = refused.document.get("status")
        expect_that(status in range(400, 500), "a refusal that says what is wrong with the request", status)
        return
    leaked = any(word in entry.text for entry in found.entries)
    expect_no_faults(["what was said under one such key is recalled under another"] if leaked else [])


# ── 5: between two swaps nothing that a host has shown its model changes ──


@check(5, "onMessage", "getCompressedContext", "status", "audit", "hooks/session-end")
async def what_happens_elsewhere_changes_nothing(provider: Provider) -> None:
    """Without a new message the context stays the same bytes, whatever is asked and whatever other sessions do."""
    scope, elsewhere = provider.new_session(), provider.new_session()
    messages = conversation(15)
    await provider.record(scope, *messages)
    before = await provider.context_bytes(scope, 1_000)
    await provider.record(elsewhere, *conversation(5))
    await provider.context(scope, 500)
    await provider.context(elsewhere, 1_000)
    await provider.status(scope.agent_id)
    await provider.audit(scope.agent_id)
    await provider.ask("hooks/session-end", named(elsewhere))
    expect("the context", before, await provider.context_bytes(scope, 1_000))


@check(5, "onMessage", "getCompressedContext")
async def a_retry_changes_nothing(provider: Provider) -> None:
    """A message that was stored already, sent again, leaves the context as it was, byte for byte."""
    scope = provider.new_session()
    message = said("Only once.", id="only-once")
    await provider.record(scope, message, *conversation(3))
    before = await provider.context_bytes(scope)
    await provider.record_one(scope, message)
    expect("the context", before, await provider.context_bytes(scope))


# ── 6: every verb leaves one audit event, and the chain verifies ──


@check(6, "audit", "onMessage", "getCompressedContext", "status")
async def every_verb_leaves_one_event(provider: Provider) -> None:
    """Each verb that reads or writes leaves exactly one event, under its own name, for its agent."""
    scope = provider.new_session(provider.new_agent())
    place = named(scope)
    asked: list[tuple[str, dict[str, Any]]] = [
        ("onMessage", {**place, "message": said("one", id="one")}),
        ("onMessage", {**place, "message": said("one", id="one")}),
        ("onMessage", {**place, "messages": [said("two"), said("three")]}),
        ("getCompressedContext", {**place, "maxChars": 1_000}),
        ("hooks/session-start", place),
        ("hooks/pre-compaction", {**place, "messages": [said("four")]}),
        ("hooks/pre-compaction", place),
        ("hooks/post-compaction", place),
        ("hooks/session-end", place),
        ("status", {"agentId": scope.agent_id}),
    ]
    expect_no_faults(await audit_faults(provider, scope.agent_id, asked))


@check(6, "audit")
async def an_audit_is_audited(provider: Provider) -> None:
    """Looking into the audit is recorded as well."""
    agent_id = provider.new_agent()
    first, second = await provider.audit(agent_id), await provider.audit(agent_id)
    expect("events between two audits", 1, second.head.seq - first.head.seq)


@check(6, "audit", "onMessage")
async def the_chain_verifies(provider: Provider) -> None:
    """Events are numbered without gaps, each carries the hash of the one before it, and the head is the newest."""
    scope = provider.new_session(provider.new_agent())
    for number in range(5):
        await provider.record_one(scope, said(f"number {number}"))
    report = await provider.audit(scope.agent_id)
    expect("verified", True, report.verified)
    events = _ascending(report.events)
    expect_that(len(events) >= 5, "the events of five messages", len(events))
    expect("the numbers", list(range(events[0].seq, events[0].seq + len(events))), [event.seq for event in events])
    for earlier, later in pairwise(events):
        expect(f"previous of event {later.seq}", earlier.hash, later.previous)
    expect_that(len({event.hash for event in events}) == len(events), "hashes that differ", events[-1].hash)
    expect_that(report.head.seq >= events[-1].seq, "a head not before the newest event", report.head)
    if report.head.seq == events[-1].seq:
        expect("the hash of the head", events[-1].hash, report.head.hash)


@check(6, "audit", "onMessage")
async def the_chain_only_grows(provider: Provider) -> None:
    """Events once given are given again the same: nothing is taken out or rewritten."""
    scope = provider.new_session(provider.new_agent())
    await provider.record(scope, said("one"), said("two"))
    before = (await provider.audit(scope.agent_id)).events
    await provider.record(scope, said("three"))
    after = (await provider.audit(scope.agent_id)).events
    by_seq = {event.seq: event for event in after}
    expect_no_faults([f"event {event.seq} changed" for event in before if by_seq.get(event.seq) != event])


@check(6, "audit", "onMessage")
async def an_audit_can_be_narrowed(provider: Provider) -> None:
    """`limit` gives that many events, the newest; `sessionId` gives those of one session."""
    scope = provider.new_session(provider.new_agent())
    other = provider.new_session(scope.agent_id)
    for number in range(4):
        await provider.record_one(scope, said(f"number {number}"))
        await provider.record_one(other, said(f"elsewhere {number}"))
    every = (await provider.audit(scope.agent_id)).events
    newest = (await provider.audit(scope.agent_id, limit=3)).events
    expect("events with limit 3", 3, len(newest))
    came = [event.seq for event in _ascending(newest)]
    expect_that(came[0] >= max(event.seq for event in every) - 2, "the newest events", came)
    own = (await provider.audit(scope.agent_id, sessionId=scope.session_id)).events
    expect("the sessions in the session's events", {scope.session_id}, {event.session_id for event in own})
    expect("its onMessage events", 4, sum(event.verb == "onMessage" for event in own))


def _ascending(events: list[AuditEvent]) -> list[AuditEvent]:
    return sorted(events, key=lambda event: event.seq)
