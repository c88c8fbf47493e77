"""What is kept in memory of the store is what was written last, whatever is read meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from offbook.log.sql import kept_reads
from offbook.log.sql.kept_reads import KeptReads


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
    kept, row = KeptReads(), Row("one")
    assert [await kept.get("main", "note", (1,), row.read) for _ in range(3)] == ["one"] * 3
    row.value = "two"
    assert await kept.get("main", "note", (1,), row.read) == "one"
    assert await kept.get("main", "note", (2,), row.read) == "two"
    assert row.reads == 2


async def test_what_was_written_is_not_read_again() -> None:
    kept, row = KeptReads(), Row("one")
    kept.written("main", "note", (1,), "nobody asked for it yet")
    assert await kept.get("main", "note", (1,), row.read) == "one"
    kept.written("main", "note", (2,), None)
    assert await kept.get("main", "note", (2,), row.read) is None
    assert row.reads == 1
    assert await kept.get("other", "note", (1,), row.read) == "one"


async def test_what_was_read_before_something_was_written_does_not_take_its_place() -> None:
    kept, row = KeptReads(), Row("before")
    row.end.clear()
    reading = asyncio.create_task(kept.get("main", "note", (1,), row.read))
    await row.begun.wait()
    row.value = "after"
    kept.written("main", "note", (1,), "after")
    row.end.set()
    await reading
    assert await kept.get("main", "note", (1,), row.read) == "after"


async def test_what_was_read_before_something_was_forgotten_is_not_kept() -> None:
    kept, row = KeptReads(), Row("secret")
    await kept.get("main", "other note", (1,), row.read)
    row.end.clear()
    reading = asyncio.create_task(kept.get("main", "note", (1,), row.read))
    await asyncio.sleep(0)
    kept.let_go("main")
    row.end.set()
    await reading
    assert not kept._kept


async def test_no_more_is_kept_than_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_reads, "MOST_BYTES", 10_000)
    kept = KeptReads()
    for number in range(100):
        for value in ("x" * 3_000, "x" * 100, [1, 2, 3], None):
            row = Row(value)
            await kept.get("main", number % 7, (number,), row.read)
            kept.written("main", number % 5, (number,), value)
        assert kept._size == sum(one.size for one in kept._kept.values()) <= 10_000
    kept.let_go("main")
    assert (kept._size, len(kept._kept)) == (0, 0)
