"""`continuity.db`, the index of the continuity plugin: what was said as exchanges, a question and its answer.

Only the tables that hold text are read: the vectors lie in virtual tables of an extension that is not needed for that.
Where the archives lie beside the database they know more of an exchange than it does: its session, and the time of
the answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from offbook.client.history.conversations import Conversation, Damage, Damaged, ImportReport, Ready
from offbook.client.history.databases import FAULTS, connected, format_fault, is_in_use
from offbook.client.history.files import decoded, dictionary, iso, moment_of, owner_in
from offbook.client.history.formats import FORMATS, Owner
from offbook.transfer.documents.archive_days import (
    AGENT,
    FOLDER,
    ROLES,
    USER,
    DayMessage,
    ExchangeNumbers,
    base,
    read_day,
    unnamed_session,
)

NAME = "continuity.db"
COLUMNS = ("id", "date", "exchange_index", "user_text", "agent_text", "metadata", "topic_tags", "thread_id")
NEEDED = frozenset({"date", "user_text", "agent_text"})
NOT_TAKEN = {
    "vec_exchanges_rowids": ("vectors", "of another model: made anew"),
    "summaries": ("summaries", "Offbook makes its own from the messages"),
    "knowledge_entries": ("notes", "not said by anybody: `offbook import markdown` reads the files they came from"),
    "topic_hierarchy": ("topics", "found anew in the messages"),
}
"""By table. The first is the only part of the table of vectors that can be read without its extension."""


class ExchangeSide(NamedTuple):
    """One side of an exchange."""

    key: str
    ready: Ready


def conversations(path: Path, report: ImportReport, owner: Owner) -> list[Conversation]:
    file = path / NAME if path.is_dir() else path
    if path.is_dir() and not file.exists():
        report.cannot_read(str(path), f"holds no {NAME}: give the file itself, or the folder that holds it")
        return []
    owner = owner_in(file.absolute().parent / FOLDER, owner)
    unnamed = unnamed_session(owner)
    sizes: Counter[str] = Counter()
    try:
        with closing(_opened(file)) as connection:
            _leave_the_rest(connection, report)
            for found in _exchange_sides(connection, file, unnamed, report.note_time):
                if isinstance(found, ExchangeSide):
                    sizes[found.key] += found.ready.size_bytes
                elif found is None:
                    report.leave("texts", "the plugin kept nothing of them")
                else:
                    report.agent(owner(unnamed)).skipped += 1
                    report.problem(found.where, found.reason)
    except (*FAULTS, _NoExchanges) as error:
        report.cannot_read(str(file), f"{format_fault(error)}: {FORMATS['continuity-db'].give}")
    return [Conversation(owner(key), key, size, partial(_messages, file, key, unnamed)) for key, size in sizes.items()]


class _NoExchanges(Exception):
    def __init__(self) -> None:
        super().__init__("it has no table of exchanges")


def _opened(file: Path) -> apsw.Connection:
    file.stat()  # SQLite says of a missing file only that it cannot be opened
    return connected(file, is_immutable=not is_in_use(file))


def _messages(file: Path, key: str, unnamed: str, damaged: Damaged) -> Iterator[Ready]:
    try:
        with closing(_opened(file)) as connection:
            for found in _exchange_sides(connection, file, unnamed):
                if isinstance(found, ExchangeSide) and found.key == key:
                    yield found.ready
    except (*FAULTS, _NoExchanges) as error:
        damaged(Damage(str(file), f"cannot be read: {error}", is_whole=True))


def _leave_the_rest(connection: apsw.Connection, report: ImportReport) -> None:
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    for table, (what, why) in NOT_TAKEN.items():
        if table in tables:
            rows: list[Any] = connection.execute(f"SELECT count(*) FROM {table}").fetchall()  # noqa: S608 from above
            if rows[0][0]:
                report.leave(what, why, rows[0][0])


def _exchange_sides(
    connection: apsw.Connection,
    file: Path,
    unnamed: str,
    note_time: Callable[[Any, datetime | None], None] = lambda given, understood: None,
) -> Iterator[ExchangeSide | Damage | None]:
    """Both sides of every exchange in order; None for one without text."""
    archives = _Archives(file.absolute().parent / FOLDER, unnamed)
    numbering = ExchangeNumbers()
    for rowid, row in _rows(connection):
        where = f"{file} {row['id'] or f'exchange {rowid}'}"
        at = _time_of(row)
        if at is None:
            yield Damage(where, "has no time")
            continue
        metadata = _metadata(row)
        note_time(metadata.get("timestamp"), moment_of(metadata.get("timestamp")))
        meta = {name: row[column] for name, column in _META.items() if isinstance(row[column], str) and row[column]}
        for sender, column, flag in ((USER, "user_text", "hasUser"), (AGENT, "agent_text", "hasAgent")):
            text = row[column]
            if metadata.get(flag) is False and not text:
                continue
            name = base(iso(at), sender)
            archived = archives.message(row["date"], name)
            key = archived.session if archived else unnamed
            own_id = numbering.id_of(key, name)
            if not text:
                yield None
            elif not isinstance(text, str):
                yield Damage(where, f"its {column} is no text")
            else:
                said_at = archived.at if archived else at
                wire: dict[str, Any] = {"id": own_id, "role": ROLES[sender], "content": text, "ts": iso(said_at)}
                if meta:
                    wire["meta"] = meta
                yield ExchangeSide(key, Ready(wire, said_at, len(text.encode(errors="replace")), where))


_META = {"exchangeId": "id", "topicTags": "topic_tags", "threadId": "thread_id"}


def _rows(connection: apsw.Connection) -> Iterator[tuple[int, dict[str, Any]]]:
    """One at a time: a read that lasts as long as an import would keep the plugin's checkpoint waiting."""
    there = {name for (name,) in connection.execute("SELECT name FROM pragma_table_info('exchanges')")}
    if not there >= NEEDED:
        raise _NoExchanges
    order = "date, exchange_index, rowid" if "exchange_index" in there else "date, rowid"
    chosen = ", ".join(name if name in there else f"NULL AS {name}" for name in COLUMNS)
    rowids = [rowid for (rowid,) in connection.execute(f"SELECT rowid FROM exchanges ORDER BY {order}")]  # noqa: S608
    for rowid in rowids:
        rows = connection.execute(f"SELECT {chosen} FROM exchanges WHERE rowid = ?", (rowid,)).fetchall()  # noqa: S608
        if rows:
            yield rowid, dict(zip(COLUMNS, rows[0], strict=True))


def _metadata(row: dict[str, Any]) -> dict[str, Any]:
    try:
        return dictionary(decoded(row["metadata"])) if isinstance(row["metadata"], str) else {}
    except (ValueError, RecursionError):
        return {}


def _time_of(row: dict[str, Any]) -> datetime | None:
    return moment_of(_metadata(row).get("timestamp")) or moment_of(row["date"])


class _Archives:
    """The archive of the day at hand, where there is one."""

    def __init__(self, folder: Path, unnamed: str) -> None:
        self._folder = folder
        self._unnamed = unnamed
        self._date: Any = None
        self._messages: dict[str, DayMessage] = {}

    def message(self, date: Any, name: str) -> DayMessage | None:
        if date != self._date:
            self._date, self._messages = date, self._read(date)
        return self._messages.get(name)

    def _read(self, date: Any) -> dict[str, DayMessage]:
        file = self._folder / f"{date}.json"
        if not isinstance(date, str) or not date.replace("-", "").isdigit() or not file.is_file():
            return {}
        day = read_day(file, self._unnamed)
        return {} if isinstance(day, Damage) else {message.base: message for message in reversed(day.messages)}
