"""What every store promises to continuity (`protocols.Store`): what the turns of a session were prepared with."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from offbook.log.store import Store
from offbook.model.errors import StoreError
from offbook.model.summary import TurnPart
from offbook.model.turn import TurnMemory
from offbook.model.types import Scope
from tests.contract.test_store import CHAT, NOON
from tests.contract.test_store_compression import THEIRS, WORK, no_faults, talk, verbs

OpenStore = Callable[[], Store]
HOUR = timedelta(hours=1)


def part(text: str = "They moved the harbour trip.", **fields: Any) -> TurnPart:
    given = {"section": "memory", "kind": "summaries", "tokens": 9, "items": 1, "why": "it is of this session"} | fields
    return TurnPart(text=text, **given)


def memory(text: str = "what stays", epoch: str = "1", at: datetime = NOON, **fields: Any) -> TurnMemory:
    given = {"tokens": 12, "parts": [part()]} | fields
    return TurnMemory(epoch=epoch, at=at, text=text, **given)


async def text_of(store: Store, scope: Scope = CHAT, *, at: datetime | None = None) -> str | None:
    found = await store.turn_memory(scope, at=at)
    return found.text if found else None


# ── keeping ──


async def test_it_comes_back_as_it_was(store: Store) -> None:
    await talk(store, 3)
    whole = memory(
        "你好 👋 \x00 end\r\n\tsecond \u2028",
        epoch="g7 · é",
        at=NOON + timedelta(microseconds=1),
        tokens=1_234,
        parts=[
            part("你好 \x00 👋"),
            part("", kind="working state", items=0, tokens=0, why=""),
            part("pinned", section="recall", kind="pinned", items=99),
        ],
    )
    await store.keep_turn_memory(CHAT, whole)
    assert await store.turn_memory(CHAT) == whole


async def test_one_without_text_or_parts(store: Store) -> None:
    await store.keep_turn_memory(CHAT, memory("", epoch="", tokens=0, parts=[]))
    assert await store.turn_memory(CHAT) == memory("", epoch="", tokens=0, parts=[])


async def test_a_large_one(store: Store) -> None:
    large = memory("".join(chr(0x4E00 + number % 9_999) for number in range(300_000)))
    await store.keep_turn_memory(CHAT, large)
    assert await store.turn_memory(CHAT) == large


async def test_before_anything_was_said(store: Store) -> None:
    """In a store that knows neither the agent nor the session; what is said later leaves it."""
    await store.keep_turn_memory(CHAT, memory())
    assert await store.turn_memory(CHAT) == memory()
    assert (await store.session(CHAT), await store.sessions("main")) == (None, [])
    assert await store.agents() == ["main"]
    assert await verbs(store) == []
    assert await no_faults(store)
    await talk(store, 3)
    assert await store.turn_memory(CHAT) == memory()
    assert await verbs(store) == ["onMessage"]
    assert (await store.counts("main")).messages == 3
    assert await no_faults(store)


async def test_nobody_has_one_until_it_is_kept(store: Store) -> None:
    assert await store.turn_memory(CHAT) is None
    assert await store.turn_memory(CHAT, at=NOON) is None
    await talk(store, 3)
    assert await store.turn_memory(CHAT) is None
    assert await store.agents() == ["main"]


async def test_each_session_of_each_agent_has_its_own(store: Store) -> None:
    await talk(store, 1)
    await store.keep_turn_memory(CHAT, memory("mine"))
    for other in (THEIRS, WORK, Scope(agent_id="main", session_id="chat/"), Scope(agent_id="Main", session_id="chat")):
        assert await store.turn_memory(other) is None
        assert await store.turn_memory(other, at=NOON + HOUR) is None
    await store.keep_turn_memory(THEIRS, memory("theirs"))
    await store.keep_turn_memory(WORK, memory("of work"))
    assert [await text_of(store, scope) for scope in (CHAT, THEIRS, WORK)] == ["mine", "theirs", "of work"]


async def test_the_same_text_is_kept_for_each_session(store: Store) -> None:
    for scope in (CHAT, THEIRS, WORK):
        await store.keep_turn_memory(scope, memory())
    assert [await text_of(store, scope) for scope in (CHAT, THEIRS, WORK)] == ["what stays"] * 3


# ── the same again ──


async def test_the_same_epoch_and_text_again_change_nothing(store: Store) -> None:
    first = memory()
    await store.keep_turn_memory(CHAT, first)
    await store.keep_turn_memory(WORK, memory("of another session"))
    for same in (first, memory(at=NOON + HOUR), memory(at=NOON - HOUR), memory(tokens=99, parts=[])):
        await store.keep_turn_memory(CHAT, same)
        assert await store.turn_memory(CHAT) == first
    assert await store.turn_memory(CHAT, at=NOON - timedelta(microseconds=1)) is None
    assert await store.turn_memory(CHAT, at=NOON + 2 * HOUR) == first


async def test_another_epoch_or_another_text_is_another(store: Store) -> None:
    kept = [
        memory("one", epoch="1", at=NOON),
        memory("one", epoch="2", at=NOON + HOUR),
        memory("two", epoch="2", at=NOON + 2 * HOUR),
        memory("one", epoch="1", at=NOON + 3 * HOUR),  # as the first was, but not the one before it
    ]
    for each in kept:
        await store.keep_turn_memory(CHAT, each)
        assert await store.turn_memory(CHAT) == each
    assert [await store.turn_memory(CHAT, at=each.at) for each in kept] == kept


async def test_of_several_that_come_at_once_one_is_kept(store: Store) -> None:
    given = [memory(at=NOON + timedelta(minutes=number)) for number in range(5)]
    await asyncio.gather(*[store.keep_turn_memory(CHAT, each) for each in given])
    found = await store.turn_memory(CHAT)
    assert found is not None
    assert found in given
    for each in given:
        assert await store.turn_memory(CHAT, at=each.at) == (found if each.at >= found.at else None)


# ── at a time ──


async def test_what_turns_were_prepared_with_at_a_time(store: Store) -> None:
    times = [NOON, NOON + 2 * HOUR, NOON + HOUR, NOON + 3 * HOUR]
    for number, at in enumerate(times, 1):
        await store.keep_turn_memory(CHAT, memory(str(number), epoch=str(number), at=at))
        await store.keep_turn_memory(THEIRS, memory("theirs", epoch=str(number), at=NOON - HOUR))

    assert await text_of(store) == "4"
    assert await text_of(store, at=NOON - timedelta(microseconds=1)) is None
    assert await text_of(store, at=NOON) == await text_of(store, at=NOON + HOUR / 2) == "1"
    # The third came after the second, whatever the clock said.
    assert await text_of(store, at=NOON + HOUR) == await text_of(store, at=NOON + 2 * HOUR) == "3"
    assert await text_of(store, at=NOON + 3 * HOUR) == await text_of(store, at=NOON + timedelta(days=99)) == "4"


async def test_the_newest_is_the_one_kept_last(store: Store) -> None:
    await store.keep_turn_memory(CHAT, memory("first", at=NOON + timedelta(days=400)))
    await store.keep_turn_memory(CHAT, memory("second", at=NOON))
    assert await text_of(store) == "second"
    assert await text_of(store, at=NOON + timedelta(days=400)) == "second"


async def test_a_time_is_the_same_in_every_zone(store: Store) -> None:
    far = timezone(timedelta(hours=-9, minutes=-30))
    await store.keep_turn_memory(CHAT, memory(at=NOON.astimezone(far)))
    assert await store.turn_memory(CHAT, at=NOON) == memory()
    assert await store.turn_memory(CHAT, at=NOON.astimezone(far)) == memory()
    assert await store.turn_memory(CHAT, at=(NOON - timedelta(microseconds=1)).astimezone(far)) is None


# ── with the rest of the store ──


async def test_what_could_not_be_read_again_is_refused(store: Store) -> None:
    await store.keep_turn_memory(CHAT, memory())
    for fields in ({"text": "\ud800"}, {"tokens": "many"}, {"parts": ["none"]}, {"parts": [part(kind="neither")]}):
        with pytest.raises(StoreError, match="could not be read again"):
            await store.keep_turn_memory(CHAT, memory(epoch="2", **({"text": "other"} | fields)))
        with pytest.raises(StoreError, match="could not be read again"):
            await store.keep_turn_memory(THEIRS, memory(epoch="2", **({"text": "other"} | fields)))
    assert await store.turn_memory(CHAT) == memory()
    assert await store.turn_memory(THEIRS) is None
    assert await store.agents() == ["main"]


async def test_it_leaves_counts_and_chain_as_they_are(store: Store) -> None:
    await talk(store, 9)
    before = await store.counts("main"), await store.audit_head("main"), await store.sessions("main")
    for number in range(150):
        await store.keep_turn_memory(CHAT, memory(epoch=str(number)))
    assert (await store.counts("main"), await store.audit_head("main"), await store.sessions("main")) == before
    assert await no_faults(store)


async def test_it_is_all_there_after_opening_again(open_store: OpenStore) -> None:
    kept = [memory(str(number), epoch=str(number), at=NOON + number * HOUR) for number in range(3)]
    store = open_store()
    for each in kept:
        await store.keep_turn_memory(CHAT, each)
    await store.keep_turn_memory(THEIRS, memory("theirs"))
    await store.close()
    again = open_store()
    assert await again.turn_memory(CHAT) == kept[-1]
    assert [await again.turn_memory(CHAT, at=each.at) for each in kept] == kept
    assert await text_of(again, THEIRS) == "theirs"
    await again.keep_turn_memory(CHAT, msgspec.structs.replace(kept[-1], at=NOON + 9 * HOUR))
    assert await again.turn_memory(CHAT) == kept[-1]
    await again.keep_turn_memory(CHAT, memory("news", epoch="9", at=NOON))
    assert await text_of(again) == "news"
    assert await no_faults(again)
    await again.close()


# ── properties ──

keeps = st.tuples(
    st.sampled_from([CHAT, THEIRS, WORK]),
    st.sampled_from(["1", "2"]),
    st.sampled_from(["", "one", "two"]),
    st.integers(min_value=0, max_value=5),
)


@given(st.lists(keeps, max_size=25))
@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
async def test_at_each_time_it_is_the_last_that_was_kept(tmp_path_factory: pytest.TempPathFactory, history) -> None:  # type: ignore[no-untyped-def]
    from tests.contract.conftest import fresh_stores

    for store in fresh_stores(tmp_path_factory):
        kept: dict[Scope, list[TurnMemory]] = {CHAT: [], THEIRS: [], WORK: []}
        for scope, epoch, text, hours in history:
            given = memory(text, epoch=epoch, at=NOON + hours * HOUR)
            await store.keep_turn_memory(scope, given)
            last = kept[scope][-1:]
            if not last or (last[0].epoch, last[0].text) != (epoch, text):
                kept[scope].append(given)
        for scope, memories in kept.items():
            assert await store.turn_memory(scope) == (memories[-1] if memories else None)
            for hours in range(-1, 7):
                at = NOON + hours * HOUR
                until = [each for each in memories if each.at <= at]
                assert await store.turn_memory(scope, at=at) == (until[-1] if until else None)
        await store.close()
