"""Reading what an export needs beyond what others ask for."""

from __future__ import annotations

import apsw

from offbook.erasures import FORGOTTEN
from offbook.store.sqlite import compression_reads, reads
from offbook.store.sqlite.places import MOST_MESSAGES, place_of
from offbook.store.sqlite.recall_reads import agent_number
from offbook.summaries import Summary
from offbook.types import Scope

_MADE_AFTER = "SELECT summary FROM summaries WHERE agent = ? AND level = ? AND summary > ? ORDER BY summary LIMIT ?"


def forgotten_in(connection: apsw.Connection, scope: Scope, first_seq: int, last_seq: int) -> int:
    session = reads.session_number(connection, scope)
    if session is None:
        return 0
    bounds = place_of(session, min(first_seq, MOST_MESSAGES)), place_of(session, min(last_seq, MOST_MESSAGES))
    found: int = connection.execute(
        "SELECT count(*) FROM messages WHERE place BETWEEN ? AND ? AND noise = ?", (*bounds, FORGOTTEN)
    ).get
    return found


def summaries_after(connection: apsw.Connection, agent_id: str, after: str | None, limit: int) -> list[Summary]:
    agent = agent_number(connection, agent_id)
    last = 0 if after is None else compression_reads.summary_number(connection, agent, after)
    if agent is None or last is None:
        return []
    limit = max(limit, 0)
    found = [
        number
        for level in compression_reads.LEVELS
        for (number,) in connection.execute(_MADE_AFTER, (agent, level, last, limit))
    ]
    return compression_reads.summaries_at(connection, agent_id, sorted(found)[:limit])
