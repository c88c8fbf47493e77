"""Room on the disk that is kept for forgetting: whoever wants to make room must be able to, when there is none."""

from __future__ import annotations

import logging
import os
import threading
from contextlib import suppress
from pathlib import Path

MOST_BYTES = 8 * 1024 * 1024
"""A session of a thousand messages is erased within it, and a log of this size is written anew."""
FREE_FOR_EACH = 2
"""It is taken only where the disk has twice as much."""

log = logging.getLogger("offbook.store")


class Reserve:
    """A file beside the log, as large as the log is, up to `MOST_BYTES`. Given back when something that frees room
    finds none, and taken again when there is enough."""

    def __init__(self, path: Path) -> None:
        self._log = path
        self._path = path.with_suffix(".reserve")
        self._bytes = self._size(self._path)
        self._lock = threading.Lock()

    def keep(self) -> None:
        """Take it, or more of it where the log has grown to twice as much."""
        wanted = min(self._size(self._log), MOST_BYTES)
        if wanted < 2 * self._bytes or not wanted:
            return
        with self._lock, suppress(OSError):
            disk = os.statvfs(self._path.parent)
            if disk.f_bavail * disk.f_frsize >= FREE_FOR_EACH * wanted:
                self._take(wanted)

    def give_back(self) -> bool:
        """False where there is none."""
        with self._lock:
            is_there, self._bytes = self._bytes > 0, 0
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
        if is_there:
            log.warning("the disk is full: the reserve is used", extra={"action": "store.reserve"})
        return is_there

    def _take(self, size: int) -> None:
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(descriptor, 0, size)
            else:
                os.pwrite(descriptor, bytes(size), 0)
            self._bytes = size
        except OSError:
            self._path.unlink(missing_ok=True)
            raise
        finally:
            os.close(descriptor)

    @staticmethod
    def _size(path: Path) -> int:
        try:
            return path.stat().st_size
        except OSError:
            return 0
