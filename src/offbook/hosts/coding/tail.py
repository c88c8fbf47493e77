"""What a transcript holds behind a place, a line at a time and only so much at once."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import IO

from msgspec.structs import asdict

from offbook.hosts.coding.places import Mark, Place
from offbook.portability.conversations import Damage
from offbook.portability.json_lines import Line, line_of
from offbook.portability.openclaw.events import LONGEST_EVENT_BYTES

_BLOCK_BYTES = 65_536
"""Also the most of a line's end that is looked at to know it again."""


def lines_behind(path: Path, place: Place, limit_bytes: int) -> Iterator[tuple[Line | Damage | None, Place]]:
    """Each line and the place behind it; None for an empty one. A line that is not finished is left for the next time.

    Claude Code takes lines back: it cuts the end off and writes it anew, and by the next hook the file may be longer
    than it was. So where another line ends at the place, or none, reading goes on at the newest of the earlier places
    that is still there, else from the beginning: what is read again has the ids it had. Raises OSError."""
    with path.open("rb") as source:
        place = _still_there(source, place)
        earlier = place.begun_here()
        source.seek(place.offset)
        end = place.offset + limit_bytes
        while place.offset < end:
            raw = ending = source.readline(LONGEST_EVENT_BYTES)
            is_whole = raw.endswith(b"\n")
            if not is_whole and (len(raw) < LONGEST_EVENT_BYTES or not (ending := _pass_over(source))):
                return
            ending = ending[-_BLOCK_BYTES:]
            place = Place(
                offset=source.tell(),
                number=place.number + 1,
                length=len(ending),
                digest=_digest(ending),
                earlier=earlier,
            )
            where = f"{path.name} line {place.number}"
            if not is_whole:
                yield Damage(where, f"longer than {LONGEST_EVENT_BYTES:,} bytes"), place
            else:
                yield (line_of(place.number, raw, where) if raw.strip() else None), place


def _still_there(source: IO[bytes], place: Place) -> Place:
    if _ends_as(source, place):
        return place
    for at in range(len(place.earlier) - 1, -1, -1):
        mark = place.earlier[at]
        if _ends_as(source, mark):
            return Place(**asdict(mark), earlier=place.earlier[:at])
    return Place()


def _ends_as(source: IO[bytes], mark: Mark) -> bool:
    """Whether the line that ends there is the one that did. Where that is not known, whether any does."""
    length = mark.length if mark.digest else 1
    if mark.offset < length:
        return mark.offset == 0
    source.seek(mark.offset - length)
    found = source.read(length)
    if not mark.digest:
        return found == b"\n"
    return len(found) == length and _digest(found) == mark.digest


def _digest(ending: bytes) -> str:
    return blake2b(ending, digest_size=16).hexdigest()


def _pass_over(source: IO[bytes]) -> bytes:
    """To the end of the line: its last part, or nothing where it has no end yet."""
    while part := source.readline(_BLOCK_BYTES):
        if part.endswith(b"\n"):
            return part
    return b""
