"""Opening the file: pragmas, migrations, and SQLite's errors in our words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import apsw

from offbook.log.sql.schema import latest_version, migrations, new_installation
from offbook.model.errors import (
    OffbookError,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreTooNew,
)
from offbook.model.keys import Keys, keys_for, need_cipher, opened_keys

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
        raise StoreCorrupt(
            f"{error}: stop the provider and run `offbook doctor --fix`, which saves what can be read, or put a backup "
            "back with `offbook restore`"
        ) from error
    except apsw.Error as error:
        raise StoreError(f"{type(error).__name__}: {error}: run `offbook doctor`") from error


CIPHER = "chacha20"
"""ChaCha20-Poly1305 over each page, by SQLite3 Multiple Ciphers."""
TEMPORARY_FILES = "PRAGMA temp_store = FILE"
"""What is sorted or built on the way, as large as the file where that is written anew: else this SQLite takes memory
for it. Of an encrypted file only what VACUUM builds is encrypted, too, so that the rest of it stays in memory."""
AnyConnection = TypeVar("AnyConnection", bound=apsw.Connection)


def connect(path: Path, *, flags: int | None = None) -> apsw.Connection:
    """Open a store's file, with its key where it is encrypted. Every connection to one is made here."""
    return _connected(apsw.Connection, path, flags)


def _connected(kind: type[AnyConnection], path: Path, flags: int | None) -> AnyConnection:
    """In an encrypted folder with its key and no other. A copy elsewhere does not say whether it is encrypted: it is
    tried."""
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE if flags is None else flags
    own = keys_for(path)
    if own is None and not (others := opened_keys()):
        return _plain(kind, path, flags)
    if own is not None and own.folder == path.parent:
        return _opened(kind, path, flags, own)
    for keys in (own, None) if own is not None else (None, *others):
        try:
            return _opened(kind, path, flags, keys)
        except apsw.NotADBError:
            continue
    return _plain(kind, path, flags)  # no database, or of another key: whoever reads it is told


def _plain(kind: type[AnyConnection], path: Path, flags: int) -> AnyConnection:
    connection = kind(str(path), flags=flags)
    connection.execute(TEMPORARY_FILES)
    return connection


def _opened(kind: type[AnyConnection], path: Path, flags: int, keys: Keys | None) -> AnyConnection:
    connection = kind(str(path), flags=flags)
    try:
        # Closed by a wrong key, it would be the last to close, and move the write-ahead log.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        if keys is not None:
            need_cipher()
            connection.pragma("cipher", CIPHER)
            connection.pragma("key", raw_key(keys))
        else:
            connection.execute(TEMPORARY_FILES)
        connection.set_busy_timeout(BUSY_MILLISECONDS)
        connection.pragma("schema_version")
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
    except BaseException:
        connection.close()
        raise
    return connection


def raw_key(keys: Keys) -> str:
    """Not derived again: it is random."""
    return f"raw:{keys.database_key.hex()}"


def open_writer(path: Path) -> apsw.Connection:
    """The one connection that writes. Creates and migrates the file."""
    # SQLite would make the file readable by all, in a folder that may be open to all; -wal and -shm take its mode.
    with suppress(OSError):  # where the folder cannot be written, SQLite says so next
        path.touch(mode=0o600, exist_ok=False)
    connection = connect(path)
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


class Reader(apsw.Connection):
    """A connection that only reads."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.agents: dict[str, int] = {}
        """The numbers of agents that were asked for. They never change."""


def open_reader(path: Path) -> Reader:
    """Also beside a daemon of another process."""
    connection = _connected(Reader, path, apsw.SQLITE_OPEN_READWRITE)
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
                connection.execute(*new_installation())
                connection.pragma("application_id", APPLICATION_ID)
            connection.pragma("user_version", version)
