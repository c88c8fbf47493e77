"""Transcripts that are JSON lines: plain, compressed, or the envelope of a cold archive. Never held whole."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec
import zstandard

from offbook.portability.conversations import Damage
from offbook.portability.openclaw.events import LONGEST_EVENT_BYTES, Event, event_of

_BLOCK_BYTES = 65_536


class Header(NamedTuple):
    """What the first line says of the transcript."""

    session_id: str | None
    timestamp: Any


def opened(path: Path) -> IO[bytes]:
    source = path.open("rb")
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
