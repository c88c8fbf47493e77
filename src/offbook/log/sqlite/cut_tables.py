"""Taking out of each table what came after a moment, for one agent. Part of `point_in_time`: inside its transaction."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import apsw

from offbook.log.sql.connection import UNREADABLE
from offbook.log.sql.lesson_reads import FORGOTTEN
from offbook.log.sql.row_ids import MOST_MESSAGES, place_of
from offbook.log.sql.summary_reads import unpacked
from offbook.log.sqlite.cut_events import History, cut_lessons
from offbook.log.store import PARENT_NOTE
from offbook.log.tiers import OFFLOADED
from offbook.model.summary import summary_id
from offbook.model.types import COMMAND

Rows = list[tuple[Any, ...]]

EMBEDDING = "embedding"
CROSS = "cross-search"
"""Notes of an agent that `worker` and `recollection` set."""
LATER = "(at > ? OR at BETWEEN ? AND ?)"
ABOUT = 60_000_000
"""Microseconds between what is kept and the event that tells of it, generously."""
BESIDE_MESSAGES = (("holds", "place"), ("supersessions", "old_place"), ("supersessions", "new_place"))
OF_AN_AGENT = ("audit", "captures", "holds", "hold_counts", "supersessions", "agent_notes", "completions", "spending")
COUNTED = {
    "messages": "SELECT count(*) FROM messages m JOIN sessions s ON s.session = m.session WHERE s.agent = ?",
    "sessions": "SELECT count(*) FROM sessions WHERE agent = ?",
    "summaries": "SELECT count(*) FROM summaries WHERE agent = ?",
    "contexts": "SELECT count(*) FROM contexts c JOIN sessions s ON s.session = c.session WHERE s.agent = ?",
    "turn_memories": "SELECT count(*) FROM turn_memories WHERE agent = ?",
    "lessons": f"SELECT count(*) FROM lessons WHERE agent = ? AND status <> '{FORGOTTEN}'",  # noqa: S608
}


class Tables:
    def __init__(
        self,
        connection: apsw.Connection,
        agent: int,
        name: str,
        at: int,
        history: History,
        early: Sequence[int] = (),
    ) -> None:
        """`early`: times that events say which go although they say no later one than `at`."""
        self.connection = connection
        self.agent = agent
        self.name = name
        self.history = history
        self._at = at
        self._early = (min(early) - ABOUT, max(early) + ABOUT) if early else (1, 0)
        rows: Any = connection.execute("SELECT key, session FROM sessions WHERE agent = ?", (agent,)).fetchall()
        self._sessions: dict[str, int] = dict(rows)
        self._gone = [self._sessions[key] for key in history.opened if key in self._sessions]
        self._cut_seq = {self._sessions[key]: seq for key, seq in history.cut_seq.items() if key in self._sessions}
        self._cut_seq |= dict.fromkeys(self._gone, 0)

    # ── looking ──

    def counted(self) -> dict[str, int]:
        return {kind: self._get(query, self.agent) for kind, query in COUNTED.items()}

    def pinned(self) -> int:
        return int(self._get("SELECT count(pin) FROM holds WHERE agent = ?", self.agent))

    def erased(self) -> dict[str, set[int]]:
        found: dict[str, set[int]] = {}
        for key, seq in self.connection.execute(
            "SELECT s.key, m.seq FROM messages m JOIN sessions s ON s.session = m.session "
            "WHERE s.agent = ? AND m.erased IS NOT NULL",
            (self.agent,),
        ):
            found.setdefault(key, set()).add(seq)
        return found

    def has_captures_later(self) -> bool:
        return bool(self._get("SELECT count(*) FROM captures WHERE agent = ? AND last_seen > ?", self.agent, self._at))

    # ── what use has made of it ──

    def cut_pins(self) -> int | None:
        """Pins are numbered in their order, so the last ones are those of later; None where others were unpinned."""
        if self.history.is_pinning_unclear:
            return None
        later = self.connection.execute(
            "SELECT place FROM holds WHERE agent = ? AND pin IS NOT NULL ORDER BY pin DESC LIMIT ?",
            (self.agent, self.history.pinned_later),
        ).fetchall()
        self.connection.executemany("UPDATE holds SET pin = NULL WHERE place = ?", later)
        self.connection.executemany("DELETE FROM holds WHERE place = ? AND retrievals = 0", later)
        return len(later)

    def cut_retrievals(self) -> int:
        """What was retrieved later may have been before, too: how often is not known, but not when it was not yet."""
        self.connection.execute(
            "UPDATE holds SET retrieved_at = ? WHERE agent = ? AND retrieved_at > ?", (self._at, self.agent, self._at)
        )
        return self.connection.changes()

    def count_holds(self) -> None:
        self.connection.execute("DELETE FROM hold_counts WHERE agent = ?", (self.agent,))
        self.connection.execute(
            "INSERT INTO hold_counts (agent, pinned, retrievals) "
            "SELECT agent, count(pin), sum(retrievals) FROM holds WHERE agent = ? GROUP BY agent",
            (self.agent,),
        )

    # ── what was made of it ──

    def cut_summaries(self) -> None:
        """Those that were not there yet: of each level the last ones. One that was written again later stays, as it
        stands for the same messages."""
        rows: Rows = self.connection.execute(
            "SELECT summary, level, number FROM summaries WHERE agent = ?", (self.agent,)
        ).fetchall()
        later = [
            (summary,) for summary, level, number in rows if summary_id(level, number) not in self.history.summaries
        ]
        self.connection.executemany("UPDATE summaries SET parent = NULL WHERE parent = ?", later)
        for table in ("summary_spans", "summary_texts", "summaries"):
            self.connection.executemany(f"DELETE FROM {table} WHERE summary = ?", later)  # noqa: S608

    def cut_handed_out(self) -> None:
        """Contexts, what turns were prepared with, and answers of models; where the clock was wrong, also those of
        then that cannot be told from later ones. What was paid for them stays paid."""
        for session in self._sessions.values():
            first = self.connection.execute(
                f"SELECT generation, payload FROM contexts WHERE session = ? AND {LATER} ORDER BY context LIMIT 1",  # noqa: S608
                (session, self._at, *self._early),
            ).fetchone()
            if first is None:
                continue
            self.connection.execute(
                f"DELETE FROM contexts WHERE session = ? AND {LATER}",  # noqa: S608
                (session, self._at, *self._early),
            )
            generation = self._generation_before(session, *first)
            self.connection.execute("UPDATE sessions SET generation = ? WHERE session = ?", (generation, session))
        for table in ("turn_memories", "completions"):
            self.connection.execute(
                f"DELETE FROM {table} WHERE agent = ? AND {LATER}",  # noqa: S608
                (self.agent, self._at, *self._early),
            )

    def _generation_before(self, session: int, generation: int, payload: bytes) -> int:
        """Of the first context that goes, which may be the one that began its generation."""
        newest: int | None = self._get(
            "SELECT generation FROM contexts WHERE session = ? ORDER BY context DESC LIMIT 1", session
        )
        if newest is not None:
            return newest
        try:
            return generation - (unpacked(payload).kind == "swap")
        except UNREADABLE:
            return max(0, generation - 1)

    # ── the log ──

    def cut_marks(self) -> None:
        """A silence is marked when it is broken, with the message after it; the others when they happen."""
        gaps = "kind IN ('first', 'interrupted', 'new')"
        for key in self.history.touched:
            if (session := self._sessions.get(key)) is None:
                continue
            through = self._cut_seq.get(session, self._last_seq(session))
            has_cut = session in self._cut_seq
            self.connection.execute(
                f"DELETE FROM marks WHERE session = ? AND ((? AND {gaps} AND seq >= ?) OR seq > ? "  # noqa: S608
                f"OR (NOT {gaps} AND seq = ? AND at > ?))",
                (session, has_cut, through, through, through, self.history.head_at),
            )

    def _last_seq(self, session: int) -> int:
        bounds = place_of(session, 0), place_of(session, MOST_MESSAGES)
        return self._get("SELECT max(seq) FROM messages WHERE place BETWEEN ? AND ?", *bounds) or 0

    def cut_messages(self) -> None:
        for session, seq in self._cut_seq.items():
            bounds = place_of(session, seq + 1), place_of(session, MOST_MESSAGES)
            for table, column in BESIDE_MESSAGES:
                self.connection.execute(f"DELETE FROM {table} WHERE {column} BETWEEN ? AND ?", bounds)  # noqa: S608
            self.connection.execute("DELETE FROM messages WHERE place BETWEEN ? AND ?", bounds)
            self._cut_vectors(bounds)

    def _cut_vectors(self, bounds: tuple[int, int]) -> None:
        for (vector_set,) in self.connection.execute(
            "SELECT vector_set FROM vector_sets WHERE agent = ?", (self.agent,)
        ).fetchall():
            self.connection.execute(
                "DELETE FROM vectors WHERE vector_set = ? AND place BETWEEN ? AND ?", (vector_set, *bounds)
            )
            self.connection.execute(
                "UPDATE vector_sets SET vectors = vectors - ? WHERE vector_set = ?",
                (self.connection.changes(), vector_set),
            )

    def cut_lessons(self) -> int:
        return cut_lessons(self.connection, self.agent, self.history)

    def cut_sessions(self) -> None:
        for session in self._gone:
            for table in ("marks", "contexts", "session_notes", "summary_spans", "sessions"):
                self.connection.execute(f"DELETE FROM {table} WHERE session = ?", (session,))  # noqa: S608
        for key in self.history.touched - self.history.opened:
            if key in self._sessions:
                self._as_before(self._sessions[key])

    def _as_before(self, session: int) -> None:
        self._end_as_before(session)
        self._touch_as_before(session)
        self.connection.execute("DELETE FROM session_notes WHERE session = ? AND name <> ?", (session, PARENT_NOTE))

    def _end_as_before(self, session: int) -> None:
        """A session has ended where that is the last that was said of its life, and nothing but the command that ended
        it came behind."""
        row: Any = self.connection.execute(
            "SELECT kind, at, reason, seq FROM marks WHERE session = ? AND kind IN ('start', 'end') "
            "ORDER BY mark DESC LIMIT 1",
            (session,),
        ).fetchone()
        ended_at: int | None = None
        reason: str | None = None
        ended_seq: int | None = None
        if row is not None and row[0] == "end":
            _, ended_at, reason, last = row
            behind = self.connection.execute(
                "SELECT noise FROM messages WHERE place BETWEEN ? AND ? ORDER BY place",
                (place_of(session, last + 1), place_of(session, MOST_MESSAGES)),
            ).fetchall()
            ended_seq = last + len(list(takewhile(lambda message: message[0] == COMMAND, behind)))
        self.connection.execute(
            "UPDATE sessions SET ended_at = ?, end_reason = ?, ended_seq = ? WHERE session = ?",
            (ended_at, reason, ended_seq, session),
        )

    def _touch_as_before(self, session: int) -> None:
        self.connection.execute(
            "UPDATE sessions SET touched = max(started_at, "
            "coalesce((SELECT received_at FROM messages WHERE place BETWEEN ? AND ? ORDER BY place DESC LIMIT 1), 0), "
            "coalesce((SELECT max(at) FROM marks WHERE session = ?), 0)) WHERE session = ?",
            (place_of(session, 0), place_of(session, MOST_MESSAGES), session, session),
        )

    def cut_notes(self) -> None:
        """Of an agent. Where it says how far something was followed, that is followed again from the beginning."""
        history = self.history
        self.connection.execute(
            "DELETE FROM agent_notes WHERE agent = ? AND name NOT IN (?,?,?)",
            (self.agent, EMBEDDING, OFFLOADED, CROSS),
        )
        if history.is_offloaded_later:
            self._note(OFFLOADED, history.offloaded_through)
        if history.is_cross_later:
            self._note(CROSS, None if history.cross is None else "on" if history.cross else "off")

    def _note(self, name: str, value: str | None) -> None:
        self.connection.execute("DELETE FROM agent_notes WHERE agent = ? AND name = ?", (self.agent, name))
        if value is not None:
            self.connection.execute(
                "INSERT INTO agent_notes (agent, name, value) VALUES (?,?,?)", (self.agent, name, value)
            )

    # ── all of it ──

    def remove_all(self) -> None:
        own_sessions = "(SELECT session FROM sessions WHERE agent = :agent)"
        own = {
            "lesson_sources": "lesson IN (SELECT lesson FROM lessons WHERE agent = :agent)",
            "lessons": "agent = :agent",
            "summary_texts": "summary IN (SELECT summary FROM summaries WHERE agent = :agent)",
            "vectors": "vector_set IN (SELECT vector_set FROM vector_sets WHERE agent = :agent)",
            "vector_sets": "agent = :agent",
            **dict.fromkeys(
                ("messages", "marks", "contexts", "session_notes", "summary_spans"), f"session IN {own_sessions}"
            ),
            **dict.fromkeys(
                (*OF_AN_AGENT, "summaries", "turn_memories", "erasures", "sessions", "agents"), "agent = :agent"
            ),
        }
        for table, which in own.items():
            self.connection.execute(f"DELETE FROM {table} WHERE {which}", {"agent": self.agent})  # noqa: S608

    def _get(self, query: str, *bindings: Any) -> Any:
        return self.connection.execute(query, bindings).get
