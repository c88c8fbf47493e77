"""Reading what compression needs: summaries, what models were paid for, contexts, notes of a session.

A summary's own number in the file rises as they are made; its id (`L2-0007`) counts those of one agent and level. Ids
are looked up under their agent, so those of another agent are unknown here.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

import msgspec

from offbook.log.audit_chain import micros, moment
from offbook.log.sql import reads
from offbook.log.sql.connection import Connection, reading
from offbook.log.sql.recall_reads import agent_number
from offbook.log.sql.row_ids import LARGEST_NUMBER, MOST_MESSAGES, in_pieces
from offbook.model.plain_names import level_and_number
from offbook.model.summary import (
    Completion,
    HandedContext,
    Loss,
    Node,
    Spending,
    Summary,
    SummaryDraft,
    SummaryText,
    Usage,
    summary_id,
)
from offbook.model.types import Scope, Session

LEVELS = range(1, 10)
"""That a draft can have."""

_SUMMARY_COLUMNS = "s.summary, s.level, s.number, s.made_at, p.level, p.number, t.draft"
_SUMMARIES = """summaries s JOIN summary_texts t ON t.summary = s.summary
       LEFT JOIN summaries p ON p.summary = s.parent"""
_NODES = """
SELECT s.level, s.number, s.first_seq, s.last_seq, s.chars, s.tokens, s.brief, s.first_at, s.last_at, p.level, p.number
FROM summaries s LEFT JOIN summaries p ON p.summary = s.parent
WHERE s.session = ? AND s.level = ? AND s.last_seq"""
_NODES_THROUGH = f"{_NODES} <= ? ORDER BY s.last_seq DESC LIMIT ?"
_NODE_THAT_ENDS_NEXT = f"{_NODES} >= ? ORDER BY s.last_seq LIMIT 1"
_UNMERGED = f"""
SELECT {_SUMMARY_COLUMNS} FROM {_SUMMARIES}
WHERE s.agent = ? AND s.level = ? AND s.parent IS NULL ORDER BY s.first_at, s.summary LIMIT ?
"""  # noqa: S608
_UNMERGED_OF_SESSION = f"""
SELECT {_SUMMARY_COLUMNS} FROM {_SUMMARIES}
WHERE s.session = ? AND s.level = ? AND s.parent IS NULL ORDER BY s.first_seq LIMIT ?
"""  # noqa: S608
_MADE_BEFORE = (
    "SELECT summary FROM summaries WHERE agent = ? AND level = ? AND summary < ? ORDER BY summary DESC LIMIT ?"
)
_MADE_OF_SESSION_BEFORE = (
    "SELECT DISTINCT summary FROM summary_spans WHERE session = ? AND level = ? AND summary < ? "
    "ORDER BY summary DESC LIMIT ?"
)
_USAGE_SUMS = "sum(input_tokens), sum(cached_tokens), sum(output_tokens), sum(dollars)"


class _TextOfDraft(msgspec.Struct, rename="camel"):
    """Of a draft: what showing it needs."""

    text: str
    rank: list[int]
    losses: list[Loss]
    lost: int
    kept: list[Loss] = msgspec.field(default_factory=list)


draft_decoder = msgspec.json.Decoder(SummaryDraft)
completion_decoder = msgspec.json.Decoder(Completion)
context_decoder = msgspec.json.Decoder(HandedContext)
_text_of_draft = msgspec.json.Decoder(_TextOfDraft)


# ── ids ──


def summary_number(connection: Connection, agent: int | None, id_: str) -> int | None:
    """The file's own number of the agent's summary; None where there is none of this id."""
    level, number = level_and_number(id_) or (0, 0)
    if summary_id(level, number) != id_ or not level:
        return None  # more zeros than it was given out with
    found: int | None = connection.execute(
        "SELECT summary FROM summaries WHERE agent = ? AND level = ? AND number = ?", (agent, level, number)
    ).get
    return found


# ── summaries ──


def summaries(
    connection: Connection,
    agent_id: str,
    level: int | None,
    session_id: str | None,
    before: str | None,
    limit: int,
) -> list[Summary]:
    agent = agent_number(connection, agent_id)
    through = LARGEST_NUMBER if before is None else summary_number(connection, agent, before)
    if agent is None or through is None:
        return []
    query, owner = _MADE_BEFORE, agent
    if session_id is not None:
        session = reads.session_number(connection, Scope(agent_id=agent_id, session_id=session_id))
        if session is None:
            return []
        query, owner = _MADE_OF_SESSION_BEFORE, session
    limit = max(limit, 0)
    # The newest of each level, then the newest of those: no index has to serve all questions at once.
    found = [
        number
        for each in (LEVELS if level is None else [level])
        for (number,) in connection.execute(query, (owner, each, through, limit))
    ]
    return summaries_at(connection, agent_id, sorted(found, reverse=True)[:limit])


def summary(connection: Connection, agent_id: str, id_: str) -> Summary | None:
    number = summary_number(connection, agent_number(connection, agent_id), id_)
    return None if number is None else next(iter(summaries_at(connection, agent_id, [number])), None)


def summaries_at(connection: Connection, agent_id: str, numbers: Sequence[int]) -> list[Summary]:
    """In the order given. Whoever asks knows that they are the agent's."""
    found: dict[int, Summary] = {}
    with reading(f"a summary of agent {agent_id!r}"):
        for marks, piece in in_pieces(numbers):
            query = f"SELECT {_SUMMARY_COLUMNS} FROM {_SUMMARIES} WHERE s.summary IN ({marks})"  # noqa: S608
            found |= {row[0]: _summary(agent_id, row) for row in connection.execute(query, tuple(piece))}
    return [found[number] for number in numbers if number in found]


