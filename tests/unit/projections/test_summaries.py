"""The background's way from the log to summaries, through the whole of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from offbook.api.memory import Memory
from offbook.context import summary_drafts
from offbook.log.sqlite.store import SqliteStore
from offbook.model.errors import StoreFull
from offbook.model.settings.sections import SessionSilence
from offbook.model.summary import SummaryView
from offbook.model.types import Message, Scope
from offbook.projections import summaries as compressing
from tests.unit.small_memory import assistant, caught_up, contents, exchange, small_memory, talk, user

SHORT_SILENCE = SessionSilence(interrupted_gap=timedelta(milliseconds=10), new_session_gap=timedelta(milliseconds=200))


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with small_memory(tmp_path) as opened:
        yield opened


async def all_summaries(memory: Memory, agent_id: str = "main") -> list[SummaryView]:
    found: list[SummaryView] = []
    before = None
    while True:
        page = await memory.summaries(agent_id, before=before, limit=100)
        found += page.summaries
        if page.next is None:
            return sorted(found, key=lambda one: one.id)
        before = page.next


def of_level(summaries: list[SummaryView], level: int) -> list[SummaryView]:
    return [one for one in summaries if one.level == level]


async def test_a_session_becomes_a_tree_whose_levels_lie_end_to_end(memory: Memory) -> None:
    await talk(memory, 60)
    await caught_up(memory)
    summaries = await all_summaries(memory)
    assert {one.level for one in summaries} == {1, 2, 3}
    for level in (1, 2, 3):
        at = 0
        for one in of_level(summaries, level):
            (span,) = one.spans
            assert span.first_seq == at + 1
            at = span.last_seq
        assert at <= 120
    for one in summaries:
        assert (len(one.sources) == 3) == (one.level > 1)
        assert (one.summarizer, one.instructions) == ("extractive", None)
        assert one.prompt_version
        assert len(one.fingerprint) == 64
        assert one.usage.dollars == 0
        assert one.tokens < one.source_tokens
    children = {source for one in of_level(summaries, 2) for source in one.sources}
    assert children == {one.id for one in of_level(summaries, 1) if one.parent}


async def test_every_stretch_ends_with_an_exchange_and_has_its_tokens(memory: Memory) -> None:
    await talk(memory, 40)
    await caught_up(memory)
    for one in of_level(await all_summaries(memory), 1):
        assert one.source_tokens >= 120
        assert one.spans[0].last_seq % 2 == 0


async def test_the_newest_of_an_active_session_is_left_alone_until_it_ends(memory: Memory) -> None:
    scope = await talk(memory, 30)
    await caught_up(memory)
    last = max(one.spans[0].last_seq for one in await all_summaries(memory))
    rest = await memory.log(scope, after_seq=last, limit=1_000)
    assert sum(len(str(line.message.content)) for line in rest.messages) / 4 >= 100
    await memory.session_end(scope)
    await caught_up(memory)
    assert max(one.spans[0].last_seq for one in of_level(await all_summaries(memory), 1)) == 60


async def test_a_session_that_fell_silent_is_over(tmp_path: Path) -> None:
    async with small_memory(tmp_path, session=SHORT_SILENCE, worker_interval=timedelta(milliseconds=300)) as memory:
        # At once: where the machine is busy, it would fall silent in between.
        await memory.on_message(memory.scope("chat"), [one for number in range(10) for one in exchange(number)])
        async with asyncio.timeout(120):
            while not any(one.spans[0].last_seq == 20 for one in of_level(await all_summaries(memory), 1)):
                await asyncio.sleep(0.1)


async def test_what_sessions_leave_over_is_merged_across_them_in_order_of_time(tmp_path: Path) -> None:
    async with small_memory(tmp_path, session=SHORT_SILENCE, worker_interval=timedelta(milliseconds=300)) as memory:
        await assert_merged_across(memory)


async def assert_merged_across(memory: Memory) -> None:
    for number in range(4):
        scope = await talk(memory, 5, session=f"day {number}")
        await memory.session_end(scope)
    mixed: list[SummaryView] = []
    async with asyncio.timeout(120):
        while not mixed:
            await asyncio.sleep(0.1)
            summaries = await all_summaries(memory)
            mixed = [one for one in summaries if len({span.session_id for span in one.spans}) > 1]
    assert [span.session_id for span in mixed[0].spans] == sorted(span.session_id for span in mixed[0].spans)
    for number in range(4):
        context = await memory.get_compressed_context(memory.scope(f"day {number}"), 500)
        assert not {part.id for part in context.parts} & {one.id for one in mixed}
    expansion = await memory.expand("main", summary_id=mixed[0].id, limit=1_000)
    assert [(line.session_id, line.seq) for line in expansion.messages] == [
        (span.session_id, seq) for span in mixed[0].spans for seq in range(span.first_seq, span.last_seq + 1)
    ]


async def test_a_session_that_goes_on_after_its_end_is_covered_on(memory: Memory) -> None:
    scope = await talk(memory, 20)
    await memory.session_end(scope)
    await caught_up(memory)
    await talk(memory, 30, first=20)
    await caught_up(memory)
    context = await memory.get_compressed_context(scope, 3_000)
    assert context.parts[0].first_seq == 1
    assert context.covers.last_seq == 100
    assert contents(context.messages[-2:]) == contents(exchange(49))


async def test_a_session_that_ends_and_goes_on_in_turn_with_another_keeps_its_own_tree(memory: Memory) -> None:
    for number in range(30):
        for session in ("one", "other"):
            scope = await talk(memory, 1, session=session, first=number)
            await memory.session_end(scope)
        if number % 10 == 0:
            await caught_up(memory)
    await caught_up(memory)
    summaries = await all_summaries(memory)
    assert all(len({span.session_id for span in one.spans}) == 1 for one in summaries)
    # A single exchange may be as long as its summary, which has its day and its speakers besides.
    assert all(one.tokens < one.source_tokens for one in summaries if one.source_messages > 2)
    context = await memory.get_compressed_context(memory.scope("one"), 2_000)
    assert "not shown" not in context.text


async def test_no_ended_session_is_without_a_summary(memory: Memory) -> None:
    long = f"My sister Ada moved to Lisbon in May{' with all that she has' * 20}."
    for name, said in (("one", "My sister Ada moved to Lisbon in May."), ("other", long)):
        scope = memory.scope(name)
        await memory.on_message(scope, [Message(role="user", content=said)])
        await memory.session_end(scope)
    await caught_up(memory)
    summaries = await all_summaries(memory)
    assert sorted(span.session_id for one in summaries for span in one.spans) == ["one", "other"]
    assert all("They: My sister Ada moved to Lisbon in May" in one.text for one in summaries)


async def test_calls_that_nobody_answers_do_not_stop_it(memory: Memory) -> None:
    scope = memory.scope("chat")
    for number in range(60):
        call = {"type": "tool-call", "id": f"lost-{number}", "name": "search", "arguments": {}}
        lost = [Message(role="assistant", content=[call])] if number % 5 == 0 else []
        await memory.on_message(scope, [*exchange(number), *lost])
    await caught_up(memory)
    assert len(of_level(await all_summaries(memory), 1)) >= 4


async def test_a_state_that_cannot_be_read_is_made_anew(memory: Memory) -> None:
    scope = await talk(memory, 20)
    await caught_up(memory)
    await memory._store.set_session_note(scope, "workingState", "{broken")
    assert (await memory.get_compressed_context(scope, 6_000)).covers.last_seq == 40
    await talk(memory, 1, first=20)
    await caught_up(memory)
    assert (await memory.get_compressed_context(scope, 4_500)).covers.last_seq == 42


async def test_noise_is_in_the_span_and_not_in_the_summary(memory: Memory) -> None:
    scope = memory.scope("chat")
    for number in range(20):
        await memory.on_message(
            scope, [*exchange(number), user("[OpenClaw heartbeat poll]"), assistant("HEARTBEAT_OK")]
        )
    await memory.session_end(scope)
    await caught_up(memory)
    summaries = await all_summaries(memory)
    assert all("heartbeat" not in one.text.casefold() for one in summaries)
    assert max(one.spans[0].last_seq for one in of_level(summaries, 1)) == 80


async def test_what_broke_off_is_done_again_and_leaves_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = iter([True, False, True, True, False, False])
    write = SqliteStore.add_summary

    async def failing(self: SqliteStore, *arguments: object) -> object:
        if next(failures, False):
            raise StoreFull("no room")
        return await write(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(SqliteStore, "add_summary", failing)
    monkeypatch.setattr("offbook.api.background.RETRY_SECONDS", 0.05)
    async with small_memory(tmp_path / "one") as memory:
        await talk(memory, 60)
        await caught_up(memory)
        broken = [(one.id, one.text, one.sources) for one in await all_summaries(memory)]
    async with small_memory(tmp_path / "other") as memory:
        await talk(memory, 60)
        await caught_up(memory)
        assert [(one.id, one.text, one.sources) for one in await all_summaries(memory)] == broken


async def test_a_memory_opened_again_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as stopped:

        async def nothing(self: compressing.Summaries, scope: Scope) -> bool:
            return True

        stopped.setattr(compressing.Summaries, "_advance", nothing)
        async with small_memory(tmp_path) as memory:
            await talk(memory, 60)
            assert await all_summaries(memory) == []
    async with small_memory(tmp_path) as memory:
        await caught_up(memory)
        assert len(await all_summaries(memory)) > 10


async def test_the_same_messages_are_cut_the_same_however_they_arrive(tmp_path: Path) -> None:
    found = []
    for name, size in (("one", 2), ("many", 60)):
        async with small_memory(tmp_path / name) as memory:
            messages = [message for number in range(60) for message in exchange(number)]
            for start in range(0, len(messages), size):
                await memory.on_message(memory.scope("chat"), messages[start : start + size])
                if size == 2 and start % 20 == 0:
                    await caught_up(memory)
            await caught_up(memory)
            found.append([(one.id, one.spans, one.text) for one in of_level(await all_summaries(memory), 1)])
    assert found[0] == found[1]


async def test_losses_name_what_the_source_said_and_the_summary_does_not(memory: Memory) -> None:
    scope = await talk(memory, 60)
    await caught_up(memory)
    summaries = [one for one in of_level(await all_summaries(memory), 1) if one.losses]
    assert summaries
    lines = {line.seq: str(line.message.content) for line in (await memory.log(scope, limit=1_000)).messages}
    for one in summaries:
        assert one.lost >= len(one.losses)
        for loss in one.losses:
            assert loss.text.split()[0] in lines[loss.seq]
            if loss.kind == "identifier":
                assert loss.text not in one.text


async def test_an_estimate_is_told_before_anything_is_done(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (await memory.compress("main", dry_run=True)).source_tokens == 0
    with monkeypatch.context() as stopped:

        async def nothing(self: compressing.Summaries, scope: Scope) -> bool:
            return True

        stopped.setattr(compressing.Summaries, "_advance", nothing)
        await talk(memory, 60)
        estimate = await memory.compress("main", dry_run=True)
        assert estimate.sessions == 1
        assert 1_500 < estimate.source_tokens < 3_500
        assert (estimate.summarizer, estimate.dollars, estimate.input_tokens) == ("extractive", 0.0, 0)
    await memory.compress("main")
    await caught_up(memory)
    assert (await memory.status("main")).summaries.counts["L1"] > 5


async def test_one_agents_summaries_are_not_anothers(memory: Memory) -> None:
    await talk(memory, 30)
    other = memory.scope("chat", "other")
    for number in range(30):
        await memory.on_message(other, [user(f"The other's secret is {number}-{number}-{number}, by the lighthouse.")])
    await caught_up(memory)
    assert all("lighthouse" not in one.text for one in await all_summaries(memory))
    assert all("module" not in one.text for one in await all_summaries(memory, "other"))


async def test_a_huge_message_is_a_stretch_of_its_own_and_still_fits(memory: Memory) -> None:
    scope = await talk(memory, 3)
    await memory.on_message(scope, [user("The beginning. " + "x " * 1_000_000 + "The end is 4711.")])
    await talk(memory, 10, first=3)
    await caught_up(memory)
    for max_chars in (100, 1_000, 5_000):
        context = await memory.get_compressed_context(scope, max_chars)
        assert context.chars <= max_chars
        assert context.covers.last_seq == 27


def test_a_draft_of_nothing_but_noise_is_possible(tmp_path: Path) -> None:
    from datetime import UTC, datetime

    from offbook.context.cover import MessageSpan
    from offbook.context.digest import digest

    noon = datetime(2026, 11, 15, 12, tzinfo=UTC)
    scope = Scope(agent_id="main", session_id="chat")
    draft = summary_drafts.chunk_draft(
        summary_drafts.Source(scope, MessageSpan(1, 3, 0), [], digest([]), noon, noon), 2_000
    )
    assert (draft.text, draft.source_messages, draft.lost) == ("", 3, 0)
