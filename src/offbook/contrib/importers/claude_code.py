"""The sessions of Claude Code: one file of JSON lines each, in a folder for each project.

The shape is that of real transcripts of versions 1 and 2, as public readers of them have it: a reply is several lines,
one for each of its blocks; what a tool answered is a line of the user's; what a person typed while the agent was at
work is an `attachment` of type `queued_command`, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from offbook.client.history.conversations import Conversation, Damage, Damaged, ImportReport, Ready
from offbook.client.history.files import (
    TranscriptLine,
    bounded,
    decoded,
    dictionaries,
    dictionary,
    digest_of,
    files_under,
    json_lines,
    readable,
    ready,
    text_or_none,
    time_of,
    without_blanks,
)
from offbook.client.history.formats import FORMATS, Owner
from offbook.model.files import open_regular

# ── One line of a Claude Code session: something that was said, or the reason why it is none ──

OWN_WORDS = "Claude Code wrote it to itself"
NO_MODEL = "<synthetic>"
"""The model of a reply that no model gave."""
_COMMANDS = ("<command-", "<local-command-", "<bash-")
"""How a line begins that holds a command of the program and what it printed, under the user's name."""


class TranscriptMessage(NamedTuple):
    role: str
    content: str | list[dict[str, Any]]
    labels: dict[str, Any]
    meta: dict[str, Any]


class Skipped(NamedTuple):
    what: str
    why: str


def read(fields: dict[str, Any]) -> TranscriptMessage | Skipped:
    """ValueError for a message that has no content."""
    kind = fields.get("type")
    if kind == "summary":
        return Skipped("summaries", "Offbook makes its own from the messages")
    if kind == "attachment":
        return _queued(dictionary(fields.get("attachment")))
    if kind is None:
        return Skipped("lines that say no type", "none of a session of Claude Code")
    if kind not in ("user", "assistant"):
        return Skipped(f"lines of kind {str(kind)[:60]}", "bookkeeping of Claude Code")
    if fields.get("isMeta") is True:
        return Skipped("meta messages", OWN_WORDS)
    if fields.get("isCompactSummary") is True:
        return Skipped("summaries of what was compacted", "Offbook makes its own from the messages")
    message = dictionary(fields.get("message"))
    content = message.get("content")
    if not isinstance(content, str | list):
        raise ValueError("it has no content")
    if kind == "assistant":
        return _reply(fields, message, content)
    return _message_in(fields, content)


def _queued(attachment: dict[str, Any]) -> TranscriptMessage | Skipped:
    prompt, mode = attachment.get("prompt"), attachment.get("commandMode", "prompt")
    is_typed = mode == "prompt" and dictionary(attachment.get("origin")).get("kind", "human") == "human"
    if attachment.get("type") != "queued_command" or not is_typed:
        return Skipped("attachments of the program", OWN_WORDS)
    content = prompt if isinstance(prompt, str) else without_blanks(_blocks(prompt))
    if not content:
        return Skipped("empty messages", "nothing is said in them")
    return TranscriptMessage("user", content, {}, {"isQueued": True})


def _reply(fields: dict[str, Any], message: dict[str, Any], content: str | list[Any]) -> TranscriptMessage | Skipped:
    model = text_or_none(message.get("model"))
    if model == NO_MODEL or fields.get("isApiErrorMessage") is True:
        return Skipped("notices of errors", OWN_WORDS)
    kept = content if isinstance(content, str) else without_blanks(_blocks(content))
    if not kept:
        return Skipped("empty messages", "nothing is said in them, or their thoughts are sealed")
    return TranscriptMessage("assistant", kept, {"model": model}, {"messageId": text_or_none(message.get("id"))})


def _message_in(fields: dict[str, Any], content: str | list[Any]) -> TranscriptMessage | Skipped:
    blocks = [] if isinstance(content, str) else _blocks(content)
    kept = content if isinstance(content, str) else without_blanks(blocks)
    if not kept:
        return Skipped("empty messages", "nothing is said in them")
    results = [block for block in blocks if block.get("type") == "tool_result"]
    if results and len(results) == len(blocks):
        call_id = results[0].get("tool_use_id") if len(results) == 1 else None
        return TranscriptMessage("tool", kept, {"toolCallId": call_id}, {})
    by = text_or_none(dictionary(fields.get("origin")).get("kind"))
    if by not in (None, "human"):
        return TranscriptMessage("user", kept, {"origin": f"claude-code:{by}"}, {})
    if isinstance(kept, str) and kept.lstrip().startswith(_COMMANDS):
        return TranscriptMessage("user", kept, {"origin": "claude-code:command"}, {})
    return TranscriptMessage("user", kept, {}, {})


def _blocks(content: Any) -> list[dict[str, Any]]:
    """Without the seals of thoughts, which are of use to nobody else, and without thoughts that are only a seal."""
    kept: list[dict[str, Any]] = []
    for block in dictionaries(content):
        if block.get("type") == "redacted_thinking" or (block.get("type") == "thinking" and not block.get("thinking")):
            continue
        kept.append({name: value for name, value in block.items() if name not in ("signature", "cache_control")})
    return kept


SIDE_CHAIN = "what a sub-agent did; what it answered stands in the session that asked it"
COPIED = "copied from a session that is imported itself"
_KEPT = ("cwd", "gitBranch", "parentUuid")
_TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle"}


