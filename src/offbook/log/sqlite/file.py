"""The open file: one writer thread, a few readers beside it, and how a question reaches them."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import apsw

from offbook.log.sqlite import reads
from offbook.log.sqlite.connection import open_reader, refuse_foreign, store_errors
from offbook.log.sqlite.ledger import Ledger
from offbook.log.sqlite.writer import Writer
from offbook.log.store import ChangeKind, Versions
from offbook.model.errors import StoreBusy, StoreError, StoreReadOnly
from offbook.model.types import Fault

P = ParamSpec("P")
T = TypeVar("T")
RAW_BYTES = 4 * 1024 * 1024


class SqliteFile:
    """What `SqliteStore` asks and writes through."""

    def __init__(
        self,
        path: Path,
        *,
        readers: int = 2,
        max_queued_writes: int = 10_000,
        read_only: bool = False,
        snapshot: bool = False,
    ) -> None:
        """Opens and migrates the file; `read_only` looks at it beside the process that owns it.

        A `snapshot` stays at the moment of its first look, so that a chain and its log can be compared
        while messages arrive.
        """
        self.path = path
        self.versions = Versions()
        self._writer = None if read_only else Writer(path, max_queued=max_queued_writes)
        self._local = threading.local()
        self._reader_connections: list[apsw.Connection] = []
        self._is_snapshot = snapshot
        self._is_closed = False
        self._raw: int | None = None
        """The file itself, open as long as this is: to close it would take away the locks that SQLite holds on it."""
        # A moment is one transaction, a transaction one connection, a connection one thread.
        threads = 1 if snapshot else readers
        self._readers = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="offbook-reader")
        if read_only:
            with store_errors(), open_reader(path) as connection:
                refuse_foreign(connection)

    @property
    def queued_writes(self) -> int:
        return self._writer.queued if self._writer else 0

    async def _change(
        self, agent_id: str, kinds: Sequence[ChangeKind], work: Callable[[Ledger], T], *, makes_room: bool = False
    ) -> T:
        """Write, and count it as a change: also for who does not wait for it, since it is written all the same."""
        try:
            return await self._write().submit(work, makes_room=makes_room)
        finally:
            self.versions.changed(agent_id, *kinds)

    async def _erase(self, agent_id: str, work: Callable[[Ledger], T]) -> T:
        self.versions.changed(agent_id, "erased")
        return await self._change(agent_id, ["erased", "summaries", "texts"], work, makes_room=True)

    def _refuse_erased(self, agent_id: str, made_of: tuple[int, ...] | None) -> None:
        """Nothing may be awaited between this and the write: an erasure that is queued meanwhile comes after it."""
        if made_of is not None and self.versions.is_erased_since(agent_id, made_of):
            raise StoreBusy("something was forgotten meanwhile, which this may still hold: send it again")

    def _write(self) -> Writer:
        if self._writer is None:
            raise StoreReadOnly("this store was opened for reading only")
        return self._writer

    async def _read(
        self, function: Callable[Concatenate[apsw.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        def run() -> T:
            with store_errors():
                try:
                    return function(self._reader(), *args, **kwargs)
                except Exception:
                    self._end_reading()
                    raise

        try:
            answer = asyncio.get_running_loop().run_in_executor(self._readers, run)
        except RuntimeError as error:
            if not self._is_closed:
                raise
            raise StoreBusy("the store is closed: ask again when the provider is back") from error
        return await answer

    def _reader(self) -> apsw.Connection:
        connection: apsw.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = open_reader(self.path)
            self._local.connection = connection
            self._reader_connections.append(connection)
            if self._is_snapshot:
                connection.execute("BEGIN")
        return connection

    def _end_reading(self) -> None:
        """A read that broke off may have left its statement open, and the connection at that moment for good."""
        connection: apsw.Connection | None = getattr(self._local, "connection", None)
        if connection is not None and not self._is_snapshot:
            self._local.connection = None
            self._reader_connections.remove(connection)
            connection.close()

    def _integrity_faults(self) -> list[Fault]:
        with store_errors():
            connection = open_reader(self.path)
            try:
                return list(reads.integrity_faults(connection))
            except (apsw.CorruptError, apsw.NotADBError) as error:
                return [Fault(what=f"integrity check could not go on: {error}")]
            finally:
                connection.close()

    @property
    def own_files(self) -> frozenset[str]:
        return frozenset(f"{self.path.name}{suffix}" for suffix in ("", "-wal", "-shm"))

    async def found_in_files(self, forms: Collection[bytes]) -> dict[str, set[bytes]]:
        return await asyncio.to_thread(self._found_in_files, forms)

    def _found_in_files(self, forms: Collection[bytes]) -> dict[str, set[bytes]]:
        """The index of the WAL (`-shm`) holds page numbers only."""
        if self._raw is None:
            self._raw = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        found = {self.path.name: _found_in(self._raw, forms)}
        wal = self.path.with_name(f"{self.path.name}-wal")
        with suppress(FileNotFoundError), wal.open("rb", buffering=0) as file:  # nobody locks that one
            found[wal.name] = _found_in(file.fileno(), forms)
        return {name: there for name, there in found.items() if there}

    def _copy_to(self, destination: Path) -> None:
        """VACUUM INTO reads one snapshot while others write, where the backup API would start over at each write."""
        if destination.exists():
            raise StoreError(f"{destination} exists already: choose another name")
        with store_errors():
            connection = apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READWRITE)
            try:
                connection.execute("VACUUM INTO ?", (str(destination),))
            finally:
                connection.close()
        with destination.open("rb+") as copy:
            os.fsync(copy.fileno())

    def _close(self) -> None:
        self._is_closed = True
        self._readers.shutdown(wait=True)
        while self._reader_connections:
            self._reader_connections.pop().close()
        if self._writer is not None:
            self._writer.close()
        raw, self._raw = self._raw, None
        if raw is not None:
            os.close(raw)


def _found_in(descriptor: int, forms: Collection[bytes]) -> set[bytes]:
    """In pieces, and not through a map: closing that would close a descriptor, too."""
    overlap = max(map(len, forms), default=1) - 1
    found: set[bytes] = set()
    at, before = 0, b""
    while len(found) < len(forms) and (read := os.pread(descriptor, RAW_BYTES, at)):
        piece = before + read
        found.update(form for form in forms if form in piece)
        at, before = at + len(read), piece[-overlap:] if overlap else b""
    return found
