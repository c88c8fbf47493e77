"""The sessions of Codex: one rollout file of JSON lines each, `sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl`.

A line is `{timestamp, type, payload}`; the first says whose session it is (`session_meta`). What was said and done are
the lines of type `response_item`; the others are bookkeeping, the same messages as events among it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

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
from offbook.contrib.importers.claude_code import COPIED, LineReading, Skipped, TranscriptMessage, transcript_messages
from offbook.model.plain_names import is_hex

# ── What a forked session of Codex took over from the one that it was forked from ──

WRITTEN_SECONDS = 10
"""What is copied is written within a tenth of a second. A long history on a busy disk takes longer."""
_TURN_BEGINS = ("task_started", "turn_started")


class Copies:
    """Asked of each line in turn. `before` gives what the other session held at that time, and is asked once, when a
    line may be a copy: of a fork that goes on, nothing is read but its own."""

    def __init__(self, forked: datetime, written: datetime, before: Callable[[], Iterable[TranscriptMessage]]) -> None:
        self._forked = forked
        self._latest = written + timedelta(seconds=WRITTEN_SECONDS)
        self._before = before
        self._left: Counter[bytes] | None = None
        self._is_over = False

    def has(self, kind: Any, payload: dict[str, Any], at: datetime | None, said: TranscriptMessage | Skipped) -> bool:
        if not self._is_over:
            self._is_over = at is None or at > self._latest or _begins_turn(kind, payload, self._forked)
        if self._is_over or isinstance(said, Skipped):
            return False
        if self._left is None:
            self._left = Counter(filter(None, map(_digest, self._before())))
        digest = _digest(said)
        if digest is None or self._left[digest] == 0:
            return False
        self._left[digest] -= 1
        return True


def _begins_turn(kind: Any, payload: dict[str, Any], forked: datetime) -> bool:
    """Whether a turn begins that is younger than the fork: the ids of turns hold the time they were made at."""
    if kind != "turn_context" and not (kind == "event_msg" and payload.get("type") in _TURN_BEGINS):
        return False
    try:
        turn = UUID(payload["turn_id"])
    except (KeyError, ValueError, AttributeError, TypeError):
        return False
    return turn.version == 7 and turn.int >> 80 >= forked.timestamp() * 1000


def _digest(said: TranscriptMessage) -> bytes | None:
    try:
        outcome = json.dumps([said.role, said.content, said.labels], sort_keys=True)  # also of half a character
    except RecursionError:
        return None
    return blake2b(outcome.encode(), digest_size=16).digest()


SUB_AGENT = "what a sub-agent did; what it answered stands in the session that asked it"
_ID_CHARS = len("00000000-0000-0000-0000-000000000000")


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
    named = path.stem[-_ID_CHARS:]
    is_id = [len(part) for part in named.split("-")] == [8, 4, 4, 4, 12] and is_hex(named.replace("-", ""), 32)
    session_id = named if is_id else path.stem
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
        report.cannot_read(str(path), f"holds no session: {FORMATS['codex'].give}")
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


def _said_until(session_id: str, until: datetime, file_of: FileOf) -> Iterator[TranscriptMessage]:
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
        if isinstance(said, TranscriptMessage):
            yield said


def _messages(
    path: Path, name: str, head: Head, file_of: FileOf, report: ImportReport, damaged: Damaged
) -> Iterator[Ready]:
    copies = copies_of(head, file_of)
    reading = LineReading(
        message_of=lambda line: message_of(line, head, copies),
        is_ours=lambda line: _envelope(line)[0] in ("session_meta", "response_item", "event_msg"),
        said_at=lambda line: _said_at(line, head),
        not_ours="not a session of Codex, no line is of a kind that Codex writes",
        give=FORMATS["codex"].give,
    )
    return transcript_messages(path, name, reading, report, damaged)


def message_of(line: TranscriptLine, head: Head, copies: Copies | None = None) -> Ready | Skipped | Damage:
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


def _said_at(line: TranscriptLine, head: Head) -> Any:
    return line.fields.get("timestamp") or head.started


def _envelope(line: TranscriptLine) -> tuple[Any, dict[str, Any]]:
    kind, payload = line.fields.get("type"), line.fields.get("payload")
    if isinstance(kind, str) and kind in ITEMS and payload is None:
        return "response_item", line.fields
    return ("session_meta" if kind is None and "id" in line.fields else kind), dictionary(payload)


# ── One line of a rollout: something that was said or done, or the reason why it is none ──


OWN_WORDS = "Codex wrote it to itself"
_NOTHING_SAID = "nothing is said in them, or their thoughts are sealed"
_COMMAND = ("<user_shell_command>", "</user_shell_command>")
"""What a person ran beside the agent, and what it printed."""
_FRAGMENTS = (
    ("# agents.md instructions", "</instructions>"),
    ("<user_instructions>", "</user_instructions>"),
    ("<environment_context>", "</environment_context>"),
    ("<additional_context>", "</additional_context>"),
    ("<recommended_plugins>", "</recommended_plugins>"),
    ("<internal_model_context>", "</internal_model_context>"),
    ("<goal_context>", "</goal_context>"),
    ("<skill>", "</skill>"),
    ("<turn_aborted>", "</turn_aborted>"),
    ("<subagent_notification>", "</subagent_notification>"),
    ("<hook_prompt", "</hook_prompt>"),
    ("<image name=", ">"),
)
"""How what Codex adds under the user's name begins and ends, in small letters."""
_IMAGE_TAGS = ("<image>", "</image>", "<local_image>", "</local_image>")
"""Stand before and behind a picture."""
_CALLS = {"function_call": "arguments", "custom_tool_call": "input", "local_shell_call": "action"}
"""The calls, and where each says what is called for."""
_RESULTS = ("function_call_output", "custom_tool_call_output")
_LEFT_OUT = {
    "web_search_call": Skipped("searches of the web", "what they found stands in the reply"),
    "image_generation_call": Skipped("images", "images are left out"),
    "agent_message": Skipped("messages between agents", "what a sub-agent answered stands in the reply"),
}
ITEMS = frozenset({"message", "reasoning", *_CALLS, *_RESULTS, *_LEFT_OUT})
"""What an item may be. The first versions wrote items without an envelope."""


