"""Opening the file: pragmas, migrations, and SQLite's errors in our words."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import Any

import apsw
import msgspec

from offbook.model.errors import (
    OffbookError,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreTooNew,
)

APPLICATION_ID = 0x0FFB00C
"""Marks the file as ours (`PRAGMA application_id`), so that another program's file is not taken for it."""
BUSY_MILLISECONDS = 5_000


@contextmanager
def store_errors() -> Iterator[None]:
    """SQLite's errors as StoreErrors that say what to do."""
    try:
        yield
    except OffbookError:
        raise
    except apsw.FullError as error:
        raise StoreFull("the disk is full: free some space, then send it again; nothing was stored") from error
    except (apsw.BusyError, apsw.LockedError) as error:
        raise StoreBusy("the store is locked by another process: close it, then try again") from error
    except (apsw.ReadOnlyError, apsw.CantOpenError, apsw.PermissionsError, apsw.AuthError) as error:
        raise StoreReadOnly(
            f"the store cannot be opened or written ({error}): check the folder's permissions"
        ) from error
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise StoreCorrupt(f"{error}: run `offbook doctor`, then `offbook restore` from a backup") from error
    except apsw.Error as error:
        raise StoreError(f"{type(error).__name__}: {error}: run `offbook doctor`") from error


def migrations() -> list[tuple[int, str]]:
    """Every numbered migration and its SQL, in order."""
    found = []
    for item in resources.files("offbook.log.sqlite").joinpath("migrations").iterdir():
        number, _, rest = item.name.partition("_")
        if number.isdecimal() and rest.endswith(".sql"):
            found.append((int(number), item.read_text()))
    return sorted(found)


def latest_version() -> int:
    return migrations()[-1][0]


def open_writer(path: Path) -> apsw.Connection:
    """The one connection that writes. Creates and migrates the file."""
    # SQLite would make the file readable by all, in a folder that may be open to all; -wal and -shm take its mode.
    with suppress(OSError):  # where the folder cannot be written, SQLite says so next
        path.touch(mode=0o600, exist_ok=False)
    connection = apsw.Connection(str(path))
    try:
        _prepare_writer(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare_writer(connection: apsw.Connection) -> None:
    connection.set_busy_timeout(BUSY_MILLISECONDS)
    # What is refused stays as it was, also where it is closed again: the last to close a WAL moves it into the file.
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    refuse_foreign(connection)
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    # On macOS a plain fsync leaves the data in the drive's cache; elsewhere these change nothing.
    connection.execute("PRAGMA fullfsync = ON")
    connection.execute("PRAGMA checkpoint_fullfsync = ON")
    connection.execute("PRAGMA foreign_keys = ON")
    # A checkpoint inside a write would make that write slow (p99.9 8 ms against 0.2): see checkpoint.py.
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute("PRAGMA cache_size = -32000")
    connection.execute("PRAGMA temp_store = MEMORY")
    migrate(connection)


def open_reader(path: Path) -> apsw.Connection:
    """A connection that only reads; also beside a daemon of another process."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_timeout(BUSY_MILLISECONDS)
    connection.execute("PRAGMA query_only = ON")
    connection.execute("PRAGMA cache_size = -16000")
    return connection


def schema_version(connection: apsw.Connection) -> int:
    return int(connection.pragma("user_version") or 0)


def refuse_foreign(connection: apsw.Connection) -> None:
    """A file that is not ours, or that a newer Offbook wrote, is left alone."""
    version, newest = schema_version(connection), latest_version()
    if version > newest:
        raise StoreTooNew(
            f"the store has schema version {version}, this Offbook knows up to {newest}: upgrade Offbook, "
            "or restore a backup made with this version"
        )
    is_ours = int(connection.pragma("application_id") or 0) == APPLICATION_ID
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").get
    if tables and not is_ours:
        raise StoreCorrupt(f"{connection.filename} is a SQLite file of another program: choose another OFFBOOK_HOME")


def migrate(connection: apsw.Connection) -> None:
    """Bring the schema to the newest version, each step in its own transaction."""
    refuse_foreign(connection)
    for version, sql in migrations():
        if version <= schema_version(connection):
            continue
        with connection:
            connection.execute(sql)
            if version == 1:
                connection.execute(
                    "INSERT INTO installation VALUES ('key', ?), ('id', ?)",
                    (secrets.token_bytes(32), secrets.token_hex(8).encode()),
                )
                connection.pragma("application_id", APPLICATION_ID)
            connection.pragma("user_version", version)


# ── Rows that somebody damaged: what reading them raises, and how it is told ──

UNREADABLE = (msgspec.MsgspecError, TypeError, ValueError, OverflowError, AttributeError, RecursionError)
"""No UTF-8, no JSON, JSON of another shape, a time out of all time."""


@contextmanager
def reading(what: str) -> Iterator[None]:
    try:
        yield
    except UNREADABLE as error:
        raise StoreCorrupt(f"{unreadable(what, error)}: `offbook audit --verify` finds what else is damaged") from error


def unreadable(what: str, error: Exception) -> str:
    return f"{what} cannot be read ({type(error).__name__}: {error})"


def only_row(connection: apsw.Connection, query: str, bindings: tuple[str | int, ...]) -> tuple[Any, ...]:
    row: tuple[Any, ...] | None = connection.execute(query, bindings).fetchone()
    if row is None:
        raise ValueError("it is gone")
    return row
