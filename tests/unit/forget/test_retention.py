"""What a person wrote into the wiki by hand and nobody has taken yet is forgotten with the rest; and what goes by rule."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from offbook.api.embedded import open_parts
from offbook.api.memory import Memory
from offbook.forget import retention as forgets
from offbook.log.sql import ledger
from offbook.log.sqlite.store import SqliteStore
from offbook.model.errors import StoreError
from offbook.model.home import Home
from offbook.model.receipt import FORGOTTEN_TEXT
from offbook.model.settings import Settings
from offbook.model.settings.sections import Archive
from offbook.projections.base import Batch
from tests.unit.forget.test_forgetting import files_with
from tests.unit.small_memory import SMALL, caught_up, user

SECRET = "Geheimweg 77"

Parts = tuple[Memory, SqliteStore]


def retention_of(memory: Memory) -> forgets.Retention:
    return forgets.Retention(memory._store, memory._background.forgetting, memory._background._settings)


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Parts]:
    settings = msgspec.structs.replace(Settings(), **SMALL)
    async with open_parts(Home(tmp_path), settings) as opened:
        yield opened


async def edited_by_hand(memory: Memory, folder: Path) -> Path:
    await memory.on_message(memory.scope("chat"), [user("Our staging server Otto runs in Bern.")])
    await caught_up(memory)
    await memory.maintain("main", tasks=["lessons", "wiki"])
    (page,) = folder.glob("wiki/*/lessons/lesson-0001.md")
    text = page.read_text()
    page.write_text(text.replace("runs in Bern.", f"runs in Bern, {SECRET} upstairs."))
    assert page.read_text() != text
    await memory.on_message(memory.scope("other"), [user(f"The parcel goes to {SECRET}, please.")])
    await caught_up(memory)
    return page


async def test_an_edit_by_hand_is_taken_before_and_goes_with_the_rest(parts: Parts, tmp_path: Path) -> None:
    memory, store = parts
    await edited_by_hand(memory, tmp_path)
    would = await memory.forget("main", matching=SECRET, dry_run=True)
    assert (would.reached.messages, would.reached.lessons) == (2, 1)
    receipt = await memory.forget("main", matching=SECRET)
    assert receipt.residue == []
    assert (receipt.reached.messages, receipt.reached.lessons) == (2, 1)
    report = await memory.maintain("main")
    assert "edits taken" not in {name for run in report.runs for name in run.did}
    assert files_with(tmp_path, "Geheimweg") == []
    (lesson,) = await store.lessons("main")
    assert (lesson.id, lesson.status, lesson.text) == (
        "lesson-0001",
        "accepted",
        "Our staging server Otto runs in Bern.",
    )


async def test_without_a_dry_run_before_it_too(parts: Parts, tmp_path: Path) -> None:
    memory, _ = parts
    await edited_by_hand(memory, tmp_path)
    assert (await memory.forget("main", matching=SECRET)).residue == []
    assert files_with(tmp_path, "Geheimweg") == []


async def test_a_page_nobody_understands_keeps_nothing_from_being_forgotten(parts: Parts, tmp_path: Path) -> None:
    memory, _ = parts
    page = await edited_by_hand(memory, tmp_path)
    page.write_text(f"<<<<<<< mine\n{SECRET} upstairs\n")
    receipt = await memory.forget("main", matching=SECRET)
    assert receipt.reached.messages == 1
    assert [one.where for one in receipt.residue] == [page.relative_to(tmp_path).as_posix()]


async def test_edits_that_cannot_be_taken_keep_nothing_from_being_forgotten(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, _ = parts
    await edited_by_hand(memory, tmp_path)

    async def full(_agent_id: str) -> None:
        raise StoreError("the disk is full: make room")

    monkeypatch.setattr(memory._background.forgetting, "_take_edits", full)
    receipt = await memory.forget("main", matching=SECRET)
    assert receipt.reached.messages == 1
    assert receipt.residue


# ── by rule ──

DAY = timedelta(days=1)


class Wall:
    """What the clock on the wall says, to whoever asks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at = datetime(2026, 1, 1, 12, tzinfo=UTC)
        for module in (forgets, ledger):
            monkeypatch.setattr(module, "now", lambda: self.at)


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> Wall:
    return Wall(monkeypatch)


@pytest.fixture
async def ruled(wall: Wall, tmp_path: Path) -> AsyncIterator[Memory]:
    """Of an agent that keeps for a year, and was looked at for the first time."""
    settings = msgspec.structs.replace(Settings(), **SMALL, archive=Archive(retention_days=365))
    async with open_parts(Home(tmp_path), settings) as (memory, _):
        await say(memory, "It was said on the first day.")
        assert await forgotten(memory) == {}
        yield memory


