from __future__ import annotations

import os
from pathlib import Path

import pytest

from offbook.model.home import Home
from offbook.transfer.backup import known_backups, note_backup, rotate, rotation, write_backup
from offbook.transfer.backup.rotation import KNOWN, backups_of


async def test_those_here_and_those_elsewhere_are_known(home: Home, tmp_path: Path) -> None:
    assert known_backups(home) == []
    elsewhere = tmp_path / "大象 ../x.tar.gz".replace("/", "_")
    manifest = await write_backup(home, elsewhere)
    for _ in range(2):
        note_backup(home, elsewhere, manifest)
    here = await rotate(home, 3)
    note_backup(home, Path(here.file), here.manifest)
    by_hand = home.backups / "mine.tar.gz"
    note_backup(home, by_hand, await write_backup(home, by_hand))
    found = known_backups(home)
    assert [(one.path, one.agents, one.is_there) for one in found] == [
        (str(elsewhere), ["main", "second"], True),
        (here.file, ["main", "second"], True),
        (str(by_hand), ["main", "second"], True),
    ]
    elsewhere.unlink()
    assert [one.is_there for one in known_backups(home)] == [False, True, True], (
        "it may lie on a disk that is not attached"
    )
    assert (home.backups / KNOWN).stat().st_mode & 0o077 == 0


async def test_an_agent_is_told_of_those_that_hold_its_memory(home: Home, tmp_path: Path) -> None:
    assert backups_of(home, "main") == ([], 0)
    note_backup(home, tmp_path / "gone.tar.gz", await write_backup(home, tmp_path / "made.tar.gz"))
    here = await rotate(home, 3)
    of_main, unreadable = backups_of(home, "main")
    held = {agent.agent_id: agent.messages for agent in here.manifest.agents}
    assert [(one.file, one.in_data_folder, one.messages) for one in of_main] == [
        (Path(here.file).name, True, held["main"]),
        ("gone.tar.gz", False, None),
    ]
    assert unreadable == 0
    assert backups_of(home, "second")[0][0].messages == held["second"] != held["main"]
    assert backups_of(home, "stranger") == ([], 0)
    Path(here.file).write_bytes(b"no archive")
    of_main, unreadable = backups_of(home, "main")
    assert [one.file for one in of_main] == ["gone.tar.gz"]
    assert unreadable == 1


async def test_what_cannot_be_read_or_written_is_no_error(home: Home, tmp_path: Path) -> None:
    manifest = await write_backup(home, tmp_path / "made.tar.gz")
    home.backups.mkdir()
    for broken in (b"{", b"\xff\xfe", b'[{"path": 1}]', b""):
        (home.backups / KNOWN).write_bytes(broken)
        assert known_backups(home) == []
    note_backup(home, tmp_path / "made.tar.gz", manifest)
    assert len(known_backups(home)) == 1
    note_backup(home, Path(os.fsdecode(bytes(tmp_path) + b"/\xff.tar.gz")), manifest)
    assert len(known_backups(home)) == 2
    (home.backups / KNOWN).unlink()
    home.backups.rmdir()
    home.backups.write_text("a file in its place")
    note_backup(home, tmp_path / "made.tar.gz", manifest)


async def test_the_newest_are_kept_in_mind(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotation, "MOST_KNOWN", 2)
    manifest = await write_backup(home, tmp_path / "made.tar.gz")
    for number in range(5):
        note_backup(home, tmp_path / f"{number}.tar.gz", manifest)
    assert [Path(one.path).name for one in known_backups(home)] == ["3.tar.gz", "4.tar.gz"]
