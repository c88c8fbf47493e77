"""A session's messages with what a turn was prepared with, and without where there is none."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from offbook.client.blocking import Client
from offbook.client.blocking_hot_swap import BlockingHotSwapSession
from offbook.client.hot_swap import HotSwapSession
from offbook.client.placement import placed
from offbook.model.errors import ProviderRefused
from offbook.model.turn import PreparedTurn
from tests.unit.client.fake_memory import REFUSAL, WRONG_ANSWERS, FakeMemory
from tests.unit.client.test_hot_swap import (
    BRIEF_SECONDS,
    LOOSE_SECONDS,
    WORDS,
    assert_all_there,
    fill,
    ids_in,
    kinds,
    said,
    session_of,
)
from tests.unit.client.test_placement import MEMORY, RECALL, turn_of


class TurningMemory(FakeMemory):
    """A provider that also prepares turns."""

    def __init__(self) -> None:
        super().__init__()
        self.prompts: list[tuple[str, int | None, int | None]] = []
        self.deadlines: list[int | None] = []
        self.error: Exception | None = None
        self.memory: str | None = None
        self.seconds = 0.0

    async def prepare_turn(
        self,
        session_id: str,
        prompt: str,
        *,
        current_tokens: int | None = None,
        context_window: int | None = None,
        deadline_ms: int | None = None,
        agent_id: str | None = None,
    ) -> PreparedTurn:
        self.prompts.append((prompt, current_tokens, context_window))
        self.deadlines.append(deadline_ms)
        await self._answering("prepare-turn")
        await asyncio.sleep(self.seconds)
        if self.error is not None:
            raise self.error
        turn = turn_of()
        return turn if self.memory is None else msgspec.structs.replace(turn, memory=self.memory)


async def test_both_sections_stand_in_their_places_and_are_not_kept() -> None:
    memory = TurningMemory()
    session = session_of(memory)
    session.add(("user", "Which train?"))
    shown = await session.turn_messages()
    assert [message.content for message in shown] == [MEMORY, f"Which train?\n\n{RECALL}"]
    ((prompt, used, window),) = memory.prompts
    assert (prompt, window) == ("Which train?", 800)
    sections = turn_of().tokens
    assert session.used_tokens == (used or 0) + sections.memory + sections.recall, "what stands beside it counts"
    assert [message.content for message in await session.messages()] == ["Which train?"]
    assert [message.content for message in memory.recorded] == ["Which train?"]
    assert session.stats.fallbacks == {}


async def test_the_host_may_say_what_is_asked() -> None:
    memory = TurningMemory()
    session = session_of(memory)
    session.add(("user", "Ada (10:04): which train?"))
    await session.turn_messages("which train?")
    assert [prompt for prompt, *_ in memory.prompts] == ["which train?"]


async def test_a_turn_is_prepared_once_whatever_its_tools_do() -> None:
    memory = TurningMemory()
    session = session_of(memory, context_window=10_000)
    session.add(("user", "Find them."))
    first = await session.turn_messages()
    session.add({"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "look", "input": {}}]})
    session.add({"role": "tool", "toolCallId": "t1", "content": "two files"})
    memory.is_away = True
    assert (await session.turn_messages())[:2] == first
    assert (len(memory.prompts), session.stats.fallbacks) == (1, {})
    memory.is_away = False
    session.add(("assistant", "Two."))
    session.add(("user", "Find them."))
    await session.turn_messages()
    assert len(memory.prompts) == 2


async def test_another_context_is_another_turn() -> None:
    memory = TurningMemory()
    session = session_of(memory, deadline_seconds=5.0)
    session.add(("user", "Find them."))
    await session.turn_messages()
    while session.used_tokens < 680:
        session.add(("assistant", WORDS))
    await session.turn_messages()
    assert memory.asked == ["prepare-turn", "swap", "prepare-turn"]


async def test_where_nobody_asked_anything_nothing_is_prepared() -> None:
    memory = TurningMemory()
    session = session_of(memory)
    session.add(("assistant", "Good morning."))
    assert await session.turn_messages() == await session.messages()
    assert memory.asked == []


async def test_a_swap_that_is_due_comes_first() -> None:
    memory = TurningMemory()
    session = session_of(memory, deadline_seconds=5.0)
    fill(session, 680)
    shown = await session.turn_messages()
    assert memory.asked == ["swap", "prepare-turn"]
    assert kinds(session) == ["swapped"]
    assert shown == placed(await session.messages(), turn_of())
    assert memory.prompts[0][1] == session.used_tokens


async def test_a_slow_provider_is_not_waited_for_beyond_the_deadline() -> None:
    memory = TurningMemory()
    memory.seconds = 60.0
    session = session_of(memory, deadline_seconds=BRIEF_SECONDS)
    session.add(("user", "Which train?"))
    started = time.monotonic()
    shown = await session.turn_messages()
    assert 0.015 < time.monotonic() - started < LOOSE_SECONDS
    assert ids_in(shown) == said(memory)
    assert session.stats.fallbacks == {"slow": 1}
    assert session.stats.waited_ms > 0
    await session.turn_messages()
    assert len(memory.prompts) == 1  # it has its rest
    session._rest_until = memory.seconds = 0.0
    assert (await session.turn_messages())[0].content == MEMORY


async def test_the_provider_is_told_how_long_it_has() -> None:
    memory = TurningMemory()
    session = session_of(memory, deadline_seconds=5.0)
    session.add(("user", "Which train?"))
    await session.turn_messages()
    (deadline,) = memory.deadlines
    assert deadline is not None
    assert 3_000 < deadline <= 4_000


async def test_a_turn_that_fails_keeps_the_memory_of_the_one_before() -> None:
    """Without it, all behind it would be read anew."""
    memory = TurningMemory()
    session = session_of(memory, context_window=10_000)
    session.add(("user", "Which train?"))
    await session.turn_messages()
    session.add(("user", "And back?"))
    memory.memory = ""
    assert [message.content for message in await session.turn_messages()] == [
        MEMORY,
        "Which train?",
        f"And back?\n\n{RECALL}",
    ]
    session.add(("user", "And then?"))
    memory.is_away = True
    assert [message.content for message in await session.turn_messages()] == [
        MEMORY,
        "Which train?",
        "And back?",
        "And then?",
    ]


async def test_a_swap_that_takes_the_deadline_leaves_none_for_the_turn() -> None:
    memory = TurningMemory()
    session = session_of(memory, deadline_seconds=BRIEF_SECONDS)
    fill(session, 680)
    memory.gate.clear()
    started = time.monotonic()
    assert ids_in(await session.turn_messages()) == said(memory)
    assert time.monotonic() - started < LOOSE_SECONDS
    assert (memory.asked, session.stats.fallbacks) == (["swap"], {"slow": 1})
    memory.gate.set()
    await session.close()


@pytest.mark.parametrize(
    ("error", "kind"),
    [(ProviderRefused(REFUSAL), "refused"), (TypeError("not what it seems"), "wrong"), (OSError("cut"), "wrong")],
)
async def test_trouble_leaves_the_messages_and_is_counted(error: Exception, kind: str) -> None:
    memory = TurningMemory()
    memory.error = error
    session = session_of(memory)
    session.add(("user", "Which train?"))
    assert await session.turn_messages() == await session.messages()
    assert (session.stats.fallbacks, session.events[-1].reason != "") == ({kind: 1}, True)


async def test_away_the_agent_goes_on() -> None:
    memory = TurningMemory()
    memory.is_away = True
    session = session_of(memory)
    session.add(("user", "Which train?"))
    assert ids_in(await session.turn_messages()) == said(memory)
    assert session.stats.fallbacks == {"away": 1}


def test_the_blocking_session_goes_on_too(tmp_path: Path) -> None:
    with Client(f"unix://{tmp_path}/nobody.sock", home=tmp_path) as memory:
        session = BlockingHotSwapSession(memory, "s", context_window=800)
        session.add(("user", "Which train?"))
        shown: list[Any] = [message.content for message in session.turn_messages()]
        assert shown == ["Which train?"]
        assert session.stats.fallbacks == {"away": 1}
        session.close()


# ── what is forgotten for good ──


class ForgettingMemory(TurningMemory):
    """A provider that counts how often something was forgotten, and shows the words no more."""

    def __init__(self) -> None:
        super().__init__()
        self.forgets: int | None = None

    async def prepare_turn(self, *asked: Any, **options: Any) -> PreparedTurn:
        return msgspec.structs.replace(await super().prepare_turn(*asked, **options), forgets=self.forgets)

    def forget_words(self, words: str) -> None:
        self.deliver()
        self.forgets = (self.forgets or 0) + 1
        self.stored = [
            msgspec.structs.replace(one, content="[forgotten]") if words in str(one.content) else one
            for one in self.stored
        ]


async def talking(memory: ForgettingMemory, **options: Any) -> HotSwapSession:
    session = session_of(memory, context_window=10_000, deadline_seconds=5.0, **options)
    session.add(("user", "The code is heron."))
    session.add(("assistant", "Noted: heron."))
    session.add(("user", "Which train?"))
    memory.memory = "They said heron."
    assert "heron" in str(await session.turn_messages())
    return session


@pytest.mark.parametrize("known", [None, 0, 3])
async def test_what_was_forgotten_is_in_no_request_any_more(known: int | None) -> None:
    memory = ForgettingMemory()
    memory.forgets = known
    session = await talking(memory)
    memory.forget_words("heron")
    memory.memory = ""
    session.add(("user", "And back?"))
    shown = await session.turn_messages()
    assert "heron" not in str(shown)
    assert [one.content for one in shown][-1] == f"And back?\n\n{RECALL}"
    assert ids_in(await session.messages()) == said(memory), "no message is lost"
    assert (memory.forced, kinds(session)) == ([True], ["swapped"])
    session.add(("user", "And then?"))
    await session.turn_messages()
    assert memory.forced == [True], "once for each time"


async def test_what_came_with_the_news_may_be_older_than_them() -> None:
    memory = ForgettingMemory()
    session = await talking(memory)
    memory.forget_words("heron")
    session.add(("user", "And back?"))
    memory.memory = "They said heron."
    asked = len(memory.prompts)

    async def finished(*given: Any, **options: Any) -> Any:
        memory.memory = ""
        return await FakeMemory.swap(memory, *given, **options)

    memory.swap = finished  # type: ignore[method-assign]
    assert "heron" not in str(await session.turn_messages())
    assert len(memory.prompts) == asked + 2


async def test_a_provider_that_does_not_count_yet_says_nothing() -> None:
    memory = ForgettingMemory()
    memory.forgets = 3
    session = await talking(memory)
    for count in (None, 3):
        memory.forgets = count
        session.add(("user", f"And {count}?"))
        await session.turn_messages()
    assert memory.forced == []


async def test_the_context_is_renewed_as_soon_as_that_can_be() -> None:
    """Not while a tool is at work, and not with an answer that is wrong; nothing is lost meanwhile."""
    memory = ForgettingMemory()
    session = await talking(memory)
    memory.forget_words("heron")
    memory.memory = ""
    session.add(("user", "Look."))
    session.add({"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "look", "input": {}}]})
    assert "In May they asked" in str(await session.turn_messages())
    assert memory.forced == []
    session.add({"role": "tool", "toolCallId": "t1", "content": "two files"})
    memory.faults.append(WRONG_ANSWERS["without the newest"])
    await session.turn_messages()
    assert kinds(session) == ["wrong"]
    session._rest_until = 0.0
    assert "heron" not in str(await session.turn_messages())
    assert kinds(session) == ["wrong", "swapped"]
    assert_all_there(await session.messages(), memory)
