"""Reading what recall needs: arrivals, messages by their places, vectors, holds, supersessions, notes.

A place says nothing of its owner, so every query asks for the agent, too. The session is taken from the place itself
(`place >> 32`), as everywhere else, and never from the row.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from datetime import datetime
from typing import NamedTuple

import msgspec

from offbook.log.audit_chain import micros, moment
from offbook.log.sql import reads
from offbook.log.sql.connection import UNREADABLE, Connection, reading
from offbook.log.sql.row_ids import (
    ALL,
    LARGEST_NUMBER,
    MOST_MESSAGES,
    MOST_VECTORS,
    askable,
    in_pieces,
    place_of,
    session_of,
    vector_number,
)
from offbook.model.errors import StoreCorrupt
from offbook.model.memory_entry import Arrivals, Hold, HoldCounts, PlacedMessage, StoredVector, Supersession
from offbook.model.types import LoggedMessage, Scope

EVENTS_FOR_EACH_MESSAGE = 4
"""Looked at in search of one message: most events of an agent that reads much store nothing."""

_LINK_COLUMNS = "old_place, new_place, kind, at, note"
_PLACE = 18
"""Where the place stands among the columns of a message."""


class _StoredDetails(msgspec.Struct, rename="camel"):
    """Of an event's details: the messages it stored."""

    accepted: int = 0
    first_seq: int = 0
    last_seq: int = 0


class _EventSpan(NamedTuple):
    """What one event stored, or several of one session."""

    session_id: str
    first_seq: int
    last_seq: int


_details = msgspec.json.Decoder(_StoredDetails)


# ── what an index follows ──


def arrivals(connection: Connection, agent_id: str, after_event: int, limit: int) -> Arrivals:
    limit = max(limit, 1)
    most_events = EVENTS_FOR_EACH_MESSAGE * limit
    stretches: list[_EventSpan] = []
    through, taken, is_end = after_event, 0, True
    # A reading that is left open would keep the write-ahead log from being moved into the file.
    with closing(_events(connection, agent_id, after_event, most_events + 1)) as events:
        for looked_at, (seq, session_id, stored) in enumerate(events):
            if looked_at and (looked_at == most_events or taken + stored.accepted > limit):
                is_end = False
                break
            through, taken = seq, taken + stored.accepted
            if stored.accepted and session_id is not None:
                stretches.append(_EventSpan(session_id, stored.first_seq, stored.last_seq))
    return Arrivals(through_event=through, messages=_arrived(connection, agent_id, stretches), is_end=is_end)


def messages_at(connection: Connection, agent_id: str, places: Sequence[int]) -> list[PlacedMessage]:
    scopes = {
        number: Scope(agent_id=agent_id, session_id=key)
        for number, key in own_sessions(connection, agent_id, places).items()
    }
    own = [place for place in askable(places) if session_of(place) in scopes]
    found: dict[int, PlacedMessage] = {}
    for marks, piece in in_pieces(own):
        query = f"SELECT {reads.MESSAGE_COLUMNS} FROM messages m WHERE m.place IN ({marks})"  # noqa: S608
        try:
            logged = {row[_PLACE]: reads.logged_message(row) for row in connection.execute(query, tuple(piece))}
        except UNREADABLE:
            # Which of them it was is not known here.
            there = own_places(connection, agent_id, piece)
            logged = {place: reads.message_at(connection, scopes[session_of(place)], place) for place in there}
        for place, each in logged.items():
            found[place] = _placed(place, scopes[session_of(place)], each)
    return [found[place] for place in places if place in found]


def session_number(connection: Connection, agent_id: str, session_id: str) -> int | None:
    return reads.session_number(connection, Scope(agent_id=agent_id, session_id=session_id))


def places(connection: Connection, scope: Scope, seqs: Sequence[int]) -> list[int]:
    session = reads.session_number(connection, scope)
    if session is None:
        return []
    asked = [place_of(session, seq) for seq in seqs if 1 <= seq <= MOST_MESSAGES]
    return own_places(connection, scope.agent_id, asked)


def _events(
    connection: Connection, agent_id: str, after_event: int, limit: int
) -> Generator[tuple[int, str | None, _StoredDetails], None, None]:
    rows = connection.execute(
        "SELECT e.seq, e.session, e.details FROM audit e WHERE e.agent = (SELECT agent FROM agents WHERE name = ?) "
        "AND e.seq > ? ORDER BY e.seq LIMIT ?",
        (agent_id, min(after_event, LARGEST_NUMBER), limit),
    )
    with closing(rows), reading(f"one of {limit} audit events of agent {agent_id!r} after {after_event}"):
        for seq, session_id, details in rows:
            yield seq, session_id, _details.decode(details)


