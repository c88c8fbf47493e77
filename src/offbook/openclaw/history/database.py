"""The host's database of an agent, read beside a host that may be running."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import zstandard

from offbook.client.history.conversations import Damage
from offbook.client.history.databases import FAULTS, connected, is_in_use
from offbook.client.history.fields import any_time_of
from offbook.client.history.files import LONGEST_EVENT_BYTES
from offbook.openclaw.history.lines import Event, event_of

ROWS_AT_A_TIME = 500
"""A read this long keeps the host's checkpoint waiting: no longer than one batch takes to send."""


class Window(NamedTuple):
    """One session id of a session key."""

    session_id: str
    session_key: str
    created_at_ms: int
    events: int


class Archive(NamedTuple):
    """A transcript that was deleted or reset, kept in the database itself; a file may hold it as well."""

    session_id: str
    session_key: str
    name: str
    is_cold: bool = False


class Database:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_immutable = not is_in_use(path)
        self._connection = connected(path, is_immutable=self.is_immutable)
        self._as_opened = self._looks()
        self._tables = {name for (name,) in self._connection.execute("SELECT name FROM sqlite_master")}

    def close(self) -> None:
        self._connection.close()

    def was_changed(self) -> bool:
        """Whether somebody wrote into it while we took it for unused: what was read then may be anything."""
        return self.is_immutable and self._looks() != self._as_opened

    def _looks(self) -> tuple[int, int]:
        status = self.path.stat()
        return status.st_mtime_ns, status.st_size

    def windows(self) -> list[Window]:
        if not {"session_windows", "transcript_events"} <= self._tables:
            return []
        rows = self._connection.execute(
            "SELECT w.session_id, w.session_key, "
            "coalesce((SELECT created_at FROM transcript_events e WHERE e.session_id = w.session_id "
            "ORDER BY seq LIMIT 1), w.created_at), "
            "(SELECT count(*) FROM transcript_events e WHERE e.session_id = w.session_id) FROM session_windows w"
        )
        return [Window(*row) for row in rows]

    def forgotten(self) -> list[str]:
        """Session ids that `openclaw memory forget` named: their owner wants them in no memory again."""
        if "memory_session_tombstones" not in self._tables:
            return []
        rows = self._connection.execute("SELECT session_id FROM memory_session_tombstones")
        return [str(session_id) for (session_id,) in rows]

    def archives(self) -> list[Archive]:
        found: list[Archive] = []
        if "session_transcript_archives" in self._tables:
            rows = self._connection.execute(
                "SELECT session_id, session_key, archive_name FROM session_transcript_archives ORDER BY created_at"
            )
            found += [Archive(*row) for row in rows]
        if "session_transcript_cold_archives" in self._tables:
            rows = self._connection.execute(
                "SELECT a.session_id, w.session_key, a.archive_name FROM session_transcript_cold_archives a "
                "JOIN session_windows w USING (session_id)"
            )
            found += [Archive(*row)._replace(is_cold=True) for row in rows]
        return found

    def archive_blob(self, archive: Archive) -> bytes | None:
        """None where the payload lies in a file only."""
        table = "session_transcript_cold_archives" if archive.is_cold else "session_transcript_archives"
        rows = self._connection.execute(
            f"SELECT archive_blob FROM {table} WHERE archive_name = ?",  # noqa: S608 one of two names
            (archive.name,),
        ).fetchall()
        return rows[0][0] if rows and isinstance(rows[0][0], bytes) else None

    def events(self, session_id: str, where: str) -> Iterator[Event | Damage]:
        """Every message of a window in the order it was written, and every row that is damaged."""
        last, count = -1, ROWS_AT_A_TIME
        while count == ROWS_AT_A_TIME:
            count = 0
            try:
                for sequence, text, compressed, created_at in self._rows(session_id, last):
                    last, count = sequence, count + 1
                    found = _of_row(text, compressed, f"{where} event {sequence}", f"{session_id}:{sequence}")
                    if found is None:
                        continue
                    if isinstance(found, Event) and found.written_at is None:
                        found = found._replace(written_at=any_time_of(created_at))
                    yield found
            except FAULTS as error:
                yield Damage(f"{where} after event {last}", f"cannot be read: {error}", is_whole=True)
                return

    def _rows(self, session_id: str, after: int) -> Iterator[tuple[Any, ...]]:
        compressed = "event_zstd" if self._has_compressed() else "NULL"
        return self._connection.execute(
            f"SELECT seq, event_json, {compressed}, created_at FROM transcript_events "  # noqa: S608 one of two
            "WHERE session_id = ? AND seq > ? ORDER BY seq LIMIT ?",
            (session_id, after, ROWS_AT_A_TIME),
        )

    def _has_compressed(self) -> bool:
        names = self._connection.execute("SELECT name FROM pragma_table_info('transcript_events')")
        return ("event_zstd",) in list(names)


def _of_row(text: Any, compressed: Any, where: str, own_id: str) -> Event | Damage | None:
    if isinstance(compressed, bytes):
        try:
            with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(compressed)) as reader:
                text = reader.read(LONGEST_EVENT_BYTES)
        except zstandard.ZstdError as error:
            return Damage(where, f"cannot be decompressed: {error}")
        if len(text) == LONGEST_EVENT_BYTES:
            return Damage(where, f"longer than {LONGEST_EVENT_BYTES:,} bytes")
    if not isinstance(text, str | bytes):
        return Damage(where, "a row without an event")
    return event_of(text, where, own_id)
