"""A folder comes back as it was sealed, and nothing leads out of it."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import IO, cast

import pytest

from offbook.model.errors import InvalidInput
from offbook.model.keys import Keys
from offbook.model.sealed_folder import seal_folder, unseal_folder
from offbook.model.sealed_stream import SealedWriter
from tests.unit.encrypted_home import encrypted


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return encrypted(tmp_path / "home")


def test_there_and_back(tmp_path: Path, keys: Keys) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "a" / "b").mkdir(parents=True)
    (source / "empty").mkdir()
    (source / "a" / "b" / "file").write_bytes(b"x" * 3_000_000)
    seal_folder(source, tmp_path / "sealed", keys)
    assert (tmp_path / "sealed").stat().st_mode & 0o077 == 0
    target.mkdir()
    unseal_folder(tmp_path / "sealed", target)
    assert {str(path.relative_to(target)) for path in target.rglob("*")} == {"a", "a/b", "a/b/file", "empty"}
    assert (target / "a" / "b" / "file").read_bytes() == b"x" * 3_000_000


@pytest.mark.parametrize("name", ["../out", "/out", "a/../../out", "link"])
def test_what_leads_out_is_refused(tmp_path: Path, keys: Keys, name: str) -> None:
    with (tmp_path / "sealed").open("wb") as file:
        writer = SealedWriter(file, keys)
        with tarfile.open(fileobj=cast("IO[bytes]", writer), mode="w:gz") as archive:
            member = tarfile.TarInfo(name)
            if name == "link":
                member.type, member.linkname = tarfile.SYMTYPE, "/etc"
            archive.addfile(member, io.BytesIO())
        writer.finish()
    (tmp_path / "target").mkdir()
    with pytest.raises(InvalidInput, match="altered"):
        unseal_folder(tmp_path / "sealed", tmp_path / "target")
    assert list((tmp_path / "target").iterdir()) == []
