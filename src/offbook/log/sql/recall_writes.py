"""Writing what recall needs. Part of the ledger: in the writer thread, inside its transaction.

Nothing is kept in memory between two writes, so a rollback leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from offbook.log.audit_chain import micros
from offbook.log.sql.recall_reads import agent_number, living_places
from offbook.log.sql.row_ids import MOST_VECTORS, in_pieces, vector_number
from offbook.log.sql.rows import AgentRow, LedgerPart
from offbook.model.memory_entry import TAKEN_BACK, Supersession, VectorRow
from offbook.model.types import AuditDraft, now

DROPPED_AT_A_TIME = 1_000
"""Vectors: a transaction of some 130 pages, so that whoever writes beside it waits for milliseconds."""

_INSERT_VECTOR = "INSERT INTO vectors (number, vector_set, place, part, data) VALUES (?,?,?,?,?)"
_ONE_MORE_RETRIEVAL = """
INSERT INTO holds (place, agent, retrievals, retrieved_at)
SELECT CAST(value AS BIGINT), ?, 1, ? FROM json_each(?) WHERE true
ON CONFLICT (place) DO UPDATE SET retrievals = holds.retrievals + 1, retrieved_at = excluded.retrieved_at
"""
_NEWEST_PIN = "SELECT max(pin) FROM holds WHERE agent = ? AND pin IS NOT NULL"
_PIN = "INSERT INTO holds (place, agent, pin) VALUES (?,?,?) ON CONFLICT (place) DO UPDATE SET pin = excluded.pin"
_COUNT_HOLDS = """
INSERT INTO hold_counts (agent, pinned, retrievals) VALUES (?,?,?)
ON CONFLICT (agent) DO UPDATE SET
    pinned = hold_counts.pinned + excluded.pinned, retrievals = hold_counts.retrievals + excluded.retrievals
