"""The files of an outbox, and who may touch them.

<folder>/lock              held while a process has the outbox open
<folder>/client            who this outbox speaks for: a name and a random suffix
<folder>/state.json        how far delivery is, and what was ever asked, per lane; replaced atomically
<folder>/cursor            the part of it that changes with every delivery
<folder>/endpoint          where what waits in here is meant to go
<folder>/<ordinal>.jsonl   the records from that ordinal on: [ordinal, lane ordinal, lane, record]
<folder>/rejected.jsonl    records the provider refused for good, with its reason; rejected.1.jsonl … once it is full
"""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from typing import NamedTuple

import msgspec

from offbook.client.segment import Queued, Segment, queued_of
from offbook.model.errors import OffbookError
from offbook.model.plain_names import is_digits
from offbook.model.private_files import OPEN_OURS, make_folders
from offbook.model.types import now

REJECTED_MAX_BYTES = 64 * 1024 * 1024
"""Of one file: a person is to open it, and whoever sends it again reads all of it."""

_REJECTED_ENDINGS = ("jsonl", "leaving", "new")


class OutboxBusy(OffbookError):
    """Another process has this outbox open."""

    slug = "outbox-busy"
    retryable = True


class Lane(msgspec.Struct):
    asked: int = 0
    dropped: int = 0
    ahead: int = 0
    """Up to this ordinal of the lane all have arrived, also behind the cursor: it stands before a lane that is held."""


class State(msgspec.Struct):
    """What outlives the records. The newest ordinals are also in the segments, so it may lag behind them."""

    asked: int = 0
    cursor: int = 0
    delivered: int = 0
    dropped: int = 0
    rejected: int = 0
    damaged: int = 0
    lanes: dict[str, Lane] = {}

    def awaits(self, queued: Queued) -> bool:
        """Whether it has yet to arrive."""
        lane = self.lanes.get(queued.lane)
        return queued.ordinal > self.cursor and (lane is None or queued.lane_ordinal > lane.ahead)

    def saw(self, queued: Queued) -> None:
        self.asked = max(self.asked, queued.ordinal)
        lane = self.lanes.setdefault(queued.lane, Lane())
        lane.asked = max(lane.asked, queued.lane_ordinal)


class Survey(NamedTuple):
    """What an earlier process left: `offset` is where the first record that waits begins."""

    finished: list[Segment]
    damaged: int
    offset: int
    waiting: int
    waiting_bytes: int


