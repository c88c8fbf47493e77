"""4: nothing of one agent reaches another."""

from __future__ import annotations

from typing import Any

from offbook.contrib.conformance.check import check, expect, expect_no_faults, expect_that
from offbook.contrib.conformance.provider import PLENTY_CHARS, Provider, asked_since, named
from offbook.contrib.conformance.refusal import said, unique_id, unique_word
from offbook.model.errors import ProviderRefused
from offbook.model.memory_entry import Recollection
from offbook.model.types import Receipt, Scope

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
