from __future__ import annotations

import os
from pathlib import Path

import pytest

from offbook.client.history.files import digest_of
from offbook.contrib.importers import markdown
from tests.unit.contrib.importers.reading_files import read, texts

NOON_ON_A_DAY = 1_767_268_800


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    os.utime(path, (NOON_ON_A_DAY, NOON_ON_A_DAY))
    return path


def test_a_file_of_notes(tmp_path: Path) -> None:
    found = read("markdown", write(tmp_path / "MEMORY.md", "# Ann\n\n- likes tea\n\nA\nparagraph\n"))
    assert list(found.sessions) == ["markdown:MEMORY.md"]
    assert texts(found.only) == ["Ann: likes tea", "Ann:\nA\nparagraph"]
    assert {(each["role"], each["origin"]) for each in found.only} == {("user", "memory:markdown")}
    assert [each["meta"] for each in found.only] == [
        {"file": "MEMORY.md", "headings": ["Ann"], "line": 3, "title": "Ann"},
        {"file": "MEMORY.md", "headings": ["Ann"], "line": 5},
    ]
    assert {each["ts"] for each in found.only} == {"2026-01-01T12:00:00.000Z"}


def test_after_an_edit_only_what_is_new_is_new(tmp_path: Path) -> None:
    path = write(tmp_path / "MEMORY.md", "# Ann\n- one\n- two\n- one\n")
    before = [each["id"] for each in read("markdown", path).only]
    write(path, "# Ann\n- zero\n- two\n- one\n")
    after = [each["id"] for each in read("markdown", path).only]
    assert len(before) == 2
    assert after[1:] == [before[1], before[0]]
    assert after[0] not in before


def test_days_in_the_name_and_in_headings_date_the_notes(tmp_path: Path) -> None:
    found = read("markdown", write(tmp_path / "2026-05-10.md", "a\n\n## 2026-05-11 evening\nb\n## 2026-99-99\nc"))
    assert [each["ts"][:16] for each in found.only] == ["2026-05-10T12:00", "2026-05-11T12:00", "2026-05-10T12:00"]


def test_a_folder_is_read_in_the_order_of_its_names(tmp_path: Path) -> None:
    write(tmp_path / "b.md", "b")
    write(tmp_path / "a" / "CON.markdown", "a")
    write(tmp_path / "c 语.MD", "c")
    write(tmp_path / ".git" / "x.md", "hidden")
    write(tmp_path / "node_modules" / "x.md", "code")
    write(tmp_path / "data.txt", "no")
    (tmp_path / "link.md").symlink_to(tmp_path / "b.md")
    (tmp_path / "linked").symlink_to(tmp_path / "a")
    found = read("markdown", tmp_path)
    assert list(found.sessions) == ["markdown:b.md", "markdown:c 语.MD", "markdown:a/CON.markdown"]
    assert found.left_out() == {
        "hidden folders": 1,
        "folders of packages": 1,
        "links": 2,
        "files that are no Markdown": 1,
    }


def test_what_cannot_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "latin.md").write_bytes(b"caf\xe9")
    write(tmp_path / "large.md", "x" * 200)
    write(tmp_path / "fine.md", "fine\x00")
    monkeypatch.setattr(markdown, "LARGEST_BYTES", 100)
    found = read("markdown", tmp_path)
    assert {key: texts(notes) for key, notes in found.sessions.items() if notes} == {"markdown:fine.md": ["fine\x00"]}
    assert [(each.where, each.is_whole) for each in found.damages] == [("large.md", True), ("latin.md", True)]
    assert "save it as UTF-8" in found.damages[1].reason


def test_a_folder_without_notes_says_what_to_give(tmp_path: Path) -> None:
    assert "holds no Markdown" in read("markdown", tmp_path).report.problems[0].reason


def test_five_megabytes_of_one_paragraph(tmp_path: Path) -> None:
    found = read("markdown", write(tmp_path / "long.md", "word " * 1_000_000))
    assert len(found.only[0]["content"]) == 4_999_999


def test_front_matter_and_comments_are_counted_over_all_files(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("---\ntitle: x\n---\n\ntea\n<!-- hidden -->\n")
    (tmp_path / "b.md").write_text("---\ntitle: y\n---\n\nmilk\n")
    found = read("markdown", tmp_path)
    assert found.left_out() == {"front matter": 2, "comments": 1}


def test_what_lies_in_a_hidden_folder_is_read_where_that_is_given(tmp_path: Path) -> None:
    write(tmp_path / ".claude" / "CLAUDE.md", "tea")
    assert read("markdown", tmp_path).left_out() == {"hidden folders": 1}
    assert texts(read("markdown", tmp_path / ".claude").only) == ["tea"]


def test_notes_between_two_rules_are_notes(tmp_path: Path) -> None:
    found = read("markdown", write(tmp_path / "hr.md", "---\n\n# Facts\n- the boat is blue\n\n---\n\n- it is red\n"))
    assert texts(found.only) == ["Facts: the boat is blue", "Facts: it is red"]
    assert found.left_out() == {}


@pytest.mark.parametrize("front", ["title: x", "\ntitle: x", "title:x", "tags: [\na\n]", "no field at all"])
def test_a_note_is_known_by_the_same_id_whatever_stands_between_the_marks(tmp_path: Path, front: str) -> None:
    found = read("markdown", write(tmp_path / "a.md", f"---\n{front}\n---\n\nBody."))
    assert (found.only[-1]["id"], found.only[-1]["content"]) == (digest_of("a.md", "Body."), "Body.")
