"""What a provider has of an agent, as far as it decides what an import would do. Made from the agent's own records."""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import NamedTuple, get_args

from offbook.ingest.noise import without_the_forgotten
from offbook.ingest.secret_scan import redact_message, redact_text
from offbook.log.audit_chain import fingerprint, micros
from offbook.model.receipt import FORGOTTEN
from offbook.model.record import (
    AgentRecord,
    LessonRecord,
    MarkRecord,
    MessageRecord,
    Record,
    SessionRecord,
    SummaryRecord,
)
from offbook.model.summary import SourceSpan, summary_id
from offbook.model.types import Message, Role

ROLES: tuple[str, ...] = get_args(Role)
_FORGOTTEN_BIT = 128
_NEVER = -(2**63)
"""The time of what has none: no other one is equal to it."""

Spans = tuple[SourceSpan, ...]


class HeldSession:
    """Twenty-five bytes for a message, by its place: a history may have a million."""

    def __init__(self) -> None:
        self.marks: set[tuple[int, int, str, str | None]] = set()
        self._times = array("q")
        self._digests = array("Q")
        self._kinds = array("B")
        self._ids = array("Q")
        self._known_ids: set[int] | None = None

    @property
    def last_seq(self) -> int:
        return len(self._times)

    def put(self, record: MessageRecord) -> None:
        """At its place, which is the next one. Where one before it could not be read, nothing is the same there."""
        while self.last_seq < record.seq - 1:
            self._append(_NEVER, 0, 0, 0)
        id_ = 0 if record.message.id is None else _number(record.message.id.encode(errors="replace"))
        self._append(_time(record.message.ts), _digest(record.message), _kind(record), id_)
        if self._known_ids is not None:
            self._known_ids.add(id_)

    def _append(self, time: int, digest: int, kind: int, id_: int) -> None:
        self._times.append(time)
        self._digests.append(digest)
        self._kinds.append(kind)
        self._ids.append(id_)

    def was_said(self, seq: int, at: datetime | None) -> bool:
        return at is not None and 1 <= seq <= self.last_seq and self._times[seq - 1] == micros(at)

    def is_forgotten(self, seq: int) -> bool:
        return self.forgotten(seq, seq) > 0

    def forgotten(self, first_seq: int, last_seq: int) -> int:
        return sum(kind >= _FORGOTTEN_BIT for kind in self._kinds[first_seq - 1 : last_seq])

    def is_same(self, record: MessageRecord) -> bool:
        """Of one that was forgotten, here or there, only its place, role and time are left to compare."""
        here, there = self._kinds[record.seq - 1], _kind(record)
        if self._times[record.seq - 1] == _NEVER:
            return False
        if self._digests[record.seq - 1] == _digest(record.message):
            return True
        is_forgotten = max(here, there) >= _FORGOTTEN_BIT
        same_role = here % _FORGOTTEN_BIT == there % _FORGOTTEN_BIT
        return is_forgotten and same_role and self.was_said(record.seq, record.message.ts)

    def has_id(self, id_: str | None) -> bool:
        if id_ is None:
            return False
        if self._known_ids is None:  # asked only of sessions that are gone on with
            self._known_ids = set(self._ids)
        return _number(id_.encode(errors="replace")) in self._known_ids


class HeldSummary(NamedTuple):
    level: int
    spans: Spans
    sources: tuple[str, ...]


class Held:
    """`cross_search`, sessions, summaries by id, and lessons by kind and key."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.cross_search: bool | None = None
        self.sessions: dict[str, HeldSession] = {}
        self.summaries: dict[str, HeldSummary] = {}
        self.lessons: set[tuple[str, str]] = set()
        self.merged: set[str] = set()
        self._last_numbers: dict[int, int] = {}
        self._stretches: dict[tuple[str, int], list[tuple[int, int, str]]] = {}
        for record in records:
            self._take(record)

    def _take(self, record: Record) -> None:
        match record:
            case AgentRecord():
                self.cross_search = record.cross_search
            case SessionRecord():
                self.sessions.setdefault(record.session_id, HeldSession())
            case MessageRecord():
                self.sessions.setdefault(record.session_id, HeldSession()).put(record)
            case MarkRecord():
                self.sessions.setdefault(record.session_id, HeldSession()).marks.add(mark_of(record))
            case SummaryRecord():
                self._put(record.id, HeldSummary(record.level, spans_of(record), tuple(record.sources)))
            case LessonRecord():
                self.lessons.add(kind_and_key(record))

    def add_summary(self, summary: HeldSummary) -> None:
        """Under the next number of its level."""
        self._put(summary_id(summary.level, self._last_numbers.get(summary.level, 0) + 1), summary)

    def _put(self, id_: str, summary: HeldSummary) -> None:
        self.summaries[id_] = summary
        self.merged.update(summary.sources)
        number = int(id_.rpartition("-")[2])
        self._last_numbers[summary.level] = max(number, self._last_numbers.get(summary.level, 0))
        for span in summary.spans:
            lying = self._stretches.setdefault((span.session_id, summary.level), [])
            insort(lying, (span.last_seq, span.first_seq, id_))

    def met(self, level: int, span: SourceSpan) -> str | None:
        """The summary of this level that stands for some of the span."""
        lying = self._stretches.get((span.session_id, level), [])
        at = bisect_left(lying, (span.first_seq,))
        return lying[at][2] if at < len(lying) and lying[at][1] <= span.last_seq else None


def mark_of(record: MarkRecord) -> tuple[int, int, str, str | None]:
    reason = redact_text(record.reason)[0] if record.reason else record.reason
    return record.seq, micros(record.at), record.kind, reason


def spans_of(record: SummaryRecord) -> Spans:
    return tuple(
        SourceSpan(session_id=span.session_id, first_seq=span.first_seq, last_seq=span.last_seq)
        for span in record.spans
    )


def in_order(spans: Sequence[SourceSpan]) -> list[SourceSpan]:
    return sorted(spans, key=lambda span: (span.session_id, span.first_seq))


def kind_and_key(record: LessonRecord) -> tuple[str, str]:
    return record.kind, redact_text(record.key)[0]


def _time(at: datetime | None) -> int:
    return _NEVER if at is None else micros(at)


def _kind(record: MessageRecord) -> int:
    return ROLES.index(record.message.role) | (_FORGOTTEN_BIT if record.noise == FORGOTTEN else 0)


def _digest(message: Message) -> int:
    """Without secrets and what was to be forgotten on both sides: a provider takes them out before it compares."""
    return _number(fingerprint(redact_message(without_the_forgotten(message))[0]))


def _number(data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=8).digest())
