"""Leaving no byte of what was removed. SQLite leaves it in free pages, in the gaps of pages that were split, and in the
write-ahead log, until something else is written there."""

from __future__ import annotations

import apsw

from offbook.store.sqlite.connection import BUSY_MILLISECONDS

TRIES = 600
PAUSE_SECONDS = 0.2
"""Two minutes in all, in which others write: somebody may read an older moment, such as a backup."""


def rewritten(connection: apsw.Connection) -> None:
    """The file is written anew. In the writer thread, outside a transaction."""
    # What is built on the way is as large as the file: not in memory.
    connection.execute("PRAGMA temp_store = FILE")
    try:
        connection.execute("VACUUM")
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
