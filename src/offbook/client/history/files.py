"""Files of other programs, read with care: what a file is by its first bytes, what lies under a folder, JSON lines.

Whoever gives the wrong file is told what it is; what is not looked into is told, since a folder that is passed over in
silence looks imported; no line fills the memory, and a bad one costs only itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from offbook.client.history.conversations import Damage, ImportReport
from offbook.client.history.fields import decoded
from offbook.model.files import open_regular

LONGEST_EVENT_BYTES = 64 * 1024 * 1024
"""What is longer is no message anyone can send; a file of rubbish without a line's end must not fill the memory."""
HEAD_BYTES = 1_024
ZIP, DATABASE = "a zip", "an SQLite database"
_BEGINNINGS = {
    b"PK\x03\x04": ZIP,
    b"PK\x05\x06": ZIP,
    b"SQLite format 3\0": DATABASE,
    b"\x1f\x8b": "packed with gzip",
    b"\x28\xb5\x2f\xfd": "packed with zstd",
    b"%PDF-": "a PDF",
    b"\xff\xfe": "a text in UTF-16, where UTF-8 is read",
    b"\xfe\xff": "a text in UTF-16, where UTF-8 is read",
}
LINKS = ("links", "what they lead to lies elsewhere: give that itself")
Why = tuple[str, str]
"""What it is and why it is left out, as a report tells it."""
_BLOCK_BYTES = 65_536


def no_text(head: bytes) -> str | None:
    """What it is instead of a text in UTF-8; None where it may be one."""
    for beginning, kind in _BEGINNINGS.items():
        if head.startswith(beginning):
            return kind
    # A file of JSON that a crash left with NULs in it is still one.
    return "no text" if b"\0" in head and head.lstrip()[:1] not in (b"{", b"[") else None


def kind_of_file(path: Path) -> str | None:
    """As `no_text`. What cannot be opened is told where it is read."""
    try:
        with open_regular(path) as source:
            return no_text(source.read(HEAD_BYTES))
    except OSError:
        return None


def files_under(
    folder: Path, report: ImportReport, left_out: Callable[[str], Why | None] = lambda name: None
) -> Iterator[Path]:
    """In the order of their names, those of a folder before those of the folders in it. `left_out` says by its name
    why a folder is not looked into; one that is a link never is."""

    def unreadable(error: OSError) -> None:
        report.unreadable += 1
        report.problem(str(error.filename), f"cannot be read: {error.strerror}")

    for here, folders, names in os.walk(folder, onerror=unreadable):
        for name in sorted(folders):
            why = LINKS if Path(here, name).is_symlink() else left_out(name)
            if why is not None:
                report.leave(*why)
                folders.remove(name)
        folders.sort()
        yield from (Path(here, name) for name in sorted(names))


class TranscriptLine(NamedTuple):
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


def json_lines(path: Path, name: str, give: str = "") -> Iterator[TranscriptLine | Damage]:
    """Every object, and every line that is none. What cannot be read from some point on is one damage, and so is a file
    that is something else altogether: then `give` says what to give instead."""
    number = 0
    try:
        with open_regular(path) as source:
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


def line_of(number: int, line: bytes, where: str) -> TranscriptLine | Damage:
    try:
        fields = decoded(line.removeprefix(b"\xef\xbb\xbf"))
    except (ValueError, RecursionError) as error:
        return Damage(where, f"not JSON: {error}")
    return TranscriptLine(number, fields, where) if isinstance(fields, dict) else Damage(where, "not a JSON object")


def _pass_over_the_rest(source: IO[bytes]) -> None:
    while (part := source.readline(_BLOCK_BYTES)) and not part.endswith(b"\n"):
        pass