def _arrived(connection: Connection, agent_id: str, stretches: Sequence[_EventSpan]) -> list[PlacedMessage]:
    """The messages of a session were numbered as they arrived, so those of all its events are read in one go."""
    whole: dict[str, _EventSpan] = {}
    for session_id, first_seq, last_seq in stretches:
        known = whole.get(session_id)
        whole[session_id] = _EventSpan(session_id, known.first_seq if known else first_seq, last_seq)
    queues = {session_id: deque(_messages_of(connection, agent_id, each)) for session_id, each in whole.items()}
    arrived: list[PlacedMessage] = []
    for session_id, _, last_seq in stretches:
        queue = queues[session_id]
        while queue and queue[0].logged.seq <= last_seq:
            arrived.append(queue.popleft())
    return arrived


def _messages_of(connection: Connection, agent_id: str, stretch: _EventSpan) -> Iterator[PlacedMessage]:
    scope = Scope(agent_id=agent_id, session_id=stretch.session_id)
    number = reads.session_number(connection, scope)
    if number is None:
        return
    # Whatever an event says: beyond these numbers lies another session, of any agent.
    first, last = max(stretch.first_seq, 1), min(stretch.last_seq, MOST_MESSAGES)
    for logged in reads.span_of(connection, scope, number, first, last, "ASC", ALL):
        yield _placed(place_of(number, logged.seq), scope, logged)


def _placed(place: int, scope: Scope, logged: LoggedMessage) -> PlacedMessage:
    return PlacedMessage(place=place, session=session_of(place), session_id=scope.session_id, logged=logged)


# ── whose a place is ──


def agent_number(connection: Connection, agent_id: str) -> int | None:
    known: dict[str, int] = getattr(connection, "agents", {})  # of those who only read
    if agent_id in known:
        return known[agent_id]
    found: int | None = connection.execute("SELECT agent FROM agents WHERE name = ?", (agent_id,)).get
    if found is not None:
        known[agent_id] = found
    return found


def own_sessions(connection: Connection, agent_id: str, places: Iterable[int]) -> dict[int, str]:
    """Of the sessions that the places lie in, those of the agent: number and key."""
    keys: dict[int, str] = {}
    agent = agent_number(connection, agent_id)
    numbers = list(dict.fromkeys(session_of(place) for place in askable(places)))
    with reading(f"the key of a session of agent {agent_id!r}"):
        for marks, piece in in_pieces(numbers):
            query = f"SELECT session, key FROM sessions WHERE session IN ({marks}) AND +agent = ?"  # noqa: S608
            keys |= connection.execute(query, (*piece, agent))
    return keys


def living_places(connection: Connection, agent_id: str, places: Sequence[int]) -> list[int]:
    """Of the agent's own, those that were not forgotten: nothing new is kept of the others, however late it comes."""
    there = own_places(connection, agent_id, places)
    gone: set[int] = set()
    for marks, piece in in_pieces(there):
        query = f"SELECT place FROM messages WHERE place IN ({marks}) AND erased IS NOT NULL"  # noqa: S608
        gone.update(place for (place,) in connection.execute(query, tuple(piece)))
    return [place for place in there if place not in gone]


def own_places(connection: Connection, agent_id: str, places: Sequence[int]) -> list[int]:
    """Those at which the agent has a message, each once, in the order given."""
    sessions = own_sessions(connection, agent_id, places)
    asked = [place for place in askable(places) if session_of(place) in sessions]
    there: set[int] = set()
    for marks, piece in in_pieces(asked):
        rows = connection.execute(f"SELECT place FROM messages WHERE place IN ({marks})", tuple(piece))  # noqa: S608
        there.update(place for (place,) in rows)
    return [place for place in asked if place in there]


# ── vectors ──


def vectors(connection: Connection, agent_id: str, model: str, after: int, limit: int) -> list[StoredVector]:
    vector_set = _vector_set(connection, agent_id, model)
    if vector_set is None:
        return []
    rows = connection.execute(
        "SELECT number, place, part, data FROM vectors WHERE number > ? AND number <= ? ORDER BY number LIMIT ?",
        (max(min(after, LARGEST_NUMBER), vector_number(vector_set, 0)), vector_number(vector_set, MOST_VECTORS), limit),
    )
    return [StoredVector(number=number, place=place, part=part, data=data) for number, place, part, data in rows]


def vector_models(connection: Connection, agent_id: str) -> dict[str, int]:
    with reading(f"the embedding models of agent {agent_id!r}"):
        rows: Iterable[tuple[str, int]] = connection.execute(
            "SELECT v.model, v.vectors FROM vector_sets v JOIN agents a ON a.agent = v.agent "
            "WHERE a.name = ? AND v.vectors > 0 ORDER BY v.vector_set",
            (agent_id,),
        )
        return dict(rows)


def newest_vector(connection: Connection, agent_id: str, model: str) -> int | None:
    """The number given out last, whether it is still there or not."""
    found: int | None = connection.execute(
        "SELECT v.last_number FROM vector_sets v JOIN agents a ON a.agent = v.agent WHERE a.name = ? AND v.model = ?",
        (agent_id, model),
    ).get
    return found


def _vector_set(connection: Connection, agent_id: str, model: str) -> int | None:
    found: int | None = connection.execute(
        "SELECT v.vector_set FROM vector_sets v JOIN agents a ON a.agent = v.agent WHERE a.name = ? AND v.model = ?",
        (agent_id, model),
    ).get
    return found


