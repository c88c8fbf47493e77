"""Folders in which a backup is worked on: kept while somebody does, gone after one who was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from offbook.transfer.backup.making import left_behind, remove_abandoned, working_folder

WORKS = """
import sys, time
from pathlib import Path
from offbook.transfer.backup.making import working_folder
with working_folder(Path(sys.argv[1])) as folder:
    (folder / "offbook.db").write_text("all that was ever said")
    print(folder, flush=True)
    time.sleep(300)
"""


def test_it_is_left_alone_while_somebody_works_in_it(tmp_path: Path) -> None:
    with working_folder(tmp_path / "x.tar.gz") as folder:
        os.utime(folder, (0, 0))
        assert folder.parent == tmp_path
        assert folder.stat().st_mode & 0o077 == 0
        assert left_behind(tmp_path) == []
        assert remove_abandoned(tmp_path) == []
        assert folder.is_dir()
    assert list(tmp_path.iterdir()) == []


def test_of_one_who_was_killed_it_goes_at_once(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", WORKS, str(tmp_path / "x.tar.gz")], stdout=subprocess.PIPE) as one:
        assert one.stdout is not None
        folder = Path(one.stdout.readline().decode().strip())
        try:
            remove_abandoned(tmp_path)
            assert (folder / "offbook.db").exists(), "its process works on it"
        finally:
            one.send_signal(signal.SIGKILL)
    assert left_behind(tmp_path) == [folder]
    assert remove_abandoned(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_without_an_owner_it_goes_by_its_age(tmp_path: Path) -> None:
    for name, age_hours in ((".offbook-backup-old", 1.1), (".offbook-backup-new", 0.9)):
        (tmp_path / name).mkdir()
        then = time.time() - age_hours * 3600
        os.utime(tmp_path / name, (then, then))
    (tmp_path / ".offbook-backup-file").write_text("somebody's")
    (tmp_path / ".offbook-backup-link").symlink_to(tmp_path / ".offbook-backup-old")
    remove_abandoned(tmp_path)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {".offbook-backup-new", ".offbook-backup-file", ".offbook-backup-link"}
    assert remove_abandoned(tmp_path / "nowhere") == []