async def say(memory: Memory, text: str, **fields: Any) -> None:
    await memory.on_message(memory.scope("chat"), [user(text, **fields)])


async def forgotten(memory: Memory) -> dict[str, int]:
    return (await retention_of(memory).run(Batch("main"))).did


async def left(memory: Memory) -> list[object]:
    log = await memory.log(memory.scope("chat"))
    return [line.message.content for line in log.messages if line.message.content != FORGOTTEN_TEXT]


async def test_by_rule_goes_what_is_too_old(ruled: Memory, wall: Wall) -> None:
    for days in range(4, 365, 4):  # it is off for four days each time
        wall.at += 4 * DAY
        if days % 100 == 0:
            await say(ruled, f"It was said on day {days}.")
        assert await forgotten(ruled) == {}
    wall.at += 2 * DAY
    assert await forgotten(ruled) == {"forgotten": 1}
    assert await left(ruled) == [f"It was said on day {days}." for days in (100, 200, 300)]


async def test_a_clock_that_leaps_far_forgets_nothing_and_is_told(ruled: Memory, wall: Wall) -> None:
    wall.at += DAY
    await say(ruled, "It was said just now.")
    wall.at += 400 * DAY
    await say(ruled, "It was said by the wrong clock.")
    told = await ruled.maintain("main", tasks=["retention"])
    assert "Set it right" in str(told.runs[0].error)
    assert "2027-02-06 12:00 UTC" in str(told.runs[0].error)
    assert len(await left(ruled)) == 3
    wall.at -= 400 * DAY
    for _ in range(3):  # set right: what was said yesterday vouches for it
        wall.at += DAY
        assert await forgotten(ruled) == {}
    assert len(await left(ruled)) == 3


@pytest.mark.parametrize("is_silent", [True, False])
async def test_after_months_without_it_goes_on_by_itself_a_day_later(
    ruled: Memory, wall: Wall, is_silent: bool
) -> None:
    wall.at += 400 * DAY
    if not is_silent:
        await say(ruled, "We are back.")
    for seconds in (0, 5, 30):
        wall.at += timedelta(seconds=seconds)
        with pytest.raises(StoreError, match="the machine was off for so long, there is nothing to do"):
            await forgotten(ruled)
    wall.at += DAY
    assert await forgotten(ruled) == {"forgotten": 1}
    assert await left(ruled) == ([] if is_silent else ["We are back."])


async def test_where_it_runs_for_an_hour_a_week_it_forgets_a_week_late(ruled: Memory, wall: Wall) -> None:
    for week in range(1, 53):
        wall.at += 7 * DAY
        await say(ruled, f"It was said in week {week}.")
        assert await forgotten(ruled) == {}
        wall.at += timedelta(hours=1)
        assert await forgotten(ruled) == {}
    wall.at += 7 * DAY  # after 53 weeks; the last look was after 52, which is 364 days and some hours
    assert await forgotten(ruled) == {"forgotten": 1}
    assert len(await left(ruled)) == 52


async def test_what_came_by_a_clock_that_was_set_back_is_not_old(ruled: Memory, wall: Wall) -> None:
    wall.at += DAY
    right = wall.at
    wall.at = datetime(2020, 1, 1, tzinfo=UTC)
    await say(ruled, "It was said when the battery was empty.")
    wall.at = right
    for _ in range(4):
        wall.at += DAY
        with suppress(StoreError):
            assert await forgotten(ruled) == {}
    assert len(await left(ruled)) == 2


async def test_what_comes_after_a_clock_that_was_ahead_is_not_kept_for_longer(ruled: Memory, wall: Wall) -> None:
    wall.at += 9_999 * DAY
    await say(ruled, "It was said by the wrong clock.")
    wall.at -= 9_998 * DAY
    await say(ruled, "It was said by the right one.", ts=wall.at + 9_999 * DAY)
    for _ in range(3):
        wall.at += 370 * DAY
        with suppress(StoreError):
            await forgotten(ruled)
        wall.at += DAY
        await forgotten(ruled)
    assert await left(ruled) == ["It was said by the wrong clock."]


async def test_a_note_that_cannot_be_read_is_none(ruled: Memory, wall: Wall) -> None:
    store = ruled._store
    await store.set_agent_note("main", forgets.CLOCK, "{", None)
    assert await forgotten(ruled) == {}
    assert str(wall.at.year) in str(await store.agent_note("main", forgets.CLOCK))
