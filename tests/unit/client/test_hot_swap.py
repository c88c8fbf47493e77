from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offbook.client import hot_swap, swap_question
from offbook.client.async_client import AsyncClient
from offbook.client.blocking import Client
from offbook.client.blocking_hot_swap import BlockingHotSwapSession
from offbook.client.hot_swap import HotSwapSession
from offbook.client.slot import orphan_in, tokens_of
from offbook.context.replayable import with_orphans_quoted
from offbook.model.content import tool_results
from offbook.model.errors import InvalidInput, ProviderRefused, ProviderUnavailable, WrongShape
from offbook.model.types import Message
from tests.unit.client.fake_memory import REFUSAL, WRONG_ANSWERS, FakeMemory, breaking, ids_in, memory_of, refusing

WORDS = "some twenty tokens of words that mean nothing at all, and then a few more of them for good measure "
LOOSE_SECONDS = 10.0
BRIEF_SECONDS = 0.25
"""Waited out, where nothing is answered meanwhile."""
"""Far more than any deadline here, for a busy machine, and far less than the answers take that are not waited for."""


def session_of(memory: FakeMemory, **options: Any) -> HotSwapSession:
    settings = {"context_window": 800, "deadline_seconds": 2.0, **options}
    session = HotSwapSession(cast(AsyncClient, memory), "s", **settings)
    session._name = f"m{len(memory.recorded)}"  # short: what stands for the past names every message
    return session


def fill(session: HotSwapSession, tokens: int) -> None:
    while session.used_tokens < tokens:
        session.add(("user" if session._slot.total % 2 else "assistant", f"{session._slot.total} {WORDS}"))


def said(memory: FakeMemory) -> list[str | None]:
    return [message.id for message in memory.recorded]


def assert_all_there(messages: Sequence[Message], memory: FakeMemory) -> None:
    """Every message once and in order; a result that came late may have been moved behind its call."""
    results = {message.id for message in memory.recorded if tool_results(message)}
    there = ids_in(messages)
    assert sorted(map(str, there)) == sorted(map(str, said(memory)))
    assert [one for one in there if one not in results] == [one for one in said(memory) if one not in results]


def kinds(session: HotSwapSession) -> list[str]:
    return [event.kind for event in session.events]


def folded(messages: Sequence[Message]) -> list[Message]:
    """An agent's own compaction that loses nothing: all but the newest become one message that names them."""
    return [memory_of(ids_in(messages[:-2])), *with_orphans_quoted(messages[-2:])]


# ── swapping ──


async def test_below_the_threshold_nothing_is_asked() -> None:
    memory = FakeMemory()
    session = session_of(memory)
    fill(session, 600)
    assert ids_in(await session.messages()) == said(memory)
    assert memory.asked == []


async def test_at_the_threshold_slot_b_takes_the_place_of_slot_a() -> None:
    memory = FakeMemory()
    session = session_of(memory)
    fill(session, 680)
    before = session.used_tokens
    messages = await session.messages()
    assert len(messages) == 5
    assert ids_in(messages) == said(memory)
    assert memory.forced == [False]
    (event,) = session.events
    assert (event.kind, event.tokens_before, event.tokens_after) == ("swapped", before, session.used_tokens)
    stats = session.stats
    assert (stats.swaps, stats.generation, stats.fallbacks, stats.compactions) == (1, 1, {}, 0)
    assert stats.last_ledger is not None
    assert await session.messages() == messages
    assert memory.asked == ["swap"]


async def test_messages_that_arrive_during_a_swap_stand_behind_it_once_and_in_order() -> None:
    memory = FakeMemory()
    session = session_of(memory, deadline_seconds=5.0)
    fill(session, 680)
    memory.gate.clear()
    swapping = asyncio.create_task(session.messages())
    await asyncio.sleep(0.01)
    session.add(("user", "meanwhile one"))
    memory.deliver()  # the provider has seen it, and its answer shows it
    session.add(("user", "meanwhile two"))
    memory.gate.set()
    messages = await swapping
    assert [message.content for message in messages[-2:]] == ["meanwhile one", "meanwhile two"]
    assert ids_in(messages) == said(memory)
    assert kinds(session) == ["swapped"]


