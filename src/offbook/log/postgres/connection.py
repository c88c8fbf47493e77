"""One connection to PostgreSQL that answers as one to SQLite does, and PostgreSQL's errors in our words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg import errors, pq
from psycopg.adapt import Loader
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.numeric import Int8Dumper, NumericBinaryLoader
from psycopg.types.string import StrDumper

from offbook.log.postgres.dialect import ESCAPE, SCHEMA, SEVERAL, bindings, statement, unescaped
from offbook.model.errors import (
    OffbookError,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
)

CONNECT_SECONDS = 5
LOCK_MILLISECONDS = 10_000
"""Nobody but us locks what is ours for long."""
LOST = "the connection to PostgreSQL is lost: send it again in a moment"
_AGAIN = (
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
    errors.LockNotAvailable,
    errors.QueryCanceled,
    errors.TooManyConnections,
    errors.ReadOnlySqlTransaction,
    errors.DeadlockDetected,
    errors.SerializationFailure,
)


@contextmanager
def store_errors() -> Iterator[None]:
    """PostgreSQL's errors as StoreErrors that say what to do. Only their first line: the others quote what was said."""
    try:
        yield
    except OffbookError:
        raise
    except errors.DiskFull as error:
        raise StoreFull(
            "the database's disk is full: free some space, then send it again; nothing was stored"
        ) from error
    except (errors.InsufficientPrivilege, errors.InvalidAuthorizationSpecification) as error:
        raise StoreReadOnly(f"the database refuses this ({told(error)}): grant its role what it needs") from error
    except (errors.DataCorrupted, errors.IndexCorrupted) as error:
        raise StoreCorrupt(f"{told(error)}: restore the database from a backup") from error
    except _AGAIN as error:
        raise StoreBusy(f"PostgreSQL cannot answer now ({told(error)}): send it again in a moment") from error
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise StoreBusy(f"{LOST} ({told(error)})") from error
    except psycopg.Error as error:
        raise StoreError(f"{type(error).__name__}: {told(error)}: run `offbook doctor`") from error


def told(error: psycopg.Error) -> str:
    said = error.diag.message_primary or str(error)
    return said.strip().partition("\n")[0]


class _Text(Loader):
    format = pq.Format.BINARY

    def load(self, data: Any) -> str:
        text = str(data, "utf-8")
        return text if ESCAPE not in text else unescaped(text)


class _Sum(NumericBinaryLoader):
    """PostgreSQL sums whole numbers up as NUMERIC, and nothing else is of that type."""

    def load(self, data: Any) -> int:  # type: ignore[override]
        return int(super().load(data))


class Cursor(psycopg.RawCursor[tuple[Any, ...]]):
    @property
    def get(self) -> Any:
        row = self.fetchone()
        return None if row is None else row[0]


@contextmanager
def opening() -> Iterator[None]:
    """The first connection: what is wrong then is wrong with the URL, or there is no server."""
    try:
        with store_errors():
            yield
    except StoreBusy as error:
        if isinstance(error.__cause__, psycopg.OperationalError) and error.__cause__.sqlstate is None:
            said = told(error.__cause__)
            raise StoreError(
                f"the database cannot be opened ({said}): check `store.url`, and that PostgreSQL runs"
            ) from None
        raise


