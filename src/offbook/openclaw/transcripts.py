"""Transcripts of the host: JSON lines, plain, compressed, or the envelope of a cold archive, never held whole; and its
databases."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec
import zstandard

from offbook.client.history.conversations import Damage
from offbook.client.history.databases import FAULTS, connected, is_in_use
from offbook.client.history.files import LONGEST_EVENT_BYTES, any_time_of
from offbook.client.recorder import without_surrogates
from offbook.model.files import open_regular

# ── An entry of a transcript: a message, something else, or damage ──


class Event(NamedTuple):
    """One message as the host wrote it. `written_at` is when; what was said may have a time of its own."""

    entry_id: str
    message: dict[str, Any]
    written_at: datetime | None
    size_bytes: int
    where: str


class _Entry(msgspec.Struct):
    type: Any = None
    id: Any = None
    timestamp: Any = None
    message: Any = None


_DECODER = msgspec.json.Decoder(_Entry)


def event_of(raw: bytes | str, where: str, own_id: str) -> Event | Damage | None:
    """None for what is no message. `own_id` is for the oldest transcripts, whose entries have none."""
    try:
        entry = _decoded(raw)
    except (ValueError, RecursionError) as error:  # msgspec's and json's own errors are ValueErrors
        return Damage(where, f"not an entry of a transcript: {error}")
    if entry.type != "message":
        return None
    if not isinstance(entry.message, dict) or not isinstance(entry.message.get("role"), str):
        return Damage(where, "a message without a role")
    entry_id = entry.id if isinstance(entry.id, str) and entry.id else own_id
    return Event(entry_id, entry.message, any_time_of(entry.timestamp), len(raw), where)


def _decoded(raw: bytes | str) -> _Entry:
    try:
        return _DECODER.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = raw if isinstance(raw, str) else raw.decode()
        if "\\ud" not in text.lower():
            raise
    # The host cuts texts between the halves of a character, and JSON of JavaScript may hold such a half.
    return msgspec.convert(without_surrogates(json.loads(text)), _Entry)


_BLOCK_BYTES = 65_536


class Header(NamedTuple):
    """What the first line says of the transcript."""

    session_id: str | None
    timestamp: Any


def opened(path: Path) -> IO[bytes]:
    source = open_regular(path)
    return decompressed(source) if path.suffix == ".zst" else source


def decompressed(source: IO[bytes]) -> IO[bytes]:
    reader = zstandard.ZstdDecompressor().stream_reader(source, read_across_frames=True, closefd=True)
    return io.BufferedReader(reader, _BLOCK_BYTES)


def header(source: IO[bytes]) -> Header:
    """Raises what a damaged file raises: see `FILE_FAULTS`."""
    line = source.readline(LONGEST_EVENT_BYTES)
    try:
        first = msgspec.json.decode(line)
    except (ValueError, RecursionError):
        return Header(None, None)
    if not isinstance(first, dict):
        return Header(None, None)
    named = first.get("sessionId") if first.get("kind") == "header" else first.get("id")
    is_header = first.get("kind") == "header" or first.get("type") == "session"
    return Header(named if is_header and isinstance(named, str) and named else None, first.get("timestamp"))


FILE_FAULTS = (OSError, EOFError, zstandard.ZstdError)


def events(source: IO[bytes], where: str, session_id: str, *, is_cold: bool) -> Iterator[Event | Damage]:
    """Every message in its order, and every line that is damaged. What follows a damaged block is one damage."""
    number = 0
    try:
        with source:
            while line := source.readline(LONGEST_EVENT_BYTES):
                number += 1
                place = f"{where} line {number}"
                if len(line) == LONGEST_EVENT_BYTES and not line.endswith(b"\n"):
                    _pass_over_the_rest(source)
                    yield Damage(place, f"longer than {LONGEST_EVENT_BYTES:,} bytes")
                    continue
                found = _of_line(line, place, f"{session_id}:{number}", is_cold)
                if found is not None:
                    yield found
    except FILE_FAULTS as error:
        yield Damage(f"{where} after line {number}", f"cannot be read: {error}", is_whole=True)


def _of_line(line: bytes, place: str, own_id: str, is_cold: bool) -> Event | Damage | None:
    raw: bytes | str = line
    if not line.strip():
        return None
    if is_cold:
        try:
            record = msgspec.json.decode(line)
            if record["kind"] != "event":
                return None
            raw = record["row"]["event_json"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            return Damage(place, f"not a record of a cold archive: {error}")
        if not isinstance(raw, str):
            return Damage(place, "not a record of a cold archive: its event is no text")
    return event_of(raw, place, own_id)


def _pass_over_the_rest(source: IO[bytes]) -> None:
    while (part := source.readline(_BLOCK_BYTES)) and not part.endswith(b"\n"):
        pass


# ── The host's database of an agent, read beside a host that may be running ──


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
