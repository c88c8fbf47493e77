"""Files in the shape in which other programs write them, small enough to read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import apsw

from tests.unit.contrib.importers.reading_files import write_json

AT = 1_700_000_000.25
ROOT = "00000000-0000-4000-8000-000000000000"


def node(name: str, parent: str | None, role: str, content: dict[str, Any] | str, **fields: Any) -> dict[str, Any]:
    """A node of ChatGPT's mapping. `fields` go into the message, `metadata` and `author` among them."""
    body = {"content_type": "text", "parts": [content]} if isinstance(content, str) else content
    message = {
        "id": name,
        "author": {"role": role, "name": None, "metadata": {}} | fields.pop("author", {}),
        "create_time": fields.pop("at", None),
        "update_time": None,
        "content": body,
        "status": "finished_successfully",
        "end_turn": None,
        "weight": 1.0,
        "metadata": fields.pop("metadata", {}),
        "recipient": "all",
        "channel": None,
    }
    return {"id": name, "message": message | fields, "parent": parent, "children": []}


def chatgpt(*nodes: dict[str, Any], current: str | None, name: str = "c1", **fields: Any) -> dict[str, Any]:
    return {
        "title": "Trip to Lisbon",
        "create_time": AT,
        "update_time": AT + 100,
        "mapping": {"root": {"id": "root", "message": None, "parent": None, "children": []}}
        | {each["id"]: each for each in nodes},
        "moderation_results": [],
        "current_node": current,
        "conversation_id": name,
        "id": name,
        "default_model_slug": "gpt-4o",
    } | fields


def claude_message(name: str, sender: str, content: Any, parent: str = ROOT, **fields: Any) -> dict[str, Any]:
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content, "citations": []}]
    return {
        "uuid": name,
        "text": content if isinstance(content, str) else "",
        "content": [{"start_timestamp": "2025-03-01T10:00:00.000000Z", "flags": None} | each for each in blocks],
        "sender": sender,
        "created_at": "2025-03-01T10:00:00.000000Z",
        "updated_at": "2025-03-01T10:00:00.000000Z",
        "attachments": [],
        "files": [],
        "parent_message_uuid": parent,
    } | fields


def claude(*messages: dict[str, Any], name: str = "u1", **fields: Any) -> dict[str, Any]:
    return {
        "uuid": name,
        "name": "Sourdough",
        "summary": "",
        "created_at": "2025-03-01T09:59:00.000000Z",
        "updated_at": "2025-03-01T11:00:00.000000Z",
        "account": {"uuid": "a1"},
        "chat_messages": list(messages),
    } | fields


def code_line(name: str, kind: str, content: Any, parent: str | None = None, **fields: Any) -> dict[str, Any]:
    """A line of Claude Code's transcripts that holds a message."""
    message: dict[str, Any] = {"role": kind, "content": content}
    if kind == "assistant":
        message |= {"id": "msg_1", "type": "message", "model": "claude-sonnet-4-5", "usage": {"input_tokens": 3}}
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/src/app",
        "sessionId": "s1",
        "version": "2.0.1",
        "gitBranch": "main",
        "type": kind,
        "message": message,
        "uuid": name,
        "timestamp": "2026-01-05T08:00:00.123Z",
    } | fields


LCM_TABLES = """
CREATE TABLE conversations (
  conversation_id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, session_key TEXT,
  active INTEGER NOT NULL DEFAULT 1, archived_at TEXT, title TEXT, bootstrapped_at TEXT,
  created_at TEXT NOT NULL DEFAULT (datetime('now')), updated_at TEXT NOT NULL DEFAULT (datetime('now')));
CREATE TABLE messages (
  message_id INTEGER PRIMARY KEY AUTOINCREMENT,
  conversation_id INTEGER NOT NULL REFERENCES conversations(conversation_id) ON DELETE CASCADE, seq INTEGER NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('system', 'user', 'assistant', 'tool')), content TEXT NOT NULL,
  token_count INTEGER NOT NULL, created_at TEXT NOT NULL DEFAULT (datetime('now')), UNIQUE (conversation_id, seq));
CREATE TABLE summaries (summary_id TEXT PRIMARY KEY, conversation_id INTEGER NOT NULL, kind TEXT NOT NULL,
  depth INTEGER NOT NULL DEFAULT 0, content TEXT NOT NULL, token_count INTEGER NOT NULL);
CREATE TABLE message_parts (
  part_id TEXT PRIMARY KEY, message_id INTEGER NOT NULL, session_id TEXT NOT NULL, part_type TEXT NOT NULL,
  ordinal INTEGER NOT NULL, text_content TEXT, is_ignored INTEGER, is_synthetic INTEGER, tool_call_id TEXT,
  tool_name TEXT, tool_status TEXT, tool_input TEXT, tool_output TEXT, tool_error TEXT, tool_title TEXT, metadata TEXT,
  UNIQUE (message_id, ordinal));
CREATE TABLE large_files (file_id TEXT PRIMARY KEY, conversation_id INTEGER NOT NULL, storage_uri TEXT NOT NULL);
"""


