"""The writer of the database: its transactions, the lease that lets it write, and a connection that is lost."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Protocol

import psycopg
from psycopg import errors

from offbook.log.postgres.connection import LOST, PostgresConnection, opening, store_errors
from offbook.log.postgres.lease import NODES, Lease, end_connections, refuse_held, writer_name
from offbook.log.postgres.schema import migrate, refuse_unfinished, refuse_unfit
from offbook.log.sql.head import HeadFile
from offbook.log.sql.writer import Writer
from offbook.model.errors import LogLost, SettingsError, StoreBusy, StoreError, StoreOwned

log = logging.getLogger("offbook.store")

OUTCOME_SECONDS = 30.0
"""How long it is asked for the outcome of a commit that was not answered. After that whoever sent it is told to send it
again, and what has an id is kept once."""
PAUSE_SECONDS = 0.2
RENEWALS = 3
"""In the time that the lease lasts."""


class WritingLease(Protocol):
    """What lets a transaction write, and tells whether it was committed. See `lease.Lease`."""

    seconds: float

    def hold(self) -> None: ...

    def committing(self) -> None: ...

    def committed(self) -> None: ...

    def is_committed(self) -> bool: ...

    def keep_alive(self, other: PostgresConnection) -> None: ...

    def release(self) -> None: ...


class PostgresWriter(Writer):
    _is_of_several = False
    """Nodes that write to the database at once."""

    def __init__(
        self,
        url: str,
        *,
        holder: str,
        node: str,
        head: Path | None,
        is_unfinished: bool,
        lease_seconds: float,
        max_queued: int,
    ) -> None:
        self._name = writer_name(node)
        self._head: HeadFile | None = None
        with opening():
            self._connection = PostgresConnection(url, name=self._name, of_several=self._is_of_several)
            try:
                refuse_held(self._connection, node, *((NODES,) if self._is_of_several else ()))
                migrate(self._connection)
                if not is_unfinished:
                    refuse_unfinished(self._connection)
                if head is not None:
                    self._head = HeadFile(head, self._connection, log_name="the database")
                self._renewed_at = time.monotonic()
                self._lease = self._taken(holder, node, lease_seconds)
            except BaseException:
                self._close()
                raise
        self.ended: StoreOwned | LogLost | None = None
        """Why nothing is written any more: another node holds the lease, or the database is an older copy."""
        self._url = url
        self._begun_at = self._renewed_at
        self._is_over = threading.Event()
        self._renewing = threading.Thread(target=self._keep_alive, name="offbook-lease", daemon=True)
        super().__init__(self._connection, max_queued=max_queued)
        self._start()
        self._renewing.start()

    def _taken(self, holder: str, node: str, seconds: float) -> WritingLease:
        return Lease(self._connection, holder=holder, node=node, seconds=seconds)

    def _errors(self) -> AbstractContextManager[None]:
        return store_errors()

    def _begin(self) -> None:
        self.refuse_ended()
        try:
            self._hold()
        except (psycopg.OperationalError, errors.ReadOnlySqlTransaction) as error:
            # Nothing was written yet, so it can be tried again: most often the server was started anew meanwhile, or
            # became a standby.
            if isinstance(error, errors.ReadOnlySqlTransaction):
                self._connection.close()
            if not self._connection.is_lost:
                raise
            self._reopen()
            self._hold()

    def refuse_ended(self) -> None:
        if self.ended is not None:
            raise type(self.ended)(self.ended.detail)

    def refuse_lapsed(self) -> None:
        """Another node may hold the lease by now, and have written."""
        self.refuse_ended()
        if time.monotonic() - self._renewed_at > self._lease.seconds:
            raise StoreBusy(f"the lease was not renewed in time, another node may have it ({LOST})")

    @contextmanager
    def _noting_the_end(self) -> Iterator[None]:
        try:
            yield
        except (StoreOwned, LogLost) as error:
            self.ended = error
            log.error("nothing more is written: %s", error.detail, extra={"action": "store.lease"})
            raise

    def _hold(self) -> None:
        self._begun_at = time.monotonic()
        self._connection.execute("BEGIN")
        with self._noting_the_end():
            self._lease.hold()

    def _commit(self) -> None:
        self._lease.committing()
        try:
            self._connection.commit()
        except psycopg.OperationalError as error:
            if not self._connection.is_lost:
                raise
            if not self._outcome():
                raise StoreBusy(f"{LOST}; nothing was stored") from error
        self._lease.committed()
        self._renewed_at = max(self._renewed_at, self._begun_at)
        events = self._ledger.take_events()
        if self._head is not None:
            self._head.note(self._head.events + events)

    def _outcome(self) -> bool:
        """Whether the commit that was not answered was done."""
        give_up_at = time.monotonic() + OUTCOME_SECONDS
        while True:
            try:
                self._reopen()
                with self._noting_the_end():
                    is_committed = self._lease.is_committed()
            except SettingsError as error:
                # Each by itself would be written a second time.
                raise StoreBusy(f"an outcome is unknown: {error.detail}; then send it again") from error
            except psycopg.Error as error:
                if time.monotonic() > give_up_at:
                    log.error("an outcome is unknown: %s", type(error).__name__, extra={"action": "store.connection"})
                    raise
                time.sleep(PAUSE_SECONDS)
            else:
                log.warning(
                    "a lost commit was %s", "done" if is_committed else "not done", extra={"action": "store.connection"}
                )
                return is_committed

    def _reopen(self) -> None:
        self._connection.reopen()
        self._ledger.forget()
        refuse_unfit(self._connection)
        # What is left of the one before may hold the lease's row until the network finds out.
        end_connections(self._connection, self._name)
        log.warning("connected again", extra={"action": "store.connection"})

    def _give_up(self) -> None:
        with suppress(psycopg.Error):
            if not self._connection.is_lost and self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def _patience(self) -> float | None:
        return self._lease.seconds / RENEWALS

    def _between_groups(self) -> None:
        """Renew the lease where no write did."""
        if self.ended is not None or time.monotonic() - self._renewed_at < self._lease.seconds / RENEWALS:
            return
        self.renew()

    def renew(self) -> None:
        """In the writer's thread, between two transactions."""
        try:
            self._in_one_transaction([])
        except StoreError as error:
            log.warning("the lease is not renewed: %s", error.detail, extra={"action": "store.lease"})

    def _keep_alive(self) -> None:
        """In a thread of its own: renew the lease while a transaction, or what is done between two, takes long."""
        connection: PostgresConnection | None = None
        while not self._is_over.wait(self._lease.seconds / RENEWALS / 2) and self.ended is None:
            now = time.monotonic()
            if now - self._renewed_at < self._lease.seconds / 2:
                continue
            try:
                if connection is None or connection.is_lost:
                    connection = PostgresConnection(self._url, name="offbook lease")
                    # What keeps it from others for some seconds need not outlast a failover.
                    connection.execute("SET synchronous_commit = local")
                self._lease.keep_alive(connection)
                if connection.changes():
                    self._renewed_at = max(self._renewed_at, now)
            except psycopg.Error as error:
                log.warning("the lease is not renewed: %s", type(error).__name__, extra={"action": "store.lease"})
        if connection is not None:
            connection.close()

    def _let_go(self) -> None:
        self._is_over.set()
        self._renewing.join()
        with suppress(psycopg.Error):
            if self.ended is None:
                self._lease.release()
        self._close()

    def _close(self) -> None:
        self._connection.close()
        if self._head is not None:
            self._head.close()