# ── holds ──


def holds(connection: Connection, agent_id: str, places: Sequence[int]) -> dict[int, Hold]:
    found: dict[int, Hold] = {}
    agent = agent_number(connection, agent_id)
    with reading(f"a hold of agent {agent_id!r}"):
        for marks, piece in in_pieces(askable(places)):
            rows = connection.execute(
                f"SELECT place, retrievals, retrieved_at, pin FROM holds WHERE place IN ({marks}) AND +agent = ?",  # noqa: S608
                (*piece, agent),
            )
            found |= {place: _hold(*rest) for place, *rest in rows}
    return found


def pinned(connection: Connection, agent_id: str, limit: int, session_id: str | None = None) -> list[int]:
    if session_id is None:
        rows = connection.execute(
            "SELECT place FROM holds WHERE agent = ? AND pin IS NOT NULL ORDER BY pin DESC LIMIT ?",
            (agent_number(connection, agent_id), limit),
        )
        return [place for (place,) in rows]
    number = session_number(connection, agent_id, session_id)
    if number is None:
        return []
    # The session is the agent's, and so is all that lies in it.
    rows = connection.execute(
        "SELECT place FROM holds WHERE place BETWEEN ? AND ? AND pin IS NOT NULL ORDER BY pin DESC LIMIT ?",
        (place_of(number, 1), place_of(number, MOST_MESSAGES), limit),
    )
    return [place for (place,) in rows]


def hold_counts(connection: Connection, agent_id: str) -> HoldCounts:
    row = connection.execute(
        "SELECT pinned, retrievals FROM hold_counts WHERE agent = ?", (agent_number(connection, agent_id),)
    ).fetchone()
    return HoldCounts(pinned=row[0], retrievals=row[1]) if row else HoldCounts()


def retrieved_since(connection: Connection, agent_id: str, since: datetime, limit: int) -> list[tuple[int, Hold]]:
    with reading(f"a hold of agent {agent_id!r}"):
        rows = connection.execute(
            "SELECT place, retrievals, retrieved_at, pin FROM holds "
            "WHERE agent = ? AND retrieved_at >= ? ORDER BY retrieved_at DESC, place DESC LIMIT ?",
            (agent_number(connection, agent_id), micros(since), limit),
        )
        return [(place, _hold(*rest)) for place, *rest in rows]


def _hold(retrievals: int, retrieved_at: int | None, pin: int | None) -> Hold:
    at = None if retrieved_at is None else moment(retrieved_at)
    return Hold(retrievals=retrievals, retrieved_at=at, pinned=pin is not None)


# ── supersessions ──


def supersessions(connection: Connection, agent_id: str, places: Sequence[int]) -> list[Supersession]:
    found: dict[tuple[int, int], Supersession] = {}
    agent = agent_number(connection, agent_id)
    with reading(f"a supersession of agent {agent_id!r}"):
        for marks, piece in in_pieces(askable(places)):
            for side in ("old_place", "new_place"):
                query = f"SELECT {_LINK_COLUMNS} FROM supersessions WHERE {side} IN ({marks}) AND +agent = ?"  # noqa: S608
                for old, new, kind, at, note in connection.execute(query, (*piece, agent)):
                    found[old, new] = Supersession(old_place=old, new_place=new, kind=kind, at=moment(at), note=note)
    return [found[link] for link in sorted(found)]


def all_supersessions(connection: Connection, agent_id: str, most: int) -> list[Supersession] | None:
    """By their places; None where there are more, or one of them cannot be read: that keeps only itself back."""
    try:
        links = newest_supersessions(connection, agent_id, most + 1)
    except StoreCorrupt:
        return None
    return None if len(links) > most else sorted(links, key=lambda link: (link.old_place, link.new_place))


def newest_supersessions(connection: Connection, agent_id: str, limit: int) -> list[Supersession]:
    query = f"SELECT {_LINK_COLUMNS} FROM supersessions WHERE agent = ? ORDER BY at DESC, old_place DESC LIMIT ?"  # noqa: S608
    with reading(f"a supersession of agent {agent_id!r}"):
        return [
            Supersession(old_place=old, new_place=new, kind=kind, at=moment(at), note=note)
            for old, new, kind, at, note in connection.execute(query, (agent_number(connection, agent_id), limit))
        ]


# ── notes ──


def agent_note(connection: Connection, agent_id: str, name: str) -> str | None:
    with reading(f"note {name!r} of agent {agent_id!r}"):
        found: str | None = connection.execute(
            "SELECT value FROM agent_notes WHERE agent = (SELECT agent FROM agents WHERE name = ?) AND name = ?",
            (agent_id, name),
        ).get
        return found


def agents_with_note(connection: Connection, name: str, value: str) -> list[str]:
    with reading("the name of an agent"):
        rows = connection.execute(
            "SELECT a.name FROM agent_notes n JOIN agents a ON a.agent = n.agent "
            "WHERE n.name = ? AND n.value = ? ORDER BY a.name",
            (name, value),
        )
        return [agent for (agent,) in rows]
