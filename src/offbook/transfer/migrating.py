"""Moving a memory between the file in the data folder and a PostgreSQL database: same rows, same numbers, same chain.

What was begun and broke off goes on where it was, as long as the source is still the same; else it begins anew. Until
it is done the target says so, and no provider starts on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from offbook.log.blobs import BlobFiles
from offbook.log.opening import check_url
from offbook.log.sql.connection import Connection
from offbook.log.sql.copying import (
    INSTALLATION,
    MIGRATING,
    copy_installation,
    copy_tables,
    count_rows,
    empty_tables,
    fingerprint,
    is_unfinished,
)
from offbook.log.sql.head import head_of
from offbook.log.sqlite.connection import open_reader, open_writer, store_errors
from offbook.log.sqlite.store import SqliteStore
from offbook.log.store import Store
from offbook.log.verification import verify
from offbook.model.errors import InvalidInput, StoreCorrupt
from offbook.model.home import Home, Lock

FILE = "sqlite"
"""The name of the file in the data folder, where a URL names a database."""

Told = Callable[[int], None]


class Migrated(NamedTuple):
    rows: dict[str, int]
    """In each table."""
    is_resumed: bool


def both_stores(source: str | None, target: str | None, configured: str | None) -> tuple[str, str]:
    """Where one is not given: the file where the other is a database, else the database of the settings."""
    if source is None and target is None:
        raise InvalidInput(f"say which way: --from {FILE} into the database of store.url, or --to {FILE} out of it")
    other = configured if FILE in (source, target) else FILE
    if other is None and None in (source, target):
        raise InvalidInput("which database? Set store.url (config.toml, or OFFBOOK_STORE_URL)")
    return source or other or FILE, target or other or FILE


async def migrate(home: Home, source: str, target: str, *, progress: Told = lambda rows: None) -> Migrated:
    """Nobody writes to either meanwhile: StoreOwned where a provider runs."""
    if (source == FILE) == (target == FILE):
        raise InvalidInput(f"either --from or --to is {FILE}, the file in the data folder; the other one is a URL")
    check_url(source if target == FILE else target)
    home.prepare()
    lock = Lock(home)
    try:
        migrated = await asyncio.to_thread(_copy, home, source, target, progress)
        if target == FILE:
            _unfinished(home).rename(home.database)
        return migrated
    finally:
        lock.release()


def _copy(home: Home, source: str, target: str, progress: Told) -> Migrated:
    """Copied, counted and verified; with the last step the target is no longer unfinished."""
    with ExitStack() as opened:
        reading = opened.enter_context(_source(home, source))
        writing = opened.enter_context(_target(home, target))
        with reading:
            is_resumed = _begin(reading, writing, is_file=target == FILE)
            copy_tables(reading, writing, progress=progress)
            rows, theirs = _rows_copied(writing), _rows_copied(reading)
            if rows != theirs:
                _begin_anew_next_time(writing)
                raise StoreCorrupt(
                    f"the copy has {sum(rows.values()):,} rows of {sum(theirs.values()):,}: run `offbook migrate` "
                    "again, it begins anew"
                )
            try:
                asyncio.run(_check(home, target))
            except StoreCorrupt:
                _begin_anew_next_time(writing)
                raise
            copy_installation(reading, writing)
            return Migrated(count_rows(writing), is_resumed)


def _rows_copied(connection: Connection) -> dict[str, int]:
    return {table: rows for table, rows in count_rows(connection).items() if table != INSTALLATION}


@contextmanager
def _source(home: Home, name: str) -> Iterator[Connection]:
    if name == FILE:
        if not home.database.exists():
            raise InvalidInput(f"there is nothing to migrate: {home.database} does not exist")
        _refuse_unfinished(home.database)
        SqliteStore(home.database)._close()  # brought to the newest version
        with store_errors():
            connection = open_reader(home.database)
            try:
                yield connection
            finally:
                connection.close()
    else:
        with _database(home, name, is_unfinished=False) as opened:
            yield opened


def _refuse_unfinished(path: Path) -> None:
    with store_errors():
        connection = open_reader(path)
        try:
            has_tables = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (INSTALLATION,)).get
            if has_tables and is_unfinished(connection):
                raise InvalidInput(f"{path} is half a memory, of a migration that broke off: put the whole one there")
        finally:
            connection.close()


@contextmanager
def _target(home: Home, name: str) -> Iterator[Connection]:
    if name == FILE:
        if home.database.exists() and home.database.stat().st_size:
            raise InvalidInput(f"{home.database} holds a memory already: move it away first, with its -wal file")
        with store_errors():
            connection = open_writer(_unfinished(home))
            try:
                yield connection
            finally:
                connection.close()
    else:
        with _database(home, name, is_unfinished=True) as opened:
            yield opened


@contextmanager
def _database(home: Home, url: str, *, is_unfinished: bool) -> Iterator[Connection]:
    """With its lease: no node writes there. `is_unfinished`: it may be."""
    from offbook.log.postgres import connection, store

    held = store.PostgresStore(url, node=home.node(), is_unfinished=is_unfinished)
    try:
        with connection.store_errors():
            opened = connection.PostgresConnection(url, name="offbook migrate")
            try:
                yield opened
            finally:
                opened.close()
    finally:
        held._close()


def _begin(reading: Connection, writing: Connection, *, is_file: bool) -> bool:
    """Whether it goes on with what was begun before."""
    head = head_of(reading)
    noted = f"{head.installation} {head.events} {fingerprint(reading)}".encode()
    begun = writing.execute("SELECT value FROM installation WHERE name = ?", (MIGRATING,)).get
    if begun is not None and bytes(begun) == noted:
        return True
    # A file of that name is ours: one without the mark was whole, and not yet put in its place.
    if begun is None and not is_file and writing.execute("SELECT count(*) FROM agents").get:
        if head_of(writing).installation == head.installation:
            raise InvalidInput("the database holds this memory already: set store.url to it, or choose an empty one")
        raise InvalidInput("the database holds a memory already: choose an empty one")
    with writing:
        empty_tables(writing)
        writing.execute("INSERT INTO installation (name, value) VALUES (?,?)", (MIGRATING, noted))
    return False


def _begin_anew_next_time(writing: Connection) -> None:
    writing.execute("UPDATE installation SET value = ? WHERE name = ?", (b"", MIGRATING))


async def _check(home: Home, target: str) -> None:
    """Read as a provider would, before anything goes on with it. In a thread of its own: nothing else runs there."""
    store: Store
    if target == FILE:
        store = SqliteStore(_unfinished(home), read_only=True, snapshot=True)
    else:
        from offbook.log.postgres.store import PostgresStore

        store = PostgresStore(target, read_only=True, snapshot=True)
    try:
        for agent_id in await store.agents():
            async for fault in verify(store, agent_id, blobs=BlobFiles(home.blobs)):
                raise StoreCorrupt(f"what was copied is not sound ({fault.what}): `offbook audit --verify` the source")
    finally:
        await store.close()


def _unfinished(home: Home) -> Path:
    return home.database.with_suffix(".migrating")
