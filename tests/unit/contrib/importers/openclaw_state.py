"""A state folder of the host, written in the shapes that its versions write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import apsw
import zstandard

AT_MS = 1_760_000_000_000
SCHEMA = """
CREATE TABLE session_windows (session_id TEXT PRIMARY KEY, session_key TEXT NOT NULL, created_at INTEGER NOT NULL);
CREATE TABLE transcript_events (session_id TEXT NOT NULL, seq INTEGER NOT NULL, event_json TEXT,
  created_at INTEGER NOT NULL, event_zstd BLOB, event_utf8_bytes INTEGER, PRIMARY KEY (session_id, seq));
CREATE TABLE session_transcript_archives (session_id TEXT, generation TEXT, session_key TEXT, reason TEXT,
  encoding TEXT, archive_blob BLOB, archive_name TEXT UNIQUE, created_at INTEGER);
CREATE TABLE session_transcript_cold_archives (session_id TEXT PRIMARY KEY, archive_name TEXT UNIQUE, storage TEXT,
  archive_blob BLOB);
CREATE TABLE memory_session_tombstones (session_id TEXT PRIMARY KEY);
"""
"""Those columns of 2026.9.6 that are read."""


def head(session_id: str, minute: int = 0) -> str:
    stamp = f"2025-10-09T08:{minute:02}:00.000Z"
    return json.dumps({"type": "session", "version": 3, "id": session_id, "timestamp": stamp})


def said(entry_id: str | None, text: str, role: str = "user", at_ms: int | None = AT_MS, **more: Any) -> str:
    message = {"role": role, "content": text, **({} if at_ms is None else {"timestamp": at_ms}), **more}
    entry = {"type": "message", "id": entry_id, "timestamp": "2025-10-09T08:53:20.000Z", "message": message}
    return json.dumps({name: value for name, value in entry.items() if value is not None})


def compressed(*lines: str) -> bytes:
    # Without the size in its header, as a stream is compressed.
    return zstandard.ZstdCompressor(write_content_size=False).compress(text(*lines).encode())


def text(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)


def cold(session_id: str, *events: str) -> bytes:
    rows = [{"kind": "event", "row": {"seq": at, "event_json": each}} for at, each in enumerate(events)]
    records = [{"kind": "header", "version": 1, "sessionId": session_id}, *rows, {"kind": "identity", "row": {}}]
    return compressed(*map(json.dumps, records))


class State:
    def __init__(self, folder: Path, agent_id: str = "main") -> None:
        self.folder = folder
        self.agent = folder / "agents" / agent_id
        self.sessions = self.agent / "sessions"
        (self.sessions / "cold").mkdir(parents=True)
        self.database = self.agent / "agent" / "openclaw-agent.sqlite"

    def list_sessions(self, content: dict[str, Any], name: str = "sessions.json") -> None:
        (self.sessions / name).write_text(json.dumps(content))

    def connect(self) -> apsw.Connection:
        """As the host has it open; closing it takes away the files beside it."""
        is_new = not self.database.exists()
        self.database.parent.mkdir(exist_ok=True)
        connection = apsw.Connection(str(self.database))
        connection.pragma("journal_mode", "wal")
        if is_new:
            list(connection.execute(SCHEMA))
        return connection

    def store(self, session_id: str, key: str, *events: str, at_ms: int = AT_MS, packed: bool = False) -> None:
        connection = self.connect()
        add_events(connection, session_id, key, *events, at_ms=at_ms, packed=packed)
        connection.close()


def add_events(
    connection: apsw.Connection, session_id: str, key: str, *events: str, at_ms: int = AT_MS, packed: bool = False
) -> None:
    list(connection.execute("INSERT INTO session_windows VALUES (?, ?, ?)", (session_id, key, at_ms)))
    for number, event in enumerate(events):
        row = (session_id, number, None if packed else event, at_ms, compressed(event) if packed else None, len(event))
        list(connection.execute("INSERT INTO transcript_events VALUES (?, ?, ?, ?, ?, ?)", row))