def read(kind: Any, payload: dict[str, Any]) -> TranscriptMessage | Skipped:
    """Of a line's type and payload. ValueError for a message that has no content."""
    if kind != "response_item":
        return Skipped(f"lines of kind {str(kind)[:60]}", "bookkeeping of Codex")
    item = payload.get("type")
    if item == "message":
        return _message(payload)
    if item == "reasoning":
        return _thought(payload)
    if isinstance(item, str) and item in _CALLS:
        return _call(item, payload)
    if item in _RESULTS:
        return _result(payload)
    return _LEFT_OUT.get(str(item)) or Skipped(f"items of kind {str(item)[:60]}", "bookkeeping of Codex")


def _message(payload: dict[str, Any]) -> TranscriptMessage | Skipped:
    role, content = payload.get("role"), payload.get("content")
    if role not in ("user", "assistant"):
        return Skipped("instructions", OWN_WORDS)
    if isinstance(content, str):
        content = [{"type": "input_text", "text": content}]
    if not isinstance(content, list):
        raise ValueError("it has no content")
    blocks = [_plain(block) for block in dictionaries(content)]
    meta = {"phase": text_or_none(payload.get("phase"))}
    if role == "assistant":
        said = without_blanks(blocks)
        return TranscriptMessage("assistant", said, {}, meta) if said else Skipped("empty messages", _NOTHING_SAID)
    typed = [block for block in blocks if not _is_of_the_program(block)]
    said = without_blanks(typed)
    if not said:
        return Skipped("context that Codex adds" if len(typed) < len(blocks) else "empty messages", OWN_WORDS)
    is_command = isinstance(said, str) and _is_between(said, _COMMAND)
    return TranscriptMessage("user", said, {"origin": "codex:command"} if is_command else {}, meta)


def _plain(block: dict[str, Any]) -> dict[str, Any]:
    if block.get("type") in ("input_text", "output_text"):
        return {"type": "text", "text": text_or_none(block.get("text")) or ""}
    return block


def _is_of_the_program(block: dict[str, Any]) -> bool:
    text = block.get("text") if block.get("type") == "text" else None
    if not isinstance(text, str):
        return False
    return text.strip() in _IMAGE_TAGS or any(_is_between(text, marks) for marks in _FRAGMENTS)


def _is_between(text: str, marks: tuple[str, str]) -> bool:
    begins, ends = marks
    trimmed = text.strip()
    return trimmed[: len(begins)].lower() == begins and trimmed[-len(ends) :].lower() == ends


def _thought(payload: dict[str, Any]) -> TranscriptMessage | Skipped:
    parts = dictionaries(payload.get("summary")) + dictionaries(payload.get("content"))
    text = "\n\n".join(part["text"] for part in parts if text_or_none(part.get("text")))
    if not text:
        return Skipped("empty messages", _NOTHING_SAID)
    return TranscriptMessage("assistant", [{"type": "thinking", "thinking": text}], {}, {})


def _call(item: str, payload: dict[str, Any]) -> TranscriptMessage:
    given = payload.get(_CALLS[item])
    called = {
        "type": "tool-call",
        "id": text_or_none(payload.get("call_id")) or text_or_none(payload.get("id")) or "",
        "name": text_or_none(payload.get("name")) or item,
        "arguments": _arguments(given) if item == "function_call" else given,
    }
    return TranscriptMessage("assistant", [called], {}, {})


def _arguments(given: Any) -> Any:
    """They come as JSON in a text; what is none stays a text."""
    value = _decoded_or_none(given)
    return value if isinstance(value, dict) else given


def _result(payload: dict[str, Any]) -> TranscriptMessage:
    output = payload.get("output")
    if isinstance(output, dict):  # of older versions
        output = output.get("content", output.get("content_items"))
    shell_output = dictionary(_decoded_or_none(output)).get("output")  # the shell's, beside its exit code
    if isinstance(shell_output, str):
        output = shell_output
    content = output if isinstance(output, str) else without_blanks([_plain(each) for each in dictionaries(output)])
    return TranscriptMessage("tool", content, {"toolCallId": text_or_none(payload.get("call_id"))}, {})


def _decoded_or_none(value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith("{"):
        return None
    try:
        return decoded(value)
    except (ValueError, RecursionError):
        return None