class PostgresConnection:
    """See `sql.connection.Connection`. One thread's."""

    def __init__(self, url: str, *, name: str, read_only: bool = False, of_several: bool = False) -> None:
        """`name`: what the database shows of it. `of_several`: it writes beside those of other nodes."""
        self._url = url
        self._name = name
        self._of_several = of_several
        self._is_read_only = read_only
        self._changes = 0
        self._total_changes = 0
        self._blocks = 0
        """`with` blocks that are open, and whether the first of them began the transaction."""
        self._is_ours = False
        if read_only:
            self.agents: dict[str, int] = {}
            """The numbers of agents that were asked for. They never change; one that writes may roll them back."""
        self._connection = self._opened()

    def _opened(self) -> psycopg.Connection[tuple[Any, ...]]:
        settings = {
            "search_path": SCHEMA,
            "lock_timeout": str(LOCK_MILLISECONDS),
            "statement_timeout": "0",  # it would end a wait for the standby, and the commit would be answered
            "timezone": "UTC",
        }
        if self._of_several:
            settings[SEVERAL] = "on"
        if self._is_read_only:
            settings["default_transaction_read_only"] = "on"
        chosen: dict[str, Any] = {}
        if not self._is_read_only and "target_session_attrs" not in conninfo_to_dict(self._url):
            chosen["target_session_attrs"] = "read-write"  # of several hosts, the one that is no standby
        connection: psycopg.Connection[tuple[Any, ...]] = psycopg.connect(
            self._url,
            **chosen,
            autocommit=True,
            connect_timeout=CONNECT_SECONDS,
            application_name=self._name,
            client_encoding="utf8",
            keepalives_idle=10,
            keepalives_interval=5,
            keepalives_count=3,
            tcp_user_timeout=20_000,
        )
        # As they are: left to guess, the server would take text for bytes.
        connection.adapters.register_dumper(int, Int8Dumper)
        connection.adapters.register_dumper(str, StrDumper)
        for kind in ("text", "varchar", "name"):
            connection.adapters.register_loader(kind, _Text)
        connection.adapters.register_loader("numeric", _Sum)
        for name, value in settings.items():
            connection.execute("SELECT set_config(%s, %s, false)", (name, value))
        return connection

    @property
    def is_lost(self) -> bool:
        return self._connection.closed

    @property
    def in_transaction(self) -> bool:
        return self._connection.info.transaction_status is not pq.TransactionStatus.IDLE

    def reopen(self) -> None:
        self.close()
        self._connection = self._opened()

    def execute(self, statements: str, values: Sequence[Any] | None = None, /) -> Cursor:
        cursor = Cursor(self._connection)
        cursor.execute(statement(statements), bindings(values) if values else None, binary=True)
        self._count(cursor)
        return cursor

    def commit(self) -> None:
        """StoreError where nothing was: after a statement that failed PostgreSQL rolls back, and reports no error."""
        done = self.execute("COMMIT").statusmessage
        if done != "COMMIT":
            raise StoreError(f"the transaction was given up ({done}): nothing was stored; run `offbook doctor`")

    def executemany(self, statements: str, rows: Iterable[Sequence[Any]], /) -> None:
        """Sent in one go."""
        given = [bindings(row) for row in rows]
        if given:
            cursor = Cursor(self._connection)
            cursor.executemany(statement(statements), given)
            self._count(cursor)

    def script(self, statements: str) -> None:
        """Several statements without parameters, as they are."""
        self._connection.execute(statements)

    def rows_kept_by_vacuum(self, table: str) -> int:
        """Write the table anew; returns how many dead rows it still holds, because some transaction may see them."""
        details: list[str] = []

        def note(told: errors.Diagnostic) -> None:
            details.append(told.message_detail or "")

        self._connection.add_notice_handler(note)
        try:
            self.script(f"VACUUM (FULL, VERBOSE) {table}")
        finally:
            self._connection.remove_notice_handler(note)
        # "3 dead row versions cannot be removed yet", in the server's language.
        return sum(int(found[0]) for detail in details if (found := re.match(r"\s*(\d+)", detail)))

    def _count(self, cursor: Cursor) -> None:
        if cursor.description is None:  # those that were asked for are no changes
            self._changes = max(cursor.rowcount, 0)
            self._total_changes += self._changes

    def changes(self) -> int:
        return self._changes

    def total_changes(self) -> int:
        return self._total_changes

    def close(self) -> None:
        with suppress(psycopg.Error):
            self._connection.close()

    def __enter__(self) -> PostgresConnection:
        """One moment for who reads; for who writes, the transaction that is under way goes on."""
        if not self._blocks and not self.in_transaction:
            self.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            self._is_ours = True
        self._blocks += 1
        return self

    def __exit__(self, kind: Any, _error: Any, _traceback: Any, /) -> None:
        self._blocks -= 1
        if self._is_ours and not self._blocks:
            self._is_ours = False
            if not self.is_lost:
                self.execute("COMMIT" if kind is None else "ROLLBACK")