async def test_what_has_not_arrived_yet_stays() -> None:
    memory = FakeMemory()
    session = session_of(memory)
    fill(session, 680)
    memory.arriving = len(memory.waiting) - 3
    messages = await session.messages()
    assert kinds(session) == ["swapped"]
    assert ids_in(messages) == said(memory)
    assert len(memory.waiting) == 3


async def test_a_threshold_of_the_hosts_is_its_word() -> None:
    memory = FakeMemory()
    memory.threshold = 0.85
    session = session_of(memory, threshold=0.5)
    fill(session, 400)
    await session.messages()
    assert (memory.forced, session.stats.swaps) == ([True], 1)


async def test_a_provider_that_sees_no_need_is_not_asked_at_every_message() -> None:
    memory = FakeMemory()
    memory.threshold = 0.95
    session = session_of(memory)
    fill(session, 680)
    for _ in range(5):
        await session.messages()
    assert (memory.asked, kinds(session), session.stats.fallbacks) == (["swap"], ["kept"], {"kept": 1})
    fill(session, 764)
    await session.messages()
    assert kinds(session) == ["kept", "swapped"]


async def test_no_swap_while_a_tool_works() -> None:
    memory = FakeMemory()
    session = session_of(memory)
    fill(session, 680)
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    session.add({"role": "assistant", "content": None, "tool_calls": [call]})
    await session.messages()
    assert memory.asked == []
    session.add({"role": "tool", "tool_call_id": "c1", "content": "seen"})
    messages = await session.messages()
    assert (kinds(session), orphan_in(messages), ids_in(messages)) == (["swapped"], None, said(memory))
    assert session.as_openai()[-1] == {"role": "tool", "tool_call_id": "c1", "content": "seen"}
    assert session.as_anthropic()["messages"][-1]["content"][0]["type"] == "tool_result"