class OutboxFolder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: int | None = None
        self._cursor: int | None = None
        self._counted_through = 0

    # ── owning it ──

    def claim(self) -> bool:
        """Make the folder ours; True if it was not. Raises OutboxBusy or OSError."""
        if self.is_ours:
            return False
        self.release()
        make_folders(self.path)
        descriptor = os.open(self.path / "lock", OPEN_OURS, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if isinstance(error, BlockingIOError):
                raise OutboxBusy(f"{self.path} is open in another process") from None
            raise
        self._lock = descriptor
        self._cursor = os.open(self.path / "cursor", OPEN_OURS, 0o600)
        return True

    @property
    def is_ours(self) -> bool:
        """False before `claim`, and after somebody deleted or moved the folder under us."""
        try:
            return self._lock is not None and os.path.samestat(os.fstat(self._lock), (self.path / "lock").stat())
        except OSError:
            return False

    def _require_ours(self) -> None:
        if not self.is_ours:
            raise OSError(errno.ESTALE, "the outbox is not held any more", str(self.path))

    def release(self) -> None:
        """Closing is enough, and all that a forked child may do: unlocking would unlock the parent."""
        descriptors = [self._cursor, self._lock]
        self._cursor = self._lock = None
        for descriptor in descriptors:
            if descriptor is not None:
                os.close(descriptor)

    def identity(self, proposed: str) -> str:
        """The client id kept here, or from now on `proposed`."""
        path = self.path / "client"
        try:
            if known := path.read_text(encoding="ascii").strip():
                return known
        except (FileNotFoundError, UnicodeDecodeError):
            pass
        self._replace(path, proposed.encode())
        return proposed

    def endpoint(self) -> str:
        """Where what waits in here goes, or "" where nobody said."""
        try:
            return (self.path / "endpoint").read_text(encoding="utf-8").strip()
        except (FileNotFoundError, UnicodeDecodeError):
            return ""

    def set_endpoint(self, endpoint: str) -> None:
        if endpoint and endpoint != self.endpoint():
            self._replace(self.path / "endpoint", endpoint.encode())

    # ── state ──

    def load(self) -> State:
        try:
            state = msgspec.json.decode((self.path / "state.json").read_bytes(), type=State)
        except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            # Delivery starts over with what is there; the provider knows the ids of what it has.
            state = State()
        self._counted_through = state.asked
        try:
            cursor, delivered, rejected = map(int, (self.path / "cursor").read_bytes().split())
        except (FileNotFoundError, ValueError):
            return state
        if cursor > state.cursor:
            state.cursor, state.delivered, state.rejected = cursor, delivered, rejected
            state.asked = max(state.asked, cursor)  # what is asked next must not look delivered
        return state

    def save_cursor(self, state: State) -> None:
        """Raises OSError."""
        if self._cursor is None:
            self._require_ours()
        else:
            os.pwrite(self._cursor, b"%020d %020d %020d\n" % (state.cursor, state.delivered, state.rejected), 0)

    def save(self, state: bytes, *, by_appender: bool = False) -> None:
        """Raises OSError. Who appends has a temporary file of its own, to need no lock against who delivers."""
        self._replace(self.path / "state.json", state, ".begun" if by_appender else ".new")

    def _replace(self, path: Path, content: bytes, suffix: str = ".new") -> None:
        self._require_ours()
        temporary = path.with_suffix(suffix)
        descriptor = os.open(temporary, OPEN_OURS | os.O_TRUNC, 0o600)
        try:
            os.write(descriptor, content)
        finally:
            os.close(descriptor)
        temporary.replace(path)

    # ── records ──

    def segment_path(self, ordinal: int) -> Path:
        return self.path / f"{ordinal:020d}.jsonl"

    def new_segment(self, ordinal: int) -> Segment:
        """Raises OSError."""
        self._require_ours()
        return Segment.create(self.segment_path(ordinal))

    def segment_paths(self) -> list[Path]:
        return sorted(path for path in self.path.glob("*.jsonl") if path.stem.isdecimal())

    def segments(self, state: State) -> list[Segment]:
        """What lies here, and `state` brought up to its newest ordinals. A line that a crash tore is cut off.

        Read from the end, and only as far back as the state does not reach: the caller waits for this.
        """
        found = [Segment(path) for path in self.segment_paths()]
        try:
            for segment in found:
                if segment.measure():
                    os.truncate(segment.path, segment.size)
            lines = (line for segment in reversed(found) for line in segment.lines_backwards())
            for queued in map(queued_of, lines):
                if queued is not None and queued.ordinal <= self._counted_through:
                    break
                if queued is not None:
                    state.saw(queued)
        except OSError:
            for segment in found:
                segment.close()
            raise
        return found

    def survey(self, segments: list[Segment], state: State) -> Survey:
        """Count what waits. Raises OSError."""
        finished: list[Segment] = []
        offset = waiting = waiting_bytes = damaged = 0
        for segment in segments:
            done = found = segment.damaged_lines = 0
            try:
                for line, end in segment.lines(0):
                    queued = queued_of(line)
                    if queued is None:
                        segment.damaged_lines += 1
                    else:
                        found += state.awaits(queued)
                        done = done if found else end
            except FileNotFoundError:
                pass  # somebody deleted it
            if not found:
                damaged += segment.damaged_lines
                finished.append(segment)
                continue
            offset = offset if waiting else done
            waiting += found
            waiting_bytes += segment.size
        return Survey(finished, damaged, offset, waiting, waiting_bytes - offset)

    def rejected_paths(self) -> list[Path]:
        """What was refused for good, the oldest first."""
        found = ((rejected_number(path.name), path) for path in self.path.glob("rejected.*"))
        return [path for number, path in sorted(found) if number >= 0 and path.suffix == ".jsonl"]

    def set_aside(self, queued: Queued, reason: str) -> Path:
        """Keep a record that no provider will take where a person can find it, on the disk. Raises OSError."""
        self._require_ours()
        entry = {"at": now(), "reason": reason, "ordinal": queued.ordinal, "record": msgspec.Raw(queued.record)}
        line = msgspec.json.encode(entry) + b"\n"
        path = self._with_room(len(line))
        add_lines(path, line)
        return path

    def _with_room(self, size: int) -> Path:
        """The newest file of what was refused, or the next one."""
        paths = self.rejected_paths()
        if not paths:
            return self.path / "rejected.jsonl"
        newest = paths[-1]
        if newest.stat().st_size + size <= REJECTED_MAX_BYTES:
            return newest
        return self.path / f"rejected.{rejected_number(newest.name) + 1}.jsonl"


def rejected_number(name: str) -> int:
    """Which of the files of what was refused this is, also while it is sent or written again; -1 for any other."""
    begin, *numbers, ending = name.split(".")
    if begin != "rejected" or ending not in _REJECTED_ENDINGS or len(numbers) > 1:
        return -1
    number = numbers[0] if numbers else "0"
    return int(number) if is_digits(number) and (not numbers or number[0] != "0") else -1


def add_lines(path: Path, lines: bytes) -> None:
    """All of them or none, and on the disk: where they came from they are deleted next. Raises OSError."""
    descriptor = os.open(path, OPEN_OURS | os.O_APPEND, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            lines = b"\n" + lines  # half a line that a crash left would make the first one unreadable, too
        if os.write(descriptor, lines) != len(lines):
            os.ftruncate(descriptor, size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
