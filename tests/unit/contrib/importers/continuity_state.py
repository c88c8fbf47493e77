"""What the continuity plugin leaves in its data folder, made by hand: archives of days, and its database."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw

DAY = "2026-05-10"

EXCHANGES = """
CREATE TABLE exchanges (
    id TEXT PRIMARY KEY, date TEXT NOT NULL, exchange_index INTEGER, user_text TEXT, agent_text TEXT, combined TEXT,
    metadata TEXT, topic_tags TEXT DEFAULT '', created_at TEXT DEFAULT (datetime('now')), thread_id TEXT DEFAULT NULL
);
CREATE INDEX idx_exchanges_date ON exchanges(date);
CREATE TABLE vec_exchanges_rowids (rowid INTEGER PRIMARY KEY, id TEXT, chunk_id INTEGER, chunk_offset INTEGER);
"""
OLDER = """
CREATE TABLE exchanges (
    id TEXT PRIMARY KEY, date TEXT NOT NULL, exchange_index INTEGER, user_text TEXT, agent_text TEXT, combined TEXT,
    metadata TEXT, created_at TEXT DEFAULT (datetime('now'))
);
"""
VIRTUAL = """
PRAGMA writable_schema = ON;
INSERT INTO sqlite_master (type, name, tbl_name, rootpage, sql) VALUES ('table', 'vec_exchanges', 'vec_exchanges', 0,
    'CREATE VIRTUAL TABLE vec_exchanges USING vec0(id TEXT PRIMARY KEY, embedding float[384])');
PRAGMA writable_schema = OFF;
"""
"""As it looks to a reader without the extension."""


def said(time: str, sender: str, text: str, **fields: Any) -> dict[str, Any]:
    return {"timestamp": f"{DAY}T{time}Z", "sender": sender, "text": text, **fields}


def day_file(data: Path, messages: Sequence[Any], day: str = DAY) -> Path:
    file = data / "archive" / f"{day}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"date": day, "messageCount": len(messages), "messages": messages}, indent=2))
    return file


def database(data: Path, days: dict[str, Sequence[dict[str, Any]]], schema: str = EXCHANGES + VIRTUAL) -> Path:
    """Indexed as the plugin does it: messages of a day paired, an exchange for each pair."""
    data.mkdir(parents=True, exist_ok=True)
    file = data / "continuity.db"
    connection = apsw.Connection(str(file))
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute(schema)
    for day, messages in days.items():
        for number, (user, agent) in enumerate(_pairs(messages)):
            first = user or agent or {}
            metadata = {"timestamp": first["timestamp"], "hasUser": bool(user), "hasAgent": bool(agent)}
            connection.execute(
                "INSERT INTO exchanges (id, date, exchange_index, user_text, agent_text, combined, metadata) "
                "VALUES (?, ?, ?, ?, ?, '', ?)",
                (
                    f"exchange_{day}_{number}",
                    day,
                    number,
                    user["text"] if user else "",
                    agent["text"] if agent else "",
                    json.dumps(metadata),
                ),
            )
            if "vec_exchanges_rowids" in schema:
                connection.execute("INSERT INTO vec_exchanges_rowids (id) VALUES (?)", (f"exchange_{day}_{number}",))
    connection.close()
    return file


def _pairs(messages: Sequence[dict[str, Any]]) -> list[tuple[dict[str, Any] | None, dict[str, Any] | None]]:
    found: list[tuple[dict[str, Any] | None, dict[str, Any] | None]] = []
    user: dict[str, Any] | None = None
    for message in messages:
        if message["sender"] == "user":
            if user:
                found.append((user, None))
            user = message
        else:
            found.append((user, message))
            user = None
    return [*found, (user, None)] if user else found
