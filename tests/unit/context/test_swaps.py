from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from offbook.api.memory import Memory
from offbook.context.session_notes import SwapSize
from offbook.context.slots import tokens_of
from offbook.context.validity import faults
from offbook.contrib.conformance.check import partition_faults
from offbook.ingest.frames import strip_frames
from offbook.model.types import now
from tests.unit.small_memory import caught_up, contents, exchange, small_memory, talk, talked, user

WINDOW = 4_000


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with small_memory(tmp_path) as opened:
        yield opened


@pytest.fixture
async def summarised(tmp_path: Path) -> AsyncIterator[Memory]:
    """After 80 exchanges, with nothing left to do."""
    await talked(tmp_path, 80)
    async with small_memory(tmp_path) as opened:
        yield opened


async def test_below_the_threshold_nothing_is_swapped_and_it_says_why(memory: Memory) -> None:
    scope = await talk(memory, 5)
    answer = await memory.swap(scope, used_tokens=3_399, context_window=WINDOW)
    assert (answer.swapped, answer.generation, answer.messages) == (False, 0, [])
    assert answer.reason == "3,399 of 4,000 tokens are in use; it is due at 3,400"
    assert (answer.tokens_before, answer.tokens_after) == (3_399, 3_399)


async def test_at_the_threshold_the_context_that_stands_by_is_handed_over(memory: Memory) -> None:
    scope = await talk(memory, 60)
    await caught_up(memory)
    answer = await memory.swap(scope, used_tokens=3_400, context_window=WINDOW)
    assert answer.swapped
    assert answer.generation == 1
    assert answer.tokens_before == 3_400
    assert answer.tokens_after == tokens_of(answer.messages) <= 0.40 * WINDOW
    assert contents(answer.messages[-2:]) == contents(exchange(59))
    assert faults(answer.messages) == []
    parts = sorted([*answer.ledger.verbatim, *answer.ledger.summaries], key=lambda part: part.first_seq)
    assert list(partition_faults(parts, 120)) == []
    assert (await memory.get_compressed_context(scope, 1_000)).generation == 1


async def test_asked_again_with_nothing_new_it_is_the_same_answer(memory: Memory) -> None:
    scope = await talk(memory, 60)
    first = await memory.swap(scope, used_tokens=3_500, context_window=WINDOW)
    again = await memory.swap(scope, used_tokens=3_500, context_window=WINDOW)
    assert (again.swapped, again.generation) == (True, 1)
    assert (again.messages, again.ledger, again.tokens_after) == (first.messages, first.ledger, first.tokens_after)
    events = [event.verb for event in (await memory.audit("main")).events]
    assert events.count("swap") == 2


async def test_of_two_that_swap_at_once_both_get_the_same(memory: Memory) -> None:
    scope = await talk(memory, 60)
    swaps = [memory.swap(scope, used_tokens=3_500, context_window=WINDOW) for _ in range(4)]
    answers = await asyncio.gather(*swaps)
    assert {answer.generation for answer in answers} == {1}
    assert all(answer.messages == answers[0].messages for answer in answers)


async def test_after_news_it_can_be_swapped_again(memory: Memory) -> None:
    scope = await talk(memory, 60)
    await memory.swap(scope, used_tokens=3_500, context_window=WINDOW)
    await talk(memory, 10, first=60)
    answer = await memory.swap(scope, used_tokens=3_500, context_window=WINDOW)
    assert (answer.swapped, answer.generation) == (True, 2)
    assert contents(answer.messages[-2:]) == contents(exchange(69))


async def test_a_swap_frees_a_quarter_of_the_window_or_does_not_happen_and_says_why(memory: Memory) -> None:
    scope = await talk(memory, 60)
    small = await memory.swap(scope, used_tokens=1, context_window=1)
    assert not small.swapped
    assert "no room" in small.reason
    kept = await memory.swap(scope, used_tokens=3_400, context_window=WINDOW, target_tokens=2_800)
    assert (kept.swapped, kept.generation, kept.messages) == (False, 0, [])
    assert "and 3,400 are in use; a swap is worth it where it frees 1,000, a quarter of the window" in kept.reason
    forced = await memory.swap(scope, used_tokens=3_400, context_window=WINDOW, target_tokens=2_800, force=True)
    assert forced.swapped
    assert 2_400 < forced.tokens_after <= 2_800