def nodes(connection: Connection, scope: Scope, level: int, through_seq: int | None, limit: int) -> list[Node]:
    session = reads.session_number(connection, scope)
    through = MOST_MESSAGES if through_seq is None else min(through_seq, MOST_MESSAGES)
    with reading(f"a summary of session {scope.session_id!r} of agent {scope.agent_id!r}"):
        return [_node(row) for row in connection.execute(_NODES_THROUGH, (session, level, through, limit))]


def nodes_holding(connection: Connection, scope: Scope, seq: int) -> list[Node]:
    """By level. Those of one level do not overlap, so only the one that ends next can hold it."""
    session = reads.session_number(connection, scope)
    asked = min(seq, LARGEST_NUMBER)
    with reading(f"a summary of session {scope.session_id!r} of agent {scope.agent_id!r}"):
        rows = [connection.execute(_NODE_THAT_ENDS_NEXT, (session, level, asked)).fetchone() for level in LEVELS]
        found = [_node(row) for row in rows if row is not None]
    return [node for node in found if node.first_seq <= seq]


def summary_texts(connection: Connection, agent_id: str, ids: Sequence[str]) -> dict[str, SummaryText]:
    agent = agent_number(connection, agent_id)
    found: dict[str, SummaryText] = {}
    for id_ in dict.fromkeys(ids):
        number = summary_number(connection, agent, id_)
        if number is not None:
            with reading(f"summary {id_} of agent {agent_id!r}"):
                kept = _text_of_draft.decode(_draft_at(connection, number))
                found[id_] = SummaryText(
                    text=kept.text, rank=kept.rank, kept=kept.kept, losses=kept.losses, lost=kept.lost
                )
    return found


def summarised_through(connection: Connection, scope: Scope) -> int:
    found: int | None = connection.execute(
        "SELECT max(last_seq) FROM summary_spans WHERE session = ? AND level = 1",
        (reads.session_number(connection, scope),),
    ).get
    return found or 0


def unmerged(connection: Connection, agent_id: str, level: int, session_id: str | None, limit: int) -> list[Summary]:
    query, owner = _UNMERGED, agent_number(connection, agent_id)
    if session_id is not None:
        # By place: a clock that jumps back must not tear apart what lies side by side.
        scope = Scope(agent_id=agent_id, session_id=session_id)
        query, owner = _UNMERGED_OF_SESSION, reads.session_number(connection, scope)
    with reading(f"a summary of agent {agent_id!r}"):
        return [_summary(agent_id, row) for row in connection.execute(query, (owner, level, limit))]


def summary_counts(connection: Connection, agent_id: str) -> dict[int, int]:
    agent = agent_number(connection, agent_id)
    counts = {level: last_number(connection, agent, level) for level in LEVELS}
    return {level: count for level, count in counts.items() if count}


def last_number(connection: Connection, agent: int | None, level: int) -> int:
    """Given out last, which is how many there are."""
    found: int | None = connection.execute(
        "SELECT max(number) FROM summaries WHERE agent = ? AND level = ?", (agent, level)
    ).get
    return found or 0


def _draft_at(connection: Connection, number: int) -> str:
    found: str = connection.execute("SELECT draft FROM summary_texts WHERE summary = ?", (number,)).get
    return found


