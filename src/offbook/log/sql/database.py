"""One writer thread, a few readers beside it, and how a question reaches them."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Concatenate, Generic, ParamSpec, TypeVar

from offbook.log.owners import Owners
from offbook.log.sql.connection import Connection
from offbook.log.sql.ledger import Ledger
from offbook.log.sql.read_cache import ReadCache
from offbook.log.sql.writer import Writer
from offbook.log.store import ChangeKind, Versions
from offbook.model.errors import StoreBusy, StoreReadOnly

P = ParamSpec("P")
T = TypeVar("T")
WriterT = TypeVar("WriterT", bound=Writer)


class Database(ABC, Generic[WriterT]):
    """What `SqlStore` asks and writes through."""

    def __init__(self, writer: WriterT | None, *, readers: int, snapshot: bool) -> None:
        """A `snapshot` stays at the moment of its first look, so that a chain and its log can be compared
        while messages arrive."""
        self.versions = Versions()
        self.owners: Owners | None = None
        self._cache = ReadCache()
        self._writer = writer
        self._local = threading.local()
        self._reader_connections: list[Connection] = []
        self._is_snapshot = snapshot
        self._is_closed = False
        # A moment is one transaction, a transaction one connection, a connection one thread.
        threads = 1 if snapshot else readers
        self._readers = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="offbook-reader")

    # ── what a backend adds ──

    @abstractmethod
    def _errors(self) -> AbstractContextManager[None]:
        """The database's errors as StoreErrors that say what to do."""

    @abstractmethod
    def _opened_reader(self) -> Connection:
        """For the thread that asks. One of a snapshot has its transaction begun."""

    # ── writing ──

    @property
    def queued_writes(self) -> int:
        return self._writer.queued if self._writer else 0

    async def _change(
        self, agent_id: str, kinds: Sequence[ChangeKind], work: Callable[[Ledger], T], *, makes_room: bool = False
    ) -> T:
        """Write, and count it as a change when it is written."""

        def settled(_is_written: bool, _result: T | None) -> None:
            self.versions.changed(agent_id, *kinds)
            if "erased" in kinds:
                self._cache.let_go(agent_id)

        return await self._write().submit(work, makes_room=makes_room, settled=settled)

    async def _erase(self, agent_id: str, work: Callable[[Ledger], T]) -> T:
        self.versions.changed(agent_id, "erased")
        return await self._change(agent_id, ["erased", "summaries", "texts"], work, makes_room=True)

    def _refuse_erased(self, agent_id: str, made_of: tuple[int, ...] | None) -> None:
        """Nothing may be awaited between this and the write: an erasure that is queued meanwhile comes after it."""
        if made_of is not None and self.versions.is_erased_since(agent_id, made_of):
            raise StoreBusy("something was forgotten meanwhile, which this may still hold: send it again")

    def _write(self) -> WriterT:
        if self._writer is None:
            raise StoreReadOnly("this store was opened for reading only")
        return self._writer

    # ── reading ──

    async def _cached_read(
        self,
        agent_id: str,
        key: Hashable,
        kinds: tuple[ChangeKind, ...],
        function: Callable[Concatenate[Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """As `_read`, kept in memory until something of these kinds changes, where nobody else writes."""
        if self._writer is None or (self.owners is not None and self.owners.epoch(agent_id) is None):
            return await self._read(function, *args, **kwargs)
        version = self.versions.of(agent_id, "erased", *kinds)
        return await self._cache.get(agent_id, key, version, lambda: self._read(function, *args, **kwargs))

    async def _read(self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        def run() -> T:
            with self._errors():
                return self._asked(lambda: function(self._reader(), *args, **kwargs))

        try:
            answer = asyncio.get_running_loop().run_in_executor(self._readers, run)
        except RuntimeError as error:
            if not self._is_closed:
                raise
            raise StoreBusy("the store is closed: ask again when the provider is back") from error
        return await answer

    def _asked(self, question: Callable[[], T]) -> T:
        try:
            return question()
        except Exception:
            self._end_reading()
            raise

    def _reader(self) -> Connection:
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._opened_reader()
            self._reader_connections.append(connection)
        return connection

    def _end_reading(self) -> None:
        """A read that broke off may have left its statement open, and the connection at that moment for good."""
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is not None and not self._is_snapshot:
            self._local.connection = None
            self._reader_connections.remove(connection)
            connection.close()

    def _close(self) -> None:
        self._is_closed = True
        self._readers.shutdown(wait=True)
        while self._reader_connections:
            self._reader_connections.pop().close()
        if self._writer is not None:
            self._writer.close()
