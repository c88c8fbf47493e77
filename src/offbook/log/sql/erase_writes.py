"""Forgetting for good. Part of the ledger: in the writer thread, inside its transaction.

What was said goes from its row and from everything that came of it, in one transaction. What stays of a message is its
place, its id, its times and its hashes: the chain vouches for it, and whoever sends it again finds it there already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from offbook.log.audit_chain import micros
from offbook.log.erasure import forgotten
from offbook.log.sql import reads, summary_reads
from offbook.log.sql.connection import only_row
from offbook.log.sql.lesson_writes import as_kept
from offbook.log.sql.recall_reads import agent_number, living_places
from offbook.log.sql.row_ids import in_pieces, session_of
from offbook.log.sql.rows import LedgerPart
from offbook.model.lesson import Lesson
from offbook.model.receipt import FORGOTTEN, ForgetReceipt, Lineage
from offbook.model.summary import SummaryDraft
from offbook.model.types import AuditDraft, AuditEvent, now

_MESSAGE = f"SELECT {reads.MESSAGE_COLUMNS} FROM messages m WHERE m.place = ?"  # noqa: S608
_ERASE_MESSAGE = """
UPDATE messages SET content = ?, name = NULL, origin = NULL, meta = NULL, noise = ?, redactions = NULL, blobs = NULL,
                    erased = ? WHERE place = ?
