"""The sessions of Codex: one rollout file of JSON lines each, `sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl`.

A line is `{timestamp, type, payload}`; the first says whose session it is (`session_meta`). What was said and done are
the lines of type `response_item`; the others are bookkeeping, the same messages as events among it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from offbook.portability.claude_code import COPIED
from offbook.portability.claude_code_lines import Said, Skipped
from offbook.portability.codex_forks import Copies
from offbook.portability.codex_lines import ITEMS, read
from offbook.portability.conversations import Conversation, Damage, Damaged, Ready
from offbook.portability.folders import files_under
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
    forked_from: str | None = None
    written: Any = None


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
        forked_from = text_or_none(meta.get("forked_from_id"))
        own_id, written = text_or_none(meta.get("id")) or session_id, fields.get("timestamp")
        return Head(own_id, kept, meta.get("timestamp"), is_sub_agent, forked_from, written)
    return Head(session_id, {})


def conversations(path: Path, report: ImportReport, owner: Owner) -> list[Conversation]:
    folder = path if path.is_dir() else path.parent
    files, packed = [path], 0
    if path.is_dir():
        under = list(files_under(path, report))
        # The newest first, by the time in their names: of two files of one session it is the one that goes on.
        files = sorted((each for each in under if each.suffix == ".jsonl"), key=_newest_last, reverse=True)
        packed = sum(each.name.endswith(".jsonl.zst") for each in under)
    if packed:
        report.leave("compressed sessions", "unpack them first, with `zstd -d`", packed)
    found: dict[str, tuple[float, Conversation]] = {}
    imported: dict[str, Path] = {}
    for each, name, status in readable(files, folder, report):
        head = head_of(each)
        key = session_key(head.session_id)
        if head.is_sub_agent:
            report.leave("sessions of sub-agents", SUB_AGENT)
        elif key in found:
            report.leave("files of a session that is there already", "an older copy of the same session")
        else:
            imported[head.session_id] = each
            reading = partial(_messages, each, name, head, imported.get, report)
            found[key] = (status.st_mtime, Conversation(owner(key), key, status.st_size, reading))
    if not found and not report.left_out:
        report.unreadable += 1
        report.problem(str(path), f"holds no session: {FORMATS['codex'].give}")
    return [conversation for _, conversation in sorted(found.values(), key=lambda pair: pair[0])]


def _newest_last(path: Path) -> tuple[str, Path]:
    return path.name, path


FileOf = Callable[[str], Path | None]
"""From a session's id to its file, where it is there."""


def copies_of(head: Head, file_of: FileOf) -> Copies | None:
    """What a fork took over from a session whose file is there."""
    forked, written = time_of(head.started), time_of(head.written or head.started)
    if head.forked_from in (None, head.session_id) or forked is None or written is None:
        return None
    return Copies(forked, written, partial(_said_until, head.forked_from, forked, file_of))


def _said_until(session_id: str, until: datetime, file_of: FileOf) -> Iterator[Said]:
    path = file_of(session_id)
    for found in json_lines(path, path.name) if path else ():
        if isinstance(found, Damage):
            continue
        at = time_of(found.fields.get("timestamp"))
        if at is not None and at > until:
            return
        try:
            said = read(*_envelope(found))
        except ValueError:
            continue
        if isinstance(said, Said):
            yield said


def _messages(
    path: Path, name: str, head: Head, file_of: FileOf, report: ImportReport, damaged: Damaged
) -> Iterator[Ready]:
    seen: set[str] = set()
    copies = copies_of(head, file_of)
    is_known, number = False, 0
    for found in json_lines(path, name, FORMATS["codex"].give):
        number += 1
        if isinstance(found, Damage):
            damaged(found)
            if found.is_whole:
                return
            continue
        is_known = is_known or _envelope(found)[0] in ("session_meta", "response_item", "event_msg")
        told = message_of(found, head, copies)
        if isinstance(told, Damage):
            damaged(told)
        elif isinstance(told, Skipped):
            report.leave(*told)
        elif told.wire["id"] not in seen:
            seen.add(told.wire["id"])
            report.note_time(_said_at(found, head), told.at)
            yield told
    if number and not is_known:
        damaged(
            Damage(
                name,
                f"not a session of Codex, no line is of a kind that Codex writes: {FORMATS['codex'].give}",
                is_whole=True,
            )
        )


def message_of(line: Line, head: Head, copies: Copies | None = None) -> Ready | Skipped | Damage:
    """What a line of a session comes to, the same whoever reads it. `copies`: of a fork, asked of line after line."""
    kind, payload = _envelope(line)
    try:
        said = read(kind, payload)
    except ValueError as error:
        return Damage(line.where, f"not a message of Codex: {error}")
    if copies is not None and copies.has(kind, payload, time_of(line.fields.get("timestamp")), said):
        return Skipped("messages of other sessions", COPIED)
    if isinstance(said, Skipped):
        return said
    message_id = text_or_none(payload.get("id")) or digest_of(head.session_id, str(line.number))
    at = time_of(_said_at(line, head))
    meta = head.meta | said.meta
    return ready(message_id, said.role, said.content, at=at, where=line.where, labels=said.labels, meta=meta)


def _said_at(line: Line, head: Head) -> Any:
    return line.fields.get("timestamp") or head.started


def _envelope(line: Line) -> tuple[Any, dict[str, Any]]:
    kind, payload = line.fields.get("type"), line.fields.get("payload")
    if isinstance(kind, str) and kind in ITEMS and payload is None:
        return "response_item", line.fields
    return ("session_meta" if kind is None and "id" in line.fields else kind), dictionary(payload)