def conversations(path: Path, report: ImportReport, owner: Owner) -> list[Conversation]:
    folder = path if path.is_dir() else path.parent
    files = sorted(each for each in files_under(path, report) if each.suffix == ".jsonl") if path.is_dir() else [path]
    sessions = [each for each in files if not _is_side_chain(each, folder)] if path.is_dir() else files
    if len(files) > len(sessions):
        report.leave("transcripts of sub-agents", SIDE_CHAIN, len(files) - len(sessions))
    if not sessions:
        report.cannot_read(str(path), f"holds no session: {FORMATS['claude-code'].give}")
    imported = frozenset(each.stem for each in sessions)
    found: list[tuple[float, Conversation]] = []
    for each, name, status in readable(sessions, folder, report):
        key = session_key(each.stem)
        reading = partial(_messages, each, name, imported, report)
        found.append((status.st_mtime, Conversation(owner(key), key, status.st_size, reading)))
    return [conversation for _, conversation in sorted(found, key=lambda pair: pair[0])]


def session_key(session_id: str) -> str:
    return bounded(f"claude-code:{session_id}")


def _is_side_chain(path: Path, folder: Path) -> bool:
    return path.name.startswith("agent-") or "subagents" in path.relative_to(folder).parts


def _messages(
    path: Path, name: str, imported: frozenset[str], report: ImportReport, damaged: Damaged
) -> Iterator[Ready]:
    first: dict[str, Any] = {"title": _title(path)}
    reading = LineReading(
        message_of=lambda line: message_of(line, path.stem, imported, first),
        is_ours=lambda line: isinstance(line.fields.get("type"), str),
        said_at=lambda line: line.fields.get("timestamp"),
        not_ours="not a session of Claude Code, no line says its type",
        give=FORMATS["claude-code"].give,
    )
    for found in transcript_messages(path, name, reading, report, damaged):
        yield found
        first.clear()


class LineReading(NamedTuple):
    """How the lines of one program's transcripts are read."""

    message_of: Callable[[TranscriptLine], Ready | Skipped | Damage]
    is_ours: Callable[[TranscriptLine], bool]
    """Whether only this program writes such a line."""
    said_at: Callable[[TranscriptLine], Any]
    not_ours: str
    """What is told where no line is, before what to `give` instead."""
    give: str


def transcript_messages(
    path: Path, name: str, reading: LineReading, report: ImportReport, damaged: Damaged
) -> Iterator[Ready]:
    """The messages of a file of JSON lines, each once."""
    seen: set[str] = set()
    is_ours, number = False, 0
    for found in json_lines(path, name, reading.give):
        number += 1
        if isinstance(found, Damage):
            damaged(found)
            if found.is_whole:
                return
            continue
        is_ours = is_ours or reading.is_ours(found)
        outcome = reading.message_of(found)
        if isinstance(outcome, Damage):
            damaged(outcome)
        elif isinstance(outcome, Skipped):
            report.leave(*outcome)
        elif outcome.wire["id"] not in seen:
            seen.add(outcome.wire["id"])
            report.note_time(reading.said_at(found), outcome.at)
            yield outcome
    if number and not is_ours:
        damaged(Damage(name, f"{reading.not_ours}: {reading.give}", is_whole=True))


def message_of(
    line: TranscriptLine, session_id: str, imported: Container[str], more: dict[str, Any] | None = None
) -> Ready | Skipped | Damage:
    """What a line of a session comes to, the same whoever reads it. `imported`: the sessions that are read themselves;
    `more` goes into the message's meta."""
    fields = line.fields
    if _is_copied(fields, session_id, imported):
        return Skipped("messages of other sessions", COPIED)
    if fields.get("isSidechain") is True:
        return Skipped("messages of side chains", SIDE_CHAIN)
    try:
        said = read(fields)
    except ValueError as error:
        return Damage(line.where, f"not a message of Claude Code: {error}")
    if isinstance(said, Skipped):
        return said
    message_id = text_or_none(fields.get("uuid")) or digest_of(session_id, str(line.number))
    meta = (more or {}) | {each: text_or_none(fields.get(each)) for each in _KEPT} | said.meta
    at = time_of(fields.get("timestamp"))
    return ready(message_id, said.role, said.content, at=at, where=line.where, labels=said.labels, meta=meta)


def _is_copied(fields: dict[str, Any], session_id: str, imported: Container[str]) -> bool:
    """What a session that goes on with another one took over keeps the other's name; what a fork took over has its
    own, and says where it was."""
    if not ("message" in fields or "attachment" in fields):
        return False
    names = (fields.get("sessionId"), dictionary(fields.get("forkedFrom")).get("sessionId"))
    return any(isinstance(name, str) and name != session_id and name in imported for name in names)


def _title(path: Path) -> str | None:
    """The last one that was given, a person's own before the program's. Few lines are decoded for it."""
    titles: dict[str, str] = {}
    try:
        with open_regular(path) as source:
            while line := source.readline(_LONGEST_TITLE_LINE_BYTES):
                if b'-title"' in line:
                    _learn_title(line, titles)
    except OSError:
        return None
    return titles.get("custom-title") or titles.get("ai-title")


_LONGEST_TITLE_LINE_BYTES = 65_536
"""What is longer is read in pieces, none of which is JSON."""


def _learn_title(line: bytes, titles: dict[str, str]) -> None:
    try:
        fields = decoded(line)
    except (ValueError, RecursionError):
        return
    kind = fields.get("type") if isinstance(fields, dict) else None
    if isinstance(kind, str) and kind in _TITLES and text_or_none(fields.get(_TITLES[kind])):
        titles[kind] = fields[_TITLES[kind]]