"""
_REPLACE_SUMMARY = """
UPDATE summaries SET first_at = ?, last_at = ?, chars = ?, tokens = ?, made_at = ?, brief = ? WHERE summary = ?
"""
_REPLACE_LESSON = """
UPDATE lessons SET status = ?, last_seen = ?, data = ? WHERE agent = ? AND number = ? AND status <> 'forgotten'
"""
_STRAY = {
    "contexts": "DELETE FROM contexts WHERE context = ?",
    "turn_memories": "DELETE FROM turn_memories WHERE memory = ?",
    "completions": "DELETE FROM completions WHERE completion = ?",
    "session_notes": "DELETE FROM session_notes WHERE session = ? AND name <> 'parentSessionId'",
    "lessons": "UPDATE lessons SET status = 'forgotten', data = '{}' WHERE lesson = ?",
    "sessions": "UPDATE sessions SET end_reason = NULL WHERE session = ?",
    "marks": "UPDATE marks SET reason = NULL WHERE mark = ?",
}
"""Whatever of it came back, or came late, by table."""


class EraseLedger(LedgerPart):
    def erase(
        self,
        agent_id: str,
        lineage: Lineage,
        rewritten: Mapping[str, SummaryDraft],
        receipt: ForgetReceipt,
        event: AuditDraft,
        lessons: Sequence[Lesson],
    ) -> tuple[int, AuditEvent]:
        agent, at = self._agent(agent_id), now()
        erasure: int = self._connection.execute(
            "INSERT INTO erasures (agent, at, receipt) VALUES (?,?,?) RETURNING erasure",
            (agent.agent, micros(at), msgspec.json.encode(receipt).decode()),
        ).get
        places = living_places(self._connection, agent_id, lineage.places)
        for place in places:
            self._erase_message(place, erasure)
        self._erase_beside(agent.agent, places)
        self._erase_sessions(sorted({session_of(place) for place in places}))
        for table in ("turn_memories", "completions"):
            self._connection.execute(f"DELETE FROM {table} WHERE agent = ?", (agent.agent,))  # noqa: S608
        for id_, draft in rewritten.items():
            self._rewrite(agent.agent, id_, draft, at)
        left = {lesson.id: lesson for lesson in lessons}
        for id_ in lineage.lessons:
            number = int(id_.rpartition("-")[2])
            if id_ in left:
                self._rewrite_lesson(agent.agent, number, left[id_])
            else:
                self._forget_lesson(agent.agent, number)
        details = {**event.details, "erasure": erasure, "messages": len(places)}
        return erasure, self._chain(agent, msgspec.structs.replace(event, details=details), at)

    def set_receipt(self, agent_id: str, erasure: int, receipt: ForgetReceipt) -> None:
        self._check(agent_id)
        agent = agent_number(self._connection, agent_id)
        self._connection.execute(
            "UPDATE erasures SET receipt = ? WHERE erasure = ? AND agent = ?",
            (msgspec.json.encode(receipt).decode(), erasure, agent),
        )

    def erase_stray(self, agent_id: str, rows: Sequence[tuple[str, int]]) -> None:
        """Rows that were found to hold what was forgotten, by table and number. Derived, so no audit event."""
        self._check(agent_id)
        for table, row in rows:
            if table in _STRAY:
                self._connection.execute(_STRAY[table], (row,))

    # ── steps ──

    def _erase_message(self, place: int, erasure: int) -> None:
        row = only_row(self._connection, _MESSAGE, (place,))
        left = forgotten(reads.logged_message(row).message)
        content = msgspec.json.encode(left.content).decode()
        self._connection.execute(_ERASE_MESSAGE, (content, FORGOTTEN, erasure, place))

    def _erase_beside(self, agent: int, places: Sequence[int]) -> None:
        for marks, piece in in_pieces(places):
            bound = tuple(piece)
            for (vector_set,) in self._connection.execute(
                "SELECT vector_set FROM vector_sets WHERE agent = ?", (agent,)
            ).fetchall():
                self._connection.execute(
                    f"DELETE FROM vectors WHERE vector_set = ? AND place IN ({marks})",  # noqa: S608
                    (vector_set, *bound),
                )
                self._connection.execute(
                    "UPDATE vector_sets SET vectors = vectors - ? WHERE vector_set = ?",
                    (self._connection.changes(), vector_set),
                )
            self._connection.execute(
                "UPDATE hold_counts SET (pinned, retrievals) = (SELECT hold_counts.pinned - count(h.pin), "  # noqa: S608
                "hold_counts.retrievals - coalesce(sum(h.retrievals), 0) "
                f"FROM holds h WHERE h.place IN ({marks})) WHERE agent = ?",
                (*bound, agent),
            )
            self._connection.execute(f"DELETE FROM holds WHERE place IN ({marks})", bound)  # noqa: S608
            for column in ("old_place", "new_place"):
                self._connection.execute(f"DELETE FROM supersessions WHERE {column} IN ({marks})", bound)  # noqa: S608
            self._connection.execute(f"DELETE FROM lesson_sources WHERE place IN ({marks})", bound)  # noqa: S608

    def _erase_sessions(self, sessions: Sequence[int]) -> None:
        """What was handed out, and what is noted of them: derived from everything that was said there."""
        for marks, piece in in_pieces(sessions):
            self._connection.execute(f"DELETE FROM contexts WHERE session IN ({marks})", tuple(piece))  # noqa: S608
            self._connection.execute(
                f"DELETE FROM session_notes WHERE session IN ({marks}) AND name <> 'parentSessionId'",  # noqa: S608
                tuple(piece),
            )

    def _rewrite(self, agent: int, id_: str, draft: SummaryDraft, at: datetime) -> None:
        summary = summary_reads.summary_number(self._connection, agent, id_)
        if summary is None:
            return
        times = micros(draft.first_at), micros(draft.last_at)
        self._connection.execute(
            _REPLACE_SUMMARY, (*times, len(draft.text), draft.tokens, micros(at), draft.brief, summary)
        )
        self._connection.execute(
            "UPDATE summary_texts SET draft = ? WHERE summary = ?", (msgspec.json.encode(draft).decode(), summary)
        )

    def _rewrite_lesson(self, agent: int, number: int, lesson: Lesson) -> None:
        data, lesson = as_kept(msgspec.structs.replace(lesson, sources=[]))
        self._connection.execute(_REPLACE_LESSON, (lesson.status, micros(lesson.last_seen), data, agent, number))

    def _forget_lesson(self, agent: int, number: int) -> None:
        bound = (agent, number)
        self._connection.execute(
            "DELETE FROM lesson_sources WHERE lesson IN (SELECT lesson FROM lessons WHERE agent = ? AND number = ?)",
            bound,
        )
        self._connection.execute(
            "UPDATE lessons SET status = 'forgotten', data = '{}' WHERE agent = ? AND number = ?", bound
        )
