"""What there is to import: the sessions of an agent, each with its transcripts in order of time."""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from offbook.client.history.conversations import Conversation, Damage, Damaged, Ready
from offbook.client.history.databases import FAULTS
from offbook.client.history.files import AFTER_LATEST, EARLIEST, any_time_of, is_incognito, moment
from offbook.openclaw import transcripts
from offbook.openclaw.places import Agent, File, Keys, transcript_files
from offbook.openclaw.transcripts import Archive, Database, Event

Row = TypeVar("Row")
LATEST = datetime.max.replace(tzinfo=UTC)


class Source(Protocol):
    """One place where (some of) a transcript lies."""

    @property
    def size_bytes(self) -> int: ...

    def events(self) -> Iterator[Event | Damage]: ...


@dataclass(frozen=True)
class InFile:
    file: File
    where: str
    session_id: str
    size_bytes: int

    def events(self) -> Iterator[Event | Damage]:
        try:
            source = transcripts.opened(self.file.path)
        except OSError as error:  # archived or deleted since we looked
            yield Damage(self.where, f"cannot be read: {error.strerror}", is_whole=True)
            return
        yield from transcripts.events(source, self.where, self.session_id, is_cold=self.file.is_cold)


@dataclass(frozen=True)
class InArchive:
    database: Database
    archive: Archive
    where: str
    size_bytes: int = 0

    def events(self) -> Iterator[Event | Damage]:
        try:
            blob = self.database.archive_blob(self.archive)
        except FAULTS as error:
            yield Damage(self.where, f"cannot be read: {error}", is_whole=True)
            return
        if blob is None:
            yield Damage(self.where, "its archive file is missing; restore it from a backup", is_whole=True)
            return
        source = io.BytesIO(blob)
        opened = transcripts.decompressed(source) if self.archive.name.endswith(".zst") else source
        yield from transcripts.events(opened, self.where, self.archive.session_id, is_cold=self.archive.is_cold)


@dataclass(frozen=True)
class InDatabase:
    database: Database
    session_id: str
    where: str
    size_bytes: int

    def events(self) -> Iterator[Event | Damage]:
        return self.database.events(self.session_id, self.where)


@dataclass
class Transcript:
    """One session id. Its sources may overlap: an entry counts once, by its id."""

    session_id: str
    started_at: datetime = LATEST
    sources: list[Source] = field(default_factory=list)

    def add(self, source: Source, started_at: datetime | None) -> None:
        self.sources.append(source)
        self.started_at = min(self.started_at, started_at or LATEST)


@dataclass
class Session:
    agent_id: str
    key: str
    transcripts: list[Transcript]

    @property
    def size_bytes(self) -> int:
        return sum(source.size_bytes for transcript in self.transcripts for source in transcript.sources)


class Catalogue:
    """The sessions of one agent. Holds its database open while they are read."""

    def __init__(self, state: Path, agent: Agent) -> None:
        self.agent = agent
        self.damages: list[Damage] = []
        self.forgotten = 0
        """Transcripts left out because the host was told to forget them."""
        self.incognito = 0
        """Transcripts left out because their sessions are incognito."""
        self._state = state
        self._database = self._opened_database()
        self._keys = Keys(agent)
        self._transcripts: dict[str, Transcript] = {}

    def close(self) -> None:
        if self._database is not None:
            self._database.close()

    def was_changed(self) -> bool:
        return self._database is not None and self._database.was_changed()

    def sessions(self) -> list[Session]:
        """By key; what is oldest in a transcript comes first: files, then what the database took over from them."""
        archives = self._archives()
        self._keys.learn(archives)
        files = list(transcript_files(self.agent))
        for file in files:
            self._add_file(file)
        self._add_archives(archives, {file.path.name for file in files})
        self._add_windows()
        for session_id in self._read(lambda found: found.forgotten()):
            self.forgotten += self._transcripts.pop(session_id, None) is not None
        by_key: dict[str, list[Transcript]] = defaultdict(list)
        for transcript in self._transcripts.values():
            key = self._keys.of(transcript.session_id)
            if is_incognito(key):
                self.incognito += 1
            else:
                by_key[key].append(transcript)
        return [
            Session(self.agent.agent_id, key, sorted(found, key=lambda each: (each.started_at, each.session_id)))
            for key, found in sorted(by_key.items())
        ]

    def _opened_database(self) -> Database | None:
        if not self.agent.database.exists():
            return None
        try:
            return Database(self.agent.database)
        except FAULTS as error:
            self.damages.append(Damage(self._place(self.agent.database), f"cannot be read: {error}", is_whole=True))
            return None

    def _archives(self) -> list[Archive]:
        return self._read(lambda found: found.archives())

    def _read(self, question: Callable[[Database], list[Row]]) -> list[Row]:
        if self._database is None:
            return []
        try:
            return question(self._database)
        except FAULTS as error:
            self.damages.append(Damage(self._place(self.agent.database), f"cannot be read: {error}", is_whole=True))
            return []

    def _add_file(self, file: File) -> None:
        where = self._place(file.path)
        try:
            with closing(transcripts.opened(file.path)) as source:
                header = transcripts.header(source)
            status = file.path.stat()
        except transcripts.FILE_FAULTS as error:
            self.damages.append(Damage(where, f"cannot be read: {error}", is_whole=True))
            return
        # A file may be named after its session and a topic; its first line has the session alone.
        session_id = self._keys.session_of_file(file.path.name) or header.session_id or file.session
        if session_id is None:
            self.damages.append(Damage(where, "its first line names no session", is_whole=True))
            return
        started_at = any_time_of(header.timestamp) or datetime.fromtimestamp(status.st_mtime, UTC)
        self._transcript(session_id).add(InFile(file, where, session_id, status.st_size), started_at)

    def _add_archives(self, archives: list[Archive], names: set[str]) -> None:
        place = self._place(self.agent.database)
        for archive in archives:
            if self._database is not None and archive.name not in names:
                where = f"{place} archive {archive.name}"
                self._transcript(archive.session_id).add(InArchive(self._database, archive, where), None)

    def _add_windows(self) -> None:
        windows = self._read(lambda found: found.windows())
        self._keys.learn(windows)
        total = sum(window.events for window in windows)
        for window in windows:
            if self._database is None or not window.events:
                continue
            where = f"{self._place(self.agent.database)} session {window.session_id}"
            size = self.agent.database.stat().st_size * window.events // total
            source = InDatabase(self._database, window.session_id, where, size)
            self._transcript(window.session_id).add(source, any_time_of(window.created_at_ms))

    def _transcript(self, session_id: str) -> Transcript:
        return self._transcripts.setdefault(session_id, Transcript(session_id))

    def _place(self, path: Path) -> str:
        return str(path.relative_to(self._state))


