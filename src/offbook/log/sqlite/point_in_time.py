"""The memory as it was at a moment: a copy of the store, cut after that.

For a copy that nobody else has open. Everything goes or nothing does. What an agent's chain says was there by then is
there afterwards, and the chain ends with the last event of then; what was forgotten since stays forgotten, and the
events that say so are chained anew behind it. Not everything can be known again: `Cut.unknown` says what cannot.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import reduce
from pathlib import Path
from typing import Any

import apsw
import msgspec

from offbook.log.audit_chain import counts_with, micros
from offbook.log.sql.head import head_path
from offbook.log.sqlite.connection import TEMPORARY_FILES, open_writer, store_errors
from offbook.log.sqlite.cut_events import History, forgotten_again, history_of, parted_at
from offbook.log.sqlite.cut_tables import Tables
from offbook.model.errors import StoreCorrupt
from offbook.model.types import AuditEvent, AuditHead, Value

NOT_AS_WRITTEN = (TypeError, ValueError, LookupError, AttributeError, OverflowError)
"""What following a chain raises over events that were never written like this."""

_sorted_json = msgspec.json.Encoder(order="deterministic")


class AgentCut(Value, frozen=True):
    """What went, by kind."""

    agent_id: str
    messages: int
    sessions: int
    events: int
    summaries: int
    contexts: int
    turn_memories: int
    lessons: int
    pins: int
    is_gone: bool = False
    """Nothing was known of it by then."""


class Cut(Value, frozen=True):
    at: datetime
    agents: list[AgentCut]
    """Those of which something went."""
    unknown: list[str]
    """What could not be known again, and is as in the backup."""

    @property
    def messages(self) -> int:
        return sum(agent.messages for agent in self.agents)


def cut_after(path: Path, at: datetime) -> Cut:
    """Take out of the store whatever came after the moment."""
    head_path(path).unlink(missing_ok=True)  # it is meant to be shorter
    with store_errors():
        connection = open_writer(path)
        try:
            connection.execute("PRAGMA foreign_keys = OFF")  # a row at a time it would look for what refers to it
            with connection:
                cut = _cut(connection, at)
                _refuse_dangling(connection)
            connection.execute(TEMPORARY_FILES)
            connection.execute("VACUUM")  # what went is not to be found in free pages either
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        finally:
            connection.close()
    return cut


def _cut(connection: apsw.Connection, at: datetime) -> Cut:
    agents: list[AgentCut] = []
    unknown: list[str] = []
    rows: list[tuple[Any, ...]] = connection.execute("SELECT agent, name FROM agents ORDER BY agent").fetchall()
    for agent, name in rows:
        last_seq, late, early = parted_at(connection, agent, micros(at))
        if late or early:
            unknown.append(
                f"agent {name}: what exactly was there, as the clock was wrong for a while (of the events that stay "
                f"{late:,} say a later time, of those that went {len(early):,} an earlier one)"
            )
        if last_seq == _newest_event(connection, agent):
            continue
        try:
            history = history_of(connection, name, last_seq)
        except NOT_AS_WRITTEN as error:
            raise StoreCorrupt(
                f"the audit chain of agent {name!r} cannot be followed ({type(error).__name__}: {error}): nothing was "
                "cut; restore the backup without --at"
            ) from error
        tables = Tables(connection, agent, name, micros(at), history, early)
        agents.append(_cut_agent(tables, unknown) if last_seq else _remove_agent(tables))
    return Cut(at=at, agents=agents, unknown=unknown)


def _cut_agent(tables: Tables, unknown: list[str]) -> AgentCut:
    name = tables.name
    before = tables.counted()
    pins = tables.cut_pins()
    if pins is None:
        unknown.append(f"agent {name}: which messages were pinned (some were unpinned or imported later)")
    if tables.cut_retrievals():
        unknown.append(f"agent {name}: how often messages had been retrieved")
    if tables.history.is_unlinked_later:
        unknown.append(f"agent {name}: which messages gave way to others (some were unlinked later)")
    tables.cut_summaries()
    tables.cut_handed_out()
    tables.cut_marks()
    tables.cut_messages()
    if tables.cut_lessons():
        unknown.append(f"agent {name}: what a person had written into a lesson that was edited again later")
    tables.cut_sessions()
    tables.cut_notes()
    tables.count_holds()
    if tables.has_captures_later():
        unknown.append(f"agent {name}: what its clients had sent by then")
    _cut_chain(tables)
    after = tables.counted()
    gone = {kind: before[kind] - after[kind] for kind in before}
    return _agent_cut(tables, gone, pins or 0, is_gone=False)


def _cut_chain(tables: Tables) -> None:
    history, connection = tables.history, tables.connection
    connection.execute("DELETE FROM audit WHERE agent = ? AND seq > ?", (tables.agent, history.head.seq))
    again = list(forgotten_again(tables.name, history, tables.erased()))
    for event in again:
        connection.execute(
            "INSERT INTO audit (agent, seq, at, verb, actor, session, details, previous, hash) "
            "VALUES (?,?,?,?,?,?,?,?,?)",
            (
                tables.agent,
                event.seq,
                micros(event.at),
                event.verb,
                event.actor,
                event.session_id,
                _sorted_json.encode(event.details).decode(),
                event.previous,
                event.hash,
            ),
        )
    head, counts = _noted(history, again)
    connection.execute(
        "UPDATE agents SET counts = ?, noted_seq = ?, noted_hash = ? WHERE agent = ?",
        (_sorted_json.encode(counts).decode(), head.seq, head.hash, tables.agent),
    )


def _noted(history: History, again: Sequence[AuditEvent]) -> tuple[AuditHead, object]:
    head = AuditHead(seq=again[-1].seq, hash=again[-1].hash) if again else history.head
    return head, reduce(counts_with, again, history.counts)


def _remove_agent(tables: Tables) -> AgentCut:
    before = tables.counted()
    pins = tables.pinned()
    tables.remove_all()
    return _agent_cut(tables, before, pins, is_gone=True)


def _agent_cut(tables: Tables, gone: dict[str, int], pins: int, *, is_gone: bool) -> AgentCut:
    return AgentCut(
        agent_id=tables.name,
        messages=gone["messages"],
        sessions=gone["sessions"],
        events=tables.history.removed,
        summaries=gone["summaries"],
        contexts=gone["contexts"],
        turn_memories=gone["turn_memories"],
        lessons=gone["lessons"],
        pins=pins,
        is_gone=is_gone,
    )


def _newest_event(connection: apsw.Connection, agent: int) -> int:
    found: int | None = connection.execute("SELECT max(seq) FROM audit WHERE agent = ?", (agent,)).get
    return found or 0


def _refuse_dangling(connection: apsw.Connection) -> None:
    row = connection.execute("PRAGMA foreign_key_check").fetchone()
    if row is not None:
        raise StoreCorrupt(
            f"after the cut a row of {row[0]} would refer to one of {row[2]} that is gone: nothing was cut; restore "
            "the backup without --at"
        )
