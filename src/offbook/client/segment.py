"""One file of an outbox: lines that are only ever added at its end."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

READ_BYTES = 256 * 1024
LAST_ORDINAL = 2**63 - 1
"""No outbox comes to it; a bad disk might."""


class Queued(NamedTuple):
    """A record in its place: the `ordinal`-th of the outbox, the `lane_ordinal`-th of its lane."""

    ordinal: int
    record: bytes
    lane: str
    lane_ordinal: int


_line = msgspec.json.Decoder(tuple[int, int, str, msgspec.Raw])


def line_of(queued: Queued) -> bytes:
    # A line break between the tokens of a JSON text is blank space; inside a string JSON has none.
    record = queued.record.replace(b"\n", b" ") if b"\n" in queued.record else queued.record
    return b"[%d,%d,%b,%b]\n" % (queued.ordinal, queued.lane_ordinal, msgspec.json.encode(queued.lane), record)


def queued_of(line: bytes) -> Queued | None:
    """The record of a line, or None where a crash or a bad disk left something else."""
    try:
        ordinal, lane_ordinal, lane, record = _line.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not (0 < ordinal <= LAST_ORDINAL and 0 < lane_ordinal <= LAST_ORDINAL):
        return None
    return Queued(ordinal, bytes(record), lane, lane_ordinal)


class Segment:
    """Lines in a file or, while nothing can be written, in memory. `size` counts whole lines only.

    The file stays open as long as there is something in it to read, so that what it holds can still be
    delivered when somebody deletes the folder.
    """

    def __init__(self, path: Path, *, size: int = 0) -> None:
        self.path = path
        self.size = size
        self.is_sealed = True
        self.is_dirty = False
        self.is_damaged = False
        self.damaged_lines = 0
        self._descriptor: int | None = None
        self._memory: bytearray | None = None

    @classmethod
    def create(cls, path: Path) -> Segment:
        segment = cls(path)
        segment._descriptor = _new_file(path)
        segment.is_sealed = False
        return segment

    @classmethod
    def in_memory(cls, path: Path) -> Segment:
        """One that `settle` may later put at `path`."""
        segment = cls(path)
        segment._memory = bytearray()
        segment.is_sealed = False
        return segment

    @property
    def is_in_memory(self) -> bool:
        return self._memory is not None

    @property
    def is_on_disk(self) -> bool:
        if self._memory is not None:
            return False
        return self._descriptor is None or os.fstat(self._descriptor).st_nlink > 0

    def append(self, line: bytes) -> None:
        """One write of one line: whole, or not there at all. Where it raises anything, it is sealed."""
        try:
            if self._memory is not None:
                self._memory += line
            elif self._descriptor is None:
                raise OSError(errno.EBADF, "the segment is closed", str(self.path))
            else:
                self.is_dirty = True
                self._write(self._descriptor, line)
            self.size += len(line)
        except BaseException:
            self.is_sealed = True  # what it ends in now is uncertain, so nothing may follow
            raise

    def _write(self, descriptor: int, line: bytes) -> None:
        if os.write(descriptor, line) != len(line):
            os.ftruncate(descriptor, self.size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))

    def measure(self) -> int:
        """Take `size` from what is there; how many bytes lie behind the last whole line. Raises OSError."""
        if self._memory is not None:
            self.size = len(self._memory)
            return 0
        there = end = os.fstat(self._opened()).st_size
        while end > 0:
            start = max(0, end - READ_BYTES)
            last_break = self._read(start, end - start).rfind(b"\n")
            if last_break >= 0:
                self.size = start + last_break + 1
                return there - self.size
            end = start
        self.size = 0
        return there

    @property
    def ends_whole(self) -> bool:
        if self._memory is not None:
            return len(self._memory) == self.size
        return self._descriptor is not None and os.fstat(self._descriptor).st_size == self.size

    def lines(self, offset: int) -> Iterator[tuple[bytes, int]]:
        """Every whole line from `offset` on, and where it ends. Raises OSError."""
        rest, read_bytes, end = b"", READ_BYTES, self.size
        while offset + len(rest) < end:
            chunk = self._read(offset + len(rest), min(read_bytes, end - offset - len(rest)))
            if not chunk:
                self.is_damaged = True  # somebody cut it short
                return
            *lines, rest = (rest + chunk).split(b"\n")
            read_bytes = READ_BYTES if lines else read_bytes * 2
            for line in lines:
                offset += len(line) + 1
                yield line, offset

    def _read(self, offset: int, size: int) -> bytes:
        if self._memory is not None:
            return bytes(self._memory[offset : offset + size])
        return os.pread(self._opened(), size, offset)

    def _opened(self) -> int:
        if self._descriptor is None:
            self._descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        return self._descriptor

    def lines_backwards(self) -> Iterator[bytes]:
        """Every whole line, the last one first. Raises OSError."""
        end, rest = self.size - 1, b""
        while end > 0:
            start = max(0, end - READ_BYTES)
            rest, *lines = (self._read(start, end - start) + rest).split(b"\n")
            yield from reversed(lines)
            end = start
        yield rest

    def settle(self) -> None:
        """Put what is in memory, or in a file that was deleted, into a file of its own."""
        content = b"".join(line + b"\n" for line, _ in self.lines(0))
        descriptor = _new_file(self.path)
        try:
            if os.write(descriptor, content) != len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
        except BaseException:
            os.close(descriptor)
            self.path.unlink(missing_ok=True)
            raise
        self.close()
        self._descriptor, self._memory, self.is_dirty = descriptor, None, True

    def sync(self) -> None:
        if self.is_dirty and self._descriptor is not None:
            self.is_dirty = False  # before: what is appended meanwhile may not be part of it
            try:
                os.fsync(self._descriptor)
            except OSError:
                self.is_dirty = True
                raise

    def remove(self) -> None:
        """Delete the file; one that holds what was not read is kept under another name. Raises OSError."""
        if self._memory is not None:
            return
        try:
            read_through = self.size
            self.measure()
            if self.damaged_lines or self.is_damaged or self.size > read_through:
                self.path.rename(self.path.with_suffix(".damaged"))
            else:
                self.path.unlink()
        except FileNotFoundError:
            pass  # somebody else did
        finally:
            self.close()

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def _new_file(path: Path) -> int:
    # An interrupted attempt may have left an empty one; the outbox is held, so it is nobody else's.
    if path.exists() and not path.stat().st_size:
        path.unlink()
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)


# ── Where to read on in an outbox while lanes are held, so that what waits is not read again ──


class Mark(NamedTuple):
    """A place before which nothing waits but records of the lanes in `held`; with `is_ahead`, some of these did.

    That stays true: records are added at the end only, and those that went do not come back.
    """

    held: frozenset[str]
    segment: Segment
    offset: int
    is_ahead: bool


class Start(NamedTuple):
    """What is left to read, and how much lies before it."""

    segments: list[Segment]
    offset: int
    passed_bytes: int
    is_ahead: bool


class WayMarks:
    """A mark for each set of lanes, as they come to be held one after another in an attempt."""

    def __init__(self) -> None:
        self._marks: list[Mark] = []

    def start(self, held: frozenset[str], segments: list[Segment], offset: int) -> Start:
        """The furthest place to read from, of those not before `offset` in the first of `segments`."""
        furthest = Start(segments, offset, 0, False)
        for mark in self._marks:
            if mark.held <= held and mark.segment in segments:
                index = segments.index(mark.segment)
                passed_bytes = sum(segment.size for segment in segments[:index]) + mark.offset - offset
                if passed_bytes > furthest.passed_bytes:
                    furthest = Start(segments[index:], mark.offset, passed_bytes, mark.is_ahead)
        return furthest

    def put(self, mark: Mark) -> None:
        """In place of the last one for these lanes. Others stay where they may be of use in the next attempt."""
        self._marks = [each for each in self._marks if each.held < mark.held or each.held > mark.held]
        self._marks.append(mark)
