"""Which agent and which session is which, where the rows that name them may be lost. Part of `salvage`: inside its
transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from typing import Any

import apsw

from offbook.log.audit_chain import batch_hash, event_hash, micros
from offbook.log.sql import audit_reads
from offbook.log.sql.connection import UNREADABLE
from offbook.log.sql.row_ids import MOST_MESSAGES, place_of, session_of
from offbook.log.sqlite.pages import Row
from offbook.model.types import LOST, AuditEvent, now

EVENTS = """
SELECT e.seq, ?, e.at, e.verb, e.actor, e.session, e.details, e.previous, e.hash FROM audit e WHERE true
"""


# ── agents ──


def name_agents(connection: apsw.Connection, indexed: Mapping[str, list[Row]], names: Sequence[str]) -> None:
    for row in indexed.get("agents", []):
        match row.values:
            case (str(name), int(agent)):
                _add_agent(connection, agent, name)
    unnamed: Any = connection.execute(
        "SELECT agent FROM audit UNION SELECT agent FROM sessions EXCEPT SELECT agent FROM agents"
    ).fetchall()
    for (agent,) in unnamed:
        candidates = (name for name in names if not _is_taken(connection, name) and _is_named(connection, agent, name))
        _add_agent(connection, agent, next(candidates, None) or _free_name(connection, f"recovered-{agent}"))


def _is_taken(connection: apsw.Connection, name: str) -> bool:
    return bool(connection.execute("SELECT EXISTS (SELECT 1 FROM agents WHERE name = ?)", (name,)).get)


def _free_name(connection: apsw.Connection, wanted: str) -> str:
    others = (f"{wanted}-{number}" for number in count(2))
    return next(name for name in chain([wanted], others) if not _is_taken(connection, name))


def _add_agent(connection: apsw.Connection, agent: int, name: str) -> None:
    connection.execute(
        "INSERT OR IGNORE INTO agents (agent, name, noted_hash) VALUES (?, ?, '')",
        (agent, name),
    )


def _is_named(connection: apsw.Connection, agent: int, name: str) -> bool:
    """The name is in the hash of every event; what stands for a lost one has the hash of that one."""
    rows = connection.execute(f"{EVENTS} AND e.agent = ? AND e.verb <> ? LIMIT 20", (name, agent, LOST)).fetchall()
    return any(sound_event(row) for row in rows)


def sound_event(row: Any) -> AuditEvent | None:
    try:
        event = audit_reads.event_of(row)
        own_hash = event_hash(event)
    except UNREADABLE:
        return None
    return event if event.verb == LOST or own_hash == event.hash else None


# ── sessions ──


def name_sessions(connection: apsw.Connection, indexed: Iterable[Row]) -> None:
    for row in indexed:
        match row.values:
            case (int(agent), str(key), int(session)):
                _add_session(connection, session, agent, key)
    unnamed: Any = connection.execute(
        "SELECT DISTINCT place >> 32 FROM messages WHERE place >> 32 NOT IN (SELECT session FROM sessions)"
    ).fetchall()
    for (session,) in unnamed:
        agent, key = _known_by_its_messages(connection, session) or (
            _agent_for(connection, session),
            f"recovered-{session}",
        )
        _add_session(connection, session, agent, key)
    connection.execute(
        "INSERT OR IGNORE INTO sessions (agent, key, started_at) "
        "SELECT agent, session, min(at) FROM audit WHERE details ->> '$.accepted' > 0 AND session IS NOT NULL "
        "GROUP BY agent, session"
    )


def _add_session(connection: apsw.Connection, session: int, agent: int, key: str) -> None:
    first: int | None = connection.execute(
        "SELECT min(ts) FROM messages WHERE place BETWEEN ? AND ?", (place_of(session, 0), place_of(session + 1, 0))
    ).get
    connection.execute(
        "INSERT OR IGNORE INTO sessions (session, agent, key, started_at) VALUES (?,?,?,?)",
        (session, agent, key, micros(now()) if first is None else first),
    )


def newest_named(indexed: Iterable[Row]) -> dict[int, int]:
    """By session: the last message that has an id."""
    newest: dict[int, int] = {}
    for row in indexed:
        match row.values:
            case (int(session), str(_), int(place)) if session_of(place) == session:
                newest[session] = max(newest.get(session, 0), place & MOST_MESSAGES)
    return newest


def _known_by_its_messages(connection: apsw.Connection, session: int) -> tuple[int, str] | None:
    """The event that stored them has their hash."""
    stored: Any = connection.execute(
        "SELECT agent, session, details ->> '$.firstSeq', details ->> '$.lastSeq', details ->> '$.hash' FROM audit "
        "WHERE details ->> '$.accepted' > 0 AND session IS NOT NULL"
    ).fetchall()
    hashes: dict[int, bytes] = dict(message_hashes(connection, session, 1, MOST_MESSAGES))
    for agent, key, first, last, hash_ in stored:
        if last - first <= len(hashes) and first in hashes and last in hashes:
            seqs = range(first, last + 1)
            if all(seq in hashes for seq in seqs) and batch_hash(hashes[seq] for seq in seqs) == hash_:
                return agent, key
    return None


def _agent_for(connection: apsw.Connection, session: int) -> int:
    """Where there are several, a new one: what was said to one of them is not for another."""
    agents: Any = connection.execute("SELECT agent FROM agents").fetchall()
    if len(agents) == 1:
        return int(agents[0][0])
    name = _free_name(connection, f"recovered-session-{session}") if agents else "main"
    connection.execute("INSERT INTO agents (name, noted_hash) VALUES (?, '')", (name,))
    return connection.last_insert_rowid()


def message_hashes(connection: apsw.Connection, session: int, first: int, last: int) -> Iterator[tuple[int, bytes]]:
    rows: Any = connection.execute(
        "SELECT seq, hash FROM messages WHERE place BETWEEN ? AND ? ORDER BY place",
        (place_of(session, first), place_of(session, last)),
    )
    yield from rows