async def test_not_even_force_hands_over_what_is_not_smaller(memory: Memory) -> None:
    scope = await talk(memory, 3)
    forced = await memory.swap(scope, used_tokens=500, context_window=WINDOW, force=True)
    assert (forced.swapped, forced.reason) == (True, "forced")
    assert contents(forced.messages) == contents([message for number in range(3) for message in exchange(number)])
    await talk(memory, 1, first=3)
    kept = await memory.swap(scope, used_tokens=forced.tokens_after, context_window=WINDOW, force=True)
    assert (kept.swapped, kept.generation) == (False, 1)
    assert kept.reason.endswith(f"and {forced.tokens_after:,} are in use")


async def test_a_host_says_what_the_new_context_may_take_in_the_tokens_of_its_model(memory: Memory) -> None:
    scope = await talk(memory, 60)
    asked = {"used_tokens": 2_000, "context_window": WINDOW, "target_tokens": 900, "token_ratio": 1.5}
    answer = await memory.swap(scope, **asked)
    assert answer.swapped, "the host knows when it is due"
    assert tokens_of(answer.messages) <= 600
    assert answer.tokens_after == pytest.approx(1.5 * tokens_of(answer.messages), abs=1)
    assert 0.7 * 900 <= answer.tokens_after <= 900


async def test_what_a_host_asked_for_is_made_ready_for_it_also_after_a_restart(tmp_path: Path) -> None:
    await talked(tmp_path, 80)
    size = {"context_window": WINDOW, "target_tokens": 900, "token_ratio": 1.5}
    async with small_memory(tmp_path) as memory:
        answer = await memory.swap(memory.scope("chat"), used_tokens=2_000, **size)
        assert answer.swapped
        await talk(memory, 40, first=80)
    async with small_memory(tmp_path) as memory:
        scope, slots = memory.scope("chat"), memory._background.slots
        session = await memory._store.session(scope)
        assert session is not None
        await slots.prepare(scope, session)
        ready = slots._ready[scope]
        assert (ready.target_tokens, ready.tokens <= 600) == (600, True)
        size["target_tokens"] = 870  # the host's instructions have grown a little
        answer = await memory.swap(scope, used_tokens=2_100, **size)
        assert answer.messages == ready.context.messages


async def test_a_host_that_says_with_a_turn_when_it_will_swap_finds_the_context_ready(tmp_path: Path) -> None:
    await talked(tmp_path, 40)
    async with small_memory(tmp_path) as memory:
        scope, slots = memory.scope("chat"), memory._background.slots
        await memory.prepare_turn(scope, "And now?", swap_size=SwapSize(2_400, 900, 1.5))
        await talk(memory, 2, first=40)
        async with asyncio.timeout(120):
            while scope not in slots._ready:
                await asyncio.sleep(0.05)
        ready = slots._ready[scope]
        answer = await memory.swap(
            scope, used_tokens=2_400, context_window=WINDOW, target_tokens=900, token_ratio=1.5, generation=0
        )
        assert (ready.target_tokens, answer.messages) == (600, ready.context.messages)


async def test_a_swap_whose_answer_was_lost_is_taken_up_by_the_next_question(memory: Memory) -> None:
    scope = await talk(memory, 60)
    lost = await memory.swap(scope, used_tokens=3_500, context_window=WINDOW, generation=0)
    await talk(memory, 2, first=60)
    taken = await memory.swap(scope, used_tokens=3_600, context_window=WINDOW, generation=0)
    assert (taken.swapped, taken.generation, taken.messages) == (True, lost.generation, lost.messages)
    await talk(memory, 20, first=62)
    again = await memory.swap(scope, used_tokens=3_500, context_window=WINDOW, generation=1)
    assert (again.swapped, again.generation) == (True, 2), "that one is in use, and full"
    late = await memory.swap(scope, used_tokens=3_500, context_window=WINDOW, generation=1)
    assert (late.generation, late.messages) == (2, again.messages)
    await talk(memory, 60, first=82)
    other = await memory.swap(scope, used_tokens=3_500, context_window=WINDOW, generation=1)
    assert other.generation == 3, "too much has come since"


async def test_a_session_nobody_knows_has_nothing_to_hand_over(memory: Memory) -> None:
    answer = await memory.swap(memory.scope("nobody"), used_tokens=3_900, context_window=WINDOW, force=True)
    assert (answer.swapped, answer.messages) == (False, [])
    assert "nothing is known" in answer.reason


