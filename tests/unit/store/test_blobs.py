from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from offbook.errors import StoreCorrupt, StoreError
from offbook.store.blobs import BlobFiles


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
