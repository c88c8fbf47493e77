"""Transcripts that are JSON lines: plain, compressed, or the envelope of a cold archive. Never held whole."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec
import zstandard

from offbook.client.history.conversations import Damage
from offbook.client.history.fields import any_time_of
from offbook.client.history.files import LONGEST_EVENT_BYTES
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


_SURROGATE = re.compile(r"\\ud[89a-f]", re.IGNORECASE)
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
        if not _SURROGATE.search(text):
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
    """Raises what a damaged file raises: see `FAULTS`."""
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


FAULTS = (OSError, EOFError, zstandard.ZstdError)


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
    except FAULTS as error:
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
