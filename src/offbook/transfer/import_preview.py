"""What an import would do with each record, foretold: the rules of `transfer` and of a store, on what is held there.

Nothing is stored, so the same rules stand here once more, and word their reasons alike. Tests hold both to each other
(`tests/unit/portability/test_foreseeing.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from offbook.ingest.entries import in_utc
from offbook.model.record import (
    ANOTHER_IN_ITS_PLACE,
    FOLLOWS_REFUSED,
    TAKEN,
    THERE,
    WITHOUT_SESSION,
    Admission,
    AgentRecord,
    Followed,
    LessonRecord,
    MarkRecord,
    MessageRecord,
    Record,
    SessionRecord,
    SummaryRecord,
    behind_a_gap,
    behind_a_stranger,
    cross_search_stays,
    mark_behind_the_end,
    with_an_id_of_another,
)
from offbook.transfer.held_memory import Held, HeldSession, HeldSummary, in_order, kind_and_key, mark_of, spans_of
from offbook.transfer.record_files import Batch
from offbook.transfer.record_pages import checked


@dataclass
class _RecordRun:
    """Records of one session in one request."""

    session_id: str
    through: int = 0
    """The last message that is known to be the same here as there: only what follows it may be added."""
    is_refused: bool = False


class ImportPreview:
    """An agent's memory while records are thought to go into it."""

    def __init__(self, held: Held) -> None:
        self._held = held
        self._stretch: _RecordRun | None = None

    def batch(self, batch: Batch) -> list[Admission]:
        """What would become of each of its records, in their order."""
        self._stretch = None
        return [self._record(record, batch.follows) for record in checked(batch.records)]

    def _record(self, record: Record, follows: Followed | None) -> Admission:
        match record:
            case SessionRecord() | MessageRecord() | MarkRecord():
                return self._of_session(record, follows)
            case AgentRecord():
                self._stretch = None
                return self._agent(record)
            case SummaryRecord():
                self._stretch = None
                return self._summary(record)
            case LessonRecord():
                self._stretch = None
                return self._lesson(record)

    def _agent(self, record: AgentRecord) -> Admission:
        there, wanted = self._held.cross_search, record.cross_search
        if wanted is None:
            return THERE if self._held.sessions else TAKEN
        if there is not None and there != wanted:
            told = "on" if there else "off"
            return cross_search_stays(told)
        self._held.cross_search = wanted
        return THERE if there == wanted else TAKEN

    # ── a session ──

    def _of_session(self, record: SessionRecord | MessageRecord | MarkRecord, follows: Followed | None) -> Admission:
        stretch = self._stretch
        if stretch is None or stretch.session_id != record.session_id:
            stretch = self._stretch = self._begun(record.session_id, follows)
        session = self._held.sessions.get(record.session_id)
        if isinstance(record, SessionRecord):
            self._held.sessions.setdefault(record.session_id, HeldSession())
            return TAKEN if session is None else THERE
        if stretch.is_refused:
            return Admission(refused=FOLLOWS_REFUSED)
        if session is None:
            stretch.is_refused = True
            return WITHOUT_SESSION
        if isinstance(record, MarkRecord):
            return self._mark(stretch, session, record)
        admission = self._message(stretch, session, record)
        stretch.is_refused = admission.refused is not None
        return admission

    def _begun(self, session_id: str, follows: Followed | None) -> _RecordRun:
        session = self._held.sessions.get(session_id)
        if session is None or follows is None or follows.session_id != session_id:
            return _RecordRun(session_id)
        is_same = session.was_said(follows.seq, in_utc(follows.at, "follows.at"))
        return _RecordRun(session_id, follows.seq if is_same else 0)

    def _message(self, stretch: _RecordRun, session: HeldSession, record: MessageRecord) -> Admission:
        if record.seq > session.last_seq + 1:
            return behind_a_gap(session.last_seq)
        if record.seq <= session.last_seq:
            if not session.is_same(record):
                return ANOTHER_IN_ITS_PLACE
            stretch.through = record.seq
            return THERE
        if stretch.through != record.seq - 1:
            return behind_a_stranger(record.seq - 1)
        if session.has_id(record.message.id):
            return with_an_id_of_another(record.message.id)
        session.put(record)
        stretch.through = record.seq
        return TAKEN

    def _mark(self, stretch: _RecordRun, session: HeldSession, record: MarkRecord) -> Admission:
        mark = mark_of(record)
        if mark in session.marks or (*mark[:3], None) in session.marks:  # without a reason here: it was forgotten
            return THERE
        if record.seq != session.last_seq or stretch.through != record.seq:
            return mark_behind_the_end(record.seq, session.last_seq)
        session.marks.add(mark)
        return TAKEN

    # ── what was made of them ──

    def _summary(self, record: SummaryRecord) -> Admission:
        summary = HeldSummary(record.level, spans_of(record), tuple(record.sources))
        there = self._held.summaries.get(record.id)
        if there is not None and there[:2] == summary[:2]:
            return THERE
        fault = self._span_fault(record) or self._source_fault(summary) or _overlap(summary)
        if fault is not None:
            return Admission(refused=fault)
        for span in summary.spans:
            met = self._held.met(summary.level, span)
            if met is not None and in_order(self._held.summaries[met].spans) == in_order(summary.spans):
                return THERE
            if met is not None:
                return Admission(
                    refused=f"{met} stands for some of messages {span.first_seq} to {span.last_seq} already: "
                    "summaries of one level do not overlap"
                )
        for id_ in summary.sources:
            if id_ in self._held.merged:
                return Admission(refused=f"summary {id_} is merged already: look at what `unmerged` gives now")
        self._held.add_summary(summary)
        return TAKEN

    def _span_fault(self, record: SummaryRecord) -> str | None:
        for span in record.spans:
            what = f"messages {span.first_seq} to {span.last_seq} of session {span.session_id!r}"
            session = self._held.sessions.get(span.session_id)
            if session is None or not (
                session.was_said(span.first_seq, span.first_at) and session.was_said(span.last_seq, span.last_at)
            ):
                return f"{what}, which it stands for, are not here"
            if session.forgotten(span.first_seq, span.last_seq) > span.forgotten:
                return f"of {what} some were forgotten here since: Offbook summarises the rest by itself"
        return None

    def _source_fault(self, summary: HeldSummary) -> str | None:
        for id_ in summary.sources:
            source = self._held.summaries.get(id_)
            if source is None or source.level >= summary.level or not _lies_in(source, summary):
                return f"{id_}, which it merges, is another summary here: Offbook merges those that are here by itself"
        return None

    def _lesson(self, record: LessonRecord) -> Admission:
        if kind_and_key(record) in self._held.lessons:
            return THERE
        said = [
            session.is_forgotten(source.seq)
            for source in record.sources
            if (session := self._held.sessions.get(source.session_id)) is not None
            and session.was_said(source.seq, source.at)
        ]
        if any(said):
            return Admission(refused="a message it was learnt from was forgotten here")
        if record.sources and not said:
            return Admission(refused="the messages it was learnt from are not here")
        self._held.lessons.add(kind_and_key(record))
        return TAKEN


def _overlap(summary: HeldSummary) -> str | None:
    for one, other in pairwise(in_order(summary.spans)):
        if one.session_id == other.session_id and other.first_seq <= one.last_seq:
            return f"two spans of a summary overlap at message {other.first_seq}: make them one"
    return None


def _lies_in(inner: HeldSummary, outer: HeldSummary) -> bool:
    return all(
        any(
            one.session_id == other.session_id and other.first_seq <= one.first_seq and one.last_seq <= other.last_seq
            for other in outer.spans
        )
        for one in inner.spans
    )