async def test_slot_b_is_made_ready_and_what_comes_after_is_added_word_for_word(tmp_path: Path) -> None:
    await talked(tmp_path, 80)
    async with small_memory(tmp_path) as memory:
        scope = memory.scope("chat")
        await memory.swap(scope, used_tokens=10, context_window=WINDOW)  # so that the window is known
        await talk(memory, 2, first=80)
        await caught_up(memory)
        slots = memory._background.slots
        async with asyncio.timeout(120):
            while scope not in slots._ready:
                await asyncio.sleep(0.05)
        ready = slots._ready[scope]
        assert ready.last_seq == 164
        await memory.on_message(scope, [user("One more thing: the code is 4711.")])
        answer = await memory.swap(scope, used_tokens=3_500, context_window=WINDOW)
        assert answer.messages[:-1] == ready.context.messages
        assert answer.messages[-1].content == "One more thing: the code is 4711."
        assert answer.tokens_after == tokens_of(answer.messages) <= 0.40 * WINDOW
        parts = sorted([*answer.ledger.verbatim, *answer.ledger.summaries], key=lambda part: part.first_seq)
        assert list(partition_faults(parts, 165)) == []


async def test_a_swap_fits_tokens_and_not_only_characters(memory: Memory) -> None:
    scope = memory.scope("chinese")
    for number in range(80):
        await memory.on_message(
            scope, [user(f"第{number}次会议决定把预算增加到{number * 1000}元，由李明负责，五月八日之前完成。")]
        )
    await caught_up(memory)
    answer = await memory.swap(scope, used_tokens=1_700, context_window=2_000)
    assert answer.swapped
    assert answer.tokens_after <= 800


async def test_the_ledger_names_what_is_no_longer_there_and_how_to_get_it_back(summarised: Memory) -> None:
    scope = summarised.scope("chat")
    answer = await summarised.swap(scope, used_tokens=3_500, context_window=WINDOW)
    text = "\n".join(str(message.content) for message in answer.messages)
    assert answer.ledger.dropped_count >= len(answer.ledger.dropped) > 0
    for dropped in answer.ledger.dropped:
        if dropped.kind == "identifier":
            assert dropped.text not in text
    named = next(one for one in answer.ledger.dropped if one.expand and one.kind == "identifier")
    expansion = await summarised.expand("main", summary_id=named.expand, limit=1_000)
    assert any(named.text in str(line.message.content) for line in expansion.messages)
    assert named.seq in {line.seq for line in expansion.messages}


@pytest.mark.parametrize("window", [600, 1_200, 2_500, 5_000])
async def test_the_ledger_counts_whatever_is_no_longer_there(summarised: Memory, window: int) -> None:
    scope = summarised.scope("chat")
    answer = await summarised.swap(scope, used_tokens=window, context_window=window)
    assert answer.swapped
    text = "\n".join(str(message.content) for message in answer.messages)
    gone = {f"E{1000 + number}" for number in range(80) if f"E{1000 + number}" not in text}
    named = {one.text for one in answer.ledger.dropped}
    assert answer.ledger.dropped_count >= len(gone)
    assert len(named & gone) >= min(len(gone), 40) * 0.8


async def test_a_pin_reaches_the_context_that_stands_by(memory: Memory) -> None:
    scope = memory.scope("chat")
    await memory.on_message(scope, [user("The safe opens with 19-84-33, never say it aloud.")])
    await talk(memory, 120)
    await memory.swap(scope, used_tokens=10, context_window=12_000)
    await caught_up(memory)
    await memory._background.slots.prepare(scope, (await memory._store.session(scope)))  # type: ignore[arg-type]
    for number in range(60):
        other = memory.scope(f"other {number}")
        await memory.on_message(other, [user("The safe of another session, 11-22-33.")])
        await memory.pin("main", session_id=f"other {number}")
    await memory.pin("main", session_id="chat", keyword="safe")
    answer = await memory.swap(scope, used_tokens=11_000, context_window=12_000)
    assert "Pinned, user: The safe opens with 19-84-33, never say it aloud." in str(answer.messages[0].content)


async def test_a_start_beside_a_swap_is_no_error(memory: Memory) -> None:
    scope = await talk(memory, 60)

    async def start(number: int) -> None:
        await memory.session_start(scope, max_chars=2_000 + number)

    async def swap(number: int) -> None:
        await memory.swap(scope, used_tokens=3_500 + number, context_window=WINDOW)

    await asyncio.gather(*(work(number) for number in range(8) for work in (start, swap)))
    assert (await memory.audit("main")).verified


