"""A log that is gone, or not all there, is noticed before a new one is made in its place."""

from __future__ import annotations

from pathlib import Path

from offbook.log.sql.head import ANEW, RESTORE, head_of, read_head, refuse_other
from offbook.log.sqlite.connection import open_reader, store_errors
from offbook.model.errors import LogLost
from offbook.model.home import Home


def refuse_lost_log(home: Home) -> None:
    """What is left of a log that is gone says that there was one: with a new one nothing would ever have been said."""
    if home.database.exists() and home.database.stat().st_size:
        return
    left = [folder.name for folder in (home.blobs, home.indexes, home.receipts) if _has_files(folder)]
    if left:
        raise LogLost(
            f"the log {home.database} is missing or empty, and {', '.join(left)} of it are still there: "
            f"{RESTORE}; {ANEW}"
        )


def _has_files(folder: Path) -> bool:
    return folder.is_dir() and any(path.is_file() for path in folder.rglob("*"))


def refuse_missing(path: Path) -> None:
    """Before a new log is made: LogLost where there was one."""
    if read_head(path) is not None and not (path.exists() and path.stat().st_size):
        raise LogLost(f"the log {path} is missing or empty, though there was one: {RESTORE}; {ANEW}")


def refuse_lost(path: Path) -> None:
    """The same for a log that is only looked at: LogLost where it is not all there."""
    refuse_missing(path)
    if path.exists() and path.stat().st_size:
        with store_errors(), open_reader(path) as connection:
            refuse_other(path, read_head(path), head_of(connection))
