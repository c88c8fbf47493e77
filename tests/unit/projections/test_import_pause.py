"""An agent whose memory is being imported is left alone: until it is all there, or nobody comes back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.log.sqlite.store import SqliteStore
from offbook.model.types import now
from offbook.projections.import_pause import HOLD_SECONDS, NOTE, ImportPause, seconds_left

NOON = datetime(2026, 5, 10, 12, 0, tzinfo=UTC)


async def test_it_holds_also_after_a_stop_until_it_is_let_go(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "offbook.db")
    await ImportPause(store).hold("main")
    await store.close()
    store = SqliteStore(tmp_path / "offbook.db")
    try:
        holding = ImportPause(store)
        assert HOLD_SECONDS - 60 < await holding.seconds("main") <= HOLD_SECONDS
        assert await holding.seconds("other") == 0
        await holding.release("main")
        assert await holding.seconds("main") == 0
    finally:
        await store.close()


async def test_it_ends_by_itself(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "offbook.db")
    try:
        await store.set_agent_note("main", NOTE, (now() - timedelta(seconds=1)).isoformat(), None)
        assert await ImportPause(store).seconds("main") == 0
    finally:
        await store.close()


@given(jump_seconds=st.floats(-1e9, 1e9))
def test_a_clock_that_jumps_makes_no_longer_hold(jump_seconds: float) -> None:
    until = (NOON + timedelta(seconds=HOLD_SECONDS)).isoformat()
    assert 0 <= seconds_left(until, NOON + timedelta(seconds=jump_seconds)) <= HOLD_SECONDS


@pytest.mark.parametrize("note", ["", "x", "2026-05-10T12:00:00", "9999"])
def test_a_note_that_is_no_time_holds_nobody(note: str) -> None:
    assert seconds_left(note, NOON) == 0
