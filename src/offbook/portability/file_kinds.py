"""What a file is by its first bytes: whoever gives the wrong one is told which it is, and not how it cannot be read."""

from __future__ import annotations

from pathlib import Path

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
        with path.open("rb") as source:
            return no_text(source.read(HEAD_BYTES))
    except OSError:
        return None
