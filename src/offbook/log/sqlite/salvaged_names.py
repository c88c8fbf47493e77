"""Which agent and which session is which, where the rows that name them may be lost. Part of `salvage`: inside its
transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import apsw

from offbook.log.audit_chain import batch_hash, event_hash, micros
from offbook.log.sqlite import audit_reads
from offbook.log.sqlite.connection import UNREADABLE
from offbook.log.sqlite.pages import Row
from offbook.log.sqlite.row_ids import MOST_MESSAGES, place_of, session_of
from offbook.model.types import LOST, now

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
        candidates = (name for name in names if _is_named(connection, agent, name))
        _add_agent(connection, agent, next(candidates, f"recovered-{agent}"))


def _add_agent(connection: apsw.Connection, agent: int, name: str) -> None:
    connection.execute(
        "INSERT OR IGNORE INTO agents (agent, name, noted_hash) VALUES (?, ?, '')",
        (agent, name),
    )


def _is_named(connection: apsw.Connection, agent: int, name: str) -> bool:
    """The name is in the hash of every event."""
    rows = connection.execute(f"{EVENTS} AND e.agent = ? LIMIT 20", (name, agent)).fetchall()
    return any(is_sound_event(row) for row in rows)


def is_sound_event(row: Any) -> bool:
    try:
        event = audit_reads.event_of(row)
        return event.verb == LOST or event_hash(event) == event.hash
    except UNREADABLE:
        return False


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
        agent, key = _known_by_its_messages(connection, session) or (_only_agent(connection), f"recovered-{session}")
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


def _only_agent(connection: apsw.Connection) -> int:
    found: int | None = connection.execute("SELECT min(agent) FROM agents").get
    if found is not None:
        return found
    connection.execute("INSERT INTO agents (name, noted_hash) VALUES ('main', '')")
    return connection.last_insert_rowid()


def message_hashes(connection: apsw.Connection, session: int, first: int, last: int) -> Iterator[tuple[int, bytes]]:
    rows: Any = connection.execute(
        "SELECT seq, hash FROM messages WHERE place BETWEEN ? AND ? ORDER BY place",
        (place_of(session, first), place_of(session, last)),
    )
    yield from rows
