"""A disk small enough to fill: a tmpfs, with ballast that can be thrown overboard."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class MountRefused(Exception):
    """This process may not mount a tmpfs."""


class SmallDisk:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def free_bytes(self) -> int:
        found = os.statvfs(self.folder)
        return found.f_bavail * found.f_frsize

    def load_ballast(self, name: str, size_bytes: int) -> None:
        with (self.folder / name).open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, size_bytes)

    def drop_ballast(self, name: str) -> None:
        (self.folder / name).unlink()


@contextmanager
def small_disk(folder: Path, size_bytes: int) -> Iterator[SmallDisk]:
    """Raises MountRefused. Everything on it goes with it."""
    folder.mkdir(mode=0o700)
    options = f"size={size_bytes},mode=0700"
    try:
        _run("mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder))
    except (OSError, subprocess.CalledProcessError) as error:
        reason = (getattr(error, "stderr", b"") or str(error).encode()).decode().strip()
        folder.rmdir()
        raise MountRefused(f"a tmpfs cannot be mounted here (it takes root): {reason}") from None
    try:
        yield SmallDisk(folder)
    finally:
        _run("umount", "-l", str(folder))
        folder.rmdir()


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=20)
