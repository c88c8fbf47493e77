"""A private folder in memory for what is derived from an encrypted data folder, and is gone when the machine is off."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from functools import cache
from hashlib import sha256
from pathlib import Path

from offbook.model.errors import SettingsError
from offbook.model.private_files import make_folders

IN_MEMORY = ("tmpfs", "ramfs")
MOUNTS = Path("/proc/self/mounts")
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder in it is made for us alone, and refused where it is not ours


def memory_folder(home: Path) -> Path:
    """Of this data folder and this user: the same for every process."""
    digest = sha256(os.fsencode(home.resolve())).hexdigest()[:16]
    return memory_root() / f"offbook-{os.geteuid()}-{digest}"


def prepare_memory_folder(home: Path) -> str | None:
    """Make it, for us alone. Returns why it does not lie in memory, where it does not."""
    folder = memory_folder(home)
    make_folders(folder)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise SettingsError(f"{folder} is not ours alone: look who made it, then remove it")
    if is_in_memory():
        return None
    return f"the search index lies in plain text in {folder} while this runs: no folder in memory was found"


def memory_root() -> Path:
    """Where private folders in memory are made."""
    return _memory()[0]


def is_in_memory() -> bool:
    return _memory()[1]


def remove_memory_folder(home: Path) -> None:
    shutil.rmtree(memory_folder(home), ignore_errors=True)


@cache
def _memory() -> tuple[Path, bool]:
    """Where it lies, and whether that is in memory."""
    for folder in (SHARED_MEMORY, Path(os.environ.get("XDG_RUNTIME_DIR") or SHARED_MEMORY)):
        if sys.platform == "linux" and _is_mounted_in_memory(folder) and os.access(folder, os.W_OK | os.X_OK):
            return folder, True
    import tempfile

    return Path(tempfile.gettempdir()), False


def _is_mounted_in_memory(folder: Path) -> bool:
    try:
        mounts = [line.split(" ")[1:3] for line in MOUNTS.read_text().splitlines()]
    except (OSError, ValueError):
        return False
    return any(place == str(folder) and kind in IN_MEMORY for place, kind in mounts)
