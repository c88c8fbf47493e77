"""A log that is gone, shorter than it was or another one is not gone on with as if nothing had been."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from offbook.api.doctor.folder import check_log
from offbook.api.embedded import open_memory
from offbook.log.sql.head import head_path, read_head
from offbook.model.errors import LogLost, StoreFull
from offbook.model.home import Home
from tests.unit.small_memory import small_memory, user


async def told(folder: Path, *texts: str) -> None:
    async with small_memory(folder) as memory:
        for text in texts:
            await memory.on_message(memory.scope("chat"), [user(text)])


async def texts_in(folder: Path) -> list[object]:
    async with small_memory(folder) as memory:
        return [line.message.content for line in (await memory.log(memory.scope("chat"))).messages]


def removed(home: Home) -> None:
    home.database.unlink()


def emptied(home: Home) -> None:
    home.database.write_bytes(b"")


@pytest.mark.parametrize("lose", [removed, emptied])
async def test_a_log_that_is_gone_is_not_begun_anew(tmp_path: Path, lose: Callable[[Home], None]) -> None:
    home = Home(tmp_path)
    await told(tmp_path, "The gate code is 4711.")
    lose(home)
    with pytest.raises(LogLost, match=r"missing or empty.*offbook restore"):
        await told(tmp_path, "Hello?")
    (finding,) = check_log(home)
    assert finding.level == "fail"
    assert not home.database.exists() or home.database.stat().st_size == 0


async def test_what_is_left_of_a_log_of_an_older_version_says_so_too(tmp_path: Path) -> None:
    home = Home(tmp_path)
    await told(tmp_path, "A long one: " + "x" * 300_000)
    head_path(home.database).unlink()
    removed(home)
    with pytest.raises(LogLost, match=r"blobs.*still there.*OFFBOOK_HOME"):
        await told(tmp_path, "Hello?")


async def test_a_log_that_lost_its_newest_part_is_refused_until_somebody_says_so(tmp_path: Path) -> None:
    home = Home(tmp_path)
    await told(tmp_path, "first")
    shutil.copy(home.database, tmp_path / "older.db")
    await told(tmp_path, "second", "third")
    (tmp_path / "older.db").replace(home.database)
    with pytest.raises(LogLost, match=r"lost its newest part \(2 of \d+ events\)"):
        await told(tmp_path, "fourth")
    assert "newest part" in check_log(home)[0].what
    head_path(home.database).unlink()  # as the message says
    assert await texts_in(tmp_path) == ["first"]
    assert check_log(home) == []


async def test_another_log_is_refused(tmp_path: Path) -> None:
    await told(tmp_path / "one", "mine")
    await told(tmp_path / "other", "not mine", "nor this")
    shutil.copy(tmp_path / "other" / "offbook.db", tmp_path / "one" / "offbook.db")
    with pytest.raises(LogLost, match="another log"):
        await told(tmp_path / "one", "Hello?")


async def test_a_folder_without_a_head_is_gone_on_with(tmp_path: Path) -> None:
    """As one of the version before."""
    home = Home(tmp_path)
    await told(tmp_path, "first")
    head_path(home.database).unlink()
    assert await texts_in(tmp_path) == ["first"]
    assert read_head(home.database) is not None


async def test_what_was_rolled_back_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path)
    async with small_memory(tmp_path) as memory:
        await memory.on_message(memory.scope("chat"), [user("first")])
        before = read_head(home.database)
        ledger = memory._store._write()._ledger  # type: ignore[attr-defined]

        def full() -> None:
            raise StoreFull("no room")

        with monkeypatch.context() as patched:
            patched.setattr(ledger, "flush", full)
            with pytest.raises(StoreFull):
                await memory.on_message(memory.scope("chat"), [user("second")])
        assert read_head(home.database) == before
    assert await texts_in(tmp_path) == ["first"]


async def test_the_head_is_private_and_holds_no_words(tmp_path: Path) -> None:
    async with open_memory(tmp_path) as memory:
        await memory.on_message(memory.scope("chat"), [user("The gate code is 4711.")])
    path = head_path(Home(tmp_path).database)
    assert path.stat().st_mode & 0o077 == 0
    assert len(path.read_bytes()) == 16 + 1 + 20 + 1
