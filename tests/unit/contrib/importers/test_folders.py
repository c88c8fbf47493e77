"""What is under a folder: all of it is looked into, or told of."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from offbook.client.history.conversations import ImportReport
from offbook.client.history.files import files_under
from tests.unit.contrib.importers.foreign_files import claude, claude_message, code_line
from tests.unit.contrib.importers.reading_files import read
from tests.unit.contrib.importers.test_codex import meta
from tests.unit.contrib.importers.test_codex import said as codex_said


@pytest.fixture
def locked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders named `locked` cannot be looked into, not even by root."""
    scandir = os.scandir

    def refusing(path: Any) -> Any:
        if Path(path).name == "locked":
            raise PermissionError(13, "Permission denied", os.fspath(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)


FILES = {
    "markdown": ("a.md", "tea"),
    "claude-code": ("s1.jsonl", json.dumps(code_line("a", "user", "Hello"))),
    "codex": ("rollout-x.jsonl", f"{json.dumps(meta())}\n{json.dumps(codex_said('user', 'Go'))}"),
    "claude": ("conversations.json", json.dumps([claude(claude_message("a", "human", "Q"))])),
}


@pytest.mark.usefixtures("locked")
@pytest.mark.parametrize("form", FILES)
def test_a_folder_that_cannot_be_read_is_told_and_the_rest_is_taken(tmp_path: Path, form: str) -> None:
    name, content = FILES[form]
    for folder in ("locked", "open"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(content)
    found = read(form, tmp_path)
    assert len(found.only) == 1
    assert found.report.unreadable == 1
    assert [(each.where, each.reason) for each in found.report.problems] == [
        (str(tmp_path / "locked"), "cannot be read: Permission denied")
    ]


@pytest.mark.parametrize("form", FILES)
def test_a_folder_that_is_a_link_is_told(tmp_path: Path, form: str) -> None:
    name, content = FILES[form]
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "other").write_text("")
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / name).write_text(content)
    (tmp_path / "here" / "linked").symlink_to(tmp_path / "elsewhere")
    found = read(form, tmp_path / "here")
    assert len(found.only) == 1
    assert found.left_out()["links"] == 1
    assert found.report.unreadable == 0


def test_in_the_order_of_names_without_what_is_left_out(tmp_path: Path) -> None:
    for name in ("b/2", "b/1", "a/1", "c", "left/1"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    report = ImportReport(state="", is_dry_run=True)
    found = files_under(tmp_path, report, lambda name: ("others", "not wanted") if name == "left" else None)
    assert [each.relative_to(tmp_path).as_posix() for each in found] == ["c", "a/1", "b/1", "b/2"]
    assert [(left.what, left.why) for left in report.left_out] == [("others", "not wanted")]
