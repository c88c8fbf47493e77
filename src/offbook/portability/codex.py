"""The sessions of Codex: one rollout file of JSON lines each, `sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl`.

A line is `{timestamp, type, payload}`; the first says whose session it is (`session_meta`). What was said and done are
the lines of type `response_item`; the others are bookkeeping, the same messages as events among it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from offbook.portability.claude_code_lines import Skipped
from offbook.portability.codex_lines import ITEMS, read
from offbook.portability.conversations import Conversation, Damage, Damaged, Ready
from offbook.portability.formats import FORMATS, Owner
from offbook.portability.json_lines import Line, json_lines, readable
from offbook.portability.report import ImportReport
from offbook.portability.wires import bounded, dictionary, digest_of, ready, text_or_none, time_of

SUB_AGENT = "what a sub-agent did; what it answered stands in the session that asked it"
_ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\Z")


class Head(NamedTuple):
    """What the first line says of a session."""

    session_id: str
    meta: dict[str, Any]
    started: Any = None
    is_sub_agent: bool = False


def session_key(session_id: str) -> str:
    return bounded(f"codex:{session_id}")


def head_of(path: Path) -> Head:
    """Where the file does not say it, its name does."""
    named = _ID.search(path.stem)
    session_id = named[0] if named else path.stem
    for found in json_lines(path, path.name):
        if isinstance(found, Damage):
            break
        fields = found.fields
        meta = dictionary(fields.get("payload")) if fields.get("type") == "session_meta" else fields
        if found.fields.get("type") not in ("session_meta", None):  # the first versions gave it no type
            break
        source = meta.get("source")
        kept = {
            "cwd": text_or_none(meta.get("cwd")),
            "gitBranch": text_or_none(dictionary(meta.get("git")).get("branch")),
        }
        is_sub_agent = (isinstance(source, dict) and "subagent" in source) or meta.get("thread_source") == "subagent"
        return Head(text_or_none(meta.get("id")) or session_id, kept, meta.get("timestamp"), is_sub_agent)
    return Head(session_id, {})


def conversations(path: Path, report: ImportReport, owner: Owner) -> list[Conversation]:
    folder = path if path.is_dir() else path.parent
    # The newest first, by the time in their names: of two files of one session it is the one that goes on.
    files = sorted(path.rglob("*.jsonl"), key=lambda each: (each.name, each), reverse=True) if path.is_dir() else [path]
    packed = sum(1 for _ in path.rglob("*.jsonl.zst")) if path.is_dir() else 0
    if packed:
        report.leave("compressed sessions", "unpack them first, with `zstd -d`", packed)
    found: dict[str, tuple[float, Conversation]] = {}
    for each, name, status in readable(files, folder, report):
        head = head_of(each)
        key = session_key(head.session_id)
        if head.is_sub_agent:
            report.leave("sessions of sub-agents", SUB_AGENT)
        elif key in found:
            report.leave("files of a session that is there already", "an older copy of the same session")
        else:
            reading = partial(_messages, each, name, head, report)
            found[key] = (status.st_mtime, Conversation(owner(key), key, status.st_size, reading))
    if not found and not report.left_out:
        report.unreadable += 1
        report.problem(str(path), f"holds no session: {FORMATS['codex'].give}")
    return [conversation for _, conversation in sorted(found.values(), key=lambda pair: pair[0])]


def _messages(path: Path, name: str, head: Head, report: ImportReport, damaged: Damaged) -> Iterator[Ready]:
    seen: set[str] = set()
    is_known, number = False, 0
    for found in json_lines(path, name, FORMATS["codex"].give):
        number += 1
        if isinstance(found, Damage):
            damaged(found)
            if found.is_whole:
                return
            continue
        is_known = is_known or _envelope(found)[0] in ("session_meta", "response_item", "event_msg")
        told = message_of(found, head)
        if isinstance(told, Damage):
            damaged(told)
        elif isinstance(told, Skipped):
            report.leave(*told)
        elif told.wire["id"] not in seen:
            seen.add(told.wire["id"])
            yield told
    if number and not is_known:
        damaged(
            Damage(
                name,
                f"not a session of Codex, no line is of a kind that Codex writes: {FORMATS['codex'].give}",
                is_whole=True,
            )
        )


def message_of(line: Line, head: Head) -> Ready | Skipped | Damage:
    """What a line of a session comes to, the same whoever reads it."""
    kind, payload = _envelope(line)
    try:
        said = read(kind, payload)
    except ValueError as error:
        return Damage(line.where, f"not a message of Codex: {error}")
    if isinstance(said, Skipped):
        return said
    message_id = text_or_none(payload.get("id")) or digest_of(head.session_id, str(line.number))
    at = time_of(line.fields.get("timestamp") or head.started)
    meta = head.meta | said.meta
    return ready(message_id, said.role, said.content, at=at, where=line.where, labels=said.labels, meta=meta)


def _envelope(line: Line) -> tuple[Any, dict[str, Any]]:
    kind, payload = line.fields.get("type"), line.fields.get("payload")
    if kind in ITEMS and payload is None:
        return "response_item", line.fields
    return ("session_meta" if kind is None and "id" in line.fields else kind), dictionary(payload)
