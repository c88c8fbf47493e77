"""5: between two swaps nothing that a host has shown its model changes."""

from __future__ import annotations

from offbook.contrib.conformance.check import check, expect
from offbook.contrib.conformance.provider import Provider, named
from offbook.contrib.conformance.refusal import conversation, said


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
