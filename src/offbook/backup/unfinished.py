"""The private folders in which backups are made, changed and looked through: whole copies of the memory, unpacked.

One that is killed leaves its folder behind. Whoever comes next can tell: a lock in the folder is held for as long as
its process lives, and the system lets go of it however that ends.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

UNFINISHED = ".offbook-backup-"
"""How the name of such a folder begins."""
OWNER = ".offbook-owner"
"""The file in it that is locked, and says which process it is."""
UNOWNED_SECONDS = 3600
"""A folder without that file was just made, or by an older Offbook: nobody works on one for so long."""


@contextmanager
def working_folder(beside: Path) -> Iterator[Path]:
    """In the same folder: on the same disk, and private, since a copy takes its mode from the umask."""
    with TemporaryDirectory(prefix=UNFINISHED, dir=beside.parent) as name:
        folder = Path(name)
        descriptor = os.open(folder / f"{OWNER}-new", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with suppress(OSError):  # where nothing can be locked, it goes by its age
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.write(descriptor, f"{os.getpid()}\n".encode())
                (folder / f"{OWNER}-new").rename(folder / OWNER)  # by that name it is locked already
            yield folder
        finally:
            os.close(descriptor)


def left_behind(folder: Path) -> list[Path]:
    """Those in which nobody works now, as far as can be told."""
    try:
        found = [path for path in folder.glob(f"{UNFINISHED}*") if path.is_dir() and not path.is_symlink()]
    except OSError:
        return []
    return sorted(path for path in found if not _is_worked_in(path))


def remove_abandoned(folder: Path) -> list[Path]:
    """What was left behind for certain; returns what could not be removed."""
    going = [path for path in left_behind(folder) if (path / OWNER).exists() or _is_old(path)]
    for path in going:
        shutil.rmtree(path, ignore_errors=True)
    return [path for path in going if path.exists()]


def _is_worked_in(folder: Path) -> bool:
    try:
        descriptor = os.open(folder / OWNER, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _is_old(folder: Path) -> bool:
    try:
        return time.time() - folder.stat().st_mtime > UNOWNED_SECONDS
    except OSError:
        return False
