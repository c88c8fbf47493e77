from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from offbook.client.history.conversations import ImportReport
from offbook.contrib.importers import documents
from offbook.contrib.importers.documents import FoundElements
from tests.unit.contrib.importers.reading_files import write_zip


def found(path: Path, told: ImportReport) -> FoundElements:
    return documents.find_elements(path, told, give="give the export")


def report() -> ImportReport:
    return ImportReport(state="x", is_dry_run=True)


def test_a_zip_bomb_is_not_read(tmp_path: Path) -> None:
    told = report()
    blanks = b"[" + b" " * (documents.SMALL_BYTES + 1) + b"1]"
    assert found(write_zip(tmp_path / "bomb.zip", {"conversations.json": blanks}), told).elements == []
    assert told.unreadable == 1
    assert "unpack it" in told.problems[0].reason


def test_what_is_too_large_together_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "LARGEST_BYTES", 10)
    told = report()
    both = {"a/conversations.json": "[1,2]", "b/conversations.json": "[1,2,3]"}
    elements = found(write_zip(tmp_path / "two.zip", both), told).elements
    assert [each.where for each in elements] == ["a/conversations.json #1", "a/conversations.json #2"]
    assert "one by one" in told.problems[0].reason


def test_a_member_with_a_path_that_leads_out_is_only_read(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    path = write_zip(tmp_path / "in" / "x.zip", {"../../conversations.json": "[1]"})
    assert len(found(path, report()).elements) == 1
    assert sorted(each.name for each in tmp_path.rglob("*")) == ["in", "x.zip"]


def test_a_broken_zip_is_told(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "x.zip", {"conversations.json": "[" + "1," * 5_000 + "1]"})
    data = bytearray(path.read_bytes())
    data[40:60] = b"\xff" * 20
    path.write_bytes(bytes(data))
    told = report()
    assert found(path, told).elements == []
    assert told.unreadable == 1


def test_a_zip_that_needs_a_password_is_told(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "x.zip", {"conversations.json": "[1]"})
    data = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        at = archive.infolist()[0].header_offset
    central = data.index(b"PK\x01\x02")
    locked = bytearray(data)
    locked[at + 6] |= 1
    locked[central + 8] |= 1
    path.write_bytes(bytes(locked))
    told = report()
    assert found(path, told).elements == []
    assert "password" in told.problems[0].reason
