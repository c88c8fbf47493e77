"""The embedded store: one SQLite file, one writer thread, readers beside it."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import AbstractContextManager, suppress
from itertools import islice
from pathlib import Path

import apsw

from offbook.log.sql.store import SqlStore
from offbook.log.sqlite.connection import (
    TEMPORARY_FILES,
    connect,
    open_reader,
    refuse_foreign,
    schema_version,
    store_errors,
)
from offbook.log.sqlite.encrypted_pages import pages_of_file, pages_of_log
from offbook.log.sqlite.purge import PAUSE_SECONDS, TRIES, rewritten, truncated
from offbook.log.sqlite.writer import SqliteWriter
from offbook.model.errors import StoreBusy, StoreError
from offbook.model.keys import keys_for
from offbook.model.types import Fault

log = logging.getLogger("offbook.store")

RAW_BYTES = 4 * 1024 * 1024
PAGES_AT_A_TIME = 1_024


class SqliteStore(SqlStore[SqliteWriter]):
    """See `offbook.log.store.Store` for what each method promises."""

    kind = "sqlite"

    def __init__(
        self,
        path: Path,
        *,
        readers: int = 2,
        max_queued_writes: int = 10_000,
        read_only: bool = False,
        snapshot: bool = False,
    ) -> None:
        """Opens and migrates the file; `read_only` looks at it beside the process that owns it."""
        self.path = path
        writer = None if read_only else SqliteWriter(path, max_queued=max_queued_writes)
        super().__init__(writer, readers=readers, snapshot=snapshot)
        self._raw: int | None = None
        """The file itself, open as long as this is: to close it would take away the locks that SQLite holds on it."""
        if read_only:
            with store_errors(), open_reader(path) as connection:
                refuse_foreign(connection)

    def _errors(self) -> AbstractContextManager[None]:
        return store_errors()

    def _opened_reader(self) -> apsw.Connection:
        connection = open_reader(self.path)
        if self._is_snapshot:
            connection.execute("BEGIN")
        return connection

    # ── care ──

    async def schema_version(self) -> int:
        return await asyncio.to_thread(self._schema_version)

    def _schema_version(self) -> int:
        with store_errors():
            connection = open_reader(self.path)
            try:
                return schema_version(connection)
            finally:
                connection.close()

    async def faults(self) -> AsyncIterator[Fault]:
        for fault in await asyncio.to_thread(self._integrity_faults):
            yield fault

    async def backup(self, destination: Path) -> None:
        await asyncio.to_thread(self._copy_to, destination)

    async def purge(self) -> None:
        await self._write().submit_alone(rewritten)
        for _ in range(TRIES):
            if await self._write().submit_alone(truncated):
                return
            await asyncio.sleep(PAUSE_SECONDS)
        raise StoreBusy(
            "somebody reads the store and keeps its old pages: end the backup or the reader, then try again"
        )

    def _integrity_faults(self) -> list[Fault]:
        with store_errors():
            connection = open_reader(self.path)
            try:
                return list(_faults_in(connection))
            except (apsw.CorruptError, apsw.NotADBError) as error:
                return [Fault(what=f"integrity check could not go on: {error}")]
            finally:
                connection.close()

    @property
    def out_of_reach(self) -> tuple[str, ...]:
        return ()

    @property
    def own_files(self) -> frozenset[str]:
        return frozenset(f"{self.path.name}{suffix}" for suffix in ("", "-wal", "-shm"))

    async def found_in_files(self, forms: Collection[bytes]) -> dict[str, set[bytes]]:
        return await asyncio.to_thread(self._found_in_files, forms)

    def _found_in_files(self, forms: Collection[bytes]) -> dict[str, set[bytes]]:
        """The index of the WAL (`-shm`) holds page numbers only. Encrypted pages are decrypted to be looked through."""
        if self._raw is None:
            self._raw = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        keys = keys_for(self.path)
        key = keys.database_key if keys is not None else None
        found = {self.path.name: _found_in(_pieces(self._raw, key, pages_of_file), forms)}
        wal = self.path.with_name(f"{self.path.name}-wal")
        with suppress(FileNotFoundError), wal.open("rb", buffering=0) as file:  # nobody locks that one
            found[wal.name] = _found_in(_pieces(file.fileno(), key, pages_of_log), forms)
        return {name: there for name, there in found.items() if there}

    def _copy_to(self, destination: Path) -> None:
        """VACUUM INTO reads one snapshot while others write, where the backup API would start over at each write."""
        if destination.exists():
            raise StoreError(f"{destination} exists already: choose another name")
        with store_errors():
            connection = connect(self.path, flags=apsw.SQLITE_OPEN_READWRITE)
            try:
                connection.execute(TEMPORARY_FILES)
                connection.execute("VACUUM INTO ?", (str(destination),))
            finally:
                connection.close()
        with destination.open("rb+") as copy:
            os.fsync(copy.fileno())

    def _close(self) -> None:
        super()._close()
        raw, self._raw = self._raw, None
        if raw is not None:
            os.close(raw)


def _faults_in(connection: apsw.Connection) -> Iterator[Fault]:
    for (line,) in connection.execute("PRAGMA integrity_check(100)"):
        if line != "ok":
            yield Fault(what=f"integrity check: {line}")
    for table, row_id, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        yield Fault(what=f"row {row_id} of {table} points to a row of {parent} that is not there")


def _pieces(
    descriptor: int, key: bytes | None, pages: Callable[[int, bytes], Iterator[bytes | None]]
) -> Iterator[bytes]:
    """Not through a map: closing that would close a descriptor, too."""
    if key is None:
        at = 0
        while read := os.pread(descriptor, RAW_BYTES, at):
            at += len(read)
            yield read
        return
    closed, decrypted = 0, pages(descriptor, key)
    while batch := list(islice(decrypted, PAGES_AT_A_TIME)):
        closed += batch.count(None)
        if piece := b"".join(page for page in batch if page is not None):
            yield piece
    if closed:
        log.warning("%d pages cannot be decrypted, nor looked through", closed, extra={"action": "store.pages"})


def _found_in(pieces: Iterator[bytes], forms: Collection[bytes]) -> set[bytes]:
    overlap = max(map(len, forms), default=1) - 1
    found: set[bytes] = set()
    before = b""
    while len(found) < len(forms) and (read := next(pieces, b"")):
        piece = before + read
        found.update(form for form in forms if form in piece)
        before = piece[-overlap:] if overlap else b""
    return found
