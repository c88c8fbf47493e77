"""Leaving no byte of what was removed. SQLite leaves it in free pages, in gaps of pages and in the WAL."""

from __future__ import annotations

import os
from pathlib import Path

import apsw

from offbook.log.sqlite.connection import BUSY_MILLISECONDS, TEMPORARY_FILES
from offbook.model.errors import StoreFull

WAL_FRAME_BYTES = 24
"""Before each page in the write-ahead log."""
TRIES = 600
PAUSE_SECONDS = 0.2
"""Two minutes in all, in which others write: somebody may read an older moment, such as a backup."""


def rewritten(connection: apsw.Connection) -> None:
    """The file is written anew. In the writer thread, outside a transaction. StoreFull where there is no room for it:
    it goes through the write-ahead log, and would take what room there is from whoever records."""
    truncated(connection)
    pages = int(connection.pragma("page_count")) - int(connection.pragma("freelist_count"))
    needed = pages * (int(connection.pragma("page_size")) + WAL_FRAME_BYTES)
    disk = os.statvfs(Path(connection.filename).parent)
    free = disk.f_bavail * disk.f_frsize
    if free < needed:
        raise StoreFull(f"the file is not written anew: that takes {needed:,} bytes on the disk, {free:,} are free")
    connection.execute(TEMPORARY_FILES)
    try:
        connection.execute("VACUUM")
    except apsw.FullError:
        truncated(connection)  # gives back what it had taken
        raise
    finally:
        connection.execute("PRAGMA temp_store = MEMORY")


def truncated(connection: apsw.Connection) -> bool:
    """The write-ahead log is cut to nothing; False where somebody reads of it. Waits for nobody."""
    connection.set_busy_timeout(0)
    try:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except (apsw.BusyError, apsw.LockedError):
        return False
    finally:
        connection.set_busy_timeout(BUSY_MILLISECONDS)
    return True
