"""The least a durable message can cost: one row of our own table, committed by SQLite and nothing else."""

from __future__ import annotations

import time
from pathlib import Path
from time import perf_counter_ns

import apsw

from offbook.log.audit_chain import fingerprint, message_hash, micros
from offbook.log.sql.row_ids import place_of
from offbook.log.sqlite.connection import migrations
from offbook.model.types import Entry, Message, now

_INSERT = """
INSERT INTO messages (place, session, seq, id, role, content, ts, received_at, chars, chars_through, fingerprint, hash)
VALUES (?,?,?,?,?,?,?,?,?,?,?,?)
"""


class BareSqlite:
    """Write-ahead log and a sync at every commit, as the store has it; SQLite's own checkpoints."""

    def __init__(self, path: Path) -> None:
        self._connection = apsw.Connection(str(path))
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute("PRAGMA foreign_keys = ON")
        self._connection.execute(migrations()[0][1])
        self._connection.execute("INSERT INTO agents (agent, name, noted_hash) VALUES (1, 'main', '')")
        self._connection.execute("INSERT INTO sessions (session, agent, key, started_at) VALUES (1, 1, 'chat', 0)")
        self._seq = 0

    def insert(self, count: int, content: str, *, pause_seconds: float = 0.0) -> list[float]:
        """Microseconds of each transaction. The rows are made beforehand: only SQLite is timed."""
        rows = [self._row(content) for _ in range(count)]
        execute = self._connection.execute
        taken = []
        for row in rows:
            if pause_seconds:
                time.sleep(pause_seconds)
            started = perf_counter_ns()
            execute("BEGIN IMMEDIATE")
            execute(_INSERT, row)
            execute("COMMIT")
            taken.append((perf_counter_ns() - started) / 1_000)
        return taken

    def close(self) -> None:
        self._connection.close()

    def _row(self, content: str) -> tuple[object, ...]:
        self._seq += 1
        message = Message(role="user", content=content, id=f"bare-{self._seq:012}", ts=now())
        at = micros(now())
        entry = Entry(message=message, chars=len(content), fingerprint=fingerprint(message))
        totals = (entry.chars, entry.chars * self._seq, entry.fingerprint, message_hash(self._seq, now(), entry))
        stored = f'"{content}"'
        return (place_of(1, self._seq), 1, self._seq, message.id, message.role, stored, at, at, *totals)
