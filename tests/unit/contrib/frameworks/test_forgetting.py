"""What was forgotten for good is not given to a model again by what a framework's session holds."""

from __future__ import annotations

from typing import Any, cast

import pytest
from agents.run_config import CallModelData, ModelInputData

from offbook import AsyncClient
from offbook.contrib.frameworks.openai_agents import OffbookSession
from tests.unit.client.test_hot_swap_turns import ForgettingMemory


class ErasingMemory(ForgettingMemory):
    async def forget(self, *, session_id: str, reason: str, agent_id: str | None = None) -> None:
        self.forget_words("")


def session_of(memory: ForgettingMemory) -> OffbookSession:
    return OffbookSession("chat", cast(AsyncClient, memory), context_window=10_000, deadline_seconds=5.0)


async def given(session: OffbookSession, *added: str, is_streamed: bool = False) -> str:
    """What a run's next request has, as the SDK makes it: where it is streamed, the items are added after that."""
    items: list[Any] = [{"role": "user", "content": text} for text in added]
    before = await session.get_items()
    if not is_streamed:
        await session.add_items(items)
    data = ModelInputData(input=[*before, *items], instructions=None)
    shown = str((await session.with_memory(CallModelData(data, cast(Any, None), None))).input)
    if is_streamed:
        await session.add_items(items)
    return shown


async def test_a_session_that_was_cleared_holds_nothing_of_it() -> None:
    memory = ErasingMemory()
    memory.memory = "They said heron."
    session = session_of(memory)
    assert "heron" in await given(session, "The code is heron.", "Hello.")
    await session.clear_session()
    assert session._given_items is None
    memory.memory = ""
    assert "heron" not in await given(session, "Hello again.")
    memory.is_away = True
    assert "heron" not in await given(session, "And again.")
    await session.close()


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_what_was_forgotten_elsewhere_is_in_no_request_any_more(is_streamed: bool) -> None:
    memory = ErasingMemory()
    memory.memory = "They said heron."
    session = session_of(memory)
    assert "heron" in await given(session, "The code is heron.", "Hello.", is_streamed=is_streamed)
    memory.forget_words("heron")
    memory.memory = ""
    shown = await given(session, "Hello again.", is_streamed=is_streamed)
    assert "heron" not in shown
    assert shown.count("Hello again.") == 1
    assert memory.forced == [True]
    await session.close()
