"""A file of JSON lines, read a line at a time: no line fills the memory, and a bad one costs only itself."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from offbook.portability.conversations import Damage
from offbook.portability.file_kinds import HEAD_BYTES, no_text
from offbook.portability.openclaw.events import LONGEST_EVENT_BYTES
from offbook.portability.report import ImportReport
from offbook.portability.wires import decoded

_BLOCK_BYTES = 65_536


class Line(NamedTuple):
    number: int
    fields: dict[str, Any]
    where: str


def readable(files: Iterable[Path], folder: Path, report: ImportReport) -> Iterator[tuple[Path, str, os.stat_result]]:
    """Each that is there, its name in the folder, and what the disk says of it."""
    for each in files:
        name = each.relative_to(folder).as_posix()
        try:
            yield each, name, each.stat()
        except OSError as error:
            report.unreadable += 1
            report.problem(name, f"cannot be read: {error}")


def json_lines(path: Path, name: str, give: str = "") -> Iterator[Line | Damage]:
    """Every object, and every line that is none. What cannot be read from some point on is one damage, and so is a file
    that is something else altogether: then `give` says what to give instead."""
    number = 0
    try:
        with path.open("rb") as source:
            if kind := no_text(source.read(HEAD_BYTES)):
                instead = f": {give}" if give else ""
                yield Damage(name, f"is {kind}, and no file of JSON lines{instead}", is_whole=True)
                return
            source.seek(0)
            while line := source.readline(LONGEST_EVENT_BYTES):
                number += 1
                where = f"{name} line {number}"
                if len(line) == LONGEST_EVENT_BYTES and not line.endswith(b"\n"):
                    _pass_over_the_rest(source)
                    yield Damage(where, f"longer than {LONGEST_EVENT_BYTES:,} bytes")
                elif line.strip():
                    yield line_of(number, line, where)
    except OSError as error:
        yield Damage(f"{name} after line {number}", f"cannot be read: {error}", is_whole=True)


def line_of(number: int, line: bytes, where: str) -> Line | Damage:
    try:
        fields = decoded(line.removeprefix(b"\xef\xbb\xbf"))
    except (ValueError, RecursionError) as error:
        return Damage(where, f"not JSON: {error}")
    return Line(number, fields, where) if isinstance(fields, dict) else Damage(where, "not a JSON object")


def _pass_over_the_rest(source: IO[bytes]) -> None:
    while (part := source.readline(_BLOCK_BYTES)) and not part.endswith(b"\n"):
        pass
