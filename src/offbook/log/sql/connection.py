"""What the SQL of the store asks of a connection, and reading rows that somebody damaged.

The statements are SQLite's, in the part of the language that PostgreSQL takes, too: `?` for a parameter, RETURNING and
not the last row's number, the table's name before a column of an upsert. What is left is put right in
`postgres.dialect`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import apsw
import msgspec

from offbook.model.errors import StoreCorrupt

Bindings = Sequence[Any] | Mapping[str, Any]


class Rows(Protocol):
    """The rows of one statement."""

    def __iter__(self) -> Iterator[Any]: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def close(self) -> None: ...

    @property
    def get(self) -> Any:
        """The one value of the one row; None where there is none."""


class Connection(Protocol):
    """One thread's. `with connection:` is one moment for those who read, all or nothing for those who write."""

    def execute(self, statements: str, bindings: Any = None, /) -> Rows: ...

    def executemany(self, statements: str, sequenceofbindings: Iterable[Any], /) -> Any: ...

    def changes(self) -> int:
        """Rows that the last statement changed."""

    def total_changes(self) -> int:
        """Rows changed since it was opened."""

    def close(self) -> None: ...

    def __enter__(self) -> Any: ...

    def __exit__(self, etype: Any, evalue: Any, etraceback: Any, /) -> bool | None: ...


# ── Rows that somebody damaged: what reading them raises, and how it is told ──

UNREADABLE = (msgspec.MsgspecError, TypeError, ValueError, OverflowError, AttributeError, RecursionError)
"""No UTF-8, no JSON, JSON of another shape, a time out of all time."""
DAMAGED = (*UNREADABLE, apsw.CorruptError, StoreCorrupt)
"""The same, or the database cannot even give the row."""
NO_SUCH_TABLE = apsw.SQLError
"""In a file that was not migrated yet. A database is never read before it is."""


@contextmanager
def reading(what: str) -> Iterator[None]:
    try:
        yield
    except UNREADABLE as error:
        raise StoreCorrupt(f"{unreadable(what, error)}: `offbook audit --verify` finds what else is damaged") from error


def unreadable(what: str, error: Exception) -> str:
    return f"{what} cannot be read ({type(error).__name__}: {error})"


def only_row(connection: Connection, query: str, bindings: tuple[str | int, ...]) -> tuple[Any, ...]:
    row: tuple[Any, ...] | None = connection.execute(query, bindings).fetchone()
    if row is None:
        raise ValueError("it is gone")
    return row