def _summary(agent_id: str, row: tuple[Any, ...]) -> Summary:
    _, level, number, made_at, parent_level, parent_number, draft = row
    return Summary(
        id=summary_id(level, number),
        agent_id=agent_id,
        made_at=moment(made_at),
        draft=draft_decoder.decode(draft),
        parent=None if parent_number is None else summary_id(parent_level, parent_number),
    )


def _node(row: tuple[Any, ...]) -> Node:
    level, number, first_seq, last_seq, chars, tokens, brief, first_at, last_at, parent_level, parent_number = row
    return Node(
        id=summary_id(level, number),
        level=level,
        first_seq=first_seq,
        last_seq=last_seq,
        chars=chars,
        tokens=tokens,
        brief=brief,
        first_at=moment(first_at),
        last_at=moment(last_at),
        parent=None if parent_number is None else summary_id(parent_level, parent_number),
    )


# ── what models were paid for ──


def completion(connection: Connection, agent_id: str, fingerprint: str) -> Completion | None:
    with reading(f"an answer of a model to agent {agent_id!r}"):
        answer: str | None = connection.execute(
            "SELECT answer FROM completions WHERE agent = ? AND fingerprint = ?",
            (agent_number(connection, agent_id), fingerprint),
        ).get
        return None if answer is None else completion_decoder.decode(answer)


def spending(connection: Connection, day: date, agent_id: str | None) -> list[Spending]:
    whose, asked = "", [day.isoformat()]
    if agent_id is not None:
        whose, asked = "AND agent = (SELECT agent FROM agents WHERE name = ?)", [*asked, agent_id]
    with reading(f"what was used on {day}"):
        rows = connection.execute(
            f"SELECT summarizer, sum(calls), {_USAGE_SUMS} FROM spending WHERE day = ? {whose} "  # noqa: S608
            "GROUP BY summarizer ORDER BY summarizer",
            tuple(asked),
        )
        return [Spending(summarizer=name, calls=calls, usage=usage_of(*used)) for name, calls, *used in rows]


def spent(connection: Connection, agent_id: str) -> Usage:
    query = f"SELECT {_USAGE_SUMS} FROM spending WHERE agent = ?"  # noqa: S608
    (row,) = connection.execute(query, (agent_number(connection, agent_id),))
    return usage_of(*(used or 0 for used in row))


def usage_of(input_tokens: int, cached_tokens: int, output_tokens: int, dollars: float) -> Usage:
    """Fractions are summed up in any order: what that changes is left out."""
    return Usage(
        input_tokens=input_tokens,
        cached_tokens=cached_tokens,
        output_tokens=output_tokens,
        dollars=round(float(dollars), 12),
    )


# ── contexts that were handed out ──


def handed(connection: Connection, scope: Scope, at: datetime | None) -> HandedContext | None:
    """The newest is the one handed out last, whatever the clock says."""
    with reading(f"a context of session {scope.session_id!r} of agent {scope.agent_id!r}"):
        payload: bytes | None = connection.execute(
            "SELECT payload FROM contexts WHERE context = "
            "(SELECT context FROM contexts WHERE session = ? AND at <= ? ORDER BY context DESC LIMIT 1)",
            (reads.session_number(connection, scope), LARGEST_NUMBER if at is None else micros(at)),
        ).get
        return None if payload is None else unpacked(payload)


def unpacked(payload: bytes) -> HandedContext:
    return context_decoder.decode(inflated(payload))


def inflated(payload: bytes) -> bytes:
    try:
        return zlib.decompress(payload)
    except zlib.error as error:
        raise ValueError(str(error)) from error


# ── sessions ──


def session_note(connection: Connection, scope: Scope, name: str) -> str | None:
    with reading(f"note {name!r} of session {scope.session_id!r} of agent {scope.agent_id!r}"):
        found: str | None = connection.execute(
            "SELECT value FROM session_notes WHERE session = ? AND name = ?",
            (reads.session_number(connection, scope), name),
        ).get
        return found


def sessions_after(connection: Connection, agent_id: str, after: str | None, limit: int) -> list[Session]:
    last: int | None = 0
    if after is not None:
        last = reads.session_number(connection, Scope(agent_id=agent_id, session_id=after))
    with reading(f"the key of a session of agent {agent_id!r}"):
        rows = connection.execute(
            "SELECT key FROM sessions WHERE agent = ? AND session > ? ORDER BY session LIMIT ?",
            (agent_number(connection, agent_id), last, limit),
        )
        scopes = [Scope(agent_id=agent_id, session_id=key) for (key,) in rows]
    found = [reads.session(connection, scope) for scope in scopes]
    return [session for session in found if session is not None]
