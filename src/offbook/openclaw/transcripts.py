"""What the host wrote last, for the proof that Offbook has it. The whole of it is read by `offbook import openclaw`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from offbook.client.history.databases import FAULTS
from offbook.openclaw.history.database import Database
from offbook.openclaw.history.lines import Event
from offbook.openclaw.history.places import Agent, agents


@dataclass(frozen=True)
class Entry:
    """A message of a transcript."""

    entry_id: str
    role: str
    at: datetime | None


@dataclass(frozen=True)
class Session:
    """One session of the host, from its beginning."""

    agent_id: str
    session_key: str
    session_id: str
    entries: tuple[Entry, ...]
    damaged: int = 0

    @property
    def last_turn(self) -> tuple[Entry, ...]:
        """From the user's last message on; all of it where no user speaks."""
        starts = [at for at, entry in enumerate(self.entries) if entry.role == "user"]
        return self.entries[starts[-1] :] if starts else self.entries

    @property
    def last_at(self) -> datetime | None:
        times = [entry.at for entry in self.entries if entry.at is not None]
        return max(times, default=None)


class _Newest(Database):
    def newest(self, most: int) -> list[tuple[str, str]]:
        """Session ids and keys, those that were written to last first."""
        if not {"session_windows", "transcript_events"} <= self._tables:
            return []
        rows = self._connection.execute(
            "SELECT w.session_id, w.session_key, (SELECT created_at FROM transcript_events e "
            "WHERE e.session_id = w.session_id ORDER BY seq DESC LIMIT 1) AS written_at "
            "FROM session_windows w WHERE written_at IS NOT NULL ORDER BY written_at DESC LIMIT ?",
            (most,),
        )
        return [(session_id, session_key) for session_id, session_key, _ in rows]


def newest_sessions(state: Path, most: int) -> tuple[list[Session], list[str]]:
    """The last sessions of every agent, newest first, and what could not be read."""
    sessions: list[Session] = []
    faults: list[str] = []
    for agent in agents(state) if (state / "agents").is_dir() else []:
        if not agent.database.is_file():
            continue
        try:
            sessions += _of(agent, most)
        except FAULTS as error:
            faults.append(f"{agent.database}: {error}")
    return sorted(sessions, key=_moment, reverse=True), faults


def _moment(session: Session) -> float:
    return session.last_at.timestamp() if session.last_at else 0.0


def _of(agent: Agent, most: int) -> list[Session]:
    database = _Newest(agent.database)
    try:
        found = []
        for session_id, session_key in database.newest(most):
            entries: list[Entry] = []
            damaged = 0
            for event in database.events(session_id, session_key):  # a message may be large: none is kept
                if isinstance(event, Event):
                    entries.append(Entry(event.entry_id, event.message["role"], event.written_at))
                else:
                    damaged += 1
            if entries:
                found.append(Session(agent.agent_id, session_key, session_id, tuple(entries), damaged))
        return found
    finally:
        database.close()
