"""What is kept in memory of the store is what was written last, whatever is read meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from offbook.log.sql import read_cache
from offbook.log.sql.read_cache import ReadCache


class Row:
    """Read slowly: `begin` says that it was looked at, `end` lets the answer through."""

    def __init__(self, value: object) -> None:
        self.value = value
        self.reads = 0
        self.begun, self.end = asyncio.Event(), asyncio.Event()
        self.end.set()

    async def read(self) -> object:
        self.reads += 1
        value = self.value
        self.begun.set()
        await self.end.wait()
        return value


async def test_it_is_read_once_of_each_version() -> None:
    cache, row = ReadCache(), Row("one")
    assert [await cache.get("main", "note", (1,), row.read) for _ in range(3)] == ["one"] * 3
    row.value = "two"
    assert await cache.get("main", "note", (1,), row.read) == "one"
    assert await cache.get("main", "note", (2,), row.read) == "two"
    assert row.reads == 2


async def test_what_was_written_is_not_read_again() -> None:
    cache, row = ReadCache(), Row("one")
    cache.put("main", "note", (1,), "nobody asked for it yet")
    assert await cache.get("main", "note", (1,), row.read) == "one"
    cache.put("main", "note", (2,), None)
    assert await cache.get("main", "note", (2,), row.read) is None
    assert row.reads == 1
    assert await cache.get("other", "note", (1,), row.read) == "one"


async def test_what_was_read_before_something_was_written_does_not_take_its_place() -> None:
    cache, row = ReadCache(), Row("before")
    row.end.clear()
    reading = asyncio.create_task(cache.get("main", "note", (1,), row.read))
    await row.begun.wait()
    row.value = "after"
    cache.put("main", "note", (1,), "after")
    row.end.set()
    await reading
    assert await cache.get("main", "note", (1,), row.read) == "after"


async def test_what_was_read_before_something_was_forgotten_is_not_kept() -> None:
    cache, row = ReadCache(), Row("secret")
    await cache.get("main", "other note", (1,), row.read)
    row.end.clear()
    reading = asyncio.create_task(cache.get("main", "note", (1,), row.read))
    await asyncio.sleep(0)
    cache.let_go("main")
    row.end.set()
    await reading
    assert not cache._entries


async def test_no_more_is_kept_than_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_cache, "MOST_BYTES", 10_000)
    cache = ReadCache()
    for number in range(100):
        for value in ("x" * 3_000, "x" * 100, [1, 2, 3], None):
            row = Row(value)
            await cache.get("main", number % 7, (number,), row.read)
            cache.put("main", number % 5, (number,), value)
        assert cache._size == sum(one.size for one in cache._entries.values()) <= 10_000
    cache.let_go("main")
    assert (cache._size, len(cache._entries)) == (0, 0)
