"""Large work leaves the event loop's thread, and each owner has one piece of it done at a time."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from offbook.ingest import entries as ingest
from offbook.ingest.entries import is_heavy
from offbook.ingest.fair_threads import LARGE_BYTES, THREADS, FairThreads
from offbook.model.types import Message, Scope
from tests.unit.small_memory import small_memory, user


async def test_one_owners_hundred_do_not_come_before_anothers_one() -> None:
    threads = FairThreads("test")
    done: list[str] = []
    begun, go_on = threading.Semaphore(0), threading.Event()

    def held() -> None:
        begun.release()
        go_on.wait()

    blocking = [asyncio.create_task(threads.run(f"{number}", held)) for number in range(THREADS)]
    for _ in blocking:
        await asyncio.to_thread(begun.acquire)
    of_one = [asyncio.create_task(threads.run("one", lambda: done.append("one"))) for _ in range(100)]
    await asyncio.sleep(0)
    other = asyncio.create_task(threads.run("other", lambda: done.append("other")))
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(*blocking, *of_one, other)
    assert done.index("other") <= 2
    assert len(done) == 101


async def test_those_of_one_owner_keep_their_order() -> None:
    threads = FairThreads("test")
    done: list[int] = []
    await asyncio.gather(*[threads.run("one", lambda number=number: done.append(number)) for number in range(50)])  # type: ignore[misc]
    assert done == list(range(50))


async def test_who_is_cancelled_leaves_the_turn_to_the_next_when_the_thread_is_done() -> None:
    threads = FairThreads("test")
    begun, go_on = threading.Event(), threading.Event()
    done: list[str] = []

    def work() -> None:
        begun.set()
        go_on.wait()
        done.append("first")

    first = asyncio.create_task(threads.run("one", work))
    await asyncio.to_thread(begun.wait)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    second = asyncio.create_task(threads.run("one", lambda: done.append("second")))
    await asyncio.sleep(0)
    go_on.set()
    await second
    assert done == ["first", "second"]


async def test_what_goes_wrong_is_told_and_the_next_has_its_turn() -> None:
    threads = FairThreads("test")
    with pytest.raises(ZeroDivisionError):
        await threads.run("one", lambda: 1 // 0)
    assert await threads.run("one", lambda: 1) == 1


@pytest.mark.parametrize(
    ("messages", "is_large"),
    [
        ([user("a" * (LARGE_BYTES - 1))], False),
        ([user("a" * LARGE_BYTES)], True),
        ([user("a" * (LARGE_BYTES // 4))] * 4, True),
        ([user("我" * (LARGE_BYTES // 3 + 1))], True),
        ([user("", meta={"kept": "a" * LARGE_BYTES})], True),
        ([Message(role="tool", content=[{"type": "tool-result", "content": [1] * LARGE_BYTES}])], True),
        ([user("short")] * 51, True),
        ([user("short")] * 50, False),
    ],
)
def test_how_large_messages_are(messages: list[Message], is_large: bool) -> None:
    assert is_heavy(messages) is is_large


async def test_from_64_kb_on_messages_are_prepared_in_another_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[int, int] = {}
    prepare = ingest.prepare

    def noting(message: Message, **given: Any) -> ingest.Prepared:
        seen[len(message.content)] = threading.get_ident()
        return prepare(message, **given)

    monkeypatch.setattr(ingest, "prepare", noting)
    async with small_memory(tmp_path) as memory:
        for chars in (LARGE_BYTES - 1, LARGE_BYTES):
            await memory.on_message(memory.scope("chat"), [user("a" * chars)])
    assert seen[LARGE_BYTES - 1] == threading.get_ident() != seen[LARGE_BYTES]


async def test_a_small_message_stays_behind_the_large_one_before_it_and_those_of_others_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    prepare = ingest.prepare

    def waiting(message: Message, **given: Any) -> ingest.Prepared:
        if len(message.content) >= LARGE_BYTES:
            begun.set()
            go_on.wait()
        return prepare(message, **given)

    monkeypatch.setattr(ingest, "prepare", waiting)
    async with small_memory(tmp_path) as memory:
        mine, others = Scope(agent_id="ada", session_id="chat"), Scope(agent_id="bob", session_id="chat")
        large = asyncio.create_task(memory.on_message(mine, [user("a" * LARGE_BYTES)]))
        await asyncio.to_thread(begun.wait)
        small = asyncio.create_task(memory.on_message(mine, [user("And then?")]))
        assert (await memory.on_message(others, [user("Good morning to you.")])).accepted == 1
        assert not large.done()
        assert not small.done()
        go_on.set()
        assert [(await large).last_seq, (await small).last_seq] == [1, 2]