class Lcm:
    """A database as lossless-claw's migrations make it."""

    def __init__(self, path: Path, *, has_entries: bool = False) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._connection = apsw.Connection(str(path))
        self._connection.execute(LCM_TABLES)
        if has_entries:
            self._connection.execute("ALTER TABLE messages ADD COLUMN transcript_entry_id TEXT")

    def conversation(self, session_id: str, session_key: str | None = None, title: str | None = None) -> int:
        self._connection.execute(
            "INSERT INTO conversations (session_id, session_key, title, active) VALUES (?, ?, ?, 0)",
            (session_id, session_key, title),
        )
        return self._connection.last_insert_rowid()

    def say(self, conversation: int, seq: int, role: str, content: str, *parts: dict[str, Any], **columns: Any) -> int:
        values = {"created_at": f"2026-02-03 04:05:{seq % 60:02}"} | columns
        values |= {"conversation_id": conversation, "seq": seq, "role": role, "content": content, "token_count": 1}
        self._insert("messages", values)
        message_id = self._connection.last_insert_rowid()
        for ordinal, part in enumerate(parts):
            own = {"part_id": f"p{message_id}-{ordinal}", "message_id": message_id, "session_id": "s"}
            self._insert("message_parts", own | {"ordinal": ordinal} | part)
        return message_id

    def summary(self, conversation: int) -> None:
        self._insert(
            "summaries",
            {"summary_id": "sum_1", "conversation_id": conversation, "kind": "leaf", "content": "x", "token_count": 1},
        )

    def execute(self, statement: str) -> None:
        self._connection.execute(statement)

    def close(self) -> Path:
        self._connection.close()
        return self.path

    def _insert(self, table: str, values: dict[str, Any]) -> None:
        marks = ", ".join("?" for _ in values)
        self._connection.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", tuple(values.values()))


def one_of_each(folder: Path) -> dict[str, tuple[Path, int]]:
    """A small file of each format, and how many messages it holds."""
    lcm = Lcm(folder / "lcm" / "lcm.db")
    conversation = lcm.conversation("s", "agent:main:main")
    lcm.say(conversation, 0, "user", "My cat is called Mitzi")
    lcm.say(conversation, 1, "assistant", "A fine name")
    memories = [{"id": "m1", "memory": "Likes vegetarian food", "user_id": "ann", "created_at": "2024-07-01T12:00:00Z"}]
    talk = chatgpt(node("a", "root", "user", "Hello"), node("b", "a", "assistant", "Hi", at=AT), current="b")
    bread = claude(claude_message("h", "human", "How long?"), claude_message("i", "assistant", "A day", "h"))
    session = folder / "claude-code" / "app" / "s1.jsonl"
    session.parent.mkdir(parents=True)
    write_json(session, code_line("x", "user", "Fix the test"))
    notes = folder / "memory" / "MEMORY.md"
    notes.parent.mkdir()
    notes.write_text("# About\n\n- Lives in Porto\n- Works nights\n", encoding="utf-8")
    return {
        "lcm": (lcm.close(), 2),
        "mem0": (write_json(folder / "mem0.json", {"results": memories}), 1),
        "chatgpt": (write_json(folder / "chatgpt" / "conversations.json", [talk]), 2),
        "claude": (write_json(folder / "claude" / "conversations.json", [bread]), 2),
        "claude-code": (session.parent.parent, 1),
        "codex": (_rollout(folder / "codex" / "rollout-x.jsonl"), 3),
        "markdown": (notes.parent, 2),
    }


def _rollout(path: Path) -> Path:
    call = {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c"}
    items = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Fix the test"}]},
        call,
        {"type": "function_call_output", "call_id": "c", "output": ""},
    ]
    lines: list[dict[str, Any]] = [{"type": "session_meta", "payload": {"id": "s1"}}]
    lines += [{"timestamp": "2026-05-01T10:00:00Z", "type": "response_item", "payload": item} for item in items]
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path
