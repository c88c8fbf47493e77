"""The host's own transcript of a session, read from its database: what ours is compared with, entry by entry.

Read by Node, which has SQLite and zstd built in, and by nothing of ours: a fault in our import cannot hide here."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import Any

from tests.host.gateway import Gateway

READ_SECONDS = 240
# All windows of the key, oldest first; events of a window in their order. `/new` and `/reset` begin no window: they are
# an event of type `reset` in it.
SCRIPT = """
const { DatabaseSync } = require("node:sqlite");
const { zstdDecompressSync } = require("node:zlib");
const [file, key] = process.argv.slice(1);
const database = new DatabaseSync(file, { readOnly: true });
const events = [];
for (const row of database.prepare(
  `select e.session_id, e.event_json, e.event_zstd from transcript_events e
   join session_windows w on w.session_id = e.session_id
   where w.session_key = ? order by w.created_at, e.session_id, e.seq`).all(key)) {
  const text = row.event_json ?? zstdDecompressSync(row.event_zstd).toString();
  events.push({ sessionId: row.session_id, event: JSON.parse(text) });
}
process.stdout.write(JSON.stringify(events));
"""


@dataclass(frozen=True)
class Entry:
    entry_id: str
    message: dict[str, Any]
    session_id: str


def transcript(gateway: Gateway, session_key: str) -> list[Entry]:
    """Every message of the session `agent:<agent>:<name>`, in order, each once."""
    found: dict[str, Entry] = {}
    for row in events(gateway, session_key):
        event = row["event"]
        if event.get("type") == "message":
            found.setdefault(event["id"], Entry(event["id"], event["message"], row["sessionId"]))
    return list(found.values())


def events(gateway: Gateway, session_key: str) -> list[dict[str, Any]]:
    """Every event (`{sessionId, event}`), also those that are no message: compactions, changes of model."""
    agent = session_key.split(":")[1]
    file = gateway.state / "agents" / agent / "agent" / "openclaw-agent.sqlite"
    done = subprocess.run(
        [str(gateway.host.node), "--no-warnings", "-e", SCRIPT, str(file), session_key],
        capture_output=True,
        text=True,
        timeout=READ_SECONDS,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the host's database could not be read: {done.stderr}")
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows
