"""How far the log has come, in a small file beside it: a log that is gone, has lost its newest part or is another one
is noticed when it is opened, and not gone on with as if nothing had been.

Written after every commit and not synced: it is there after the process was killed, and after a power failure it is
older than the log or as old, on a disk that keeps what it confirmed.
"""

from __future__ import annotations

import logging
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from offbook.log.sql.connection import Connection
from offbook.model.errors import LogLost
from offbook.model.private_files import OPEN_OURS

log = logging.getLogger("offbook.store")
_LINE = re.compile(rb"([0-9a-f]{1,64}) ([0-9]{20})\n")
RESTORE = "put it back, restore a backup with `offbook restore FILE --force`, or set `store.url` if it is in PostgreSQL"
RECONNECT = "connect to the right one (`store.url`), or restore it with the database's own tools"

ANEW = "to begin a new memory, set OFFBOOK_HOME to another folder"


class Head(NamedTuple):
    installation: str
    events: int
    """In the audit chains of all agents: with every message there is one."""


class HeadFile:
    def __init__(self, path: Path, connection: Connection, *, log_name: str | None = None) -> None:
        """`connection` is that of the log, opened and migrated. LogLost where it is not the log, or not all of it.
        `log_name`: what it is called where it is no file at `path`."""
        self._path = head_path(path)
        head = head_of(connection)
        refuse_other(path, read_head(path), head, log_name)
        self._installation = head.installation
        self._descriptor = self._opened()
        self.events = head.events
        self.note(head.events)

    def _opened(self) -> int | None:
        """None where it cannot be had: then the log goes without."""
        try:
            return os.open(self._path, OPEN_OURS, 0o600)
        except OSError as error:
            log.warning("no head is kept: %s; remove it", error, extra={"action": "store.head"})
            return None

    def note(self, events: int) -> None:
        """In place, so that a full disk takes it, too; where that fails all the same, it is older than the log."""
        self.events = events
        if self._descriptor is None:
            return
        with suppress(OSError):
            os.pwrite(self._descriptor, f"{self._installation} {events:020}\n".encode(), 0)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)


def head_path(path: Path) -> Path:
    return path.with_suffix(".head")


def read_head(path: Path) -> Head | None:
    """None where there is none, or it cannot be read."""
    try:
        found = _LINE.match(head_path(path).read_bytes()[:256])
    except OSError:
        return None
    return Head(found[1].decode(), int(found[2])) if found else None


def head_of(connection: Connection) -> Head:
    installation = connection.execute("SELECT value FROM installation WHERE name = 'id'").get
    events = connection.execute(
        "SELECT sum((SELECT max(seq) FROM audit WHERE audit.agent = agents.agent)) FROM agents"
    ).get
    return Head(bytes(installation or b"00").decode(), events or 0)


def refuse_other(path: Path, known: Head | None, head: Head, log_name: str | None = None) -> None:
    """LogLost where what is known of the log is not true of this one. `log_name`: of a database."""
    if known is None:
        return
    name, how, restore = str(path), "its -wal file was deleted, or it was copied while it was written", RESTORE
    if log_name is not None:
        name, how, restore = (
            log_name,
            "a standby took over that had not all of it, or an older backup was put back",
            RECONNECT,
        )
    if known.installation != head.installation:
        raise LogLost(f"{name} is another log than the one that was here: {restore}{_going_on(path)}")
    if known.events > head.events:
        raise LogLost(
            f"{name} has lost its newest part ({known.events - head.events:,} of {known.events:,} events), as where "
            f"{how}: {restore}{_going_on(path)}"
        )


def _going_on(path: Path) -> str:
    return f"; to go on with what is there, remove {head_path(path)}"
