"""Which rows of what was made of the log cannot be read. All are looked at, a page at a time, and none is kept.

No chain vouches for them, so what they say may have been changed without a trace: here is only told what would stop
whoever reads it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from offbook.log.audit_chain import moment
from offbook.log.sql import lesson_reads, turns
from offbook.log.sql.connection import DAMAGED, Connection, only_row, unreadable
from offbook.log.sql.summary_reads import completion_decoder, draft_decoder, unpacked
from offbook.model.lesson import lesson_id
from offbook.model.summary import summary_id
from offbook.model.types import Fault

ROWS_AT_A_TIME = 50
"""Between two pages other questions get their turn: a large context takes some milliseconds."""


class Kind(NamedTuple):
    """One table: the schema version it came with, the numbers of its rows, what names a row, what must be read of it,
    and how."""

    since: int
    numbers: str
    names: str
    """The agent, the session, then what `named` takes."""
    body: str
    named: Callable[..., str]
    read: Callable[[Any], object]


class Page(NamedTuple):
    faults: list[Fault]
    through: int | None
    """The last row looked at; None where there are no more."""


SUMMARIES = Kind(
    since=3,
    numbers="SELECT summary FROM summaries WHERE summary > ? ORDER BY summary LIMIT ?",
    names="""
        SELECT a.name, z.key, s.level, s.number FROM summaries s JOIN agents a ON a.agent = s.agent
        LEFT JOIN sessions z ON z.session = s.session WHERE s.summary = ?""",
    body="SELECT draft FROM summary_texts WHERE summary = ?",
    named=lambda level, number: f"summary {summary_id(level, number)}",
    read=draft_decoder.decode,
)
CONTEXTS = Kind(
    since=3,
    numbers="SELECT context FROM contexts WHERE context > ? ORDER BY context LIMIT ?",
    names="""
        SELECT a.name, z.key, c.generation FROM contexts c JOIN sessions z ON z.session = c.session
        JOIN agents a ON a.agent = z.agent WHERE c.context = ?""",
    body="SELECT payload FROM contexts WHERE context = ?",
    named=lambda generation: f"the context of generation {generation}",
    read=unpacked,
)
ANSWERS = Kind(
    since=3,
    numbers="SELECT completion FROM completions WHERE completion > ? ORDER BY completion LIMIT ?",
    names="""
        SELECT a.name, NULL, c.fingerprint FROM completions c JOIN agents a ON a.agent = c.agent
        WHERE c.completion = ?""",
    body="SELECT answer FROM completions WHERE completion = ?",
    named=lambda fingerprint: f"a model's answer {fingerprint[:12]}",
    read=completion_decoder.decode,
)
TURN_MEMORIES = Kind(
    since=4,
    numbers="SELECT memory FROM turn_memories WHERE memory > ? ORDER BY memory LIMIT ?",
    names="""
        SELECT a.name, t.session_key, t.at FROM turn_memories t JOIN agents a ON a.agent = t.agent
        WHERE t.memory = ?""",
    body="SELECT payload FROM turn_memories WHERE memory = ?",
    named=lambda at: f"what turns were prepared with at {moment(at):%Y-%m-%d %H:%M:%S} UTC",
    read=turns.unpacked,
)
LESSONS = Kind(
    since=5,
    # One that was forgotten has nothing to be read.
    numbers="SELECT lesson FROM lessons WHERE lesson > ? AND status <> 'forgotten' ORDER BY lesson LIMIT ?",
    names="SELECT a.name, NULL, l.number FROM lessons l JOIN agents a ON a.agent = l.agent WHERE l.lesson = ?",
    body="SELECT data FROM lessons WHERE lesson = ?",
    named=lesson_id,
    read=lesson_reads.lesson_decoder.decode,
)
KINDS = {
    "summaries": SUMMARIES,
    "contexts": CONTEXTS,
    "completions": ANSWERS,
    "turn_memories": TURN_MEMORIES,
    "lessons": LESSONS,
}


def tables(version: int) -> list[str]:
    """Those of `KINDS` that a schema has: one that only reads may look at a store that was not migrated yet."""
    return [table for table, kind in KINDS.items() if kind.since <= version]


def page(connection: Connection, table: str, after: int) -> Page:
    kind = KINDS[table]
    numbers = [int(number) for (number,) in connection.execute(kind.numbers, (after, ROWS_AT_A_TIME))]
    found = [fault_at(connection, table, number) for number in numbers]
    return Page(
        faults=[fault for fault in found if fault is not None],
        through=numbers[-1] if len(numbers) == ROWS_AT_A_TIME else None,
    )


def fault_at(connection: Connection, table: str, number: int) -> Fault | None:
    kind = KINDS[table]
    what, agent_id, session_id = f"row {number} of {table}", None, None
    try:
        agent_id, session_id, *rest = only_row(connection, kind.names, (number,))
        what = kind.named(*rest)
        (body,) = only_row(connection, kind.body, (number,))
        kind.read(body)
    except DAMAGED as error:
        return Fault(what=unreadable(what, error), agent_id=agent_id, session_id=session_id)
    return None
