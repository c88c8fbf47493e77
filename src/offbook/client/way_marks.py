"""Where to read on in an outbox while lanes are held, so that what waits for them is not read at each attempt."""

from __future__ import annotations

from typing import NamedTuple

from offbook.client.segment import Segment


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
