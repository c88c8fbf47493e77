"""Contexts from a real store: any history, any limit, with and without summaries."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from offbook.api.memory import Memory
from offbook.context.validity import faults
from offbook.contrib.conformance.check import context_faults
from offbook.model.types import Message, Scope
from offbook.projections.summaries import Summaries
from tests.unit.context.histories import HISTORIES
from tests.unit.small_memory import caught_up, contents, exchange, small_memory, talk, talked, user

LIMITS = (1, 7, 60, 150, 400, 1_000, 2_500, 6_000, 20_000, 1_000_000)


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with small_memory(tmp_path) as opened:
        yield opened


@pytest.fixture
async def long_talk(tmp_path: Path) -> AsyncIterator[Memory]:
    """After 120 exchanges, all of which are summarised."""
    await talked(tmp_path, 120)
    async with small_memory(tmp_path) as opened:
        yield opened


def let_go(memory: Memory) -> None:
    memory._reader.let_go("main")
    memory._background.contexts.let_go("main")


async def assert_sound(memory: Memory, session: str, last_seq: int) -> None:
    scope = memory.scope(session)
    for max_chars in LIMITS:
        context = await memory.get_compressed_context(scope, max_chars)
        assert context_faults(context, scope, last_seq, max_chars) == []
        assert faults(context.messages) == []


async def test_at_every_limit_the_cover_is_exact(memory: Memory) -> None:
    await talk(memory, 60)
    await assert_sound(memory, "chat", 120)
    await caught_up(memory)
    let_go(memory)
    await assert_sound(memory, "chat", 120)
    await memory.session_end(memory.scope("chat"))
    await caught_up(memory)
    let_go(memory)
    await assert_sound(memory, "chat", 120)


async def test_older_is_coarser_and_nothing_is_shown_twice(long_talk: Memory) -> None:
    scope = long_talk.scope("chat")
    context = await long_talk.get_compressed_context(scope, 4_000)
    levels = [part.level for part in context.parts if part.id]
    assert levels == sorted(levels, key=lambda level: -(level or 0))
    assert {1, 2} <= set(levels)
    assert context.parts[-1].kind == "verbatim"
    assert context.parts[-1].last_seq - context.parts[-1].first_seq >= 4


async def test_more_room_shows_more_word_for_word(long_talk: Memory) -> None:
    scope = long_talk.scope("chat")
    verbatim = []
    for max_chars in (2_000, 5_000, 10_000, 15_000, 100_000):
        context = await long_talk.get_compressed_context(scope, max_chars)
        verbatim.append(sum(part.chars for part in context.parts if part.kind == "verbatim"))
        assert context.chars > 0.55 * min(max_chars, 19_000)  # by whole sentences
    assert verbatim == sorted(verbatim)


@pytest.fixture
def lagging(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The background reads nothing, and whoever asks next to nothing."""

    async def nothing(self: Summaries, scope: Scope) -> bool:
        return True

    monkeypatch.setattr(Summaries, "_advance", nothing)
    monkeypatch.setattr("offbook.context.pending_messages.ON_THE_SPOT_CHARS", 500)
    return monkeypatch


@pytest.mark.usefixtures("lagging")
async def test_where_the_digest_lags_the_tail_reaches_back_to_it(memory: Memory) -> None:
    scope = await talk(memory, 100)
    session = await memory._store.session(scope)
    assert session is not None
    async with memory._background.reader._pending_messages.following(scope, session, most_chars=14_000):
        pass
    context = await memory.get_compressed_context(scope, 10_000)
    assert context_faults(context, scope, 200, 10_000) == []
    assert "not shown" not in context.text
    verbatim = [part for part in context.parts if part.kind == "verbatim"]
    assert len(verbatim) == 1
    assert verbatim[0].last_seq - verbatim[0].first_seq > 40
    assert contents(context.messages[-2:]) == contents(exchange(99))


@pytest.mark.usefixtures("lagging")
async def test_where_the_digest_lags_by_more_than_can_be_shown_it_is_read_on_the_spot(memory: Memory) -> None:
    scope = await talk(memory, 100)
    context = await memory.get_compressed_context(scope, 3_000)
    assert context_faults(context, scope, 200, 3_000) == []
    assert "module_97.py" in context.text
    newest = context.parts[-2]
    assert (newest.kind, newest.chars > 0) == ("summary", True)
    assert not context.text.partition("user: ")[0].rstrip().endswith("not shown here.)")


