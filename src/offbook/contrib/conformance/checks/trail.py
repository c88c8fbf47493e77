"""6: every verb leaves one audit event, and the chain verifies."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from offbook.contrib.conformance.check import check, expect, expect_no_faults, expect_that
from offbook.contrib.conformance.provider import Provider, asked_since, named
from offbook.contrib.conformance.refusal import said
from offbook.model.types import AuditEvent


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
    before = (await provider.audit(scope.agent_id)).head.seq
    faults = []
    for verb, fields in asked:
        await provider.ask(verb, fields)
        report = await provider.audit(scope.agent_id)
        left = asked_since(report, before)
        if left != [verb, "audit"]:
            faults.append(f"{verb}: between two audits came the events {left}, head {before} to {report.head.seq}")
        before = report.head.seq
    expect_no_faults(faults)


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
