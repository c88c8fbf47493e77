from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from offbook.client.history.files import DATABASE, ZIP, kind_of_file, no_text
from tests.unit.contrib.importers.reading_files import write_zip


@pytest.mark.parametrize(
    "text", ["", "{}", '{"a": "\0"}', "[\0", "\ufeff{}", "记住 🦉", "P", "SQLite format 3 is fine"]
)
def test_a_text_is_a_text(text: str) -> None:
    assert no_text(text.encode()) is None


@pytest.mark.parametrize("data", ["x".encode("utf-16"), b"\x1f\x8b\x08", b"%PDF-1.7", b"\x89PNG\r\n\x1a\n\0\0"])
def test_anything_else_is_named(data: bytes) -> None:
    assert no_text(data)


def test_files_are_known_by_what_is_in_them(tmp_path: Path) -> None:
    apsw.Connection(str(tmp_path / "x.jsonl")).execute("CREATE TABLE t (a)")
    assert kind_of_file(tmp_path / "x.jsonl") == DATABASE
    assert kind_of_file(write_zip(tmp_path / "y.json", {"a": "b"})) == ZIP
    assert kind_of_file(write_zip(tmp_path / "empty.zip", {})) == ZIP
    assert kind_of_file(tmp_path / "nowhere") is None
    assert kind_of_file(tmp_path) is None
