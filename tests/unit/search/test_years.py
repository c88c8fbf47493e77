"""Which year a date without one is of, in a memory that may have ended long ago."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from offbook.model.types import now
from tests.unit.small_memory import caught_up, small_memory, user


@pytest.mark.parametrize(("silent_days", "is_found"), [(30, False), (400, True)])
async def test_only_after_a_long_silence_a_date_is_of_a_year_before(
    tmp_path: Path, silent_days: int, is_found: bool
) -> None:
    """Of a memory in use, the next day may be meant that it tells of."""
    newest = now() - timedelta(days=silent_days)
    day = newest - timedelta(days=40)
    if not is_found:
        day = day.replace(year=day.year - 1, day=min(day.day, 28))
    async with small_memory(tmp_path) as memory:
        scope = memory.scope("chat")
        await memory.on_message(scope, [user("The valuer came by, in slippers.", ts=day)])
        await memory.on_message(scope, [user("Nothing else for now.", ts=newest)])
        await caught_up(memory)
        found = await memory.recall(scope, f"What happened on {day:%d %B}?", explain=True)
    assert found.explained is not None
    assert found.explained.times
    told = [entry.text for entry in found.entries if "valuer" in entry.text]
    assert bool(told) == is_found