async def test_what_nobody_could_read_yet_is_counted_and_covered(memory: Memory, lagging: pytest.MonkeyPatch) -> None:
    lagging.setattr("offbook.context.pending_messages.CATCHING_UP_CHARS", 500)
    scope = await talk(memory, 100)
    context = await memory.get_compressed_context(scope, 3_000)
    assert context_faults(context, scope, 200, 3_000) == []
    assert "messages of this conversation kept in memory" in context.text
    assert "module_0.py" in context.text  # the oldest is read on the spot
    assert contents(context.messages[-2:]) == contents(exchange(99))


async def test_asked_twice_it_is_the_same_whatever_is_summarised_meanwhile(memory: Memory) -> None:
    scope = await talk(memory, 80)
    first = await memory.get_compressed_context(scope, 3_000)
    await caught_up(memory)
    assert await memory.get_compressed_context(scope, 3_000) == first
    await memory.compress("main")
    assert await memory.get_compressed_context(scope, 3_000) != first
    await memory.on_message(scope, [user("And one more.")])
    assert (await memory.get_compressed_context(scope, 3_000)).covers.last_seq == 161


async def test_a_pinned_message_is_kept_word_for_word(memory: Memory) -> None:
    scope = memory.scope("chat")
    await memory.on_message(scope, [user("Remember for good: the safe opens with 19-84-33, never say it aloud.")])
    await talk(memory, 120)
    await caught_up(memory)
    await memory.pin("main", session_id=None, keyword="safe")
    context = await memory.get_compressed_context(scope, 5_000)
    assert "Pinned, user: Remember for good: the safe opens with 19-84-33, never say it aloud." in context.text


async def test_what_the_agent_was_doing_is_carried_outside_the_prose(long_talk: Memory) -> None:
    scope = long_talk.scope("chat")
    await long_talk.on_message(scope, [user("Now please deploy version 2.4.1 to the staging server.")])
    await talk(long_talk, 1, first=200)
    await caught_up(long_talk)
    context = await long_talk.get_compressed_context(scope, 5_000)
    assert "What I was doing" in context.text


async def test_messages_that_arrive_while_contexts_are_made_are_all_covered(memory: Memory) -> None:
    scope = memory.scope("chat")

    async def speak(first: int) -> None:
        for number in range(first, first + 30):
            await memory.on_message(scope, exchange(number))

    async def look() -> None:
        for _ in range(40):
            session = await memory._store.session(scope)
            context = await memory.get_compressed_context(scope, 2_000)
            assert context_faults(context, scope, context.covers.last_seq, 2_000) == []
            assert context.covers.last_seq >= (session.last_seq if session else 0)
            await asyncio.sleep(0.005)

    await asyncio.gather(speak(0), speak(100), look(), look())
    await caught_up(memory)
    assert (await memory.get_compressed_context(scope, 2_000)).covers.last_seq == 120


async def test_a_session_in_memory_can_be_let_go_at_any_time(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("offbook.context.pending_messages.MOST_SESSIONS", 1)
    for name in ("one", "two", "three"):
        await talk(memory, 20, session=name)
    await caught_up(memory)
    for name in ("one", "two", "three"):
        await assert_sound(memory, name, 40)


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(history=HISTORIES, ends=st.booleans())
async def test_any_history_is_covered_exactly(tmp_path: Path, history: list[Message], ends: bool) -> None:
    if not history:
        return
    folder = Path(tempfile.mkdtemp(dir=tmp_path))  # its own, also where the same history comes twice
    async with small_memory(folder, chunk_tokens=20, pruning_boundary_tokens=30) as memory:
        scope = memory.scope("chat")
        await memory.on_message(scope, history)
        last_seq = (await memory.log(scope, newest=True, limit=1)).last_seq
        await assert_sound(memory, "chat", last_seq)
        if ends:
            await memory.session_end(scope)
        await caught_up(memory)
        let_go(memory)
        await assert_sound(memory, "chat", last_seq)


async def test_two_may_ask_at_once_where_few_texts_are_kept(long_talk: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one waits for the store, the other may push out of memory what the first had found there."""
    scope = long_talk.scope("chat")
    monkeypatch.setattr("offbook.context.reader.TEXTS_KEPT", 1)
    reader = long_talk._reader
    ids = [node.id for node in await long_talk._store.nodes(scope, level=1, through_seq=10_000, limit=6)]
    await reader._texts(scope, ids[:1])
    both = await asyncio.gather(reader._texts(scope, ids[:3]), reader._texts(scope, ids[3:]))
    assert [list(texts) for texts in both] == [ids[:3], ids[3:]]
