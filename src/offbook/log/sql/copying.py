"""A whole store from one database into another: every table, row by row, with the numbers that the rows have."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from offbook.log.sql.connection import Connection

ROWS_AT_A_TIME = 500
MIGRATING = "migrating"
"""What the installation has in place of its key while the rest is copied: what of."""

KEYS: dict[str, tuple[str, ...]] = {
    "installation": ("name",),
    "agents": ("agent",),
    "sessions": ("session",),
    "messages": ("place",),
    "marks": ("mark",),
    "audit": ("agent", "seq"),
    "captures": ("agent", "client"),
    "vector_sets": ("vector_set",),
    "vectors": ("number",),
    "holds": ("place",),
    "hold_counts": ("agent",),
    "supersessions": ("old_place", "new_place"),
    "agent_notes": ("agent", "name"),
    "summaries": ("summary",),
    "summary_texts": ("summary",),
    "summary_spans": ("session", "level", "last_seq"),
    "completions": ("completion",),
    "spending": ("day", "agent", "summarizer"),
    "contexts": ("context",),
    "session_notes": ("session", "name"),
    "turn_memories": ("memory",),
    "lessons": ("lesson",),
    "lesson_sources": ("lesson", "place"),
    "erasures": ("erasure",),
}
"""What tells the rows of a table apart. A row comes after those that it refers to, so each table after others."""
INSTALLATION = "installation"
NEWEST_FIRST = frozenset({"summaries"})
"""A summary refers to the one that merges it, which was made later."""
LARGE = frozenset({"messages", "audit", "vectors"})
"""Their rows change only with an event, or are added: to count them is enough to see that something did."""


def copy_tables(source: Connection, target: Connection, *, progress: Callable[[int], None] = lambda rows: None) -> None:
    """All but the installation: whoever copies says when it is whole. Goes on where an earlier copy of the same rows
    broke off. `source` is of one moment."""
    for table in [each for each in KEYS if each != INSTALLATION]:
        while rows := _next_rows(source, target, table):
            marks = ",".join("?" * len(rows[0]))
            with target:
                target.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)  # noqa: S608
            progress(len(rows))


def _next_rows(source: Connection, target: Connection, table: str) -> list[Any]:
    keys = KEYS[table]
    order, beyond = ("DESC", "<") if table in NEWEST_FIRST else ("ASC", ">")
    names, orders = ", ".join(keys), ", ".join(f"{key} {order}" for key in keys)
    backwards = ", ".join(f"{key} {'DESC' if order == 'ASC' else 'ASC'}" for key in keys)
    last = target.execute(f"SELECT {names} FROM {table} ORDER BY {backwards} LIMIT 1").fetchone()  # noqa: S608
    if last is None:
        query, asked = f"SELECT * FROM {table}", ()  # noqa: S608
    else:
        query, asked = f"SELECT * FROM {table} WHERE ({names}) {beyond} ({','.join('?' * len(keys))})", tuple(last)  # noqa: S608
    return source.execute(f"{query} ORDER BY {orders} LIMIT ?", (*asked, ROWS_AT_A_TIME)).fetchall()


def copy_installation(source: Connection, target: Connection) -> None:
    """The last step: with it the copy is what the source was."""
    rows = source.execute("SELECT name, value FROM installation").fetchall()
    with target:
        target.execute("DELETE FROM installation")
        target.executemany("INSERT INTO installation (name, value) VALUES (?,?)", rows)


def count_rows(connection: Connection) -> dict[str, int]:
    return {table: int(connection.execute(f"SELECT count(*) FROM {table}").get) for table in KEYS}  # noqa: S608


def empty_tables(connection: Connection) -> None:
    """Before another source is copied into it."""
    with connection:
        for table in reversed(KEYS):
            connection.execute(f"DELETE FROM {table}")  # noqa: S608


def fingerprint(connection: Connection) -> str:
    """What changes with any row, also where no event tells of it. `connection` is of one moment."""
    found = hashlib.sha256()
    for table, keys in KEYS.items():
        names = ", ".join(keys)
        backwards = ", ".join(f"{key} DESC" for key in keys)
        count = connection.execute(f"SELECT count(*) FROM {table}").get  # noqa: S608
        last = connection.execute(f"SELECT {names} FROM {table} ORDER BY {backwards} LIMIT 1").fetchone()  # noqa: S608
        found.update(repr((table, count, last)).encode())
        if table not in LARGE:
            for row in connection.execute(f"SELECT * FROM {table} ORDER BY {names}"):  # noqa: S608
                found.update(repr(tuple(row)).encode())
    return found.hexdigest()


def is_unfinished(connection: Connection) -> bool:
    """Whether it is a copy that broke off."""
    return connection.execute("SELECT 1 FROM installation WHERE name = ?", (MIGRATING,)).get is not None
