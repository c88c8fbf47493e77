"""Files and folders for their owner only, whatever the umask."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from offbook.model.errors import SettingsError

OPEN_OURS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
"""A file that we write to, by its own name: a link may have been planted to have another one written."""


def make_folders(folder: Path) -> None:
    """Make a folder, and those above it, where they are missing: each for its owner only."""
    if not folder.is_dir():
        make_folders(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def make_private(folder: Path) -> None:
    """Make a folder where it is missing, for its owner only; of one of ours that is there, keep others out."""
    make_folders(folder)
    status = folder.stat()
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid == os.geteuid() and mode & 0o077:
        with suppress(OSError):  # not every file system has modes
            folder.chmod(mode & 0o700)


def open_private(path: Path, flags: int) -> int:
    """Open a file that says who may come in: by its own name, and only where it is a file. Raises SettingsError."""
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)  # nobody waits at a pipe
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):  # EMLINK: FreeBSD
            raise _planted(path, "a symbolic link") from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _planted(path, "no file")
    return descriptor


def _planted(path: Path, what: str) -> SettingsError:
    return SettingsError(f"{path} is {what}: look who put it there, then remove it and put a file in its place")


def read_private(path: Path) -> bytes:
    with os.fdopen(open_private(path, os.O_RDONLY), "rb") as file:
        return file.read()


def write_private(path: Path, text: str, *, is_durable: bool = True) -> None:
    """Replace a file at once, readable by its owner only. What can be made again need not be durable."""
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            if is_durable:
                os.fsync(file.fileno())
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    if is_durable:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Have it on the disk which names it holds: else a power cut may bring back what was replaced or removed."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # there are file systems that cannot
            raise
    finally:
        os.close(descriptor)
