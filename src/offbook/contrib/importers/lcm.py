"""lossless-claw's database, `lcm.db`: conversations, messages, and the parts of messages.

The tables are those of the plugin's own migrations (`src/db/migration.ts`), from the first with these columns to the
newest, in which a message may name its entry in OpenClaw's transcript. A message is then known by that entry, as
`offbook import openclaw` and the plugin know it, so that it is stored once whichever of them tells it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from offbook.client.history.conversations import Conversation, Damage, Damaged, ImportReport, Ready
from offbook.client.history.databases import FAULTS, connected, format_fault, is_in_use
from offbook.client.history.files import (
    bounded,
    decoded,
    dictionary,
    is_incognito,
    ready,
    text_or_none,
    time_of,
    without_blanks,
)
from offbook.client.history.formats import FORMATS, Owner

# ── The parts of a message in lossless-claw, as the blocks they were ──


class Part(NamedTuple):
    kind: Any
    text: Any
    call_id: Any
    tool: Any
    tool_input: Any
    tool_output: Any
    metadata: Any


Content = str | list[dict[str, Any]]


def content_and_labels(role: str, text: str, parts: list[Part]) -> tuple[Content, dict[str, Any], dict[str, Any]]:
    """What was said, its labels, and what else is to be kept. Without parts, or with empty ones, `text` is all."""
    noted = [_noted(part) for part in parts]
    blocks = [block for part, about in zip(parts, noted, strict=True) if (block := _block(part, about)) is not None]
    content = without_blanks(blocks) if blocks else text
    labels: dict[str, Any] = {}
    meta: dict[str, Any] = {}
    for part, about in zip(parts, noted, strict=True):
        if role == "tool":
            labels.setdefault("toolCallId", text_or_none(about.get("toolCallId")) or text_or_none(part.call_id))
            labels.setdefault("name", text_or_none(about.get("toolName")) or text_or_none(part.tool))
        if about.get("isError") is True:
            meta["isError"] = True
    return content or text, labels, meta


def _noted(part: Part) -> dict[str, Any]:
    try:
        return dictionary(decoded(part.metadata)) if isinstance(part.metadata, str) else {}
    except (ValueError, RecursionError):
        return {}  # the columns beside it say most of it


def _block(part: Part, about: dict[str, Any]) -> dict[str, Any] | None:
    raw = about.get("raw")
    if isinstance(raw, dict) and isinstance(raw.get("type"), str):
        return raw
    said = text_or_none(part.text)
    if part.kind == "tool" and part.tool_output is not None:
        return {"type": "tool-result", "toolCallId": part.call_id, "content": part.tool_output}
    if part.kind == "tool" and part.tool_input is not None:
        return {"type": "tool-call", "id": part.call_id, "name": part.tool, "arguments": part.tool_input}
    if said is None:
        return None
    return {"type": "thinking", "thinking": said} if part.kind == "reasoning" else {"type": "text", "text": said}


NAME = "lcm.db"
ROWS_AT_A_TIME = 500
NEEDED = frozenset({"conversations", "messages"})
_PART_COLUMNS = ("part_type", "text_content", "tool_call_id", "tool_name", "tool_input", "tool_output", "metadata")
_REPORTED = {
    "summaries": ("summaries", "Offbook makes its own from the messages"),
    "large_files": ("large files beside the database", "the message says in their place what they were"),
}


class _Conversation(NamedTuple):
    """One conversation of the database: a session key has several, one for each time it was begun anew."""

    conversation_id: int
    session_id: str
    title: str | None
    messages: int


def conversations(path: Path, report: ImportReport, owner: Owner) -> list[Conversation]:
    file = path / NAME if path.is_dir() else path
    if path.is_dir() and not file.exists():
        report.cannot_read(str(path), f"holds no {NAME}: give the file itself, or the folder that holds it")
        return []
    try:
        connection = connected(file, is_immutable=not is_in_use(file))
        try:
            sessions = _sessions(connection, report)
        finally:
            connection.close()
    except FAULTS as error:
        report.cannot_read(str(file), f"{format_fault(error)}: {FORMATS['lcm'].give}")
        return []
    total = sum(conversation.messages for by_key in sessions.values() for conversation in by_key)
    size = file.stat().st_size
    return [
        Conversation(
            owner(key),
            key,
            size * sum(each.messages for each in by_key) // max(1, total),
            partial(_messages, file, by_key, report),
        )
        for key, by_key in sessions.items()
    ]


def _sessions(connection: apsw.Connection, report: ImportReport) -> dict[str, list[_Conversation]]:
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not tables >= NEEDED:
        raise OSError("it has no tables of conversations and messages")
    for table, (what, why) in _REPORTED.items():
        if table in tables:
            [(count,)] = connection.execute(f"SELECT count(*) FROM {table}")  # noqa: S608 one of two names
            if count:
                report.leave(what, why, count)
    columns = _columns(connection, "conversations")
    key = "c.session_key" if "session_key" in columns else "NULL"
    title = "c.title" if "title" in columns else "NULL"
    sessions: dict[str, list[_Conversation]] = {}
    for session_key, *fields in connection.execute(
        f"SELECT {key}, c.conversation_id, c.session_id, {title}, "  # noqa: S608 names from above
        "(SELECT count(*) FROM messages m WHERE m.conversation_id = c.conversation_id) "
        "FROM conversations c ORDER BY c.conversation_id"
    ):
        conversation = _Conversation(fields[0], str(fields[1]), text_or_none(fields[2]), fields[3])
        if session_key and is_incognito(str(session_key)):
            report.leave("incognito conversations", "nobody wants these recorded")
        elif conversation.messages:
            sessions.setdefault(_key(session_key, conversation.session_id), []).append(conversation)
    return sessions


def _key(session_key: Any, session_id: str) -> str:
    """OpenClaw's own key where there is one: then it is the session that goes on."""
    named = str(session_key).strip() if session_key else ""
    return bounded(named if named.startswith("agent:") else f"lcm:{named or session_id}")