async def test_no_swap_while_a_tool_works_whose_id_was_used_before() -> None:
    memory = FakeMemory()
    session = session_of(memory)
    call = {"id": "call_0", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    for tokens in (680, 0):
        session.add({"role": "assistant", "content": None, "tool_calls": [call]})
        await session.messages()
        assert memory.asked == []
        session.add({"role": "tool", "tool_call_id": "call_0", "content": "seen"})
        fill(session, tokens)
    await session.messages()
    assert memory.asked == ["swap"]


async def test_a_request_is_made_of_messages_that_were_swapped() -> None:
    for name in ("openai_messages", "anthropic_request"):
        memory = FakeMemory()
        session = session_of(memory)
        fill(session, 680)
        as_it_is = session.as_openai()
        assert (len(as_it_is), kinds(session)) == (len(memory.recorded), []), "nothing is swapped here"
        request = await getattr(session, name)()
        assert kinds(session) == ["swapped"]
        assert request == (session.as_openai() if name == "openai_messages" else session.as_anthropic())
        assert len(session.as_openai()) < len(as_it_is)


# ── usage ──


async def test_what_the_model_counted_is_believed() -> None:
    session = session_of(FakeMemory(), context_window=10_000)
    session.add(("user", WORDS))
    estimated = session.used_tokens
    await session.messages()
    session.report_usage(estimated + 1_000)  # instructions and tools
    assert session.used_tokens == estimated + 1_000
    session.add(("assistant", WORDS))
    assert session.used_tokens == 2 * estimated + 1_000
    await session.messages()
    session.report_usage(2 * estimated + 900)  # there are fewer instructions now
    assert session.used_tokens == 2 * estimated + 900


async def test_a_language_that_takes_more_tokens_than_we_think_is_known_after_three_turns() -> None:
    session = session_of(FakeMemory(), context_window=100_000)
    for number in range(3):
        session.add(("user", f"{number} {WORDS * 50}"))
        await session.messages()
        session.report_usage(3_000 + int(1.35 * session._slot.tokens))
    session.add(("user", f"3 {WORDS * 100}"))
    assert session.used_tokens == pytest.approx(3_000 + 1.35 * session._slot.tokens, rel=0.1)
    assert session._meter.ratio == pytest.approx(1.35, rel=0.1)


async def test_a_count_that_cannot_be_is_not_believed() -> None:
    for count in (0, -1, None):
        session = session_of(FakeMemory())
        session.report_usage(count)
        fill(session, 100)
        estimated = session.used_tokens
        await session.messages()
        session.report_usage(count)
        assert session.used_tokens == estimated
    session.report_usage(5)  # what was read from the cache is not in it
    assert session.used_tokens == estimated // 2


async def test_low_counts_do_not_put_a_swap_off_for_ever() -> None:
    memory = FakeMemory()
    session = session_of(memory)
    for number in range(100):
        session.add(("user", f"{number} {WORDS}"))
        await session.messages()
        session.report_usage(5)
        assert session._slot.tokens < 1_700
    assert session.stats.swaps


async def test_a_report_can_make_a_swap_due() -> None:
    memory = FakeMemory()
    session = session_of(memory, context_window=10_000)
    fill(session, 200)
    await session.messages()
    session.report_usage(9_000)
    await session.messages()
    assert kinds(session) == ["swapped"]
    await session.messages()
    assert memory.asked == ["swap"], "what the host adds to every prompt is no reason to swap again"


# ── a provider that is away, slow or wrong ──


async def test_away_the_agent_goes_on_and_nothing_is_lost() -> None:
    memory = FakeMemory()
    memory.is_away = True
    session = session_of(memory)
    fill(session, 680)
    assert ids_in(await session.messages()) == said(memory)
    assert (kinds(session), session.stats.fallbacks) == (["away"], {"away": 1})
    await session.messages()
    assert memory.asked == ["swap"], "it is left alone for a while"
    memory.is_away = False
    session._rest_until = 0.0
    assert ids_in(await session.messages()) == said(memory)
    assert kinds(session) == ["away", "swapped"]


async def test_slow_the_agent_waits_no_longer_than_the_deadline_and_uses_the_answer_later() -> None:
    memory = FakeMemory()
    session = session_of(memory, deadline_seconds=BRIEF_SECONDS)
    fill(session, 680)
    memory.gate.clear()
    started = time.monotonic()
    assert ids_in(await session.messages()) == said(memory)
    assert 0.015 < time.monotonic() - started < LOOSE_SECONDS
    waited_ms = session.stats.waited_ms
    assert 0 < waited_ms < LOOSE_SECONDS * 1_000
    session.add(("user", "meanwhile"))
    await session.messages()
    assert session.stats.waited_ms == waited_ms, "it waits once for one answer"
    assert (kinds(session), memory.asked) == (["slow"], ["swap"])
    memory.gate.set()
    await asyncio.sleep(0.01)
    messages = await session.messages()
    assert (kinds(session), ids_in(messages)) == (["slow", "swapped"], said(memory))
    assert messages[-1].content == "meanwhile"
    assert session.stats.waited_ms == waited_ms


@pytest.mark.parametrize("kind", WRONG_ANSWERS)
async def test_a_wrong_answer_is_not_used(kind: str) -> None:
    memory = FakeMemory()
    session = session_of(memory)
    fill(session, 680)
    memory.faults.append(WRONG_ANSWERS[kind])
    before = list(memory.recorded)
    messages = await session.messages()
    assert [message.id for message in messages] == [message.id for message in before]
    assert (kinds(session), session.stats.swaps) == (["wrong"], 0)
    await session.close()
    assert [name for name, _ in memory.told] == ["post"], "the provider knows that its answer is not in use"


@pytest.mark.parametrize(("fault", "kind"), [(refusing, "refused"), (breaking, "wrong")])
async def test_a_refusal_and_a_fault_of_the_client_leave_slot_a(fault: Any, kind: str) -> None:
    memory = FakeMemory()
    session = session_of(memory)
    fill(session, 680)
    memory.faults.append(fault)
    assert ids_in(await session.messages()) == said(memory)
    assert kinds(session) == [kind]


async def test_an_answer_to_an_older_question_does_not_part_a_result_from_its_call() -> None:
    memory = FakeMemory()
    session = session_of(memory, deadline_seconds=BRIEF_SECONDS)
    fill(session, 680)
    memory.gate.clear()
    await session.messages()
    session.add({"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "look", "input": {}}]})
    session.add(("user", "still there?"))
    memory.deliver()  # the answer shows the call, and as text, since something else came instead of its result
    memory.gate.set()
    await asyncio.sleep(0.01)
    session.add({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "seen"}]})
    messages = await session.messages()
    assert (kinds(session), ids_in(messages), orphan_in(messages)) == (["slow", "wrong"], said(memory), None)
    session._rest_until = session._ask_again_tokens = 0
    messages = await session.messages()
    assert (kinds(session)[-1], orphan_in(messages)) == ("swapped", None)
    assert_all_there(messages, memory)


async def test_what_the_provider_refused_for_good_stays_in_the_context() -> None:
    memory = FakeMemory()
    session = session_of(memory)
    fill(session, 400)
    refused = session.add(("user", "something the provider does not take"))
    memory.refused_ids.add(refused.id or "")
    fill(session, 680)
    for _ in range(2):
        messages = await session.messages()
        assert sorted(map(str, ids_in(messages))) == sorted(map(str, said(memory)))
        assert refused in messages
        fill(session, 690)
    assert session.stats.swaps == 2


async def test_what_never_came_into_the_outbox_stays_in_the_context() -> None:
    memory = FakeMemory()
    session = session_of(memory)
    fill(session, 400)
    memory.invalid_ids.add("lost")
    session.add({"role": "user", "content": "on a full disk", "id": "lost"})
    fill(session, 680)
    messages = await session.messages()
    assert (kinds(session), "lost" in ids_in(messages)) == (["swapped"], True)


async def test_the_newest_that_the_provider_refused_stays_for_good() -> None:
    memory = FakeMemory()
    session = session_of(memory)
    fill(session, 680)
    refused = session.add(("user", "something the provider does not take"))
    memory.refused_ids.add(refused.id or "")
    for _ in range(3):
        messages = await session.messages()
        assert sorted(map(str, ids_in(messages))) == sorted(map(str, said(memory)))
        fill(session, 690)
    assert session.stats.swaps == 3


def test_what_cannot_be_sent_is_not_added() -> None:
    memory = FakeMemory()
    session = session_of(memory)
    with pytest.raises(WrongShape):
        session.add({"role": "user", "content": "x", "meta": {"when": object()}})
    assert (memory.recorded, session._slot.total) == ([], 0)


async def test_ids_that_utf_8_cannot_carry_do_not_hinder_a_swap() -> None:
    memory = FakeMemory()
    session = session_of(memory)
    for number in range(40):
        session.add({"role": "user", "content": WORDS, "id": f"{number}-\ud83d"})
        await session.messages()
    assert session.stats.swaps
    assert all("\ufffd" in (message.id or "") for message in memory.recorded)


# ── the agent's own compaction ──


async def test_full_and_alone_the_agent_compacts_by_itself_and_says_so() -> None:
    memory = FakeMemory()
    memory.is_away = True
    session = session_of(memory, compact=folded)
    fill(session, 780)
    assert ids_in(await session.messages()) == said(memory)
    assert kinds(session) == ["away", "compacted"]
    assert session.events[-1].reason == "away: nobody answers"
    assert session.stats.compactions == 1
    fill(session, 690)
    memory.is_away = False
    session._rest_until = 0.0
    assert ids_in(await session.messages()) == said(memory)
    assert kinds(session) == ["away", "compacted", "swapped"]


async def test_a_compaction_may_wait_and_is_told_before_and_after() -> None:
    memory = FakeMemory()
    memory.faults.extend([WRONG_ANSWERS["empty"]])
    seen: list[str] = []

    async def compact(messages: list[Message]) -> list[Any]:
        seen.extend(name for name, _ in memory.told)
        await asyncio.sleep(0)
        session.add(("user", "while it compacts"))
        return [{"role": "user", "content": "all that was said"}, ("assistant", "yes")]

    session = session_of(memory, compact=compact)
    fill(session, 780)
    messages = await session.messages()
    assert [message.content for message in messages] == ["all that was said", "yes", "while it compacts"]
    assert seen[-1] == "pre"
    await session.close()
    assert memory.told[-1] == ("post", {"messages": 2, "tokens": tokens_of(messages[:2])})


@pytest.mark.parametrize(
    "compact",
    [
        None,
        lambda messages: [],
        lambda messages: messages,
        lambda messages: [("user", "x", "y")],
        lambda messages: [{"role": "tool", "toolCallId": "gone", "content": "x"}],
        lambda messages: 1 / 0,
    ],
)
async def test_without_one_that_works_the_newest_messages_are_kept(compact: Any) -> None:
    memory = FakeMemory()
    memory.is_away = True
    session = session_of(memory, compact=compact, fallback_messages=6)
    fill(session, 780)
    assert [message.id for message in await session.messages()] == said(memory)[-6:]
    assert ("failed" in session.events[-1].reason) == (compact is not None)


async def test_slow_and_full_the_agent_is_not_held_up() -> None:
    memory = FakeMemory()
    memory.gate.clear()
    session = session_of(memory, fallback_messages=6, deadline_seconds=BRIEF_SECONDS)
    fill(session, 780)
    started = time.monotonic()
    messages = await session.messages()
    assert time.monotonic() - started < LOOSE_SECONDS
    assert [message.id for message in messages] == said(memory)[-6:]
    assert kinds(session) == ["slow", "compacted"]
    memory.gate.set()
    await asyncio.sleep(0.01)
    assert await session.messages() == messages
    await session.close()


async def test_what_cannot_be_made_smaller_is_not_compacted_at_every_message() -> None:
    memory = FakeMemory()
    memory.is_away = True
    session = session_of(memory)
    session.add(("user", WORDS * 60))
    for _ in range(3):
        await session.messages()
    assert kinds(session) == ["away", "compacted"]


# ── starting ──


async def test_a_cold_start_goes_on_where_the_session_was() -> None:
    memory = FakeMemory()
    first = session_of(memory)
    fill(first, 600)
    await memory.settle()
    second = session_of(memory)
    assert ids_in(await second.start()) == said(memory)
    second.add(("user", "and now?"))
    assert ids_in(await second.messages()) == said(memory)
    repeated = memory.recorded[-2]
    second.add(repeated)
    assert second._slot.total == 1, "what the host adds again after a crash is there already"
    fill(second, 680)
    assert ids_in(await second.messages()) == said(memory)
    assert kinds(second) == ["started", "swapped"]


def history(number: int) -> list[Message]:
    return [Message(role="user", content=f"{one} {WORDS}", id=f"h:{one}") for one in range(1, number + 1)]


@pytest.mark.parametrize("is_late", [False, True])
async def test_history_that_a_host_adds_again_after_a_restart_changes_nothing(is_late: bool) -> None:
    memory = FakeMemory()
    memory.stored.extend(history(60))
    if is_late:
        memory.gate.clear()
    session = session_of(memory)
    await session.start(0.01)
    for one in history(60)[: 11 if is_late else 60]:
        session.add(one)
    memory.gate.set()
    await asyncio.sleep(0.01)
    messages = await session.messages()
    assert ids_in(messages) == [f"h:{number}" for number in range(1, 61)]
    assert kinds(session)[-1] == "started"
    for one in history(60):
        session.add(one)
    new = session.add(("user", "and now?"))
    assert await session.messages() == [*messages, new]
    fill(session, 680)
    messages = await session.messages()
    assert (kinds(session)[-1], messages[-1].id) == ("swapped", said(memory)[-1])


async def test_a_long_log_is_read_in_pages_and_one_that_may_not_be_read_is_no_trouble(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(swap_question, "MOST_LOOKED_UP", 10)
    monkeypatch.setattr(swap_question, "MOST_KNOWN", 30)
    memory = FakeMemory()
    memory.stored.extend(history(60))
    session = session_of(memory)
    await session.start()
    assert session._known_ids == {f"h:{number}" for number in range(31, 61)}
    monkeypatch.setattr(swap_question, "KNOWN_SECONDS", -1.0)
    session = session_of(memory)
    await session.start()
    assert session._known_ids == {f"h:{number}" for number in range(51, 61)}, "the newest first"

    async def log(*_: Any, **__: Any) -> Any:
        raise ProviderRefused(REFUSAL)

    monkeypatch.setattr(memory, "log", log)
    session = session_of(memory)
    await session.start()
    assert (kinds(session), len(session._known_ids)) == (["started"], memory.shown)


async def test_what_was_recorded_is_told_where_the_provider_is_there() -> None:
    memory = FakeMemory()
    memory.stored += [Message(role="user", content=f"said {number}", id=f"m{number}") for number in range(4)]
    session = session_of(memory)
    await session.start()
    assert [one.id for one in await session.recorded(2)] == ["m2", "m3"]
    assert session.knows("m0")
    assert not session.knows("m4")
    memory.is_away = True
    assert await session.recorded(2) == []
    another = session_of(memory)
    await another.start()
    memory.is_away = False
    assert await another.recorded(2) == []  # what it began with is not known yet


async def test_what_was_recorded_is_waited_for_at_the_beginning_only(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    async def recorded(most: int, seconds: float) -> list[Message]:
        waited.append(seconds)
        return []

    session = session_of(FakeMemory(), deadline_seconds=0.25)
    await session.start()
    monkeypatch.setattr(session._questions, "recorded", recorded)
    for _ in range(3):
        await session.recorded(2)
    assert waited == [2.0, 0.25, 0.25]


async def test_without_a_provider_a_session_starts_empty_and_remembers_later() -> None:
    memory = FakeMemory()
    before = Message(role="user", content="long ago", id="long-ago")
    memory.stored.append(before)
    memory.is_away = True
    async with session_of(memory) as session:
        assert await session.messages() == []
        one = session.add(("user", "one"))
        memory.is_away = False
        session._rest_until = 0.0
        assert await session.messages() == [before, one]
    assert kinds(session) == ["away", "started"]
    assert await session_of(FakeMemory()).start() == []


async def test_a_wrong_context_to_start_with_is_not_used() -> None:
    memory = FakeMemory()
    memory.stored.append(Message(role="tool", content="x", id="m", tool_call_id="none"))
    memory.context = lambda: list(memory.stored)  # type: ignore[method-assign]
    session = session_of(memory)
    assert await session.start() == []
    assert kinds(session) == ["wrong"]
    await session.messages()
    assert memory.asked.count("session-start") == 1
    await session.close()


# ── what is given ──


def test_what_is_no_message_and_no_session_is_said_so() -> None:
    session = session_of(FakeMemory())
    for wrong in ("text", ("user",), {"role": "nobody", "content": "x"}, {"content": "x"}, 7):
        with pytest.raises(WrongShape):
            session.add(cast(Any, wrong))
    for options in ({"context_window": 0}, {"threshold": 0.3}, {"limit": 0.8}, {"threshold": 1.2}):
        with pytest.raises(InvalidInput):
            session_of(FakeMemory(), **options)


def test_threads_may_add_together() -> None:
    memory = FakeMemory()
    session = session_of(memory, context_window=1_000_000)

    def work() -> None:
        for number in range(100):
            session.add(("user", f"{number}"))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [message.id for message in session._slot.messages] == said(memory)
    assert len(set(said(memory))) == 400


def test_the_blocking_session_has_the_same_methods() -> None:
    def public(kind: type) -> dict[str, list[tuple[str, Any, Any]]]:
        return {
            name: [(one.name, one.kind, one.default) for one in inspect.signature(method).parameters.values()]
            for name, method in inspect.getmembers(kind, inspect.isfunction)
            if not name.startswith("_") or name == "__init__"
        }

    assert public(BlockingHotSwapSession) == public(HotSwapSession)


def test_a_blocking_compaction_may_use_the_client(tmp_path: Path) -> None:
    def compact(messages: list[Message]) -> list[Any]:
        with pytest.raises(ProviderUnavailable):
            memory.ping()
        return [("user", "all that was said")]

    with Client(f"unix://{tmp_path}/nobody.sock", home=tmp_path) as memory:
        session = BlockingHotSwapSession(memory, "s", context_window=800, compact=compact)
        assert session.start() == []
        while not session.stats.compactions:
            session.add(("user", WORDS))
            messages = session.messages()
        assert [message.content for message in messages] == ["all that was said"]
        assert memory.outbox_status()["waiting"] == len(session._session._known_ids)
        session.close()


# ── whatever happens ──

ACTIONS = st.one_of(
    st.tuples(st.just("add"), st.integers(1, 6)),
    st.tuples(st.just("add"), st.integers(1, 6)),
    st.tuples(st.just("add and gap"), st.integers(1, 6)),
    st.tuples(st.just("add and gap"), st.integers(1, 6)),
    st.tuples(st.just("gap"), st.just(0)),
    st.tuples(st.just("call"), st.just(0)),
    st.tuples(st.just("away"), st.booleans()),
    st.tuples(st.just("slow"), st.booleans()),
    st.tuples(st.just("arriving"), st.one_of(st.none(), st.integers(0, 3))),
    st.tuples(st.just("deliver"), st.integers(0, 3)),
    st.tuples(st.just("wrong"), st.sampled_from([*WRONG_ANSWERS.values(), refusing, breaking])),
    st.tuples(st.just("rested"), st.just(0)),
    st.tuples(st.just("counted"), st.integers(-20, 60)),
)


async def happen(session: HotSwapSession, memory: FakeMemory, actions: Sequence[tuple[str, Any]]) -> None:
    open_call: str | None = None
    for number, (action, value) in enumerate(actions):
        match action:
            case "add" | "add and gap":
                for _ in range(value):
                    session.add(("user", f"{number} {WORDS}"))
                if action != "add":
                    await happen(session, memory, [("gap", 0)])
            case "call" if open_call is None:
                open_call = f"call-{number}"
                block = {"type": "tool-call", "id": open_call, "name": "look", "arguments": {}}
                session.add({"role": "assistant", "content": [block]})
            case "call":
                session.add({"role": "tool", "toolCallId": open_call, "content": f"{number} {WORDS}"})
                open_call = None
            case "gap":
                messages = await session.messages()
                assert orphan_in(messages) is None
                assert_all_there(messages, memory)
            case "away":
                memory.is_away = value
            case "slow":
                (memory.gate.clear if value else memory.gate.set)()
                await asyncio.sleep(0)
            case "arriving":
                memory.arriving = value
            case "deliver":
                memory.deliver(value)
            case "wrong":
                memory.faults.append(value)
            case "rested":
                session._rest_until = session._ask_again_tokens = 0
            case "counted":
                session.report_usage(max(0, session._meter._given + value))


@settings(max_examples=60, deadline=None)
@given(st.lists(ACTIONS, min_size=15, max_size=60), st.booleans())
def test_whatever_happens_every_message_is_there_once_and_in_order(
    actions: list[tuple[str, Any]], is_stored_before: bool
) -> None:
    async def run() -> None:
        memory = FakeMemory(shown=3)
        if is_stored_before:
            memory.record("s", Message(role="user", content="before", id="before"))
            memory.deliver()
        session = session_of(memory, compact=folded, deadline_seconds=0.005, context_window=500, threshold=0.5)
        await session.start()
        await happen(session, memory, actions)
        await happen(session, memory, [("slow", False), ("away", False), ("arriving", None), ("rested", 0)])
        memory.faults.clear()
        await session.messages()
        assert_all_there(session._slot.messages, memory)
        memory.deliver()
        assert [message.id for message in memory.stored] == said(memory)
        await session.close()

    asyncio.run(run())


async def test_an_answer_without_the_newest_is_known_though_a_result_stands_behind_its_call() -> None:
    """The newest of an answer need not stand last in it."""
    memory = FakeMemory(shown=3)
    session = session_of(memory, compact=folded, deadline_seconds=0.005, context_window=500, threshold=0.5)
    await session.start()
    before: list[tuple[str, Any]] = [("add", 6), ("add", 6), ("call", 0), ("add", 1), ("call", 0), ("deliver", None)]
    await happen(session, memory, before)
    await happen(session, memory, [("wrong", WRONG_ANSWERS["without the newest"]), ("arriving", 0), ("add", 2)])
    await happen(session, memory, [("gap", 0)])
    await session.close()


def test_the_defaults_are_those_of_the_settings() -> None:
    parameters = inspect.signature(HotSwapSession).parameters
    assert (parameters["target"].default, parameters["fallback_messages"].default) == (0.40, 20)
    assert hot_swap.DEADLINE_SECONDS == 0.25
    assert session_of(FakeMemory(), context_window=100)._due_tokens == 85
