"""Contexts that were asked for are given again, extended, and made ready in the background."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from offbook.api.memory import Memory
from offbook.context.fit import Composed
from offbook.context.reader import Built, SessionReader
from offbook.context.validity import faults
from offbook.contrib.conformance.check import context_faults
from offbook.model.types import Scope, Session
from tests.unit.small_memory import assistant, caught_up, small_memory, talk, user

MAX_CHARS = 6_000


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with small_memory(tmp_path) as opened:
        yield opened


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How large each context was that was made from the log, not extended."""
    made: list[int] = []
    read = SessionReader.read

    async def counted(self: SessionReader, scope: Scope, session: Session, max_chars: int) -> Built:
        made.append(max_chars)
        return await read(self, scope, session, max_chars)

    monkeypatch.setattr(SessionReader, "read", counted)
    return made


async def test_right_after_a_message_it_is_extended_not_made_anew(memory: Memory, reads: list[int]) -> None:
    scope = await talk(memory, 80)
    await memory.get_compressed_context(scope, MAX_CHARS)
    await caught_up(memory)
    await prepared(memory, scope)
    reads.clear()
    await memory.on_message(scope, [user("The gate code is 4711.")])
    context = await memory.get_compressed_context(scope, MAX_CHARS)
    assert reads == []
    assert context.text.endswith("user: The gate code is 4711.")
    assert context_faults(context, scope, 161, MAX_CHARS) == []
    assert faults(context.messages) == []


async def test_what_is_made_ready_leaves_room_and_what_is_asked_for_first_does_not(
    memory: Memory, reads: list[int]
) -> None:
    scope = await talk(memory, 80)
    await memory.get_compressed_context(scope, MAX_CHARS)
    assert reads[0] == MAX_CHARS  # the next may be made ready already
    await caught_up(memory)
    await prepared(memory, scope)
    assert set(reads) == {MAX_CHARS, MAX_CHARS * 9 // 10}


async def test_with_nothing_said_since_it_takes_all_the_room_whatever_stands_ready(
    memory: Memory, reads: list[int]
) -> None:
    scope = await talk(memory, 80)
    first = await memory.get_compressed_context(scope, MAX_CHARS)
    await caught_up(memory)
    cache = memory._background.contexts
    cache.let_go(scope.agent_id)
    await prepared(memory, scope)
    reads.clear()
    again = await memory.get_compressed_context(scope, MAX_CHARS)
    assert reads == [MAX_CHARS]
    assert len(again.text) >= len(first.text) * 0.95


async def test_a_message_that_does_not_fit_has_it_made_anew(memory: Memory, reads: list[int]) -> None:
    scope = await talk(memory, 80)
    await memory.get_compressed_context(scope, MAX_CHARS)
    await caught_up(memory)
    await prepared(memory, scope)
    reads.clear()
    await memory.on_message(scope, [user("word " * 400), assistant("And a short answer.")])
    context = await memory.get_compressed_context(scope, MAX_CHARS)
    assert len(reads) >= 1
    assert context_faults(context, scope, 162, MAX_CHARS) == []


async def test_what_was_forgotten_is_in_no_extended_context(memory: Memory) -> None:
    scope = await talk(memory, 80)
    await memory.on_message(scope, [user("My secret place is Tulip Harbour.")])
    await memory.get_compressed_context(scope, MAX_CHARS)
    await caught_up(memory)
    await prepared(memory, scope)
    await memory.forget("main", matching="Tulip")
    await memory.on_message(scope, [user("What next?")])
    assert "Tulip" not in (await memory.get_compressed_context(scope, MAX_CHARS)).text


async def prepared(memory: Memory, scope: Scope) -> Composed:
    session = await memory._store.session(scope)
    assert session is not None
    contexts = memory._background.contexts
    await contexts.prepare(scope, session)
    return contexts._ready[scope, MAX_CHARS].composed


async def test_what_fits_stays_whole(memory: Memory) -> None:
    """Also where it would not fit into what is made ready with room left."""
    scope = await talk(memory, 40)
    session = await memory._store.session(scope)
    assert session is not None
    whole = (await memory.get_compressed_context(scope, 1_000_000)).chars
    assert {part.kind for part in (await memory.get_compressed_context(scope, whole + 40)).parts} == {"verbatim"}
    await caught_up(memory)
    await memory._background.contexts.prepare(scope, session)
    await memory.on_message(scope, [user("ok.")])
    assert {part.kind for part in (await memory.get_compressed_context(scope, whole + 40)).parts} == {"verbatim"}


async def test_sizes_nobody_asks_for_any_more_are_let_go(memory: Memory) -> None:
    scope = await talk(memory, 80)
    for max_chars in (3_000, 4_000, 5_000):
        await memory.get_compressed_context(scope, max_chars)
        await caught_up(memory)
        session = await memory._store.session(scope)
        assert session is not None
        await memory._background.contexts.prepare(scope, session)
    assert [size for _, size in memory._background.contexts._ready] == [4_000, 5_000]
