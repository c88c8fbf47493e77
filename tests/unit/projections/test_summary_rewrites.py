"""Summaries written again by a better summarizer: over a memory whose model answers over a socket."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from offbook.api.memory import Memory
from offbook.context.pending_messages import PendingMessages, ReadSpan
from offbook.context.summary_prompts import tokens_for_statements
from offbook.model.errors import StoreCorrupt, WrongShape
from offbook.model.settings.sections import SessionSilence, Summarizer
from offbook.model.summary import SummaryView
from offbook.model.types import Scope
from offbook.projections.summary_rewrites import better_than, is_due
from tests.unit.models.chat_server import Answer, Server, completion, reply, serving
from tests.unit.projections.test_summaries import all_summaries, of_level
from tests.unit.small_memory import caught_up, small_memory, talk, talked

EXTRACTIVE = "extractive"
TARGET = 200
USAGE = {"prompt_tokens": 100, "completion_tokens": 10}


def answer(body: dict[str, Any]) -> Answer:
    """As a model that does what it is asked: names what it was to keep, and who it is."""
    kept = re.search(
        r"Keep these exactly as they are written, where they matter: (.*)", body["messages"][-1]["content"]
    )
    return completion(f"I am {body['model']} and saw to {kept[1] if kept else 'everything'}.", usage=USAGE)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(answer) as made:
        yield made


def with_models(home: Path, server: Server, *models: str, **fields: Any) -> AbstractAsyncContextManager[Memory]:
    order = (*(f"openai:{model}" for model in models), EXTRACTIVE)
    summarizer = Summarizer(order=order, endpoint=f"{server.url}/v1", attempts=1, dollars_per_million_input=2.0)
    return small_memory(home, summarizer=summarizer, summary_target_tokens=TARGET, **fields)


async def wrote(memory: Memory) -> dict[str, str]:
    return {one.id: one.summarizer for one in await all_summaries(memory)}


async def written_again(memory: Memory, session_id: str | None = None) -> int:
    """How many were to be, once it is over."""
    estimate = await memory.compress("main", session_id=session_id, again=True)
    await caught_up(memory)
    return estimate.again


async def summarised(home: Path, exchanges: int = 40) -> list[SummaryView]:
    await talked(home, exchanges, summary_target_tokens=TARGET)
    async with small_memory(home, summary_target_tokens=TARGET) as memory:
        found = await all_summaries(memory)
    assert {one.level for one in found} == {1, 2, 3} if exchanges >= 40 else {1}
    return found


# ── who is better ──


def test_who_is_before_another_in_line_is_better() -> None:
    names = ["host", "openai:large", "local:/models/small.gguf", "local", EXTRACTIVE]
    written_by = ["host", "openai:large", "local:small", "local:any-other", EXTRACTIVE, "openai:gone"]
    assert [better_than(name, names) for name in written_by] == [0, 1, 2, 3, 4, 0]


def test_what_merges_others_waits_for_all_of_them() -> None:
    assert is_due(1, [])
    assert not is_due(0, [])
    assert is_due(2, [0, 1])
    assert not is_due(2, [0, 2])


# ── all of it ──


async def test_every_level_is_written_again_under_its_id(tmp_path: Path, server: Server) -> None:
    before = await summarised(tmp_path)
    async with with_models(tmp_path, server, "good") as memory:
        assert await written_again(memory) == len(before)
        after = await all_summaries(memory)
        events = (await memory.audit("main", limit=1_000)).events
    assert [(one.id, one.spans, one.sources, one.parent) for one in after] == [
        (one.id, one.spans, one.sources, one.parent) for one in before
    ]
    assert {one.summarizer for one in after} == {"openai:good"}
    assert all(one.text.startswith("I am good") and one.usage.dollars > 0 for one in after)
    again = [event for event in events if event.actor == "offbook" and event.details.get("again")]
    assert sorted(event.details["id"] for event in again) == [one.id for one in after]
    lines = json.loads((tmp_path / "summaries/main/index.json").read_text())["summaries"]
    assert {line["summarizer"] for line in lines} == {"openai:good"}
    assert "I am good" in (tmp_path / "summaries/main/L2/0001.md").read_text()


async def test_a_second_time_there_is_nothing_to_do(tmp_path: Path, server: Server) -> None:
    await summarised(tmp_path)
    async with with_models(tmp_path, server, "good") as memory:
        await written_again(memory)
        asked = len(server.asked)
        estimate = await memory.compress("main", again=True, dry_run=True)
        assert (estimate.again, estimate.dollars) == (0, 0.0)
        assert await written_again(memory) == 0
    assert len(server.asked) == asked


async def test_a_dry_run_says_what_it_takes_and_does_nothing(tmp_path: Path, server: Server) -> None:
    before = await summarised(tmp_path)
    async with with_models(tmp_path, server, "good") as memory:
        plain = await memory.compress("main", dry_run=True)
        estimate = await memory.compress("main", again=True, dry_run=True)
        await caught_up(memory)
        assert await all_summaries(memory) == before
    assert (plain.again, plain.dollars) == (0, 0.0)
    assert estimate.again == len(before)
    assert estimate.dollars > 0
    assert estimate.output_tokens == (TARGET + tokens_for_statements(TARGET) // 2) * len(before)
    assert estimate.input_tokens > estimate.output_tokens
    assert not server.asked


async def test_without_a_model_it_is_refused(tmp_path: Path) -> None:
    async with small_memory(tmp_path) as memory:
        for dry_run in (True, False):
            with pytest.raises(WrongShape, match=r"summarizer\.order"):
                await memory.compress("main", again=True, dry_run=dry_run)


async def test_its_author_is_shown_what_was_before_and_nothing_later(tmp_path: Path, server: Server) -> None:
    await summarised(tmp_path)
    async with with_models(tmp_path, server, "good") as memory:
        await written_again(memory)
    prompts = [json.dumps(body["messages"]) for _, _, body in server.asked]
    shown = [{int(number) for number in re.findall(r"Your memory L1-(\d+):", prompt)} for prompt in prompts]
    assert not shown[0]
    assert "You have no memories from before this" in prompts[0]
    chunks = [numbers for numbers, prompt in zip(shown, prompts, strict=True) if "what happened next" in prompt]
    assert chunks[1] == {1}
    for number, numbers in enumerate(chunks, 1):
        assert all(other < number for other in numbers)
    # The merge of the first three comes before the fourth is written: it is shown what a new one would be.
    assert "takes their place" in prompts[3]


# ── one session, and part of it ──


async def test_one_session_only_and_not_what_is_merged_across(tmp_path: Path, server: Server) -> None:
    short = SessionSilence(interrupted_gap=timedelta(milliseconds=10), new_session_gap=timedelta(milliseconds=100))
    interval = timedelta(milliseconds=200)
    async with small_memory(tmp_path, summary_target_tokens=TARGET, session=short, worker_interval=interval) as memory:
        for number in range(4):
            scope = await talk(memory, 5, session=f"day {number}")
            await memory.session_end(scope)
        before = []
        async with asyncio.timeout(120):
            while not any(len({span.session_id for span in one.spans}) > 1 for one in before):
                await asyncio.sleep(0.1)
                before = await all_summaries(memory)
        await caught_up(memory)
        before = await all_summaries(memory)
    mine = {one.id for one in before if {span.session_id for span in one.spans} == {"day 1"}}
    assert any(len({span.session_id for span in one.spans}) > 1 for one in before)
    async with with_models(tmp_path, server, "good") as memory:
        assert await written_again(memory, "day 1") == len(mine)
        assert {id_ for id_, name in (await wrote(memory)).items() if name == "openai:good"} == mine
        assert await written_again(memory) == len(before) - len(mine)
        assert set((await wrote(memory)).values()) == {"openai:good"}
        assert await written_again(memory, "no such session") == 0


async def test_who_came_later_and_is_better_writes_what_another_model_wrote(tmp_path: Path, server: Server) -> None:
    await summarised(tmp_path, 20)
    async with with_models(tmp_path, server, "small") as memory:
        await written_again(memory)
    async with with_models(tmp_path, server, "large", "small") as memory:
        assert await written_again(memory) == len(await wrote(memory))
        assert set((await wrote(memory)).values()) == {"openai:large"}
    async with with_models(tmp_path, server, "small", "large") as memory:
        assert await written_again(memory) > 0
    async with with_models(tmp_path, server, "new") as memory:
        assert await written_again(memory) == 0, "whether one that is not in line any more was better, nobody knows"


async def test_only_who_is_better_is_asked(tmp_path: Path, server: Server) -> None:
    await summarised(tmp_path, 20)
    async with with_models(tmp_path, server, "small") as memory:
        await written_again(memory)
    server.asked.clear()
    server.usual = lambda body: reply({"error": {"message": "no"}}, 500) if body["model"] == "large" else answer(body)
    async with with_models(tmp_path, server, "large", "small") as memory:
        await written_again(memory)
        assert set((await wrote(memory)).values()) == {"openai:small"}
        assert "openai:large" in (await memory.status("main")).summaries.troubles
    assert {body["model"] for _, _, body in server.asked} == {"large"}


# ── what breaks off ──


async def test_who_asks_again_goes_on_where_it_broke_off(tmp_path: Path, server: Server) -> None:
    before = await summarised(tmp_path)
    server.script = [answer, answer, *[lambda body: reply({"error": {"message": "no"}}, 500)] * 3]
    async with with_models(tmp_path, server, "good") as memory:
        assert await written_again(memory) == len(before)
        assert sorted(id_ for id_, name in (await wrote(memory)).items() if name != EXTRACTIVE) == [
            "L1-0001",
            "L1-0002",
        ]
        assert not (await memory.status("main")).summaries.waiting
    server.asked.clear()
    async with with_models(tmp_path, server, "good") as memory:
        assert await written_again(memory) == len(before) - 2
        assert set((await wrote(memory)).values()) == {"openai:good"}
    assert len(server.asked) == len(before) - 2


async def test_one_that_nobody_can_write_stays_and_so_does_what_merges_it(tmp_path: Path, server: Server) -> None:
    before = await summarised(tmp_path)
    server.script = [lambda body: completion("I'm sorry, but I can't help with that.", usage=USAGE)]
    async with with_models(tmp_path, server, "good") as memory:
        await written_again(memory)
        by = await wrote(memory)
        left = {id_ for id_, name in by.items() if name == EXTRACTIVE}
        asked = len(server.asked)
        await written_again(memory)
        assert len(server.asked) == asked, "a refusal is paid for once"
    assert left == {"L1-0001", "L2-0001", "L3-0001"}
    assert len(by) == len(before)


async def test_what_cannot_be_read_any_more_does_not_keep_the_others_back(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    await summarised(tmp_path, 20)
    whole = PendingMessages.read

    async def damaged(self: PendingMessages, scope: Scope, first_seq: int, last_seq: int) -> ReadSpan:
        if first_seq == 1:
            raise StoreCorrupt("message 1 is missing")
        return await whole(self, scope, first_seq, last_seq)

    monkeypatch.setattr(PendingMessages, "read", damaged)
    async with with_models(tmp_path, server, "good") as memory:
        await written_again(memory)
        by = await wrote(memory)
    assert by.pop("L1-0001") == EXTRACTIVE
    assert {name for id_, name in by.items() if id_.startswith("L1")} == {"openai:good"}


async def test_what_is_said_meanwhile_is_summarised_too(tmp_path: Path, server: Server) -> None:
    before = await summarised(tmp_path)
    async with with_models(tmp_path, server, "good") as memory:
        await memory.compress("main", again=True)
        await talk(memory, 10, first=40)
        await caught_up(memory)
        after = await all_summaries(memory)
    assert len(of_level(after, 1)) > len(of_level(before, 1))
    assert {one.summarizer for one in after} == {"openai:good"}
