"""The writer of the file: its transactions, the write-ahead log, the head and the room kept for forgetting."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

import apsw

from offbook.log.sql.head import HeadFile
from offbook.log.sql.writer import Writer
from offbook.log.sqlite.checkpointer import Checkpointer
from offbook.log.sqlite.connection import open_writer, store_errors
from offbook.log.sqlite.lost_log import refuse_missing
from offbook.log.sqlite.reserve import Reserve

T = TypeVar("T")


class SqliteWriter(Writer):
    def __init__(self, path: Path, *, max_queued: int) -> None:
        refuse_missing(path)
        with store_errors():
            self._connection = open_writer(path)
            try:
                self._head = HeadFile(path, self._connection)
            except BaseException:
                self._connection.close()
                raise
        super().__init__(self._connection, max_queued=max_queued)
        self._reserve = Reserve(path)
        self._checkpointer = Checkpointer(path, self._connection, self._reserve)
        self._start()

    async def submit_alone(self, work: Callable[[apsw.Connection], T]) -> T:
        """Run `work` on the connection itself, between two transactions. It may use the reserve."""
        return await self.submit_between(lambda: work(self._connection))

    def _errors(self) -> AbstractContextManager[None]:
        return store_errors()

    def _begin(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def _commit(self) -> None:
        self._connection.execute("COMMIT")
        self._head.note(self._head.events + self._ledger.take_events())

    def _give_up(self) -> None:
        if self._connection.in_transaction:
            try:
                self._connection.execute("ROLLBACK")
            except apsw.Error:
                # SQLite rolls back by itself where a statement failed hard; the next BEGIN shows if not.
                return

    def _between_groups(self) -> None:
        self._checkpointer.after_commit()

    def _room_made(self) -> bool:
        return self._reserve.give_back()

    def _let_go(self) -> None:
        """Move the WAL into the file, too."""
        self._checkpointer.close()
        self._connection.close()
        self._head.close()
