"""How far each transcript was read: a small file in the data folder, replaced in one step."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

import msgspec

from offbook.errors import OffbookError
from offbook.home import make_private, write_private
from offbook.types import Value

KEPT_DAYS = 90
"""A session that goes on after that is read from its beginning again; what is stored is stored once."""
_PAUSE_SECONDS = 0.02


class ReadByAnother(OffbookError):
    """Another hook reads this transcript now."""


class Mark(Value, frozen=True):
    """Behind a line: how many bytes and how many lines come before, and how that line ended."""

    offset: int = 0
    number: int = 0
    length: int = 0
    digest: str = ""
    """Of the last `length` bytes before `offset`. "" in what an older version kept: it is not known."""


class Place(Mark, frozen=True):
    """How far it was read, and where to go on where the host has taken back what stood there."""

    earlier: tuple[Mark, ...] = ()
    """The oldest first, the closer the nearer: few of them, however long the transcript is."""

    def begun_here(self) -> tuple[Mark, ...]:
        """`earlier` for the places behind this one."""
        here = Mark(offset=self.offset, number=self.number, length=self.length, digest=self.digest)
        return thinned((*self.earlier, here)) if self.digest else self.earlier


def thinned(marks: tuple[Mark, ...]) -> tuple[Mark, ...]:
    """Of those that are about as far from the newest one the oldest, which will be the next distance's in its turn."""
    kept: dict[int, Mark] = {}
    for mark in marks:
        kept.setdefault((marks[-1].offset - mark.offset).bit_length(), mark)
    return tuple(kept.values())


class Places:
    """`reader`: for whom it is read. A session that two hooks record, each for an agent of its own, is read by both."""

    def __init__(self, folder: Path, reader: str = "") -> None:
        self._folder = folder
        self._reader = reader

    @contextmanager
    def held(self, transcript: Path, *, patience_seconds: float) -> Iterator[None]:
        """Hooks of one session may run beside each other. Raises ReadByAnother, OSError."""
        make_private(self._folder.parent)
        make_private(self._folder)
        handle = os.open(self._file(transcript, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _lock(handle, time.monotonic() + patience_seconds)
            yield
        finally:
            os.close(handle)

    def of(self, transcript: Path) -> Place:
        """The beginning, where nobody has read it, or the file that said so cannot be read."""
        try:
            return msgspec.json.decode(self._file(transcript, "json").read_bytes(), type=Place)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return Place()

    def keep(self, transcript: Path, place: Place) -> None:
        write_private(self._file(transcript, "json"), msgspec.json.encode(place).decode(), is_durable=False)

    def thin_out(self) -> None:
        oldest = time.time() - KEPT_DAYS * 86_400
        for path in self._folder.glob("*"):
            with suppress(OSError):
                if path.stat().st_mtime < oldest:
                    path.unlink()

    def _file(self, transcript: Path, ending: str) -> Path:
        # A digest: the path may be longer than a name can be, and no two of them may meet.
        named = os.fsencode(transcript.absolute()) + b"\0" + self._reader.encode(errors="replace")
        digest = sha256(named).hexdigest()[:32]
        return self._folder / f"{digest}.{ending}"


def _lock(handle: int, until: float) -> None:
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= until:
                raise ReadByAnother("another hook reads this transcript: the next one reads what is left") from None
            time.sleep(_PAUSE_SECONDS)
