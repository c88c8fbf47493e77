"""Moving the write-ahead log into the file, beside the writer rather than inside a write."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import apsw

from offbook.log.sqlite.connection import BUSY_MILLISECONDS, connect
from offbook.log.sqlite.reserve import Reserve

log = logging.getLogger("offbook.store")

PAGES_WORTH_MOVING = 4_000
"""16 MB, four times SQLite's own figure: a page that changes with every commit is moved once each time."""
PAGES_TOO_MANY = 16_000
"""64 MB: under constant load a passive checkpoint never catches up with the end, so the writer steps in."""
RESTART_MILLISECONDS = 100
"""How long the writer waits for readers then. A backup may read for minutes: the WAL grows on and is tried again."""
IDLE_SECONDS = 2.0


class Checkpointer:
    def __init__(self, path: Path, writer: apsw.Connection, reserve: Reserve) -> None:
        self._path = path
        self._writer = writer
        self._reserve = reserve
        self._pages = 0
        self._restart_at = PAGES_TOO_MANY
        self._wanted = threading.Event()
        self._is_closing = False
        writer.set_wal_hook(self._note_pages)
        self._thread = threading.Thread(target=self._run, name="offbook-checkpoint", daemon=True)
        self._thread.start()

    def _note_pages(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self._pages = pages
        return apsw.SQLITE_OK

    def after_commit(self) -> None:
        """Called by the writer between two groups."""
        if self._pages < PAGES_TOO_MANY:
            self._restart_at = PAGES_TOO_MANY
        if self._pages >= self._restart_at:
            self._writer.set_busy_timeout(RESTART_MILLISECONDS)
            _checkpoint(self._writer, apsw.SQLITE_CHECKPOINT_RESTART)
            self._writer.set_busy_timeout(BUSY_MILLISECONDS)
            self._restart_at = self._pages + PAGES_TOO_MANY
        elif self._pages >= PAGES_WORTH_MOVING:
            self._wanted.set()

    def close(self) -> None:
        self._is_closing = True
        self._wanted.set()
        self._thread.join()
        _checkpoint(self._writer, apsw.SQLITE_CHECKPOINT_TRUNCATE)

    def _run(self) -> None:
        connection = connect(self._path)
        # Autocheckpoint is per connection and this one never writes; passive mode waits for nobody.
        while not self._is_closing:
            self._wanted.wait(IDLE_SECONDS)
            self._wanted.clear()
            _checkpoint(connection, apsw.SQLITE_CHECKPOINT_PASSIVE)
            self._reserve.keep()
        connection.close()


def _checkpoint(connection: apsw.Connection, mode: int) -> None:
    try:
        # A connection that has read nothing yet knows of no WAL, and would move nothing without an error.
        _ = connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").get
        connection.wal_checkpoint(mode=mode)
    except (apsw.BusyError, apsw.LockedError, apsw.FullError):
        # A reader is in the way, or there is no room: the WAL stays as it is and the next round tries again.
        return
    except apsw.Error as error:
        # What is wrong with the file shows in the next write; a checkpoint must not take the writer with it.
        log.error("checkpoint failed: %s", error, extra={"action": "store.checkpoint"})


def move_log_into(database: Path) -> None:
    """Bring what is in the write-ahead log into a file that nobody uses: apart from it, a crash's last messages are
    lost."""
    if not database.exists():
        return
    try:
        connection = connect(database, flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.execute("PRAGMA schema_version")  # unread, SQLite does not know yet that there is such a log
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        finally:
            connection.close()
    except apsw.Error:
        return  # a damaged one is what a restore replaces; both files move, side by side
