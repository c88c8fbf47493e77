"""What a person wrote into the wiki by hand and nobody has taken yet is forgotten with the rest."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from offbook.embedded import open_parts
from offbook.errors import StoreError
from offbook.home import Home
from offbook.memory import Memory
from offbook.settings import Settings
from offbook.store.sqlite import SqliteStore
from tests.unit.small_memory import SMALL, caught_up, user
from tests.unit.worker.forgetting.test_flow import files_with

SECRET = "Geheimweg 77"

Parts = tuple[Memory, SqliteStore]


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Parts]:
    settings = msgspec.structs.replace(Settings(), **SMALL)
    async with open_parts(Home(tmp_path), settings) as opened:
        yield opened


async def edited_by_hand(memory: Memory, folder: Path) -> Path:
    await memory.on_message(memory.scope("chat"), [user("My uncle Otto lives in Bern.")])
    await caught_up(memory)
    await memory.maintain("main", tasks=["lessons", "wiki"])
    (page,) = folder.glob("wiki/*/lessons/lesson-0001.md")
    text = page.read_text()
    page.write_text(text.replace("lives in Bern.", f"lives in Bern, {SECRET} upstairs."))
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
    assert (lesson.id, lesson.status, lesson.text) == ("lesson-0001", "accepted", "Their uncle Otto lives in Bern.")


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

    monkeypatch.setattr(memory._background.caring.forgets, "_take_edits", full)
    receipt = await memory.forget("main", matching=SECRET)
    assert receipt.reached.messages == 1
    assert receipt.residue