def _columns(connection: apsw.Connection, table: str) -> frozenset[str]:
    return frozenset(name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,)))


def _messages(file: Path, by_key: list[_Conversation], report: ImportReport, damaged: Damaged) -> Iterator[Ready]:
    place = file.name
    try:
        connection = connected(file, is_immutable=not is_in_use(file))
    except FAULTS as error:
        damaged(Damage(str(file), f"cannot be read: {error}", is_whole=True))
        return
    seen: set[str] = set()
    try:
        for conversation in by_key:
            place = f"{file.name} conversation {conversation.conversation_id}"
            yield from _of_conversation(connection, conversation, place, seen, report, damaged)
    except FAULTS as error:
        damaged(Damage(place, f"cannot be read to its end: {error}", is_whole=True))
    finally:
        connection.close()


def _of_conversation(
    connection: apsw.Connection,
    conversation: _Conversation,
    place: str,
    seen: set[str],
    report: ImportReport,
    damaged: Damaged,
) -> Iterator[Ready]:
    has_entries = "transcript_entry_id" in _columns(connection, "messages")
    has_parts = _columns(connection, "message_parts") >= {*_PART_COLUMNS, "ordinal", "message_id"}
    entry_id = "transcript_entry_id" if has_entries else "NULL"
    title, last, count = conversation.title, None, ROWS_AT_A_TIME
    while count == ROWS_AT_A_TIME:
        rows = connection.execute(
            f"SELECT seq, message_id, role, content, created_at, {entry_id} FROM messages "  # noqa: S608 one of two
            "WHERE conversation_id = ? AND (? IS NULL OR seq > ?) ORDER BY seq LIMIT ?",
            (conversation.conversation_id, last, last, ROWS_AT_A_TIME),
        )
        count = 0
        for seq, message_id, role, text, created_at, entry in rows:
            last, count = seq, count + 1
            where = f"{place} message {message_id}"
            if role not in ("user", "assistant", "system", "tool") or not isinstance(text, str):
                damaged(Damage(where, "a message without a role or without a text"))
                continue
            parts = _parts(connection, message_id) if has_parts else []
            content, labels, meta = content_and_labels(role, text, parts)
            # Some entries are anchored wrongly: a second message under one entry goes under a name of its own.
            own_id = text_or_none(entry) if text_or_none(entry) not in seen else None
            # The time is in it because another database may have other words at the same place.
            own_id = own_id or f"lcm:{conversation.conversation_id}:{seq}:{created_at}"
            seen.add(own_id)
            meta |= {"title": title, "hostSessionId": conversation.session_id, "lcmMessageId": message_id}
            at = time_of(created_at)
            report.note_time(created_at, at)
            yield ready(own_id, role, content, at=at, where=where, labels=labels, meta=meta)
            title = None


def _parts(connection: apsw.Connection, message_id: Any) -> list[Part]:
    rows = connection.execute(
        f"SELECT {', '.join(_PART_COLUMNS)} FROM message_parts WHERE message_id = ? ORDER BY ordinal",  # noqa: S608
        (message_id,),
    )
    return [Part(*row) for row in rows]
