"""What a transcript holds behind a place, a line at a time and only so much at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO

from offbook.hosts.coding.places import Place
from offbook.portability.conversations import Damage
from offbook.portability.json_lines import Line, line_of
from offbook.portability.openclaw.events import LONGEST_EVENT_BYTES

_BLOCK_BYTES = 65_536


def lines_behind(path: Path, place: Place, limit_bytes: int) -> Iterator[tuple[Line | Damage | None, Place]]:
    """Each line and the place behind it; None for an empty one. A line that is not finished is left for the next time;
    a file that is shorter than it was is another one. Raises OSError."""
    with path.open("rb") as source:
        if source.seek(0, 2) < place.offset:
            place = Place()
        source.seek(place.offset)
        end = place.offset + limit_bytes
        while place.offset < end:
            raw = source.readline(LONGEST_EVENT_BYTES)
            is_whole = raw.endswith(b"\n")
            if not is_whole and (len(raw) < LONGEST_EVENT_BYTES or not _pass_over(source)):
                return
            place = Place(offset=source.tell(), number=place.number + 1)
            where = f"{path.name} line {place.number}"
            if not is_whole:
                yield Damage(where, f"longer than {LONGEST_EVENT_BYTES:,} bytes"), place
            else:
                yield (line_of(place.number, raw, where) if raw.strip() else None), place


def _pass_over(source: IO[bytes]) -> bool:
    """To the end of the line; False where it has none yet."""
    while part := source.readline(_BLOCK_BYTES):
        if part.endswith(b"\n"):
            return True
    return False