"""


class RecallLedger(LedgerPart):
    # ── vectors ──

    def add_vectors(self, agent_id: str, model: str, vectors: Sequence[VectorRow]) -> None:
        own = set(living_places(self._connection, agent_id, [vector.place for vector in vectors]))
        rows = {(vector.place, vector.part): vector.data for vector in vectors if vector.place in own}
        if not rows:
            return
        vector_set, last = self._vector_set(self._agent(agent_id), model)
        before = self._connection.total_changes()
        self._connection.executemany(
            "DELETE FROM vectors WHERE vector_set = ? AND place = ? AND part = ?",
            [(vector_set, place, part) for place, part in rows],
        )
        replaced = self._connection.total_changes() - before
        self._connection.executemany(
            _INSERT_VECTOR,
            [
                (number, vector_set, place, part, data)
                for number, ((place, part), data) in enumerate(rows.items(), last + 1)
            ],
        )
        self._connection.execute(
            "UPDATE vector_sets SET vectors = vectors + ?, last_number = ? WHERE vector_set = ?",
            (len(rows) - replaced, last + len(rows), vector_set),
        )

    def drop_vectors(self, agent_id: str, model: str, through: int) -> int:
        """The oldest of those up to `through`, as many as one transaction may take."""
        self._check(agent_id)
        row = self._connection.execute(
            "SELECT vector_set FROM vector_sets WHERE agent = ? AND model = ?",
            (agent_number(self._connection, agent_id), model),
        ).fetchone()
        if row is None:
            return 0
        (vector_set,) = row
        through = min(through, vector_number(vector_set, MOST_VECTORS))
        self._connection.execute(
            "DELETE FROM vectors WHERE number IN "
            "(SELECT number FROM vectors WHERE number > ? AND number <= ? ORDER BY number LIMIT ?)",
            (vector_number(vector_set, 0), through, DROPPED_AT_A_TIME),
        )
        dropped = self._connection.changes()
        self._connection.execute(
            "UPDATE vector_sets SET vectors = vectors - ? WHERE vector_set = ?", (dropped, vector_set)
        )
        return dropped

    def _vector_set(self, agent: AgentRow, model: str) -> tuple[int, int]:
        """The set and the number it gave out last."""
        query = "SELECT vector_set, last_number FROM vector_sets WHERE agent = ? AND model = ?"
        row: tuple[int, int] | None = self._connection.execute(query, (agent.agent, model)).fetchone()
        if row is None:
            vector_set = self._connection.execute(
                "INSERT INTO vector_sets (agent, model, last_number) VALUES (?,?,0) RETURNING vector_set",
                (agent.agent, model),
            ).get
            row = vector_set, vector_number(vector_set, 0)
        return row

    # ── holds ──

    def recalled(self, agent_id: str, places: Sequence[int], event: AuditDraft) -> None:
        at = now()
        agent = self._agent(agent_id)
        own = living_places(self._connection, agent_id, places)
        if own:
            self._connection.execute(_ONE_MORE_RETRIEVAL, (agent.agent, micros(at), msgspec.json.encode(own).decode()))
            self._connection.execute(_COUNT_HOLDS, (agent.agent, 0, len(own)))
        self._chain(agent, event, at)

    def pin(self, agent_id: str, places: Sequence[int], *, pinned: bool, event: AuditDraft) -> list[int]:
        agent = self._agent(agent_id)
        own = living_places(self._connection, agent_id, places)
        already = self._pinned(own)
        changed = [place for place in own if (place in already) != pinned]
        if pinned:
            last = self._connection.execute(_NEWEST_PIN, (agent.agent,)).get or 0
            rows = [(place, agent.agent, order) for order, place in enumerate(changed, last + 1)]
            self._connection.executemany(_PIN, rows)
        else:
            self._connection.executemany("UPDATE holds SET pin = NULL WHERE place = ?", [(place,) for place in changed])
            self._connection.executemany(
                "DELETE FROM holds WHERE place = ? AND retrievals = 0", [(place,) for place in changed]
            )
        if changed:
            self._connection.execute(_COUNT_HOLDS, (agent.agent, len(changed) if pinned else -len(changed), 0))
        self._chain(agent, msgspec.structs.replace(event, details=event.details | {"changed": len(changed)}), now())
        return changed

    def _pinned(self, places: Sequence[int]) -> set[int]:
        found: set[int] = set()
        for marks, piece in in_pieces(places):
            query = f"SELECT place FROM holds WHERE place IN ({marks}) AND pin IS NOT NULL"  # noqa: S608
            found.update(place for (place,) in self._connection.execute(query, tuple(piece)))
        return found

    # ── supersessions ──

    def supersede(self, agent_id: str, links: Sequence[Supersession], event: AuditDraft) -> int:
        own = set(
            living_places(self._connection, agent_id, [p for link in links for p in (link.old_place, link.new_place)])
        )
        sound = [link for link in links if link.old_place != link.new_place and {link.old_place, link.new_place} <= own]
        if not sound:
            return 0
        agent = self._agent(agent_id)
        added = 0
        for link in sound:
            self._connection.execute(
                "INSERT INTO supersessions (old_place, new_place, agent, kind, at, note) VALUES (?,?,?,?,?,?) "
                "ON CONFLICT (old_place, new_place) DO NOTHING",
                (link.old_place, link.new_place, agent.agent, link.kind, micros(link.at), link.note),
            )
            added += self._connection.changes()
        if added:
            self._chain(agent, event, now())
        return added

    def withdraw(self, agent_id: str, note: str, event: AuditDraft) -> int:
        self._check(agent_id)
        number = agent_number(self._connection, agent_id)
        if number is None or not note:
            return 0
        self._connection.execute(
            "DELETE FROM supersessions WHERE agent = ? AND note = ? AND kind <> ?", (number, note, TAKEN_BACK)
        )
        withdrawn = self._connection.changes()
        if withdrawn:
            details = event.details | {"withdrawn": withdrawn}
            self._chain(self._agent(agent_id), msgspec.structs.replace(event, details=details), now())
        return withdrawn

    def unlink(self, agent_id: str, old_place: int, new_place: int | None, event: AuditDraft) -> int:
        self._check(agent_id)
        number = agent_number(self._connection, agent_id)
        if number is None:
            return 0
        query = "UPDATE supersessions SET kind = ? WHERE +agent = ? AND old_place = ? AND kind <> ?"
        asked: tuple[str | int, ...] = (TAKEN_BACK, number, old_place, TAKEN_BACK)
        if new_place is not None:
            query, asked = f"{query} AND new_place = ?", (*asked, new_place)
        self._connection.execute(query, asked)
        changed = self._connection.changes()
        if changed:
            details = event.details | {"changed": changed}
            self._chain(self._agent(agent_id), msgspec.structs.replace(event, details=details), now())
        return changed

    # ── notes ──

    def set_agent_note(self, agent_id: str, name: str, value: str | None, event: AuditDraft | None) -> None:
        if value is None and event is None and agent_number(self._connection, agent_id) is None:
            return  # a stranger stays one
        agent = self._agent(agent_id)
        if value is None:
            self._connection.execute("DELETE FROM agent_notes WHERE agent = ? AND name = ?", (agent.agent, name))
        else:
            self._connection.execute(
                "INSERT INTO agent_notes (agent, name, value) VALUES (?,?,?) "
                "ON CONFLICT (agent, name) DO UPDATE SET value = excluded.value",
                (agent.agent, name, value),
            )
        if event is not None:
            self._chain(agent, event, now())
