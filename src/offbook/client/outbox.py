"""What a host said while nobody listened: a bounded queue on disk.

Every record asked for takes an ordinal, those dropped because the outbox was full as well, so that the
provider can tell what it was never sent. A lane is a sequence counted on its own: one agent's.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from weakref import WeakSet

import msgspec

from offbook.client.outbox_folder import Lane, OutboxBusy, OutboxFolder
from offbook.client.outbox_intake import Intake, OutboxClosed, OutboxElsewhere, Peeked
from offbook.client.segment import Mark, Queued, Segment, WayMarks, queued_of

__all__ = ["Outbox", "OutboxBusy", "OutboxClosed", "OutboxElsewhere", "Queued"]

DRAINED_BYTES = 1024 * 1024
"""A segment of this size is left behind once all of it has arrived, so that opening again is quick."""

logger = logging.getLogger("offbook.client")


class Outbox(Intake):
    """One process at a time. Threads may append together; one of them delivers."""

    def __init__(
        self, folder: Path, *, max_bytes: int, segment_bytes: int | None = None, endpoint: str | None = None
    ) -> None:
        """Raises OutboxBusy. A folder that cannot be written is no error: records stay in memory.

        Without an `endpoint` it is opened wherever its records are meant to go.
        """
        _opened.add(self)
        self.passed_bytes = 0
        """What `peek` last left lying: records of a lane that is held, and those that went ahead of it."""
        self._marks = WayMarks()
        super().__init__(folder, max_bytes=max_bytes, segment_bytes=segment_bytes, endpoint=endpoint)

    # ── delivering ──

    def survey(self) -> None:
        """Count what an earlier process left. Raises OSError."""
        segments = self._unsurveyed
        if not segments:
            return
        found = self._files.survey(segments, self._state)
        with self._entry, self._at_work:
            self._unsurveyed = []
            self._offset = found.offset
            # Nothing is delivered before it is counted, so all that changed since is what was appended.
            fresh = [segment for segment in self._segments if segment not in segments]
            self._segments = deque([*(each for each in segments if each not in found.finished), *fresh])
            self._waiting += found.waiting - self._guessed[0]
            self._waiting_bytes += found.waiting_bytes - self._guessed[1]
            self._state.damaged += found.damaged
        if found.finished:
            self._save()
            self._retire(found.finished)

    def peek(self, limit_records: int, limit_bytes: int, held: Iterable[str] = ()) -> list[Queued]:
        """The oldest records that wait, at least one if any does. Only `advance` takes them away.

        Those of lanes that are `held` stay where they are. Raises OSError where they cannot be read now.
        """
        self._keep_reentered()
        self.survey()
        with self._entry, self._at_work:
            segments, offset, waiting = list(self._segments), self._offset, self._waiting
        found: list[Queued] = []
        self._peeked.clear()
        lanes, mark = frozenset(held), None
        segments, offset, self.passed_bytes, is_ahead = self._marks.start(lanes, segments, offset)
        for segment in segments:
            try:
                for line, end in segment.lines(offset):
                    queued = queued_of(line)
                    awaits = queued is not None and self._state.awaits(queued)
                    if queued is None or not awaits or queued.lane in lanes:
                        is_ahead = is_ahead or awaits
                        self.passed_bytes += len(line)
                        if lanes and not found:
                            mark = Mark(lanes, segment, end, is_ahead)
                        continue
                    if mark and not found:
                        self._marks.put(mark)
                    limit_bytes -= len(queued.record)
                    if found and (limit_bytes < 0 or len(found) >= limit_records):
                        return found
                    found.append(queued)
                    self._peeked.append(Peeked(queued, segment, end, is_ahead))
            except OSError:
                if found:
                    return found
                raise
            offset = 0
        if mark and not found:
            self._marks.put(mark)
        if not found and waiting and not is_ahead:
            self._give_up(waiting)
        return found

    def advance(self, ordinal: int, *, rejected: int = 0) -> None:
        """Everything peeked up to `ordinal` has arrived, but for the `rejected` ones."""
        finished: list[Segment] = []
        with self._entry, self._at_work:
            # Where a bad disk changed an ordinal, one that is behind it is smaller.
            taken = max((at for at, each in enumerate(self._peeked, 1) if each.queued.ordinal <= ordinal), default=0)
            went_ahead = False
            for _ in range(taken):
                queued, segment, end, went_ahead = self._peeked.popleft()
                if went_ahead:
                    self._state.lanes.setdefault(queued.lane, Lane()).ahead = queued.lane_ordinal
                    continue
                self._state.cursor, self._offset = queued.ordinal, end
                while self._segments[0] is not segment:
                    finished.append(self._segments.popleft())
            if not taken:
                return
            self._state.delivered += taken - rejected
            self._state.rejected += rejected
            self._waiting -= taken
            while len(self._segments) > 1 and self._is_done(self._segments[0]):
                finished.append(self._segments.popleft())
                self._offset = 0
            first = self._segments[0]
            if not self._waiting and (first.size > DRAINED_BYTES or first.is_in_memory) and self._is_done(first):
                finished.append(self._segments.popleft())
                self._offset = 0
            self._waiting_bytes = sum(each.size for each in self._segments) - self._offset
            self._state.damaged += sum(each.damaged_lines for each in finished)
        self._save_cursor()
        if finished or went_ahead:
            # Before the files go: what they say of the lanes is then in the state.
            self._save()
            self._retire(finished)

    def _is_done(self, segment: Segment) -> bool:
        """Whether the first segment was delivered to its end, the one its file has."""
        return self._offset >= segment.size and not self._count_growth(segment, segment.size)

    def reject(self, queued: Queued, reason: str) -> Path | None:
        """Set a record aside that the provider will never take, where a person can find it.

        Raises OSError where that cannot be done now: the record must wait. None where there is no folder to be had at
        all: it was in memory only, and all that came after it would be lost with it.
        """
        try:
            return self._files.set_aside(queued, reason)
        except OSError as error:
            self._note(error)
            self.tend()  # a folder that was deleted is made again
            if self._files.is_ours:
                raise
            return None

    def _give_up(self, waiting: int) -> None:
        """All that should wait was read and holds no record: say so, and go on with what comes next."""
        with self._entry, self._at_work:
            grown = [self._count_growth(segment, segment.size) for segment in self._segments]
            if self._waiting != waiting or any(grown):
                return
            finished, self._segments = self._segments, deque()
            self._offset = self._waiting = self._waiting_bytes = 0
            self._state.damaged += waiting
            self._state.cursor = self._state.asked
        for segment in finished:
            segment.is_damaged = True
        self.last_error = f"{waiting} records in {self.folder} cannot be read any more"
        logger.error("%s; the files are kept there as *.damaged", self.last_error)
        self._save()
        self._retire(finished)

    def tend(self) -> None:
        """Bring back to disk what had to stay in memory, and make what waits durable. May take its time."""
        self._keep_reentered()
        with self._entry, self._at_work:
            if self._is_closed:
                return
            try:
                self._settle()
            except (OSError, OutboxBusy) as error:
                self._note(error)
        if self._is_unsaved or self._saved_asked != self._state.asked:
            self._save()
        try:
            with self._sync_lock:
                for segment in list(self._segments):
                    segment.sync()
        except OSError as error:
            self._note(error)

    def sync(self) -> bool:
        """Make what waits durable now; False where that cannot be done."""
        self.tend()
        with self._sync_lock:
            return not any(segment.is_in_memory or segment.is_dirty for segment in list(self._segments))

    def _settle(self) -> None:
        try:
            is_new = self._files.claim()
            if is_new and self._files.identity(self.client_id) != self.client_id:
                raise OutboxBusy(f"{self.folder} is another client's by now")
        except OutboxBusy:
            self._move()
            is_new = self._files.claim()
            self._files.identity(self.client_id)
        if is_new:
            self._files.set_endpoint(self._endpoint or "")
            self._is_unsaved = True
        for segment in self._segments:
            if not segment.is_on_disk:
                segment.settle()
        self._has_warned_of_memory = False

    def _move(self) -> None:
        """To a folder that nobody has: what this one's records are called is taken where it was."""
        self._files.release()
        number = int.from_bytes(os.urandom(4))
        self.folder = self.folder.with_name(f"{self.folder.name.partition('~')[0]}~{number}")
        self._files = OutboxFolder(self.folder)
        for segment in self._segments:
            segment.path = self.folder / segment.path.name

    def close(self) -> None:
        """Leave what waits on disk for the next process. Safe to call twice. What is in memory only is lost."""
        self.tend()
        with self._entry, self._at_work:
            if self._is_closed:
                return
            self._is_closed = True
            lost = self._drop_memory()
        if lost:
            logger.error("%d messages for %s were in memory only and are lost: %s", lost, self.folder, self.last_error)
        self._save()
        if not self._waiting:
            self._retire(self._segments)
        self._release()

    def _drop_memory(self) -> int:
        lost = 0
        for segment in [each for each in self._segments if each.is_in_memory]:
            for queued in (queued_of(line) for line, _ in segment.lines(0)):
                if queued is not None and self._state.awaits(queued):
                    self._state.lanes[queued.lane].dropped += 1
                    lost += 1
            self._segments.remove(segment)
        self._state.dropped += lost
        self._waiting -= lost
        return lost

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
            with self._entry, self._at_work:
                state, asked = msgspec.json.encode(self._state), self._state.asked
                self._is_unsaved = False
            try:
                self._files.save(state)
                self._saved_asked = asked
            except OSError as error:
                self._is_unsaved = True
                self._note(error)

    # ── what is known ──

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    @property
    def waiting(self) -> int:
        return self._waiting + self._reentered.qsize()

    @property
    def needs_tending(self) -> bool:
        return self._is_unsaved or self.in_memory_bytes > 0

    @property
    def in_memory_bytes(self) -> int:
        return sum(segment.size for segment in tuple(self._segments) if segment.is_in_memory)

    @property
    def rejected(self) -> int:
        return self._state.rejected

    @property
    def asked(self) -> int:
        return self._state.asked

    @property
    def cursor(self) -> int:
        """The last ordinal that is done with."""
        return self._state.cursor

    @property
    def lane_count(self) -> int:
        """How many there ever were."""
        return len(self._state.lanes)

    @property
    def waiting_bytes(self) -> int:
        return self._waiting_bytes

    def asked_in(self, lane: str) -> int:
        counts = self._state.lanes.get(lane)
        return counts.asked if counts else 0

    def status(self) -> dict[str, Any]:
        state = self._state
        return {
            "client": self.client_id,
            "folder": str(self.folder),
            "waiting": self._waiting,
            "waiting_bytes": self._waiting_bytes,
            "in_memory_bytes": self.in_memory_bytes,
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
