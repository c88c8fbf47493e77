"""A mem0 export: memories as `get_all` answers them, a list or an object with `results`.

The fields are those of mem0's own reference (its get-memories page, and its open-source `Memory.get_all`). The
structured export of the platform has whatever shape its schema was given: of that only what looks like a memory can be
taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from offbook.client.history.conversations import Conversation, Damaged, ImportReport, Ready
from offbook.client.history.files import (
    bounded,
    decoded,
    dictionary,
    digest_of,
    kind_of_file,
    ready,
    text_or_none,
    time_of,
)
from offbook.client.history.formats import FORMATS, Owner
from offbook.contrib.importers.documents import FAULTS, LARGEST_BYTES
from offbook.model.files import open_regular

ORIGIN = "memory:mem0"
HOLDERS = ("results", "memories", "data")
TEXTS = ("memory", "content", "text", "data")
"""`memory` is mem0's own; the others are what exports of OpenMemory and of vector stores call it."""
OWNERS = ("user_id", "agent_id", "run_id", "app_id")
_KEPT = ("user_id", "agent_id", "run_id", "app_id", "actor_id", "role", "categories", "metadata", "expiration_date")
_GIVE = FORMATS["mem0"].give


class _Memory(NamedTuple):
    text: str
    at: datetime | None
    fields: dict[str, Any]
    where: str


def conversations(path: Path, report: ImportReport, owner: Owner) -> list[Conversation]:
    try:
        size = path.stat().st_size
        if kind := kind_of_file(path):
            raise ValueError(f"it is {kind}")
        if size > LARGEST_BYTES:
            raise ValueError(f"{size:,} bytes, and at most {LARGEST_BYTES:,} are read: split the list")
        with open_regular(path) as source:
            whole = decoded(source.read().removeprefix(b"\xef\xbb\xbf"))
    except (*FAULTS, ValueError, RecursionError) as error:
        report.cannot_read(str(path), f"cannot be read: {error}; {_GIVE}")
        return []
    listed = whole if isinstance(whole, list) else _held(dictionary(whole))
    if listed is None:
        report.cannot_read(str(path), f"holds no memories; {_GIVE}")
        return []
    if isinstance(whole, dict) and isinstance(whole.get("relations"), list) and whole["relations"]:
        report.leave("relations of the graph", "mem0 made them from the memories", len(whole["relations"]))
    sessions: dict[str, list[_Memory]] = {}
    for number, fields in enumerate(listed, 1):
        _take(fields, f"{path.name} memory {number}", sessions, report, owner)
    return [_conversation(key, memories, report, owner) for key, memories in sessions.items()]


def _held(whole: dict[str, Any]) -> list[Any] | None:
    """The list of memories in an object, or the object itself where it is one memory."""
    for name in HOLDERS:
        held = whole.get(name)
        if isinstance(held, list):
            return held
        if isinstance(held, dict) and isinstance(held.get("results"), list):
            return list(held["results"])
    return [whole] if text_or_none(whole.get("memory")) else None


def _take(fields: Any, where: str, sessions: dict[str, list[_Memory]], report: ImportReport, owner: Owner) -> None:
    text = next((found for name in TEXTS if (found := text_or_none(dictionary(fields).get(name)))), None)
    named = next((found for name in OWNERS if (found := text_or_none(dictionary(fields).get(name)))), "memories")
    key = bounded(f"mem0:{named}")
    if text is None or not text.strip():
        report.agent(owner(key)).skipped += 1
        report.problem(where, "a memory without a text")
        return
    updated_at, created_at = time_of(fields.get("updated_at")), time_of(fields.get("created_at"))
    report.note_time(fields.get("updated_at"), updated_at)
    report.note_time(fields.get("created_at"), created_at)
    sessions.setdefault(key, []).append(_Memory(text, updated_at or created_at, fields, where))


def _conversation(key: str, memories: list[_Memory], report: ImportReport, owner: Owner) -> Conversation:
    agent_id = owner(key)
    ordered = sorted(memories, key=lambda each: each.at.timestamp() if each.at else 0.0)
    notes: dict[str, _Memory] = {}
    for memory in ordered:
        if notes.setdefault(_note_id(key, memory), memory) is not memory:
            report.leave("memories that say the same", "each is stored once, where it has no other id")
        elif text_or_none(memory.fields.get("agent_id")) not in (None, agent_id):
            why = f"they stay in `meta` only; it is the memory of agent {agent_id} from now on (--agent names another)"
            report.leave("names of agents of mem0", why)
    size = sum(len(each.text.encode(errors="replace")) for each in memories)
    return Conversation(agent_id, key, size, partial(_messages, notes))


def _note_id(key: str, memory: _Memory) -> str:
    # mem0 rewrites a memory under its id; what it says then is a note of its own, and the older one stays.
    return f"{text_or_none(memory.fields.get('id')) or key}:{digest_of(memory.text)[:12]}"


def _messages(notes: dict[str, _Memory], _: Damaged) -> Iterator[Ready]:
    for message_id, memory in notes.items():
        meta = {"mem0Id": text_or_none(memory.fields.get("id")), "createdAt": _created_before(memory)}
        meta |= {name: memory.fields.get(name) for name in _KEPT}
        labels = {"origin": ORIGIN}
        yield ready(message_id, "user", memory.text, at=memory.at, where=memory.where, labels=labels, meta=meta)


def _created_before(memory: _Memory) -> Any:
    """When it was made, where that is another time than the note's own: said twice, it would be known by it."""
    created_at = memory.fields.get("created_at")
    return None if memory.at is not None and time_of(created_at) == memory.at else created_at