async def test_a_replay_of_something_altered_says_so(memory: Memory) -> None:
    scope = await talk(memory, 60)
    await memory.swap(scope, used_tokens=3_500, context_window=WINDOW)
    assert (await memory.replay(scope, now())).is_exact
    handed = await memory._store.handed(scope)
    assert handed is not None
    altered = msgspec.structs.replace(
        handed, generation=2, messages=[*handed.messages[:-1], user("I said no such thing.")]
    )
    await memory._store.hand_over(scope, altered, None)
    assert not (await memory.replay(scope, now())).is_exact


async def test_a_replay_knows_why_after_a_thousand_events(memory: Memory) -> None:
    scope = await talk(memory, 5)
    await memory.post_compaction(scope, ["something of its own"])
    moment = now()
    await asyncio.sleep(0.01)
    for _ in range(101):
        await asyncio.gather(*(memory.log(scope, limit=1) for _ in range(10)))
    then = await memory.replay(scope, moment)
    assert not then.is_exact
    assert [event.verb for event in then.why] == ["hooks/post-compaction"]


async def test_what_is_handed_over_is_not_captured_back(memory: Memory) -> None:
    scope = await talk(memory, 60)
    answer = await memory.swap(scope, used_tokens=3_500, context_window=WINDOW)
    assert isinstance(answer.messages[0].content, str)
    assert strip_frames(answer.messages[0].content, memory._intake._frame_key)[0].strip() == ""
    before = (await memory.log(scope, limit=1_000)).last_seq
    await memory.pre_compaction(scope, answer.messages)
    page = await memory.log(scope, after_seq=before)
    assert [line.noise for line in page.messages if line.message.content] in ([], ["frame"], ["own"]) or all(
        line.noise is not None for line in page.messages
    )


async def test_replay_shows_what_was_in_the_context_then(memory: Memory) -> None:
    scope = await talk(memory, 60)
    before = now()
    await asyncio.sleep(0.01)
    swapped = await memory.swap(scope, used_tokens=3_500, context_window=WINDOW)
    await talk(memory, 1, first=60)
    between = now()
    await asyncio.sleep(0.01)
    await talk(memory, 1, first=61)
    first = await memory.replay(scope, before)
    assert (first.kind, first.generation, len(first.messages)) == ("log", 0, 120)
    then = await memory.replay(scope, between)
    assert (then.kind, then.generation, then.is_exact) == ("swap", 1, True)
    assert then.messages[:-2] == swapped.messages
    assert contents(then.messages[-2:]) == contents(exchange(60))
    assert then.memory == swapped.messages[0].content
    assert "swap" in [event.verb for event in then.why]
    await memory.post_compaction(scope, ["something of its own"])
    assert not (await memory.replay(scope, now() + timedelta(seconds=1))).is_exact


async def test_a_cold_start_is_kept_and_can_be_shown_again(memory: Memory) -> None:
    scope = await talk(memory, 60)
    context = await memory.session_start(scope, max_chars=3_000)
    assert context is not None
    replayed = await memory.replay(scope, now())
    assert (replayed.kind, replayed.generation) == ("start", 0)
    assert replayed.messages == context.messages
    assert (await memory.session_start(scope, max_chars=3_000)) == context


async def test_memory_does_not_change_by_a_byte_between_swaps(memory: Memory) -> None:
    scope = await talk(memory, 60)
    swapped = await memory.swap(scope, used_tokens=3_500, context_window=WINDOW)
    for number in range(60, 70):
        await talk(memory, 1, first=number)
        await memory.swap(scope, used_tokens=1_000, context_window=WINDOW)
        await caught_up(memory)
        assert (await memory.replay(scope, now())).memory == swapped.messages[0].content


async def test_two_agents_with_the_same_session_name_have_their_own(memory: Memory) -> None:
    mine = await talk(memory, 60)
    other = memory.scope("chat", "other")
    await memory.on_message(other, [user("The other's only message.")])
    assert (await memory.swap(mine, used_tokens=3_500, context_window=WINDOW)).generation == 1
    answer = await memory.swap(other, used_tokens=3_500, context_window=WINDOW)
    assert contents(answer.messages) == ["The other's only message."]
