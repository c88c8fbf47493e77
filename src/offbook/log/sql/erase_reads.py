"""Reading what forgetting needs: all that came of some messages, and every text that is kept beside the log."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import msgspec

from offbook.log.sql.connection import UNREADABLE, Connection, reading
from offbook.log.sql.recall_reads import agent_number, living_places
from offbook.log.sql.row_ids import in_pieces, session_of
from offbook.log.sql.summary_reads import summary_number
from offbook.model.lesson import lesson_id
from offbook.model.receipt import ForgetReceipt, KeptText, Lineage, Reached
from offbook.model.summary import summary_id

ROWS_AT_A_TIME = 50

_SUMMARIES_OVER = """
SELECT DISTINCT summary FROM summary_spans WHERE session = ? AND first_seq <= ? AND last_seq >= ?
"""
_PARENTS = """
WITH RECURSIVE up(summary) AS (
    SELECT CAST(value AS BIGINT) FROM json_each(?)
    UNION SELECT s.parent FROM summaries s JOIN up ON s.summary = up.summary WHERE s.parent IS NOT NULL
)
SELECT s.level, s.number FROM summaries s JOIN up ON up.summary = s.summary WHERE s.agent = ?
"""
_LESSONS_OF = """
SELECT DISTINCT l.number FROM lesson_sources p JOIN lessons l ON l.lesson = p.lesson
WHERE l.agent = ? AND l.status <> 'forgotten' AND p.place IN ({marks})
"""
_REFERRED_TO = """
SELECT m.place, m.blobs FROM messages m JOIN sessions s ON s.session = m.session
WHERE s.agent = ? AND m.blobs IS NOT NULL
"""
_HASHES = "SELECT m.place, m.hash FROM messages m JOIN sessions s ON s.session = m.session WHERE s.agent = ?"
_receipt = msgspec.json.Decoder(ForgetReceipt)


class _Blob(msgspec.Struct):
    sha256: str


_blobs = msgspec.json.Decoder(list[_Blob])


# ── where some messages are ──


def places_hashed(connection: Connection, agent_id: str, hashes: Collection[bytes]) -> list[int]:
    """No index knows the hashes: forgetting alone looks for them, and only in copies."""
    agent = agent_number(connection, agent_id)
    rows = connection.execute(_HASHES, (agent,)) if hashes else ()
    return sorted(place for place, hash_ in rows if hash_ in hashes)


# ── what came of some messages ──


def lineage(connection: Connection, agent_id: str, places: Sequence[int], summaries: Sequence[str]) -> Lineage:
    """`summaries` are others that are meant too, with what merges them."""
    agent = agent_number(connection, agent_id)
    own = living_places(connection, agent_id, places)
    if agent is None:
        return Lineage(places=[], sessions=[], summaries=[], lessons=[], parts=[], reached=Reached())
    sessions = _sessions(connection, own)
    found = _summaries(connection, agent, own, summaries)
    lessons = _numbers(connection, _LESSONS_OF, own, (agent,))
    parts = _parts(connection, agent, set(own))
    numbers = list(sessions)
    reached = Reached(
        messages=len(own),
        vectors=_count(connection, _VECTORS, own, (agent,)),
        large_parts=len(parts),
        summaries=len(found),
        lessons=len(lessons),
        contexts=_count(connection, "SELECT count(*) FROM contexts WHERE session IN ({marks})", numbers),
        turn_memories=_one(connection, "SELECT count(*) FROM turn_memories WHERE agent = ?", agent) if own else 0,
        notes=_count(connection, _NOTES, numbers),
        completions=_one(connection, "SELECT count(*) FROM completions WHERE agent = ?", agent) if own else 0,
        supersessions=_links(connection, own),
    )
    return Lineage(
        places=own,
        sessions=list(sessions.values()),
        summaries=[summary_id(level, number) for level, number in sorted(found)],
        lessons=[f"lesson-{number:04d}" for number in sorted(lessons)],
        parts=parts,
        reached=reached,
    )


_VECTORS = """
SELECT count(*) FROM vectors WHERE vector_set IN (SELECT vector_set FROM vector_sets WHERE agent = ?)
AND place IN ({marks})
"""
_NOTES = "SELECT count(*) FROM session_notes WHERE session IN ({marks}) AND name <> 'parentSessionId'"


def _sessions(connection: Connection, places: Sequence[int]) -> dict[int, str]:
    """By number, in order."""
    found: dict[int, str] = {}
    for marks, piece in in_pieces(sorted({session_of(place) for place in places})):
        query = f"SELECT session, key FROM sessions WHERE session IN ({marks}) ORDER BY session"  # noqa: S608
        found |= dict(connection.execute(query, tuple(piece)))
    return found


def _summaries(connection: Connection, agent: int, places: Sequence[int], named: Sequence[str]) -> set[tuple[int, int]]:
    wanted = {summary_number(connection, agent, id_) for id_ in named} - {None}
    for first, last in _runs(places):
        rows = connection.execute(_SUMMARIES_OVER, (session_of(first), last & 0xFFFFFFFF, first & 0xFFFFFFFF))
        wanted.update(summary for (summary,) in rows)
    asked = msgspec.json.encode(list(wanted)).decode()
    return set(connection.execute(_PARENTS, (asked, agent)))


def _runs(places: Sequence[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for place in sorted(places):
        if runs and runs[-1][1] + 1 == place:
            runs[-1] = runs[-1][0], place
        else:
            runs.append((place, place))
    return runs


def _parts(connection: Connection, agent: int, places: set[int]) -> list[str]:
    """Looks at every message that has any."""
    gone: set[str] = set()
    stay: set[str] = set()
    for place, blobs in connection.execute(_REFERRED_TO, (agent,)):
        (gone if place in places else stay).update(one.sha256 for one in _blobs.decode(blobs))
    return sorted(gone - stay)


def parts_in_use(connection: Connection, agent_id: str, digests: Collection[str]) -> set[str]:
    rows = connection.execute(_REFERRED_TO, (agent_number(connection, agent_id),))
    return {one.sha256 for _, blobs in rows for one in _blobs.decode(blobs)}.intersection(digests)


def _numbers(connection: Connection, query: str, places: Sequence[int], before: tuple[int, ...]) -> set[int]:
    found: set[int] = set()
    for marks, piece in in_pieces(places):
        found.update(number for (number,) in connection.execute(query.format(marks=marks), (*before, *piece)))
    return found


def _count(connection: Connection, query: str, places: Sequence[int], before: tuple[int, ...] = ()) -> int:
    return sum(
        int(connection.execute(query.format(marks=marks), (*before, *piece)).get) for marks, piece in in_pieces(places)
    )


def _one(connection: Connection, query: str, agent: int) -> int:
    return int(connection.execute(query, (agent,)).get)


def _links(connection: Connection, places: Sequence[int]) -> int:
    found: set[tuple[int, int]] = set()
    for marks, piece in in_pieces(places):
        for column in ("old_place", "new_place"):
            query = f"SELECT old_place, new_place FROM supersessions WHERE {column} IN ({marks})"  # noqa: S608
            found.update(connection.execute(query, tuple(piece)))
    return len(found)


# ── every text beside the log ──


class _Table(NamedTuple):
    """`rows`: the number of a row, what `named` takes, and its text, those after a number."""

    rows: str
    named: Callable[..., str]
    text: Callable[[Any], str] = str


def _unzipped(payload: bytes) -> str:
    return zlib.decompress(payload).decode(errors="replace")


_TABLES = {
    "summary_texts": _Table(
        "SELECT s.summary, s.level, s.number, t.draft || ' ' || s.brief "
        "FROM summaries s JOIN summary_texts t ON t.summary = s.summary WHERE s.agent = ? AND s.summary > ?",
        lambda level, number: f"summary {summary_id(level, number)}",
    ),
    "lessons": _Table("SELECT lesson, number, data FROM lessons WHERE agent = ? AND lesson > ?", lesson_id),
    "contexts": _Table(
        "SELECT c.context, s.key, c.payload FROM contexts c "
        "JOIN sessions s ON s.session = c.session WHERE s.agent = ? AND c.context > ?",
        lambda key: f"the context of {key}",
        _unzipped,
    ),
    "turn_memories": _Table(
        "SELECT memory, session_key, payload FROM turn_memories WHERE agent = ? AND memory > ?",
        lambda key: f"the turns of {key}",
        _unzipped,
    ),
    "completions": _Table(
        "SELECT completion, answer FROM completions WHERE agent = ? AND completion > ?", lambda: "an answer of a model"
    ),
    "marks": _Table(
        "SELECT m.mark, s.key, m.reason FROM marks m "
        "JOIN sessions s ON s.session = m.session WHERE s.agent = ? AND m.mark > ? AND m.reason IS NOT NULL",
        lambda key: f"a mark of {key}",
    ),
    "sessions": _Table(
        "SELECT session, key, end_reason FROM sessions WHERE agent = ? AND session > ? AND end_reason IS NOT NULL",
        lambda key: f"why {key} ended",
    ),
    "session_notes": _Table(
        "SELECT s.session, s.key, string_agg(n.value, '\n') FROM session_notes n "
        "JOIN sessions s ON s.session = n.session WHERE s.agent = ? AND s.session > ? AND n.name <> 'parentSessionId' "
        "GROUP BY s.session, s.key",
        lambda key: f"the notes of {key}",
    ),
}
TABLES = list(_TABLES)


def kept_texts(connection: Connection, agent_id: str, table: str, after: int) -> list[KeptText]:
    """A page of one table. What cannot be read has no words that anybody could be told."""
    agent = agent_number(connection, agent_id)
    kind = _TABLES[table]
    rows: list[Any] = connection.execute(f"{kind.rows} ORDER BY 1 LIMIT ?", (agent, after, ROWS_AT_A_TIME)).fetchall()
    found = []
    for row, *name, body in rows:
        try:
            text = kind.text(body)
        except UNREADABLE:
            text = ""
        found.append(KeptText(table=table, row=row, name=kind.named(*name), text=text))
    return found


# ── receipts ──


def receipts(connection: Connection, agent_id: str) -> list[tuple[int, ForgetReceipt]]:
    agent = agent_number(connection, agent_id)
    with reading(f"what agent {agent_id!r} forgot"):
        rows = connection.execute("SELECT erasure, receipt FROM erasures WHERE agent = ? ORDER BY erasure", (agent,))
        return [(number, _receipt.decode(receipt)) for number, receipt in rows]
