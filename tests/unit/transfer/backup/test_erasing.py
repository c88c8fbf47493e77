"""Taking something out of a backup."""

from __future__ import annotations

import asyncio
from pathlib import Path

import apsw
import pytest

from offbook.model.home import Home
from offbook.transfer.backup import BackupDamaged, check_archive, erase_in_backup, read_manifest, restore, write_backup
from tests.unit.transfer.backup.conftest import LARGE, erase_derived


@pytest.fixture
async def archive(home: Home, tmp_path: Path) -> Path:
    await write_backup(home, tmp_path / "made.tar.gz")
    return tmp_path / "made.tar.gz"


async def nothing(database: Path, blobs: Path) -> int:
    return 0


async def the_large_part(database: Path, blobs: Path) -> int:
    """As a store would: the words leave the row, and the file goes. In write-ahead mode, not checkpointed."""
    connection = apsw.Connection(str(database))
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("UPDATE messages SET content = '\"\"', blobs = NULL, erased = 1 WHERE blobs IS NOT NULL")
    connection.execute("UPDATE messages SET content = '\"gone\"' WHERE content LIKE '%大象%'")
    erase_derived(connection)
    connection.close()
    files = [path for path in blobs.rglob("*") if path.is_file()]
    for path in files:
        path.unlink()
    return len(files)


def everything_in(archive: Path, folder: Path) -> bytes:
    check_archive(archive, into=folder)
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


async def test_what_was_erased_is_nowhere_in_it(archive: Path, tmp_path: Path) -> None:
    before = read_manifest(archive)
    assert "大象".encode() in everything_in(archive, tmp_path / "before")
    assert await erase_in_backup(archive, the_large_part) is True
    after = check_archive(archive)
    assert len(before.files) == 2
    assert [file.name for file in after.files] == ["offbook.db"]
    assert after.missing == []
    assert (after.created_at, after.agents) == (before.created_at, before.agents)
    held = everything_in(archive, tmp_path / "after")
    assert LARGE[:100].encode() not in held
    assert "大象".encode() not in held
    assert b"hello" in held
    assert archive.stat().st_mode & 0o077 == 0
    assert [path.name for path in tmp_path.glob(".offbook*")] == []


async def test_behind_a_link_it_is_the_file_that_changes(archive: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.tar.gz"
    link.symlink_to(archive)
    assert await erase_in_backup(link, the_large_part) is True
    assert link.is_symlink()
    assert "大象".encode() not in everything_in(archive, tmp_path / "after")


async def test_where_nothing_was_erased_it_is_untouched(archive: Path) -> None:
    before, status = archive.read_bytes(), archive.stat()
    assert await erase_in_backup(archive, nothing) is False
    assert archive.read_bytes() == before
    assert (archive.stat().st_ino, archive.stat().st_mtime_ns) == (status.st_ino, status.st_mtime_ns)


async def test_whatever_goes_wrong_leaves_it_as_it_was(archive: Path, tmp_path: Path) -> None:
    before = archive.read_bytes()

    async def fails(database: Path, blobs: Path) -> int:
        await the_large_part(database, blobs)
        raise ValueError("no")

    async def destroys(database: Path, blobs: Path) -> int:
        database.write_bytes(b"not a database at all" * 1000)
        return 1

    with pytest.raises(ValueError, match="no"):
        await erase_in_backup(archive, fails)
    with pytest.raises(Exception, match="cannot be packed again"):
        await erase_in_backup(archive, destroys)
    began = asyncio.Event()

    async def waits(database: Path, blobs: Path) -> int:
        began.set()
        await asyncio.sleep(60)
        return 1

    task = asyncio.create_task(erase_in_backup(archive, waits))
    await began.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert archive.read_bytes() == before
    assert [path.name for path in tmp_path.glob(".offbook*")] == []


async def test_a_damaged_one_is_refused(archive: Path) -> None:
    data = archive.read_bytes()
    archive.write_bytes(data[: len(data) // 2])
    with pytest.raises(BackupDamaged):
        await erase_in_backup(archive, the_large_part)


async def test_it_can_be_restored(archive: Path, tmp_path: Path) -> None:
    assert await erase_in_backup(archive, the_large_part)
    restored = await restore(archive, Home(tmp_path / "again"))
    assert restored.manifest.messages == 4