# ── The messages of a session, one after the other, as they will be sent ──


def conversation_of(session: Session) -> Conversation:
    return Conversation(session.agent_id, session.key, session.size_bytes, partial(messages, session))


def messages(session: Session, damaged: Damaged) -> Iterator[Ready]:
    """Every message of every transcript, in the order written; one that lies in several places once."""
    seen: set[str] = set()
    for transcript in session.transcripts:
        for source in transcript.sources:
            for found in source.events():
                if isinstance(found, Damage):
                    damaged(found)
                elif found.entry_id not in seen:
                    seen.add(found.entry_id)
                    yield _ready(found, transcript.session_id)


def _ready(event: Event, session_id: str) -> Ready:
    wire = wire_message(event.entry_id, event.message, session_id)
    if "ts" not in wire and event.written_at is not None and EARLIEST <= event.written_at < AFTER_LATEST:
        wire["ts"] = iso(event.written_at)  # else it would be told as of today
    at = datetime.fromisoformat(wire["ts"]) if "ts" in wire else None
    return Ready(wire, at, event.size_bytes, event.where)


# ── A message of the host as Offbook keeps it ──
# Unchanged, under the id it has in the host's own transcript.
# The plugin does the same while it happens (`plugins/openclaw/src/messages.ts`);
# `tests/data/openclaw_messages.json` holds both to it.


ROLES = {"user": "user", "assistant": "assistant", "toolResult": "tool"}
LONGEST_LABEL = 512
"""In UTF-16 units, as JavaScript counts. A longer name is left out."""


def wire_message(entry_id: str, message: dict[str, Any], host_session_id: str | None) -> dict[str, Any]:
    host_role = message["role"]
    role = ROLES.get(host_role)
    wire: dict[str, Any] = {"id": entry_id, "role": role or "system", "content": _content(message)}
    spoken_at = moment(message.get("timestamp"))
    if spoken_at is not None:
        wire["ts"] = iso(spoken_at)
    if host_role == "toolResult":
        labels = {"name": message.get("toolName"), "toolCallId": message.get("toolCallId")}
        wire |= {name: value for name, value in labels.items() if _is_label(value)}
    if _is_label(message.get("model")):
        wire["model"] = message["model"]
    meta = _meta(message, None if role else host_role, host_session_id)
    if meta:
        wire["meta"] = meta
    return wire


def _content(message: dict[str, Any]) -> Any:
    if isinstance(message.get("content"), str | list):
        return message["content"]
    return next((message[name] for name in ("summary", "text") if isinstance(message.get(name), str)), "")


def _meta(message: dict[str, Any], host_role: str | None, host_session_id: str | None) -> dict[str, Any]:
    own = message.get("__openclaw")
    found = {name: message.get(name) for name in ("provider", "api", "stopReason")}
    found |= {"hostRole": host_role, "hostSessionId": host_session_id}
    found["runId"] = own.get("runId") if isinstance(own, dict) else None
    meta: dict[str, Any] = {name: value for name, value in found.items() if isinstance(value, str) and value}
    if message.get("isError") is True:
        meta["isError"] = True
    if isinstance(own, dict) and own.get("contextFreeCommand") is True:
        meta["isCommand"] = True
    return meta


def _is_label(value: Any) -> bool:
    if not isinstance(value, str) or not value or "\0" in value:
        return False
    return len(value.encode("utf-16-le", "surrogatepass")) // 2 <= LONGEST_LABEL


def iso(at: datetime) -> str:
    """As JavaScript writes it, to the millisecond."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
