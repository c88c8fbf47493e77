"""A fresh store out of a damaged one: every row that can still be read, and a stand-in for what the chain says is lost.

    pages ─▶ rows of each table ─▶ agents and sessions named again ─▶ lost messages and events stood in for ─▶ counted

Nothing is made up: a message that cannot be read, or is not what its hash says, becomes a stand-in that says so, and an
event at the end of its agent's chain names it. The damaged file is only read.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from offbook.log.audit_chain import event_hash, fingerprint, message_hash, micros, stand_ins_hash
from offbook.log.sql import reads
from offbook.log.sql.connection import UNREADABLE
from offbook.log.sql.row_ids import MOST_VECTORS, place_of
from offbook.log.sql.schema import latest_version
from offbook.log.sqlite.connection import APPLICATION_ID, open_writer, store_errors
from offbook.log.sqlite.pages import Pages, Row, Value
from offbook.log.sqlite.salvaged_chain import AgentLoss, restored_chain
from offbook.log.sqlite.salvaged_names import EVENTS, name_agents, sound_event
from offbook.log.sqlite.salvaged_tables import mend_derived
from offbook.log.verification import chars_of
from offbook.model.errors import InvalidInput, StoreTooNew
from offbook.model.receipt import FORGOTTEN
from offbook.model.types import LOST, SALVAGE

_TYPES: dict[str, tuple[type, ...]] = {"INTEGER": (int,), "TEXT": (str,), "BLOB": (bytes,), "REAL": (float, int)}
UNTOLD = frozenset({"agent_notes", "session_notes", "lesson_sources"})
"""A row of these that nothing leads to looks like one of another table or of an index."""


class Column(NamedTuple):
    name: str
    types: tuple[type, ...]
    is_needed: bool


class Table(NamedTuple):
    name: str
    columns: list[Column]
    """In the order they are stored."""
    key: int | None
    """Which of them is the row's own number; None in a table without row ids."""
    has_rowid: bool

    def row(self, row: Row) -> tuple[Value, ...] | None:
        """As it is inserted; None where it is no row of this table."""
        if len(row.values) > len(self.columns):
            return None
        values = [*row.values, *[None] * (len(self.columns) - len(row.values))]
        if self.key is not None:
            if values[self.key] is not None or row.rowid is None:
                return None
            values[self.key] = row.rowid
        fits = all(
            isinstance(value, column.types) if value is not None else not column.is_needed
            for value, column in zip(values, self.columns, strict=True)
        )
        is_vector = row.rowid is not None and row.rowid > MOST_VECTORS
        if self.name in ("vectors", "contexts") and is_vector != (self.name == "vectors"):
            return None  # else they look alike
        return tuple(values) if fits else None

    @property
    def insert(self) -> str:
        names = ", ".join(column.name for column in self.columns)
        return f"INSERT OR IGNORE INTO {self.name} ({names}) VALUES ({', '.join('?' * len(self.columns))})"  # noqa: S608


class Salvaged(NamedTuple):
    pages: int
    """That are damaged, as far as something leads to them."""
    messages: int
    agents: list[AgentLoss]
    derived: int
    """Rows of summaries, lessons and the like that went because what they belong to is lost: they are made again."""


def salvage(
    damaged: Path, fresh: Path, *, kept_as: str, names: Sequence[str] = ("main",), installation: str | None = None
) -> Salvaged:
    """`fresh` is made. `kept_as` is told in the chain: where the damaged file will lie. `names`: of agents, tried where
    an agent's own is lost. `installation`: its id, for the same."""
    pages = Pages(damaged)
    try:
        if latest_version() < pages.schema_version < 1_000:
            raise StoreTooNew(
                f"the store has schema version {pages.schema_version}, this Offbook knows up to {latest_version()}: "
                "upgrade Offbook, then salvage it"
            )
        if pages.has_header and pages.application_id != APPLICATION_ID:
            raise InvalidInput(f"{damaged} is a SQLite file of another program: it is left as it is")
        with store_errors():
            connection = open_writer(fresh)
            try:
                connection.execute("PRAGMA foreign_keys = OFF")
                with connection:
                    salvaged = _filled(connection, pages, kept_as, names, installation)
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            finally:
                connection.close()
        return salvaged
    finally:
        pages.close()


def _filled(
    connection: apsw.Connection, pages: Pages, kept_as: str, names: Sequence[str], installation: str | None
) -> Salvaged:
    connection.execute("DELETE FROM installation")
    indexed = _copy(connection, _tables(connection), pages)
    _keep_installation(connection, installation)
    rows: Any = connection.execute("SELECT agent, noted_seq FROM agents").fetchall()
    noted: dict[int, int] = dict(rows)
    name_agents(connection, indexed, names)
    _drop_unsound_events(connection)
    _drop_unsound_messages(connection)
    losses = restored_chain(connection, indexed, noted, kept_as)
    derived = mend_derived(connection)
    messages: int = connection.execute("SELECT count(*) FROM messages").get
    return Salvaged(len(pages.damaged), messages - sum(each.messages for each in losses), losses, derived)


# ── rows ──


