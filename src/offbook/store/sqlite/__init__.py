"""The embedded store: one SQLite file, one writer thread, readers beside it."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import apsw

from offbook.errors import StoreBusy, StoreError, StoreReadOnly
from offbook.protocols import ExaminedMessage
from offbook.store.sqlite import reads
from offbook.store.sqlite.connection import open_reader, refuse_foreign, store_errors
from offbook.store.sqlite.writer import Writer
from offbook.types import (
    AuditDraft,
    AuditEvent,
    AuditHead,
    Capture,
    CaptureClaim,
    Counts,
    Entry,
    Fault,
    LoggedMessage,
    Mark,
    Receipt,
    Scope,
    Session,
    SessionGaps,
)

P = ParamSpec("P")
T = TypeVar("T")


class SqliteStore:
    """See `protocols.Store` for what each method promises."""

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
        """Opens and migrates the file; `read_only` looks at it beside the process that owns it.

        A `snapshot` stays at the moment of its first look, so that a chain and its log can be compared
        while messages arrive.
        """
        self.path = path
        self._writer = None if read_only else Writer(path, max_queued=max_queued_writes)
        self._local = threading.local()
        self._reader_connections: list[apsw.Connection] = []
        self._is_snapshot = snapshot
        self._is_closed = False
        # A moment is one transaction, a transaction one connection, a connection one thread.
        threads = 1 if snapshot else readers
        self._readers = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="offbook-reader")
        if read_only:
            with store_errors(), open_reader(path) as connection:
                refuse_foreign(connection)

    @property
    def queued_writes(self) -> int:
        return self._writer.queued if self._writer else 0

    # ── the log ──

    async def append(
        self,
        scope: Scope,
        entries: Sequence[Entry],
        event: AuditDraft,
        *,
        gaps: SessionGaps,
        claim: CaptureClaim | None = None,
        mark: Mark | None = None,
        is_context: bool = False,
    ) -> Receipt:
        return await self._write().submit(
            lambda ledger: ledger.append(
                scope, entries, event, gaps=gaps, claim=claim, mark=mark, is_context=is_context
            )
        )

    async def messages(self, scope: Scope, *, after_seq: int = 0, limit: int = 100) -> list[LoggedMessage]:
        return await self._read(reads.messages, scope, after_seq, limit)

    async def messages_before(self, scope: Scope, *, before_seq: int, limit: int = 100) -> list[LoggedMessage]:
        return await self._read(reads.messages_before, scope, before_seq, limit)

    # ── sessions ──

    async def mark(self, scope: Scope, mark: Mark, event: AuditDraft) -> None:
        await self._write().submit(lambda ledger: ledger.mark(scope, mark, event))

    async def session(self, scope: Scope) -> Session | None:
        return await self._read(reads.session, scope)

    async def sessions(self, agent_id: str, *, limit: int = 20) -> list[Session]:
        return await self._read(reads.sessions, agent_id, limit)

    async def marks(self, scope: Scope, *, limit: int = 100) -> list[Mark]:
        return await self._read(reads.marks, scope, limit)

    # ── what is known of an agent ──

    async def agents(self) -> list[str]:
        return await self._read(reads.agents)

    async def counts(self, agent_id: str) -> Counts:
        return await self._read(reads.counts, agent_id)

    async def captures(self, agent_id: str) -> list[Capture]:
        return await self._read(reads.captures, agent_id)

    # ── audit ──

    async def record(self, agent_id: str, event: AuditDraft) -> AuditEvent:
        return await self._write().submit(lambda ledger: ledger.record(agent_id, event))

    async def audit_head(self, agent_id: str) -> AuditHead:
        return await self._read(reads.audit_head, agent_id)

    async def noted_audit_head(self, agent_id: str) -> AuditHead:
        return await self._read(reads.noted_audit_head, agent_id)

    async def audit_events(
        self, agent_id: str, *, session_id: str | None = None, after_seq: int = 0, limit: int = 100
    ) -> list[AuditEvent]:
        return await self._read(reads.audit_events, agent_id, session_id, after_seq, limit, False)

    async def newest_audit_events(
        self, agent_id: str, *, session_id: str | None = None, limit: int = 100
    ) -> list[AuditEvent]:
        return await self._read(reads.audit_events, agent_id, session_id, 0, limit, True)

    # ── for who verifies ──

    async def noted_counts(self, agent_id: str) -> tuple[AuditHead, Counts]:
        return await self._read(reads.noted_counts, agent_id)

    async def examined_messages(
        self, scope: Scope, *, after_seq: int = 0, limit: int = 100
    ) -> list[ExaminedMessage | Fault]:
        return await self._read(reads.examined_messages, scope, after_seq, limit)

    async def examined_audit_events(
        self, agent_id: str, *, after_seq: int = 0, limit: int = 100
    ) -> list[AuditEvent | Fault]:
        return await self._read(reads.examined_audit_events, agent_id, after_seq, limit)

    # ── care ──

    async def ping(self) -> None:
        await self._read(reads.answers)

    async def installation_key(self) -> bytes:
        return await self._read(reads.installation_key)

    async def faults(self) -> AsyncIterator[Fault]:
        for fault in await asyncio.to_thread(self._integrity_faults):
            yield fault

    async def backup(self, destination: Path) -> None:
        await asyncio.to_thread(self._copy_to, destination)

    async def close(self) -> None:
        await asyncio.to_thread(self._close)

    # ── how ──

    def _write(self) -> Writer:
        if self._writer is None:
            raise StoreReadOnly("this store was opened for reading only")
        return self._writer

    async def _read(
        self, function: Callable[Concatenate[apsw.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        def run() -> T:
            with store_errors():
                return function(self._reader(), *args, **kwargs)

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

    def _integrity_faults(self) -> list[Fault]:
        with store_errors():
            connection = open_reader(self.path)
            try:
                return list(reads.integrity_faults(connection))
            except (apsw.CorruptError, apsw.NotADBError) as error:
                return [Fault(what=f"integrity check could not go on: {error}")]
            finally:
                connection.close()

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
