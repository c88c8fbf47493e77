"""What a host said while nobody listened: a bounded queue on disk.

Every record asked for takes an ordinal, those dropped because the outbox was full as well, so that the
provider can tell what it was never sent. A lane is a sequence counted on its own: one agent's.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from weakref import WeakSet

import msgspec

from offbook.client.outbox_folder import Lane, OutboxBusy, OutboxFolder, State
from offbook.client.segment import Queued, Segment, line_of, queued_of
from offbook.errors import OffbookError

__all__ = ["Outbox", "OutboxBusy", "OutboxClosed", "Queued"]

SEGMENT_BYTES = 4 * 1024 * 1024
SEGMENTS_AT_MOST = 16
"""Each holds a file open, so a large outbox has larger segments instead of more."""
DRAINED_BYTES = 1024 * 1024
"""A segment of this size is left behind once all of it has arrived, so that opening again is quick."""
MEMORY_MAX_BYTES = 8 * 1024 * 1024


class OutboxClosed(OffbookError):
    """This outbox was closed."""

    slug = "outbox-closed"


class Outbox:
    """One process at a time. Threads may append together; one of them delivers."""

    def __init__(self, folder: Path, *, max_bytes: int, segment_bytes: int | None = None) -> None:
        """Raises OutboxBusy. A folder that cannot be written is no error: records stay in memory."""
        self.folder = folder
        self.client_id = f"{folder.name}-{os.urandom(4).hex()}"
        self.opening = os.urandom(3).hex()
        self.last_error: str | None = None
        self._files = OutboxFolder(folder)
        self._max_bytes = max_bytes
        self._segment_bytes = segment_bytes or max(SEGMENT_BYTES, max_bytes // SEGMENTS_AT_MOST)
        self._append_lock = threading.Lock()
        self._save_lock = threading.Lock()
        self._is_closed = False
        self._is_unsaved = False
        self._state = State()
        self._segments: deque[Segment] = deque()
        self._offset = 0
        self._waiting = 0
        self._waiting_bytes = 0
        self._peeked: deque[tuple[int, Segment, int]] = deque()
        _opened.add(self)
        try:
            self._recover()
        except OSError as error:
            self._note(error)

    def _recover(self) -> None:
        self._files.claim()
        self.client_id = self._files.identity(self.client_id)
        self._state = self._files.load()
        found = self._files.recover(self._state)
        self._offset, self._waiting, self._waiting_bytes = found.offset, found.waiting, found.waiting_bytes
        self._segments.extend(found.segments)
        if found.finished:
            self._save()
            self._retire(found.finished)

    # ── asking ──

    def append(self, record: bytes | Callable[[int], bytes], lane: str = "") -> bool:
        """Keep one JSON text; False where there is no room. A callable is given the record's ordinal.

        When it returns True the record survives the end of the process, however it ends. Raises OutboxClosed.
        """
        with self._append_lock:
            if self._is_closed:
                raise OutboxClosed
            state = self._state
            counts = state.lanes.get(lane)
            if counts is None:
                counts = state.lanes[lane] = Lane()
            ordinal = state.asked + 1
            content = record(ordinal) if callable(record) else record
            line = line_of(Queued(ordinal, content, lane, counts.asked + 1))
            state.asked = ordinal
            counts.asked += 1
            if self._waiting_bytes + len(line) <= self._max_bytes and self._write(ordinal, line):
                self._waiting += 1
                self._waiting_bytes += len(line)
                return True
            state.dropped += 1
            counts.dropped += 1
        self._save()
        return False

    def _write(self, ordinal: int, line: bytes) -> bool:
        active = self._segments[-1] if self._segments else None
        if active is None or active.is_sealed or active.size + len(line) > max(self._segment_bytes, len(line)):
            active = self._begin_segment(ordinal)
        try:
            if not active.is_in_memory:
                active.append(line)
                return True
        except OSError as error:
            self._note(error)
            if active.size == 0:
                self._retire([self._segments.pop()])
            active = Segment.in_memory(self._files.segment_path(ordinal))
            self._segments.append(active)
        if sum(each.size for each in self._segments if each.is_in_memory) + len(line) > MEMORY_MAX_BYTES:
            return False
        active.append(line)
        return True

    def _begin_segment(self, ordinal: int) -> Segment:
        try:
            segment = self._files.new_segment(ordinal)
        except OSError as error:
            self._note(error)
            segment = Segment.in_memory(self._files.segment_path(ordinal))
        self._segments.append(segment)
        return segment

    # ── delivering ──

    def peek(self, limit_records: int, limit_bytes: int) -> list[Queued]:
        """The oldest records that wait, at least one if any does. Only `advance` takes them away."""
        with self._append_lock:
            segments, offset, waiting = list(self._segments), self._offset, self._waiting
        found: list[Queued] = []
        self._peeked.clear()
        for segment in segments:
            for line, end in segment.lines(offset):
                queued = queued_of(line)
                if queued is None or queued.ordinal <= self._state.cursor:
                    continue
                limit_bytes -= len(queued.record)
                if found and (limit_bytes < 0 or len(found) >= limit_records):
                    return found
                found.append(queued)
                self._peeked.append((queued.ordinal, segment, end))
            offset = 0
        if not found and waiting:
            self._give_up(waiting)
        return found

    def advance(self, ordinal: int, *, rejected: int = 0) -> None:
        """Everything peeked up to `ordinal` has arrived, but for the `rejected` ones."""
        finished: list[Segment] = []
        with self._append_lock:
            taken = 0
            while self._peeked and self._peeked[0][0] <= ordinal:
                reached, segment, self._offset = self._peeked.popleft()
                taken += 1
                self._state.cursor = reached
                while self._segments[0] is not segment:
                    finished.append(self._segments.popleft())
            if not taken:
                return
            self._state.delivered += taken - rejected
            self._state.rejected += rejected
            self._waiting -= taken
            while len(self._segments) > 1 and self._offset >= self._segments[0].size:
                finished.append(self._segments.popleft())
                self._offset = 0
            if not self._waiting and self._segments[0].size > DRAINED_BYTES:
                finished.append(self._segments.popleft())
                self._offset = 0
            self._waiting_bytes = sum(each.size for each in self._segments) - self._offset
            self._state.damaged += sum(each.damaged_lines for each in finished)
        self._save_cursor()
        if finished:
            # Before the files go: what they say of the lanes is then in the state.
            self._save()
            self._retire(finished)

    def reject(self, queued: Queued, reason: str) -> None:
        """Set a record aside that the provider will never take, where a person can find it."""
        try:
            self._files.set_aside(queued, reason)
        except OSError as error:
            self._note(error)

    def _give_up(self, waiting: int) -> None:
        """Nothing of what should wait can be read any more: say so, and go on with what comes next."""
        with self._append_lock:
            if self._waiting != waiting:
                return
            finished, self._segments = self._segments, deque()
            self._offset = self._waiting = self._waiting_bytes = 0
            self._state.damaged += waiting
            self._state.cursor = self._state.asked
        self.last_error = f"{waiting} records in {self.folder} cannot be read any more"
        self._save()
        self._retire(finished)

    def tend(self) -> None:
        """Bring back to disk what had to stay in memory, and make what waits durable. May take its time."""
        with self._append_lock:
            if self._is_closed:
                return
            try:
                if self._files.claim():
                    self._settle_in()
                for segment in self._segments:
                    if not segment.is_on_disk:
                        segment.settle()
            except (OSError, OutboxBusy) as error:
                self._note(error)
        if self._is_unsaved:
            self._save()
        try:
            for segment in list(self._segments):
                segment.sync()
        except OSError as error:
            self._note(error)

    def _settle_in(self) -> None:
        """In a folder that was made anew, or could not be made before."""
        if self._files.identity(self.client_id) != self.client_id:
            self._files.release()
            raise OutboxBusy(f"{self.folder} is another client's by now")
        self._is_unsaved = True

    def close(self) -> None:
        """Leave what waits on disk for the next process. Safe to call twice."""
        self.tend()
        with self._append_lock:
            if self._is_closed:
                return
            self._is_closed = True
        self._save()
        if not self._waiting:
            self._retire(self._segments)
        self._release()

    def abandon(self) -> None:
        """Let go without a trace, as the end of the process would."""
        self._is_closed = True
        self._release()

    def _release(self) -> None:
        for segment in self._segments:
            segment.close()
        self._files.release()

    def _save_cursor(self) -> None:
        try:
            self._files.save_cursor(self._state)
        except OSError as error:
            self._is_unsaved = True
            self._note(error)

    def _save(self) -> None:
        with self._save_lock:
            with self._append_lock:
                state = msgspec.json.encode(self._state)
            try:
                self._files.save(state)
                self._is_unsaved = False
            except OSError as error:
                self._is_unsaved = True
                self._note(error)

    def _retire(self, segments: Iterable[Segment]) -> None:
        for segment in segments:
            try:
                segment.remove()
            except OSError as error:
                self._note(error)

    def _note(self, error: Exception) -> None:
        self.last_error = str(error)

    # ── what is known ──

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    @property
    def waiting(self) -> int:
        return self._waiting

    @property
    def asked(self) -> int:
        return self._state.asked

    @property
    def cursor(self) -> int:
        """The last ordinal that is done with."""
        return self._state.cursor

    def asked_in(self, lane: str) -> int:
        counts = self._state.lanes.get(lane)
        return counts.asked if counts else 0

    def status(self) -> dict[str, Any]:
        state = self._state
        with self._append_lock:
            in_memory = sum(segment.size for segment in self._segments if segment.is_in_memory)
        return {
            "client": self.client_id,
            "folder": str(self.folder),
            "waiting": self._waiting,
            "waiting_bytes": self._waiting_bytes,
            "in_memory_bytes": in_memory,
            "delivered": state.delivered,
            "dropped": state.dropped,
            "rejected": state.rejected,
            "damaged": state.damaged,
        }


_opened: WeakSet[Outbox] = WeakSet()


def _abandon_after_fork() -> None:
    """In a forked child the outboxes are the parent's; a lock that stayed open here would outlive it."""
    for outbox in list(_opened):
        outbox.abandon()


os.register_at_fork(after_in_child=_abandon_after_fork)