def _tables(connection: apsw.Connection) -> dict[str, Table]:
    found = {}
    for name, has_rowid in connection.execute(
        "SELECT name, NOT wr FROM pragma_table_list WHERE schema = 'main' AND name NOT LIKE 'sqlite_%'"
    ).fetchall():
        info: Any = connection.execute("SELECT name, type, [notnull], pk FROM pragma_table_info(?)", (name,)).fetchall()
        own = [column for column, type_, _, pk in info if pk and type_ == "INTEGER"]
        is_numbered = has_rowid and len(own) == 1 and sum(bool(pk) for *_, pk in info) == 1
        stored = info if has_rowid else sorted(info, key=lambda column: column[3] or len(info))
        columns = [Column(each, _TYPES[type_], bool(needed or pk)) for each, type_, needed, pk in stored]
        key = [column.name for column in columns].index(own[0]) if is_numbered else None
        found[str(name)] = Table(str(name), columns, key, bool(has_rowid))
    return found


def _copy(connection: apsw.Connection, tables: Mapping[str, Table], pages: Pages) -> dict[str, list[Row]]:
    """Every row there is. Returns the rows of indexes, by their table: an agent, a session and a message are named
    there, too."""
    indexed: dict[str, list[Row]] = {}
    for tree in pages.trees():
        table = tables.get(tree.table)
        if table is None:
            continue
        if tree.kind == "table":
            rows = (table.row(row) for row in pages.rows(tree.root, is_index=not table.has_rowid))
            connection.executemany(table.insert, (row for row in rows if row is not None))
        else:  # read in any case: so it is known which pages are somebody's
            rows_of_index = list(pages.rows(tree.root, is_index=True))
            if tree.name.startswith("sqlite_autoindex_") or tree.name == "messages_by_id":
                indexed.setdefault(tree.table, []).extend(rows_of_index)
    told = [table for table in tables.values() if table.name not in UNTOLD]
    for row, is_index in pages.unreached():
        fitting = [(table, found) for table in told if table.has_rowid != is_index and (found := table.row(row))]
        if len(fitting) == 1:
            connection.execute(fitting[0][0].insert, fitting[0][1])
    return indexed


def _keep_installation(connection: apsw.Connection, installation: str | None) -> None:
    """Where the key is lost, it is new: it tells our own frames from others'."""
    defaults = {"key": secrets.token_bytes(32), "id": (installation or secrets.token_hex(8)).encode()}
    for name, value in defaults.items():
        connection.execute("INSERT OR IGNORE INTO installation VALUES (?, ?)", (name, value))


# ── what is not as it was written ──


def _drop_unsound_events(connection: apsw.Connection) -> None:
    """What a salvage before put for lost ones goes as a whole where it is not what that one vouched for."""
    for agent, name in connection.execute("SELECT agent, name FROM agents").fetchall():
        unsound: list[int] = []
        stand_ins: dict[int, str] = {}
        vouched: str | None = None
        for row in connection.execute(f"{EVENTS} AND e.agent = ? ORDER BY e.seq", (name, agent)):
            event = sound_event(row)
            if event is None:
                unsound.append(int(row[0]))
            elif event.verb == LOST:
                stand_ins[event.seq] = event_hash(event)
            elif event.verb == SALVAGE:
                vouched = event.details.get("standIns")
        if vouched not in (None, stand_ins_hash(stand_ins.values())):
            unsound += stand_ins
        connection.executemany("DELETE FROM audit WHERE agent = ? AND seq = ?", [(agent, seq) for seq in unsound])


def _drop_unsound_messages(connection: apsw.Connection) -> None:
    """One that was forgotten is not what its hash says, and must not come back as it was. One that came after is
    another with its number: a restore as of a moment gives numbers anew."""
    forgotten = _forgotten_spans(connection)
    unsound, miscounted = [], []
    for row in connection.execute(f"SELECT {reads.MESSAGE_COLUMNS} FROM messages m"):  # noqa: S608
        place, session = row[-2:]
        try:
            logged = reads.logged_message(row)
            is_empty = logged.entry.noise == FORGOTTEN
            counted = (logged.entry.chars, logged.entry.fingerprint)
            is_sound = is_empty or message_hash(logged.seq, logged.received_at, logged.entry) == logged.hash
            comes_back = not is_empty and any(
                first <= place <= last and micros(logged.received_at) <= at
                for first, last, at in forgotten.get(session, ())
            )
            if not is_sound or comes_back or place != place_of(session, logged.seq):
                unsound.append((place,))
            elif not is_empty and counted != (again := (chars_of(logged.entry), fingerprint(logged.message))):
                miscounted.append((*again, place))
        except UNREADABLE:
            unsound.append((place,))
    connection.executemany("DELETE FROM messages WHERE place = ?", unsound)
    connection.executemany("UPDATE messages SET chars = ?, fingerprint = ? WHERE place = ?", miscounted)


def _forgotten_spans(connection: apsw.Connection) -> dict[int, list[tuple[int, int, int]]]:
    """By session: the first and the last place of each stretch, and when it was forgotten."""
    rows: Any = connection.execute(
        """
        SELECT s.session, span.value ->> '$.firstSeq', span.value ->> '$.lastSeq', e.at
        FROM audit e JOIN json_each(e.details, '$.spans') span JOIN sessions s
            ON s.agent = e.agent AND s.key = span.value ->> '$.sessionId'
        WHERE e.verb = 'forget'
        """
    )
    spans: dict[int, list[tuple[int, int, int]]] = {}
    for session, first, last, at in rows:
        spans.setdefault(session, []).append((place_of(session, first), place_of(session, last), at))
    return spans
