"""The verbs of moving: an agent's memory out as records, and records of another installation in.

Whatever is imported goes to the place it had, once: run again, or after it broke off, it is there already. Meanwhile
the background leaves the agent alone (`ImportPause.hold`), so that it makes no summaries of half a session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import NamedTuple, TypeVar

import msgspec

from offbook.api.background import Background
from offbook.api.followers import Followers
from offbook.ingest.entries import Intake, in_utc
from offbook.ingest.scope import checked_key
from offbook.ingest.secret_scan import redact_text
from offbook.log.reading import LogReader
from offbook.log.store import CROSS, Store
from offbook.model.errors import StoreError
from offbook.model.lesson import LESSONS_SESSION, Lesson
from offbook.model.receipt import FORGOTTEN
from offbook.model.record import (
    TAKEN,
    THERE,
    Admission,
    AgentRecord,
    ExportPage,
    Followed,
    Imported,
    LessonRecord,
    MarkRecord,
    MessageRecord,
    PlacedEntry,
    Record,
    RecordedSpan,
    RefusedRecord,
    SessionOpening,
    SessionPart,
    SessionRecord,
    SummaryRecord,
    cross_search_stays,
    lesson_of,
    name_of,
)
from offbook.model.settings import Settings
from offbook.model.summary import Loss, SourceSpan, Summary, SummaryDraft
from offbook.model.types import (
    EMBEDDED,
    LOST,
    MAX_KEY_BYTES,
    AuditDraft,
    Caller,
    Entry,
    LoggedMessage,
    Mark,
    Scope,
    now,
)
from offbook.projections.links import relinked
from offbook.transfer.record_pages import RecordPages, checked, ends_of

OfSession = SessionRecord | MessageRecord | MarkRecord
T = TypeVar("T")


class TakenRecords(NamedTuple):
    """What became of the records, and what the others have to be told."""

    imported: Imported
    scopes: list[Scope]
    summaries: list[Summary]


class RecordTransfer:
    def __init__(
        self,
        store: Store,
        settings: Settings,
        reader: LogReader,
        intake: Intake,
        background: Background,
        followers: Followers,
    ) -> None:
        self._store = store
        self._background = background
        self._followers = followers
        self._settings = settings
        self._intake = intake
        self._pages = RecordPages(store, reader)

    async def export(
        self, agent_id: str, *, after: str | None = None, limit: int = 500, by: Caller = EMBEDDED
    ) -> ExportPage:
        """Everything the agent has, as records, a page at a time."""
        page = await self._pages.page(agent_id, after, limit)
        messages = sum(isinstance(record, MessageRecord) for record in page.records)
        details = {"records": len(page.records), "messages": messages}
        if missing := sum(len(record.missing_parts) for record in page.records if isinstance(record, MessageRecord)):
            details["missingParts"] = missing
        await self._store.record(agent_id, AuditDraft(verb="export", actor=by.name, details=details))
        return page

    async def import_records(
        self,
        agent_id: str,
        records: Sequence[Record],
        *,
        follows: Followed | None = None,
        done: bool = False,
        by: Caller = EMBEDDED,
    ) -> Imported:
        """Take records of an export, each once, in their order. `follows`: the message given last before them, where
        they go on with its session. With `done` no more are to come."""
        await self._background.import_pause.hold(agent_id)
        taken = await self._take(agent_id, records, follows, by)
        if done:
            await self._background.import_pause.release(agent_id)
            await self._background.compress(agent_id, None)
            self._background.runner.resume(agent_id)
        await self._background.imported(taken.scopes, taken.summaries)
        for scope in taken.scopes:
            self._followers.wake(scope)
        return taken.imported

    async def _take(
        self, agent_id: str, records: Sequence[Record], follows: Followed | None, by: Caller
    ) -> TakenRecords:
        """In their order. What does not fit is refused and named; the rest is taken."""
        if follows is not None:
            checked_key(follows.session_id, "follows.sessionId", MAX_KEY_BYTES)
            follows = msgspec.structs.replace(follows, at=in_utc(follows.at, "follows.at"))
        records = await asyncio.to_thread(checked, records)
        event = AuditDraft(verb="import", actor=by.name)
        admissions: list[Admission] = []
        scopes: dict[Scope, None] = {}
        summaries: list[Summary] = []
        for group in _groups(records):
            first = group[0]
            if isinstance(first, SummaryRecord):
                admission, summary = await self._summary(agent_id, first, event)
                admissions.append(admission)
                summaries += [summary] if summary is not None and admission.is_taken else []
            elif isinstance(first, AgentRecord):
                admissions.append(await self._agent(agent_id, first))
            elif isinstance(first, LessonRecord):
                admissions += await self._lessons(agent_id, group, event, by)
            else:
                admissions += await self._session(agent_id, first.session_id, group, follows, event)
                scopes[Scope(agent_id=agent_id, session_id=first.session_id)] = None
        imported = _imported(agent_id, records, admissions)
        counts = {
            "records": len(records),
            "taken": imported.taken,
            "alreadyThere": imported.already_there,
            "refused": len(imported.refused),
        }
        await self._store.record(agent_id, msgspec.structs.replace(event, details=counts))
        return TakenRecords(imported, list(scopes), summaries)

    # ── an agent ──

    async def _agent(self, agent_id: str, record: AgentRecord) -> Admission:
        """Consent that was given or refused here stays. An agent of which there is nothing yet was not here before."""
        if record.cross_search is None:
            return THERE if (await self._store.counts(agent_id)).sessions else TAKEN
        wanted = "on" if record.cross_search else "off"
        there = await self._store.agent_note(agent_id, CROSS)
        if there == wanted:
            return THERE
        if there is not None:
            return cross_search_stays(there)
        await self._store.set_agent_note(agent_id, CROSS, wanted, None)
        return TAKEN

    # ── a session ──

    async def _session(
        self, agent_id: str, session_id: str, group: Sequence[Record], follows: Followed | None, event: AuditDraft
    ) -> list[Admission]:
        scope = Scope(agent_id=agent_id, session_id=session_id)
        messages = [record for record in group if isinstance(record, MessageRecord)]
        before: list[SessionPart] = [follows] if follows is not None and follows.session_id == session_id else []
        event = msgspec.structs.replace(event, session_id=session_id)
        async with self._intake.entries(scope, [record.message for record in messages]) as entries:
            recorded = (_as_recorded(entry, record) for entry, record in zip(entries, messages, strict=True))
            parts = [_part(record, recorded) for record in group]
            return (await self._store.admit(scope, [*before, *parts], event))[len(before) :]

    # ── summaries ──

    async def _summary(
        self, agent_id: str, record: SummaryRecord, event: AuditDraft
    ) -> tuple[Admission, Summary | None]:
        draft = self._draft(agent_id, record)
        there = await self._store.summary(agent_id, record.id)
        if there is not None and (there.draft.level, there.draft.spans) == (draft.level, draft.spans):
            return THERE, there
        fault = await self._span_fault(agent_id, record.spans) or await self._source_fault(agent_id, draft)
        if fault is not None:
            return Admission(refused=fault), None
        before = now()
        try:
            kept = await self._store.add_summary(agent_id, draft, _with_authorship(event, draft))
        except StoreError as error:
            if type(error) is not StoreError:
                raise  # the file's fault, not the summary's
            return Admission(refused=error.detail), None
        return (TAKEN if kept.made_at >= before else THERE), kept

    def _draft(self, agent_id: str, record: SummaryRecord) -> SummaryDraft:
        redacts = self._settings.for_agent(agent_id).redaction.enabled
        same = {name: getattr(record, name) for name in SummaryDraft.__struct_fields__}
        return SummaryDraft(
            **same
            | {
                "spans": [
                    SourceSpan(session_id=span.session_id, first_seq=span.first_seq, last_seq=span.last_seq)
                    for span in record.spans
                ],
                "text": _redacted(record.text, redacts),
                "brief": _redacted(record.brief, redacts),
                "kept": _redacted_losses(record.kept, redacts),
                "losses": _redacted_losses(record.losses, redacts),
            }
        )

    async def _span_fault(self, agent_id: str, spans: Sequence[RecordedSpan]) -> str | None:
        for span in spans:
            scope = Scope(agent_id=agent_id, session_id=span.session_id)
            ends = await ends_of(self._store, scope, span.first_seq, span.last_seq)
            if tuple(_said_at(end) for end in ends) != (span.first_at, span.last_at):
                return (
                    f"messages {span.first_seq} to {span.last_seq} of session {span.session_id!r}, which it stands "
                    "for, are not here"
                )
            forgotten = await self._store.forgotten_in(scope, first_seq=span.first_seq, last_seq=span.last_seq)
            if forgotten > span.forgotten:
                return (
                    f"of messages {span.first_seq} to {span.last_seq} of session {span.session_id!r} some were "
                    "forgotten here since: Offbook summarises the rest by itself"
                )
        return None

    async def _source_fault(self, agent_id: str, draft: SummaryDraft) -> str | None:
        """Ids count the summaries of one installation: where there were others before, they mean something else."""
        for id_ in draft.sources:
            source = await self._store.summary(agent_id, id_)
            if source is None or source.draft.level >= draft.level or not _lies_in(source.draft.spans, draft.spans):
                return f"{id_}, which it merges, is another summary here: Offbook merges those that are here by itself"
        return None

    # ── lessons ──

    async def _lessons(self, agent_id: str, group: Sequence[Record], event: AuditDraft, by: Caller) -> list[Admission]:
        redacts = self._settings.for_agent(agent_id).redaction.enabled
        records = [record for record in group if isinstance(record, LessonRecord)]
        lessons = [lesson_of(_redacted_lesson(record, redacts), agent_id) for record in records]
        admissions = await self._store.admit_lessons(agent_id, lessons, event)
        for lesson, admission in zip(lessons, admissions, strict=True):
            is_written = any(source.session_id == LESSONS_SESSION for source in lesson.sources)
            if is_written and admission.refused is None and (here := await self._lesson_here(agent_id, lesson)):
                # Links are derived, so they are not exported: what a person wrote makes them here as it did there.
                await relinked(self._store, here, by)
        return admissions

    async def _lesson_here(self, agent_id: str, lesson: Lesson) -> Lesson | None:
        """It may have another number here."""
        there = await self._store.lesson(agent_id, lesson.id)
        if there is not None and (there.kind, there.key) == (lesson.kind, lesson.key):
            return there
        known = await self._store.lessons_keyed(agent_id, {lesson.key})
        return next((one for one in known if one.kind == lesson.kind), None)


def _groups(records: Sequence[Record]) -> Iterable[list[Record]]:
    """What is admitted in one write: a stretch of one session, a stretch of lessons, each of the others."""

    def key(numbered: tuple[int, Record]) -> tuple[str, str]:
        number, record = numbered
        if isinstance(record, SessionRecord | MessageRecord | MarkRecord):
            return "session", record.session_id
        return ("lessons", "") if isinstance(record, LessonRecord) else ("one", str(number))

    for _, group in groupby(enumerate(records), key):
        yield [record for _, record in group]


def _part(record: Record, entries: Iterator[Entry]) -> SessionPart:
    """As a store admits it. `entries` are those of the messages."""
    match record:
        case SessionRecord():
            return SessionOpening(started_at=record.started_at, parent_session_id=record.parent_session_id)
        case MessageRecord():
            return PlacedEntry(seq=record.seq, entry=next(entries), pinned=record.pinned)
        case MarkRecord():
            reason = redact_text(record.reason)[0] if record.reason else record.reason
            return Mark(kind=record.kind, at=record.at, seq=record.seq, reason=reason)
        case _:
            raise AssertionError(f"{record} is not of a session")


def _as_recorded(entry: Entry, record: MessageRecord) -> Entry:
    """What was taken out before is still known; and what was forgotten or lost stays so. Else noise is judged anew."""
    redactions = {
        kind: record.redactions.get(kind, 0) + entry.redactions.get(kind, 0)
        for kind in sorted({*record.redactions, *entry.redactions})
    }
    noise = record.noise if record.noise in (FORGOTTEN, LOST) else entry.noise
    return msgspec.structs.replace(entry, redactions=redactions, noise=noise)


def _redacted_lesson(record: LessonRecord, redacts: bool) -> LessonRecord:
    texts = {
        name: None if getattr(record, name) is None else _redacted(getattr(record, name), redacts)
        for name in ("text", "key", "about", "learnt_text")
    }
    return msgspec.structs.replace(record, **texts)


def _redacted(text: str, redacts: bool) -> str:
    return redact_text(text)[0] if redacts else text


def _redacted_losses(losses: Sequence[Loss], redacts: bool) -> list[Loss]:
    return [msgspec.structs.replace(loss, text=_redacted(loss.text, redacts)) for loss in losses]


def _said_at(logged: LoggedMessage | None) -> datetime | None:
    return None if logged is None else logged.message.ts or logged.received_at


def _lies_in(inner: Sequence[SourceSpan], outer: Sequence[SourceSpan]) -> bool:
    return all(
        any(
            one.session_id == other.session_id and other.first_seq <= one.first_seq and one.last_seq <= other.last_seq
            for other in outer
        )
        for one in inner
    )


def _with_authorship(event: AuditDraft, draft: SummaryDraft) -> AuditDraft:
    session_id = draft.spans[0].session_id if len(draft.spans) == 1 else None
    return msgspec.structs.replace(event, session_id=session_id, details={"level": draft.level})


def _imported(agent_id: str, records: Sequence[Record], admissions: Sequence[Admission]) -> Imported:
    refused = [
        RefusedRecord(record=name_of(record), reason=admission.refused)
        for record, admission in zip(records, admissions, strict=True)
        if admission.refused is not None
    ]
    taken = sum(admission.is_taken for admission in admissions)
    return Imported(agent_id=agent_id, taken=taken, already_there=len(records) - taken - len(refused), refused=refused)
