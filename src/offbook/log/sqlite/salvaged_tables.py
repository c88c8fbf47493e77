"""What was made of the log, after rows of it were lost: what no longer holds together goes, and is made again.
Part of `salvage`: inside its transaction."""

from __future__ import annotations

from typing import Any

import apsw

from offbook.log.sql.derived_faults import KINDS, fault_at
from offbook.log.sql.row_ids import ALL, MOST_VECTORS
from offbook.log.sql.summary_reads import draft_decoder
from offbook.log.sqlite.cut_tables import CROSS, EMBEDDING
from offbook.log.store import PARENT_NOTE
from offbook.log.tiers import OFFLOADED
from offbook.model.summary import summary_id


def mend_derived(connection: apsw.Connection) -> int:
    """How many rows went."""
    before = connection.total_changes()
    for table in KINDS:
        _drop_unreadable(connection, table)
    _drop_dangling(connection)
    while _drop_broken_summaries(connection):
        _drop_dangling(connection)
    gone = connection.total_changes() - before
    _count_again(connection)
    _follow_again(connection)
    return gone


def _drop_unreadable(connection: apsw.Connection, table: str) -> None:
    numbers = [number for (number,) in connection.execute(KINDS[table].numbers, (0, ALL)).fetchall()]
    unreadable = [(number,) for number in numbers if fault_at(connection, table, number) is not None]  # type: ignore[arg-type]
    connection.executemany(f"DELETE FROM {table} WHERE rowid = ?", unreadable)  # noqa: S608


def _drop_dangling(connection: apsw.Connection) -> None:
    """What refers to a row that is lost goes, or forgets it where it can do without; until nothing does."""
    references: Any = connection.execute(
        """
        SELECT child.name, own.[from], own.[table], parent.name, column.[notnull] OR column.pk
        FROM pragma_table_list child, pragma_foreign_key_list(child.name) own, pragma_table_info(own.[table]) parent,
            pragma_table_info(child.name) column
        WHERE child.schema = 'main' AND parent.pk = 1 AND column.name = own.[from]
        """
    ).fetchall()
    changed = -1
    while changed != connection.total_changes():
        changed = connection.total_changes()
        for table, name, parent, key, is_needed in references:
            which = f"{name} IS NOT NULL AND {name} NOT IN (SELECT {key} FROM {parent})"  # noqa: S608
            do = f"DELETE FROM {table}" if is_needed else f"UPDATE {table} SET {name} = NULL"  # noqa: S608
            connection.execute(f"{do} WHERE {which}")


def _drop_broken_summaries(connection: apsw.Connection) -> bool:
    """Those without their text or their stretches, those that merge one that is lost, and those after a stretch of
    their session that none stands for: they are made in order, so it would never be made again."""
    rows: Any = connection.execute(
        "SELECT s.summary, s.agent, s.level, s.number, t.draft, "
        "EXISTS (SELECT 1 FROM summary_spans p WHERE p.summary = s.summary) "
        "FROM summaries s LEFT JOIN summary_texts t ON t.summary = s.summary"
    ).fetchall()
    known = {(agent, summary_id(level, number)) for _, agent, level, number, draft, has in rows if draft and has}
    broken = [
        (summary,)
        for summary, agent, level, number, draft, _ in rows
        if (agent, summary_id(level, number)) not in known
        or any((agent, source) not in known for source in draft_decoder.decode(draft).sources)
    ]
    session, expected = None, 1
    stretches: Any = connection.execute(
        "SELECT session, first_seq, last_seq, summary FROM summary_spans WHERE level = 1 ORDER BY session, last_seq"
    ).fetchall()
    for number, first, last, summary in stretches:
        expected = expected if number == session else 1
        session = number
        if first == expected:
            expected = last + 1
        else:
            broken.append((summary,))
    connection.executemany("DELETE FROM summaries WHERE summary = ?", broken)
    return bool(broken)


def _count_again(connection: apsw.Connection) -> None:
    connection.execute("DELETE FROM hold_counts")
    connection.execute(
        "INSERT INTO hold_counts (agent, pinned, retrievals) "
        "SELECT agent, count(pin), sum(retrievals) FROM holds GROUP BY agent"
    )
    connection.execute(
        "UPDATE vector_sets SET vectors = (SELECT count(*) FROM vectors v WHERE v.vector_set = vector_sets.vector_set),"
        " last_number = max(last_number, (SELECT coalesce(max(number & ?), 0) FROM vectors v "
        "WHERE v.vector_set = vector_sets.vector_set))",
        (MOST_VECTORS,),
    )


def _follow_again(connection: apsw.Connection) -> None:
    """How far something was followed is not known any more: it is followed from the beginning."""
    connection.execute("DELETE FROM agent_notes WHERE name NOT IN (?,?,?)", (EMBEDDING, OFFLOADED, CROSS))
    connection.execute("DELETE FROM session_notes WHERE name <> ?", (PARENT_NOTE,))
