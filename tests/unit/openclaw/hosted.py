"""A host on disk, as far as the doctor looks at it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw

NOW_MS = int(datetime(2026, 1, 31, 12, tzinfo=UTC).timestamp() * 1000)


def plugin_folder(folder: Path, name: str = "offbook", *, is_built: bool = True) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "openclaw.plugin.json").write_text(json.dumps({"id": name}))
    if is_built:
        (folder / "dist").mkdir(exist_ok=True)
        (folder / "dist" / "index.js").touch()
    return folder


def transcript(state: Path, agent: str, sessions: dict[str, list[tuple[str, str]]], at_ms: int = NOW_MS) -> Path:
    """Sessions by key, each a list of entry ids and roles; one second lies between two entries."""
    path = state / "agents" / agent / "agent" / "openclaw-agent.sqlite"
    path.parent.mkdir(parents=True)
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE session_windows (session_id TEXT, session_key TEXT, created_at INTEGER)")
    connection.execute(
        "CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT, event_zstd BLOB, "
        "created_at INTEGER)"
    )
    for key, entries in sessions.items():
        connection.execute("INSERT INTO session_windows VALUES (?, ?, ?)", (f"id-{key}", key, at_ms))
        events: list[dict[str, Any]] = [{"type": "session", "id": "head"}]
        for entry_id, role in entries:
            at_ms += 1_000
            stamp = datetime.fromtimestamp(at_ms / 1000, UTC).isoformat()
            message = {"role": role, "content": "said", "timestamp": at_ms}
            events.append({"type": "message", "id": entry_id, "timestamp": stamp, "message": message})
        for number, event in enumerate(events):
            row = (f"id-{key}", number, json.dumps(event), None, at_ms)
            connection.execute("INSERT INTO transcript_events VALUES (?, ?, ?, ?, ?)", row)
    connection.close()
    return path


def report(state: Path, **parts: Any) -> None:
    folder = state / "offbook"
    folder.mkdir(exist_ok=True)
    (folder / "report.json").write_text(json.dumps({"version": 1, "plugin": "0.1.0", **parts}))
