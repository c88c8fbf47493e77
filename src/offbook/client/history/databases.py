"""A database of another program, read beside a program that may be running.

With a `-wal` beside it somebody has it open, or left it in a crash: then we read as any other reader does, with
the shared memory that is there. Without one nobody has it open, and it is read as `immutable`: a reader in the
usual way would leave a `-wal` and a `-shm` behind in a folder that is not ours.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import apsw

BUSY_MS = 5_000
FAULTS = (apsw.Error, OSError, UnicodeDecodeError)
"""The last one of a damaged page: SQLite does not look whether a text is UTF-8."""


def is_in_use(path: Path) -> bool:
    """Whether somebody has it open, or left it in a crash."""
    wal, shared = (path.with_name(path.name + suffix) for suffix in ("-wal", "-shm"))
    return shared.exists() or (wal.exists() and wal.stat().st_size > 0)


def connected(path: Path, *, is_immutable: bool) -> apsw.Connection:
    """For reading only."""
    how = "immutable=1" if is_immutable else "mode=ro"
    connection = apsw.Connection(
        f"file:{quote(str(path.absolute()))}?{how}", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    )
    connection.set_busy_timeout(BUSY_MS)
    return connection


def format_fault(error: Exception) -> str:
    return "is no SQLite database" if isinstance(error, apsw.NotADBError) else f"cannot be read: {error}"
