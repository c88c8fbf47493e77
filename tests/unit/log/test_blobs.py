from __future__ import annotations

import asyncio
import os
import threading
from hashlib import sha256
from pathlib import Path

import pytest

from offbook.log import blobs as module
from offbook.log.blobs import BlobFiles
from offbook.model.errors import StoreCorrupt, StoreError


async def test_what_was_put_comes_back(tmp_path: Path) -> None:
    blobs = BlobFiles(tmp_path / "blobs")
    digest = await blobs.put("main", b"large")
    assert digest == sha256(b"large").hexdigest()
    assert await blobs.put("main", b"large") == digest
    assert await blobs.get("main", digest) == b"large"
    files = [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()]
    assert [path.stat().st_mode & 0o777 for path in files] == [0o600]


async def test_agents_have_rooms_of_their_own(tmp_path: Path) -> None:
    blobs = BlobFiles(tmp_path)
    digest = await blobs.put("../../escape", b"large")
    assert all(path.is_relative_to(tmp_path) for path in tmp_path.rglob("*"))
    with pytest.raises(StoreCorrupt, match="missing"):
        await blobs.get("other", digest)


async def test_damage_is_noticed(tmp_path: Path) -> None:
    blobs = BlobFiles(tmp_path)
    digest = await blobs.put("main", b"large")
    blobs.path_of("main", digest).write_bytes(b"other")
    with pytest.raises(StoreCorrupt, match="does not match"):
        await blobs.get("main", digest)


async def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "blobs").write_text("a file in the way")
    with pytest.raises(StoreError, match="could not be kept"):
        await BlobFiles(tmp_path / "blobs").put("main", b"large")


@pytest.mark.parametrize("damaged", [b"", b"largE", b"large and more"])
async def test_putting_it_again_heals_a_damaged_file(tmp_path: Path, damaged: bytes) -> None:
    blobs = BlobFiles(tmp_path)
    digest = await blobs.put("main", b"large")
    blobs.path_of("main", digest).write_bytes(damaged)
    assert await blobs.put("main", b"large") == digest
    assert await blobs.get("main", digest) == b"large"
    assert len(list(blobs.path_of("main", digest).parent.iterdir())) == 1


async def test_a_whole_file_is_not_written_again(tmp_path: Path) -> None:
    blobs = BlobFiles(tmp_path)
    path = blobs.path_of("main", await blobs.put("main", b"large"))
    before = path.stat().st_ino
    await blobs.put("main", b"large")
    assert path.stat().st_ino == before


async def test_every_folder_is_ours_alone_and_known_to_the_one_above(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    sync = module.sync_folder
    monkeypatch.setattr(module, "sync_folder", lambda folder: (synced.append(folder), sync(folder)))
    blobs = BlobFiles(tmp_path / "home" / "blobs")
    mask = os.umask(0o022)
    try:
        path = blobs.path_of("main", await blobs.put("main", b"large"))
    finally:
        os.umask(mask)
    made = [path.parent, path.parent.parent, blobs.root, blobs.root.parent]
    assert [folder.stat().st_mode & 0o777 for folder in made] == [0o700] * 4
    assert {*made, tmp_path} == set(synced)


async def test_a_second_put_returns_when_the_file_is_durable_whoever_wrote_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one may have died, or be waiting, between the file's name and the sync of its folder."""
    path = BlobFiles(tmp_path / "blobs").path_of("main", await BlobFiles(tmp_path / "blobs").put("main", b"large"))
    synced: list[Path] = []
    monkeypatch.setattr(module, "sync_folder", synced.append)
    flushed: list[int] = []
    monkeypatch.setattr(os, "fsync", flushed.append)
    blobs = BlobFiles(tmp_path / "blobs")
    await blobs.put("main", b"large")
    assert {path.parent, path.parent.parent, blobs.root, tmp_path} == set(synced)
    assert len(flushed) == 1
    synced.clear()
    await blobs.put("main", b"large")
    assert synced == [path.parent]


async def test_what_a_kill_left_unfinished_is_swept(tmp_path: Path) -> None:
    blobs = BlobFiles(tmp_path / "blobs")
    digest = await blobs.put("main", b"large")
    (tmp_path / "blobs" / "unfinished" / "half.tmp").write_bytes(b"lar")
    blobs.sweep()
    assert not list((tmp_path / "blobs" / "unfinished").iterdir())
    assert await blobs.get("main", digest) == b"large"
    BlobFiles(tmp_path / "nowhere").sweep()


async def test_what_is_put_while_it_is_being_removed_is_there_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blobs = BlobFiles(tmp_path)
    digest = await blobs.put("main", b"large")
    removing, may_remove, unlink = threading.Event(), threading.Event(), Path.unlink

    def slow(path: Path, missing_ok: bool = False) -> None:
        removing.set()
        may_remove.wait(60)
        unlink(path, missing_ok=missing_ok)

    async def nobody() -> set[str]:
        return set()

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", slow)
        dropping = asyncio.create_task(blobs.drop("main", [digest], nobody))
        await asyncio.to_thread(removing.wait, 60)
        with blobs.holding("main", [digest]):  # waits for nothing
            putting = asyncio.create_task(blobs.put("main", b"large"))
            await asyncio.wait([putting], timeout=0.1)
            may_remove.set()
            await asyncio.gather(putting, dropping)
    assert await blobs.get("main", digest) == b"large"


async def test_a_put_that_nobody_waits_for_any_more_is_not_dropped_beneath(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else what it writes would lie there for good."""
    blobs = BlobFiles(tmp_path)
    writing, may_write, write = threading.Event(), threading.Event(), module._write_synced

    def slow(path: Path, data: bytes) -> None:
        writing.set()
        may_write.wait(60)
        write(path, data)

    async def nobody() -> set[str]:
        return set()

    monkeypatch.setattr(module, "_write_synced", slow)
    putting = asyncio.create_task(blobs.put("main", b"large"))
    await asyncio.to_thread(writing.wait, 60)
    putting.cancel()
    await asyncio.wait([putting])
    digest = sha256(b"large").hexdigest()
    assert await blobs.drop("main", [digest], nobody) == [digest]
    may_write.set()
    async with asyncio.timeout(60):
        while await blobs.drop("main", [digest], nobody):
            await asyncio.sleep(0.01)
    assert not blobs.path_of("main", digest).exists()
