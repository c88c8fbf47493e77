"""Sessions, days and entries: what they show, and that they show no more."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from offbook.model.errors import WrongShape
from offbook.model.types import Message, now
from tests.unit.small_memory import small_memory


async def test_sessions_come_newest_first_page_by_page_with_how_full_they_are(tmp_path: Path) -> None:
    async with small_memory(tmp_path) as memory:
        for name in ("one", "two", "three"):
            await memory.on_message(memory.scope(name), [Message(role="user", content="x" * 4_000)])
        first = await memory.sessions("main", limit=2)
        assert [each.session_id for each in first.sessions] == ["three", "two"]
        assert (first.total, first.next) == (3, 2)
        rest = await memory.sessions("main", after=2, limit=2)
        assert [each.session_id for each in rest.sessions] == ["one"]
        assert rest.next is None
        view = rest.sessions[0]
        assert view.context_tokens == view.chars // 4 >= 1_000
        assert 0 < view.swap_at_tokens < view.context_window
        assert [each.session_id for each in (await memory.sessions("main", matching="T")).sessions] == ["three", "two"]
        assert (await memory.sessions("main", session_id="one")).sessions == [view]
        assert (await memory.sessions("main", session_id="on")).sessions == []


async def test_what_a_swap_took_out_is_no_longer_counted(tmp_path: Path) -> None:
    async with small_memory(tmp_path) as memory:
        scope = memory.scope("chat")
        await memory.on_message(
            scope, [Message(role="user", content=f"{number} " + "word " * 200) for number in range(60)]
        )
        before = (await memory.sessions("main")).sessions[0]
        swap = await memory.swap(scope, used_tokens=15_000, context_window=16_000, force=True)
        after = (await memory.sessions("main")).sessions[0]
        assert swap.swapped
        assert (after.generation, after.context_window) == (1, 16_000)
        assert after.context_tokens == swap.tokens_after < before.context_tokens


async def test_days_are_those_on_which_it_was_said(tmp_path: Path) -> None:
    day = (now() - timedelta(days=3)).replace(hour=12)
    old = datetime(2020, 1, 1, tzinfo=UTC)
    async with small_memory(tmp_path) as memory:
        said = [Message(role="user", content="four", ts=at) for at in (day, day, old)]
        await memory.on_message(memory.scope("chat"), said)
        await memory.on_message(memory.scope("chat", "other"), [Message(role="user", content="not mine", ts=day)])
        activity = await memory.activity("main", days=30)
        assert [(each.day, each.messages, each.chars) for each in activity.days] == [(day.date().isoformat(), 2, 8)]
        assert [each.messages for each in (await memory.activity("main", days=3_660)).days] == [1, 2]
        assert (await memory.activity("nobody")).days == []


async def test_entries_are_found_by_their_ids_and_of_the_agent_only(tmp_path: Path) -> None:
    async with small_memory(tmp_path) as memory:
        await memory.on_message(memory.scope("chat"), [Message(role="user", content=text) for text in ("one", "two")])
        await memory.on_message(memory.scope("chat", "other"), [Message(role="user", content="not mine")])
        mine = (await memory.entries("main", entry_ids=["m100000002", "m200000001", "m100000001"])).entries
        assert [(each.text, each.span.first_seq) for each in mine] == [("two", 2), ("one", 1)]
        assert (await memory.entries("main")).entries == []
        await memory.pin("main", entry_ids=["m100000002"])
        (pinned,) = (await memory.entries("main")).entries
        assert (pinned.text, pinned.pinned) == ("two", True)
        assert (await memory.status("main")).retrievals == 0
        with pytest.raises(WrongShape):
            await memory.entries("main", entry_ids=["nothing"])


async def test_a_recall_that_only_looks_counts_no_retrieval(tmp_path: Path) -> None:
    async with small_memory(tmp_path) as memory:
        scope = memory.scope("chat")
        await memory.on_message(scope, [Message(role="user", content="The cat is called Ada.")])
        assert (await memory.recall(scope, "cat", preview=True)).entries
        assert (await memory.status("main")).retrievals == 0
        assert (await memory.recall(scope, "cat")).entries
        assert (await memory.status("main")).retrievals == 1


async def test_a_replay_shows_the_newest_and_says_how_many_come_before(tmp_path: Path) -> None:
    async with small_memory(tmp_path) as memory:
        scope = memory.scope("chat")
        await memory.on_message(scope, [Message(role="user", content=str(number)) for number in range(9)])
        replay = await memory.replay(scope, now(), newest=2)
        assert ([each.content for each in replay.messages], replay.left_out) == (["7", "8"], 7)
        assert (await memory.replay(scope, now())).left_out == 0


async def test_audit_is_read_by_verb_and_backwards(tmp_path: Path) -> None:
    async with small_memory(tmp_path) as memory:
        for number in range(4):
            await memory.on_message(memory.scope("chat"), [Message(role="user", content=str(number))])
            await memory.log(memory.scope("chat"))
        said = (await memory.audit("main", verbs=["onMessage"], limit=2)).events
        assert [event.verb for event in said] == ["onMessage", "onMessage"]
        older = (await memory.audit("main", verbs=["onMessage"], before=said[0].seq)).events
        assert [event.details["lastSeq"] for event in older] == [1, 2]
        since = (await memory.audit("main", verbs=["onMessage"], since=older[-1].seq)).events
        assert since == said
