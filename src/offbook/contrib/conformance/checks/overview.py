"""Sessions, days and entries at a glance: 0 for their shape, 4 for whose they are, 6 for their audit events."""

from __future__ import annotations

from offbook.contrib.conformance.check import check, expect, expect_that, said
from offbook.contrib.conformance.provider import Provider, asked_since, named
from offbook.model.memory_entry import Pinned
from offbook.model.overview import Activity, EntryList, SessionPage


@check(0, "sessions", "onMessage")
async def sessions_come_newest_first_and_page_by_page(provider: Provider) -> None:
    """`sessions` gives the one last written to first, with its messages and its size; `next` goes on."""
    agent_id = provider.new_agent()
    scopes = [provider.new_session(agent_id) for _ in range(3)]
    for scope in scopes:
        await provider.record(scope, said("one"), said("two", "assistant"))
    first = await provider.ask_value("sessions", SessionPage, {"agentId": agent_id, "limit": 2})
    rest = await provider.ask_value("sessions", SessionPage, {"agentId": agent_id, "limit": 2, "after": first.next})
    found = [*first.sessions, *rest.sessions]
    expect("the sessions", [scope.session_id for scope in reversed(scopes)], [one.session_id for one in found])
    expect("the number of them, and the last page", (3, None), (first.total, rest.next))
    expect("messages of each", [2, 2, 2], [one.last_seq for one in found])
    expect_that(all(one.context_window > 0 for one in found), "a window for each context", found)
    oldest = scopes[0].session_id
    for field in ("sessionId", "matching"):
        only = await provider.ask_value("sessions", SessionPage, {"agentId": agent_id, field: oldest})
        expect(f"the session of this {field}", [oldest], [one.session_id for one in only.sessions])


@check(0, "activity", "onMessage")
async def days_count_every_message_once(provider: Provider) -> None:
    """`activity` counts each message on one day."""
    scope = provider.new_session(provider.new_agent())
    await provider.record(scope, *(said(f"number {number}") for number in range(5)))
    days = (await provider.ask_value("activity", Activity, {"agentId": scope.agent_id})).days
    expect("messages on all days", 5, sum(day.messages for day in days))
    expect("days in order, each once", sorted({day.day for day in days}), [day.day for day in days])


@check(0, "entries", "pin", "onMessage")
async def entries_are_found_by_their_ids(provider: Provider) -> None:
    """`entries` gives those that are named, in that order, and without names those that are pinned."""
    scope = provider.new_session(provider.new_agent())
    await provider.record(scope, said("The first of two."), said("The second of two."))
    pinned = await provider.ask_value("pin", Pinned, named(scope))
    names = sorted(pinned.entry_ids, reverse=True)
    asked = {"agentId": scope.agent_id, "entryIds": names}
    found = (await provider.ask_value("entries", EntryList, asked)).entries
    expect("the entries that were named", names, [entry.id for entry in found])
    pins = (await provider.ask_value("entries", EntryList, {"agentId": scope.agent_id})).entries
    expect("the entries that are pinned", sorted(names), sorted(entry.id for entry in pins))


@check(4, "sessions", "activity", "entries", "pin", "onMessage")
async def nothing_at_a_glance_reaches_another_agent(provider: Provider) -> None:
    """Another agent sees neither the sessions, nor the days, nor the entries, also where it knows their names."""
    scope, other = provider.new_session(provider.new_agent()), provider.new_agent()
    await provider.record(scope, said("Nobody else's business."))
    names = (await provider.ask_value("pin", Pinned, named(scope))).entry_ids
    asked = {"agentId": other, "entryIds": names}
    expect("sessions", [], (await provider.ask_value("sessions", SessionPage, {"agentId": other})).sessions)
    expect("days", [], (await provider.ask_value("activity", Activity, {"agentId": other})).days)
    expect("entries by name", [], (await provider.ask_value("entries", EntryList, asked)).entries)
    expect("pinned entries", [], (await provider.ask_value("entries", EntryList, {"agentId": other})).entries)


@check(6, "sessions", "activity", "entries", "audit")
async def a_glance_leaves_one_event(provider: Provider) -> None:
    """Each of them leaves exactly one event."""
    agent_id = provider.new_agent()
    before = (await provider.audit(agent_id)).head.seq
    for verb in ("sessions", "activity", "entries"):
        await provider.ask(verb, {"agentId": agent_id})
    expect("events", ["sessions", "activity", "entries", "audit"], asked_since(await provider.audit(agent_id), before))
