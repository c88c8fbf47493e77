"""The half of an outbox that takes records: any thread may append, at any moment."""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

import msgspec

from offbook.client.outbox_folder import Lane, OutboxBusy, OutboxFolder, State
from offbook.client.segment import Queued, Segment, line_of, queued_of
from offbook.model.errors import OffbookError

SEGMENT_BYTES = 4 * 1024 * 1024
SEGMENTS_AT_MOST = 16
"""Each holds a file open, so a large outbox has larger segments instead of more."""
MEMORY_MAX_BYTES = 8 * 1024 * 1024

logger = logging.getLogger("offbook.client")


class OutboxClosed(OffbookError):
    """This outbox was closed."""

    slug = "outbox-closed"


class OutboxElsewhere(OutboxBusy):
    """What waits in this outbox is meant for another endpoint."""


class Peeked(NamedTuple):
    """A record that was handed out, where it ends, and whether one of a lane that is held waits before it."""

    queued: Queued
    segment: Segment
    end: int
    is_ahead: bool


class Intake:
    def __init__(
        self, folder: Path, *, max_bytes: int, segment_bytes: int | None = None, endpoint: str | None = None
    ) -> None:
        self.folder = folder
        self.client_id = f"{folder.name}-{os.urandom(4).hex()}"
        self.opening = os.urandom(3).hex()
        self.last_error: str | None = None
        self._files = OutboxFolder(folder)
        self._endpoint = endpoint
        self._max_bytes = max_bytes
        self._segment_bytes = segment_bytes or max(SEGMENT_BYTES, max_bytes // SEGMENTS_AT_MOST)
        # A signal handler or a finaliser may append while its own thread is at work in here. `_entry` lets it
        # in, `_at_work` tells it so, and it leaves its record for the one at work.
        self._entry = threading.RLock()
        self._at_work = threading.Lock()
        self._reentered: SimpleQueue[tuple[bytes, str]] = SimpleQueue()
        self._save_lock = threading.Lock()
        self._sync_lock = threading.Lock()
        self._is_closed = False
        self._is_unsaved = False
        self._saved_asked = 0
        self._has_warned_of_memory = False
        self._state = State()
        self._segments: deque[Segment] = deque()
        self._unsurveyed: list[Segment] = []
        self._guessed = (0, 0)
        self._offset = 0
        self._waiting = 0
        self._waiting_bytes = 0
        self._peeked: deque[Peeked] = deque()
        proposed = self.client_id
        try:
            self._recover()
        except OSError as error:
            # Not a word of what lies there may be guessed, so it is left for later, and this starts on its own.
            self._files.release()
            self.client_id, self._state = proposed, State()
            self._note(error)

    def _recover(self) -> None:
        self._files.claim()
        if self._endpoint and self._files.segment_paths():
            destination = self._files.endpoint()
            if destination and destination != self._endpoint:
                self._files.release()
                raise OutboxElsewhere(
                    f"what waits in {self.folder} is meant for {destination}, not for {self._endpoint}"
                )
        self._files.set_endpoint(self._endpoint or "")
        self.client_id = self._files.identity(self.client_id)
        self._state = self._files.load()
        self._saved_asked = self._state.asked
        self._unsurveyed = self._files.segments(self._state)
        if self._unsurveyed:
            # The most it can be, until somebody with time has counted.
            self._waiting = max(1, self._state.asked - self._state.cursor)
            self._waiting_bytes = sum(segment.size for segment in self._unsurveyed)
            self._guessed = self._waiting, self._waiting_bytes
            self._segments.extend(self._unsurveyed)

    def append(self, record: bytes, lane: str = "") -> bool:
        """Keep one JSON text; False where there is no room.

        When it returns True the record survives the end of the process, however it ends. Raises OutboxClosed.
        """
        with self._entry:
            if self._is_closed:
                raise OutboxClosed
            if self._at_work.locked():
                self._reentered.put((record, lane))
                return True
            try:
                with self._at_work:
                    return self._keep(record, lane)
            finally:
                self._keep_reentered()

    def _keep_reentered(self) -> None:
        with self._entry:
            while not self._reentered.empty() and not self._at_work.locked():
                with self._at_work:
                    self._keep(*self._reentered.get())

    def _keep(self, record: bytes, lane: str) -> bool:
        state = self._state
        counts = state.lanes.get(lane)
        if counts is None:
            counts = state.lanes[lane] = Lane()
        ordinal, lane_ordinal = state.asked + 1, counts.asked + 1
        line = line_of(Queued(ordinal, record, lane, lane_ordinal))
        newest = self._segments[-1] if self._segments else None
        before = (newest, newest.size if newest else 0, newest is None or newest.is_sealed)
        counted = (self._waiting, self._waiting_bytes)
        try:
            is_kept = self._waiting_bytes + len(line) <= self._max_bytes and self._write(ordinal, line)
            if is_kept:
                self._waiting += 1
                self._waiting_bytes += len(line)
            else:
                state.dropped += 1
                counts.dropped += 1
                self._is_unsaved = True
            state.asked, counts.asked = ordinal, lane_ordinal
        except BaseException:
            self._waiting, self._waiting_bytes = counted
            self._believe_the_files(*before)
            raise
        return is_kept

    def _believe_the_files(self, newest: Segment | None, size: int, was_sealed: bool) -> None:
        """A signal handler raised in the middle: whether the line is there, only the file knows."""
        for segment in reversed(tuple(self._segments)):
            segment.is_sealed = True
            self._count_growth(segment, size if segment is newest else 0)
            if segment is newest:
                # Where it is known to end in a whole line it goes on: a file for each interruption were too many.
                segment.is_sealed = was_sealed or not segment.ends_whole
                return
            if not segment.size:
                # The next one has the same name.
                self._segments.remove(segment)
                self._retire([segment])

    def _count_growth(self, segment: Segment, size: int) -> bool:
        """Whether the segment holds more than the `size` that was counted; if so it is counted now."""
        try:
            segment.measure()
            if segment.size <= size:
                segment.size = size
                return False
            for line, _ in segment.lines(size):
                queued = queued_of(line)
                if queued is not None:
                    self._state.saw(queued)
                    self._waiting += 1
            self._waiting_bytes += segment.size - size
        except OSError as error:
            segment.size = size
            self._note(error)
            return False
        return True

    def _write(self, ordinal: int, line: bytes) -> bool:
        active = self._segments[-1] if self._segments else None
        if active is None or active.is_sealed or active.size + len(line) > max(self._segment_bytes, len(line)):
            active = self._begin_segment(ordinal)
        try:
            if not active.is_in_memory:
                active.append(line)
                return True
        except OSError as error:
            self._tell_of_memory(error)
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
            if self._segments:
                # So that the next process needs to read no further back than this to know the last ordinals.
                self._files.save(msgspec.json.encode(self._state), by_appender=True)
            segment = self._files.new_segment(ordinal)
        except OSError as error:
            self._tell_of_memory(error)
            segment = Segment.in_memory(self._files.segment_path(ordinal))
        self._segments.append(segment)
        return segment

    def _tell_of_memory(self, error: OSError) -> None:
        self._note(error)
        if not self._has_warned_of_memory:
            self._has_warned_of_memory = True
            logger.warning("messages for %s are kept in memory only: %s", self.folder, error)

    def _retire(self, segments: Iterable[Segment]) -> None:
        for segment in segments:
            try:
                segment.remove()
            except OSError as error:
                self._note(error)

    def _note(self, error: Exception) -> None:
        self.last_error = str(error)
