"""The store in a PostgreSQL database: the same SQL, one node that writes, readers beside it."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TypeVar

from psycopg import errors

from offbook.log.postgres.connection import PostgresConnection, opening, store_errors
from offbook.log.postgres.lease import LEASE_SECONDS
from offbook.log.postgres.node_writer import NodeWriter
from offbook.log.postgres.nodes import NodeVersions
from offbook.log.postgres.schema import refuse_newer, schema_version
from offbook.log.postgres.writer import PostgresWriter
from offbook.log.sql.copying import copy_installation, copy_tables
from offbook.log.sql.store import SqlStore
from offbook.log.sqlite.connection import open_writer
from offbook.log.sqlite.connection import store_errors as sqlite_errors
from offbook.model.errors import StoreBusy, StoreError
from offbook.model.types import Fault

T = TypeVar("T")
REWRITTEN = (
    *("messages", "marks", "sessions", "session_notes", "summaries", "summary_texts", "completions"),
    *("contexts", "turn_memories", "lessons", "vectors"),
)
"""Tables that hold what was said, or what came of it."""
TRIES = 60
PAUSE_SECONDS = 2.0
"""Two minutes in all, in which others write: a backup of the database may read an older moment."""
PURGE_LOCK_MILLISECONDS = 200
"""Nobody writes meanwhile: where somebody reads the table for longer, it is tried again later."""


class PostgresStore(SqlStore[PostgresWriter]):
    """See `offbook.log.store.Store` for what each method promises."""

    kind = "postgres"

    def __init__(
        self,
        url: str,
        *,
        node: str = "",
        head: Path | None = None,
        is_unfinished: bool = False,
        readers: int = 2,
        max_queued_writes: int = 10_000,
        read_only: bool = False,
        snapshot: bool = False,
        lease_seconds: float = LEASE_SECONDS,
        node_url: str | None = None,
    ) -> None:
        """Makes the tables and takes the lease; `read_only` looks at them beside the node that holds it. `node`: what
        tells this node from others, whatever process it is. `head`: beside which file it is noted how far the log has
        come. `is_unfinished`: also where a migration into it is under way. `node_url`: where others reach this one of
        several nodes."""
        self._url = url
        holder = f"{socket.gethostname()} (process {os.getpid()})"
        writer: PostgresWriter | None = None
        if node_url is not None and not read_only:
            writer = NodeWriter(
                url,
                holder=holder,
                node=node or holder,
                node_url=node_url,
                head=head,
                lease_seconds=lease_seconds,
                max_queued=max_queued_writes,
            )
        elif not read_only:
            writer = PostgresWriter(
                url,
                holder=holder,
                node=node or holder,
                head=head,
                is_unfinished=is_unfinished,
                lease_seconds=lease_seconds,
                max_queued=max_queued_writes,
            )
        super().__init__(writer, readers=readers, snapshot=snapshot)
        if isinstance(writer, NodeWriter):
            self.owners = writer.nodes
            self.versions = NodeVersions(writer.nodes)
        if read_only:
            with opening():
                connection = PostgresConnection(url, name="offbook", read_only=True)
                try:
                    refuse_newer(connection)
                    if not schema_version(connection):
                        raise StoreError("the database holds no memory yet: `offbook serve --store` makes one")
                finally:
                    connection.close()

    def _errors(self) -> AbstractContextManager[None]:
        return store_errors()

    def _opened_reader(self) -> PostgresConnection:
        connection = PostgresConnection(self._url, name="offbook reader", read_only=True)
        if self._is_snapshot:
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        return connection

    def _asked(self, question: Callable[[], T]) -> T:
        """A connection that was lost is opened again, once."""
        if self._writer is not None:
            self._writer.refuse_lapsed()
        known: PostgresConnection | None = getattr(self._local, "connection", None)
        try:
            return super()._asked(question)
        except Exception:
            if known is None or not known.is_lost or self._is_snapshot:
                raise
        return super()._asked(question)

    # ── care ──

    async def schema_version(self) -> int:
        return await self._read(schema_version)  # type: ignore[arg-type]

    async def faults(self) -> AsyncIterator[Fault]:
        """PostgreSQL's own tools look at its files (`pg_amcheck`)."""
        none: tuple[Fault, ...] = ()
        for fault in none:
            yield fault

    async def backup(self, destination: Path) -> None:
        """A SQLite file: the same tables, of one moment."""
        await asyncio.to_thread(self._copy_to, destination)

    def _copy_to(self, destination: Path) -> None:
        if destination.exists():
            raise StoreError(f"{destination} exists already: choose another name")
        with sqlite_errors(), store_errors():
            source = PostgresConnection(self._url, name="offbook backup", read_only=True)
            target = open_writer(destination)
            try:
                with source:
                    copy_tables(source, target)
                    copy_installation(source, target)
            finally:
                target.close()
                source.close()

    async def purge(self) -> None:
        """Write the tables anew. The write-ahead log, replicas and archives keep theirs until they are recycled."""
        tables: Sequence[str] = REWRITTEN
        for _ in range(TRIES):
            tables = await self._write().submit_between(partial(self._rewritten, tables))
            if not tables:
                return
            await asyncio.sleep(PAUSE_SECONDS)
        raise StoreBusy(
            "somebody keeps an older moment of the database open, and with it what was erased: end that transaction "
            "(pg_stat_activity shows it), then try again"
        )

    def _rewritten(self, tables: Sequence[str]) -> list[str]:
        """In the writer's thread. Those of them that still hold rows which nobody should see any more."""
        connection = PostgresConnection(self._url, name="offbook purge")
        try:
            connection.execute(
                "SELECT set_config('lock_timeout', ?, false)", (str(PURGE_LOCK_MILLISECONDS),)
            ).fetchall()
            kept = []
            for table in tables:
                try:
                    is_kept = connection.rows_kept_by_vacuum(table) > 0
                except errors.LockNotAvailable:
                    is_kept = True
                if is_kept:
                    kept.append(table)
                self._write().renew()
            return kept
        finally:
            connection.close()

    @property
    def out_of_reach(self) -> tuple[str, ...]:
        beyond = ("the write-ahead log, replicas, archives and backups of the database, until they are recycled",)
        if self.owners is None:
            return beyond
        return (*beyond, "the data folder of a node that died, until it is started again")

    @property
    def own_files(self) -> frozenset[str]:
        return frozenset()

    async def found_in_files(self, forms: Collection[bytes]) -> dict[str, set[bytes]]:
        return {}
