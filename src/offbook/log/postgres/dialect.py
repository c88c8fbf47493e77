"""Where PostgreSQL's SQL differs from what the shared statements and migrations are written in. All of it is here.

- A parameter is `$1`, not `?`; an index is not named in a query; a list is never empty.
- A whole number has 64 bits whatever its column is called, bytes are BYTEA, and text is compared byte by byte (C).
- The next number of a row is one above the largest, as in SQLite: a sequence would leave gaps where something was
  rolled back, and the same history would get other numbers. Only where several nodes write it comes from a sequence.
- Text cannot hold a NUL. One is written as 01 01, and a 01 as 01 02: the order stays, and JSON text has neither.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import count
from typing import Any

SCHEMA = "offbook"
"""Where the tables lie, whatever else the database holds."""
SEVERAL = "offbook.nodes"
"""Whether several nodes write: a setting of the connection that does."""
ESCAPE = "\x01"

_INDEX_HINT = re.compile(r" INDEXED BY \w+")
_TYPES = {" INTEGER": " BIGINT", " BLOB": " BYTEA", " REAL": " DOUBLE PRECISION", " TEXT": ' TEXT COLLATE "C"'}
_NUMBERED = re.compile(r"CREATE TABLE (\w+) \(\s*(\w+)\s+BIGINT PRIMARY KEY,")


@lru_cache(maxsize=4096)
def statement(sql: str) -> str:
    """A statement as PostgreSQL takes it. None has a `?` that is no parameter."""
    numbers = count(1)
    sql = _INDEX_HINT.sub("", sql).replace(" IN ()", " IN (NULL)")
    return re.sub(r"\?", lambda _: f"${next(numbers)}", sql)


def migration(sql: str) -> str:
    """The same tables."""
    sql = sql.replace(") STRICT, WITHOUT ROWID;", ");").replace(") STRICT;", ");")
    for ours, theirs in _TYPES.items():
        sql = sql.replace(ours, theirs)
    return "\n".join([sql, *_numbering(sql)])


def _numbering(sql: str) -> Iterator[str]:
    for table, column in _NUMBERED.findall(sql):
        yield (
            f"CREATE SEQUENCE {table}_numbers;"  # noqa: S608 - names of ours
            f"CREATE FUNCTION next_{table}() RETURNS BIGINT LANGUAGE plpgsql AS "
            f"$$ BEGIN IF current_setting('{SEVERAL}', true) = 'on' THEN "
            f"RETURN nextval('{SCHEMA}.{table}_numbers'); END IF; "
            f"RETURN (SELECT coalesce(max({column}), 0) + 1 FROM {SCHEMA}.{table}); END $$;"
            f"ALTER TABLE {table} ALTER COLUMN {column} SET DEFAULT next_{table}();"
        )


def bindings(values: Sequence[Any]) -> Sequence[Any]:
    """The values as columns can hold them."""
    if any(isinstance(value, str) and ("\x00" in value or ESCAPE in value) for value in values):
        return [escaped(value) if isinstance(value, str) else value for value in values]
    return values


def escaped(text: str) -> str:
    return text.replace("\x01", "\x01\x02").replace("\x00", "\x01\x01")


def unescaped(text: str) -> str:
    return text.replace("\x01\x01", "\x00").replace("\x01\x02", "\x01")
