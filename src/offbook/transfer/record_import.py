"""Exported records told to a provider, in order, each once; or, in a dry run, what would become of them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import msgspec

from offbook.client.blocking import Client
from offbook.client.history.conversations import Problem
from offbook.ingest.entries import in_utc
from offbook.model.errors import ProviderRefused
from offbook.model.record import (
    ANOTHER_IN_ITS_PLACE,
    FOLLOWS_REFUSED,
    TAKEN,
    THERE,
    WITHOUT_SESSION,
    Admission,
    AgentRecord,
    Followed,
    Imported,
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
    name_of,
    with_an_id_of_another,
)
from offbook.transfer.held_memory import Held, HeldSession, HeldSummary, in_order, kind_and_key, mark_of, spans_of
from offbook.transfer.provider_export import records
from offbook.transfer.record_files import Batch, Source, batches, read_records
from offbook.transfer.record_pages import checked

TRIES = 6
FIRST_PAUSE_SECONDS = 0.25
TOO_LARGE = 413
NAMED_AT_MOST = 1_000
"""Refused records that are told one by one; all are counted."""

Advance = Callable[[int], None]


class AgentRecords(msgspec.Struct, kw_only=True, rename="camel"):
    """What an export has of one agent, and what became of it."""

    agent_id: str
    exported_as: str
    counts: dict[str, int] = {}
    """Records of each type."""
    records: int = 0
    taken: int = 0
    """In a dry run: what would be."""
    already_there: int = 0
    refused: int = 0


class RecordsReport(msgspec.Struct, kw_only=True, rename="camel"):
    path: str
    is_dry_run: bool = msgspec.field(name="dryRun")
    agents: list[AgentRecords] = []
    problems: list[Problem] = []
    """What was refused, and why; what only follows one that was refused is counted."""
    seconds: float = 0.0

    @property
    def refused(self) -> int:
        return sum(agent.refused for agent in self.agents)

    def problem(self, where: str, reason: str) -> None:
        if len(self.problems) < NAMED_AT_MOST and reason != FOLLOWS_REFUSED:
            self.problems.append(Problem(where=where, reason=reason))


def examined(source: Source, agent: AgentRecords, advance: Advance) -> None:
    """Everything is read once, so that nothing is stored of an export that is not whole."""
    counts: Counter[str] = Counter()
    for batch in batches(read_records(source)):
        counts.update(type_of(record) for record in batch.records)
        advance(batch.size_bytes)
    agent.counts = dict(counts)
    agent.records = counts.total()


def type_of(record: Record) -> str:
    return str(type(record).__struct_config__.tag)


class RecordImport:
    def __init__(self, client: Client, report: RecordsReport, advance: Advance) -> None:
        self._client = client
        self._report = report
        self._advance = advance

    def take(self, source: Source, agent: AgentRecords) -> None:
        for batch in batches(read_records(source)):
            self._send(batch, agent)
            self._advance(batch.size_bytes)
        self._patiently(lambda: self._client.import_records([], done=True, agent_id=agent.agent_id))

    def _send(self, batch: Batch, agent: AgentRecords) -> None:
        try:
            imported: Imported = self._patiently(
                lambda: self._client.import_records(batch.records, follows=batch.follows, agent_id=agent.agent_id)
            )
        except ProviderRefused as error:
            if error.document.get("status") != TOO_LARGE:
                raise
            self._send_smaller(batch, agent, str(error.document.get("detail", "")))
            return
        agent.taken += imported.taken
        agent.already_there += imported.already_there
        agent.refused += len(imported.refused)
        for refused in imported.refused:
            self._report.problem(f"{agent.agent_id}: {refused.record}", refused.reason)

    def _send_smaller(self, batch: Batch, agent: AgentRecords, detail: str) -> None:
        """A provider may take less at once than we thought."""
        if len(batch.records) == 1:
            agent.refused += 1
            self._report.problem(f"{agent.agent_id}: {name_of(batch.records[0])}", detail)
            return
        half = len(batch.records) // 2
        pieces = batches(iter(batch.records), most_records=half)
        for number, piece in enumerate(pieces):
            self._send(piece if number else piece._replace(follows=batch.follows), agent)

    def foresee(self, source: Source, agent: AgentRecords, *, is_known: bool) -> None:
        """What `take` would count and name, in the same requests. An agent that the provider does not know is not asked
        about: asking would make it known."""
        foreseeing = ImportPreview(Held(records(self._client, agent.agent_id) if is_known else ()))
        for batch in batches(read_records(source)):
            for record, admission in zip(batch.records, foreseeing.batch(batch), strict=True):
                agent.taken += admission.is_taken
                agent.refused += admission.refused is not None
                agent.already_there += not admission.is_taken and admission.refused is None
                if admission.refused is not None:
                    self._report.problem(f"{agent.agent_id}: {name_of(record)}", admission.refused)
            self._advance(batch.size_bytes)

    def _patiently(self, ask: Callable[[], Imported]) -> Imported:
        """A provider that is overloaded says so and is asked again."""
        for attempt in range(TRIES):
            try:
                return ask()
            except ProviderRefused as error:
                if not error.document.get("retryable") or attempt == TRIES - 1:
                    raise
                time.sleep(FIRST_PAUSE_SECONDS * 2**attempt)
        raise AssertionError("the last try returns or raises")


# ── What an import would do with each record, foretold ──
# The rules of `transfer` and of a store, on what is held there.
# Nothing is stored, so the same rules stand here once more, and word their reasons alike. Tests hold both to each
# other (`tests/unit/portability/test_foreseeing.py`).


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
