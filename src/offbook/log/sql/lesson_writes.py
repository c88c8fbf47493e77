"""Writing lessons. Part of the ledger: in the writer thread, inside its transaction.

Nothing is kept in memory between two writes, so a rollback leaves nothing behind. What could not be read again is not
written. Whatever is given twice leaves the same rows: how often a lesson was said is the largest of what was ever told
and of the places that are known, never a sum.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC

import msgspec

from offbook.log.audit_chain import micros
from offbook.log.sql import lesson_reads, reads
from offbook.log.sql.connection import UNREADABLE
from offbook.log.sql.recall_reads import agent_number, living_places, own_places
from offbook.log.sql.row_ids import place_of
from offbook.log.sql.rows import AgentRow, LedgerPart
from offbook.log.sql.summary_writes import to_be_read_again
from offbook.model.errors import StoreError
from offbook.model.lesson import LESSONS_SESSION, Lesson, LessonDraft, lesson_id
from offbook.model.types import AuditDraft, Scope, now

_INSERT = "INSERT INTO lessons (agent, number, kind, status, last_seen, data) VALUES (?,?,?,?,?,?) RETURNING lesson"
_TIMES_SAID = "SELECT count(*) FROM lesson_sources WHERE lesson = ? AND NOT (place >= ? AND place < ?)"
_UPDATE = "UPDATE lessons SET status = ?, last_seen = ?, data = ? WHERE lesson = ?"

_draft_decoder = msgspec.json.Decoder(LessonDraft)


class LessonLedger(LedgerPart):
    # ── what was learnt ──

    def keep(
        self, agent_id: str, drafts: Sequence[LessonDraft], replaced: Mapping[str, str], event: AuditDraft
    ) -> list[Lesson]:
        if not drafts:
            return []
        drafts = [_checked(draft) for draft in drafts if not self._is_forgotten(agent_id, draft)]
        agent = self._agent(agent_id)
        known = dict(self._known(agent))
        rows: list[int] = []
        added: set[int] = set()
        with_new_places: set[int] = set()
        before: dict[int, str] = {}
        for draft in drafts:
            kind_and_key = draft.kind, draft.key
            row = known.get(kind_and_key)
            if row is None or not self._is_readable(row):
                # One that is damaged is no reason to refuse what is learnt again.
                row = known[kind_and_key] = self._add(agent, draft)
                added.add(row)
            before.setdefault(row, self._data(row))
            if self._take_in(agent_id, row, draft):
                with_new_places.add(row)
            rows.append(row)
        replaced_rows = set(self._replace(agent_id, drafts, rows, replaced, before))
        # By what is there in the end: two drafts of one lesson may say different things, each time in the same way.
        changed = {row for row, data in before.items() if self._data(row) != data} | with_new_places
        if added or changed:
            gone = replaced_rows & changed
            counts = {"added": len(added), "changed": len(changed - added - gone), "replaced": len(gone)}
            self._chain(agent, msgspec.structs.replace(event, details=event.details | counts), now())
        return [self._shown(agent_id, row) for row in rows]

    def judge(self, agent_id: str, lesson: Lesson, places: Sequence[int], event: AuditDraft | None) -> None:
        """What the background has seen since the lesson was read stays: how often it was said, and when last."""
        self._check(agent_id)
        row = self._row(agent_id, lesson.id)
        if row is None:
            raise StoreError(f"there is no lesson {lesson.id!r} of agent {agent_id!r} to judge")
        kept = self._kept(row)
        self._add_places(agent_id, row, places)
        self._write(
            row,
            msgspec.structs.replace(
                lesson,
                id=kept.id,
                agent_id=kept.agent_id,
                kind=kept.kind,
                key=kept.key,
                times=max(lesson.times, kept.times, self._times_said(agent_id, row)),
                last_seen=max(lesson.last_seen, kept.last_seen),
            ),
        )
        if event is not None:
            self._chain(self._agent(agent_id), event, now())

    # ── steps ──

    def _is_forgotten(self, agent_id: str, draft: LessonDraft) -> bool:
        """Whether all that says it was forgotten while it was being learnt."""
        own = own_places(self._connection, agent_id, draft.places)
        return bool(own) and not living_places(self._connection, agent_id, own)

    def _known(self, agent: AgentRow) -> Iterator[tuple[tuple[str, str], int]]:
        """By kind and key."""
        for part in lesson_reads.lesson_parts(self._connection, agent.agent):
            if part.key is not None:
                yield (part.kind, part.key), part.row

    def _add(self, agent: AgentRow, draft: LessonDraft) -> int:
        last: int | None = self._connection.execute(
            "SELECT max(number) FROM lessons WHERE agent = ?", (agent.agent,)
        ).get
        number = (last or 0) + 1
        lesson = Lesson(
            id=lesson_id(number),
            agent_id=agent.name,
            kind=draft.kind,
            text=draft.text,
            status="learnt",
            confidence=draft.confidence,
            first_seen=draft.first_seen,
            last_seen=draft.last_seen,
            times=draft.times,
            sources=[],
            learnt_by=draft.learnt_by,
            about=draft.about,
            key=draft.key,
        )
        data, lesson = as_kept(lesson)
        row: int = self._connection.execute(
            _INSERT, (agent.agent, number, lesson.kind, lesson.status, micros(lesson.last_seen), data)
        ).get
        return row

    def _take_in(self, agent_id: str, row: int, draft: LessonDraft) -> bool:
        """Whether it was said where nobody knew."""
        has_new_places = self._add_places(agent_id, row, draft.places)
        kept = self._kept(row)
        taken = msgspec.structs.replace(
            kept,
            times=max(kept.times, draft.times, self._times_said(agent_id, row)),
            last_seen=max(kept.last_seen, draft.last_seen),
        )
        if kept.status == "learnt":
            # One that is said again after something took its place holds again.
            is_said_again = draft.last_seen > kept.last_seen
            taken = msgspec.structs.replace(
                taken,
                text=draft.text,
                confidence=draft.confidence,
                first_seen=min(kept.first_seen, draft.first_seen),
                learnt_by=draft.learnt_by,
                about=draft.about,
                replaced_by=None if is_said_again else kept.replaced_by,
            )
        self._write(row, taken)
        return has_new_places

    def _replace(
        self,
        agent_id: str,
        drafts: Sequence[LessonDraft],
        rows: Sequence[int],
        replaced: Mapping[str, str],
        before: dict[int, str],
    ) -> Iterator[int]:
        """Those that no longer hold; what they were is noted in `before`. One that a person has judged holds until they
        say otherwise."""
        for id_, key in replaced.items():
            row = self._row(agent_id, id_)
            if row is None or not self._is_readable(row):
                continue
            kept = self._kept(row)
            if kept.status != "learnt":
                continue
            # Drafts of several kinds may share a key: one of the same kind is meant first.
            takers = [
                (draft.kind != kept.kind, other)
                for draft, other in zip(drafts, rows, strict=True)
                if draft.key == key and other != row
            ]
            if takers:
                taker = self._kept(min(takers)[1])
                before.setdefault(row, self._data(row))
                self._write(row, msgspec.structs.replace(kept, replaced_by=taker.id))
                yield row

    def _add_places(self, agent_id: str, row: int, places: Sequence[int]) -> bool:
        before = self._connection.total_changes()
        self._connection.executemany(
            "INSERT INTO lesson_sources (lesson, place) VALUES (?,?) ON CONFLICT DO NOTHING",
            [(row, place) for place in living_places(self._connection, agent_id, places)],
        )
        return self._connection.total_changes() > before

    def _write(self, row: int, lesson: Lesson) -> None:
        data, lesson = as_kept(msgspec.structs.replace(lesson, sources=[]))
        if data != self._data(row):
            self._connection.execute(_UPDATE, (lesson.status, micros(lesson.last_seen), data, row))

    # ── rows ──

    def _row(self, agent_id: str, id_: str) -> int | None:
        found: int | None = self._connection.execute(
            "SELECT lesson FROM lessons WHERE agent = ? AND number = ? AND status <> ?",
            (agent_number(self._connection, agent_id), lesson_reads.number_in(id_), lesson_reads.FORGOTTEN),
        ).get
        return found

    def _kept(self, row: int) -> Lesson:
        with lesson_reads.reading_lesson(f"row {row} of the lessons"):
            return lesson_reads.lesson_decoder.decode(self._data(row))

    def _is_readable(self, row: int) -> bool:
        try:
            lesson_reads.lesson_decoder.decode(self._data(row))
        except UNREADABLE:
            return False
        return True

    def _data(self, row: int) -> str:
        found: str = self._connection.execute("SELECT data FROM lessons WHERE lesson = ?", (row,)).get
        return found

    def _times_said(self, agent_id: str, row: int) -> int:
        """The places that are known, without those where somebody judged the lesson: that is not saying it."""
        written = reads.session_number(self._connection, Scope(agent_id=agent_id, session_id=LESSONS_SESSION))
        first, end = (place_of(written, 0), place_of(written + 1, 0)) if written is not None else (0, 0)
        found: int = self._connection.execute(_TIMES_SAID, (row, first, end)).get
        return found

    def _shown(self, agent_id: str, row: int) -> Lesson:
        return msgspec.structs.replace(self._kept(row), sources=lesson_reads.sources(self._connection, agent_id, row))


def _checked(draft: LessonDraft) -> LessonDraft:
    """As it would be read again, its times in UTC, so that the same moment is the same text."""
    with to_be_read_again("a lesson"):
        micros(draft.first_seen), micros(draft.last_seen)  # one without a time zone is no moment
        times = {"first_seen": draft.first_seen.astimezone(UTC), "last_seen": draft.last_seen.astimezone(UTC)}
        return _draft_decoder.decode(msgspec.json.encode(msgspec.structs.replace(draft, **times)))


def as_kept(lesson: Lesson) -> tuple[str, Lesson]:
    """As it is kept, and as it will be read."""
    with to_be_read_again("a lesson"):
        data = msgspec.json.encode(lesson).decode()
        return data, lesson_reads.lesson_decoder.decode(data)
