"""What differs between the coding agents: how their sessions are called, where they lie, how a line of one is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from offbook.client.history.conversations import Damage, Ready
from offbook.client.history.fields import decoded, text_or_none
from offbook.client.history.files import TranscriptLine
from offbook.contrib.importers import claude_code, codex
from offbook.contrib.importers.claude_code import Skipped
from offbook.model.errors import InvalidInput
from offbook.model.types import Value

# ── What a coding agent tells its hooks: one JSON document, on stdin or, from Codex's `notify` ──

LONGEST_DOCUMENT_BYTES = 16 * 1024 * 1024
"""A prompt with a pasted file in it is large; what is larger than this is none."""
_TURN_ENDED = "agent-turn-complete"
"""The one event that `notify` knows."""


class Document(Value, frozen=True):
    """As far as it matters here. `event` is "" where the host does not name it."""

    event: str
    session_id: str
    transcript: Path | None = None
    prompt: str = ""
    source: str = ""
    """Why a session starts: startup, resume, clear, compact."""
    reason: str = ""
    """Why it ended."""


def read_document(raw: bytes | str) -> Document:
    """Raises InvalidInput where it is none of a hook's."""
    if len(raw) > LONGEST_DOCUMENT_BYTES:
        raise InvalidInput(f"the document is larger than {LONGEST_DOCUMENT_BYTES:,} bytes")
    try:
        fields = decoded(raw)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"the document is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise InvalidInput("the document is not a JSON object")
    if fields.get("type") == _TURN_ENDED:
        return Document(event="Stop", session_id=_text(fields, "thread-id"))
    session_id = _text(fields, "session_id")
    path = _path(fields.get("transcript_path"))
    if not session_id and path is None:
        raise InvalidInput("the document names no session: it is not that of a hook")
    return Document(
        event=_text(fields, "hook_event_name"),
        session_id=session_id,
        transcript=path,
        prompt=_text(fields, "prompt"),
        source=_text(fields, "source"),
        reason=_text(fields, "reason"),
    )


def _text(fields: dict[str, Any], name: str) -> str:
    return text_or_none(fields.get(name)) or ""


def _path(value: Any) -> Path | None:
    named = text_or_none(value)
    if named is None or "\0" in named:
        return None
    path = Path(named)
    return path.expanduser() if named.startswith("~/") else path


AgentName = Literal["claude-code", "codex"]


class Session(NamedTuple):
    """`read_line` is None where nothing of it is to be recorded, because there is no transcript."""

    key: str
    transcript: Path | None = None
    read_line: Callable[[TranscriptLine], Ready | Skipped | Damage] | None = None
    is_sub_agent: bool = False
    """Somebody else's errand: what comes of it stands in the session that asked for it."""


def session_of(agent: AgentName, document: Document, environ: Mapping[str, str]) -> Session:
    """The session a document speaks of, under the key that `offbook import` gives it."""
    return _of_codex(document, environ) if agent == "codex" else _of_claude_code(document)


def _of_claude_code(document: Document) -> Session:
    path = document.transcript
    key = claude_code.session_key(document.session_id if path is None else path.stem)
    if path is None or not path.is_file():
        return Session(key)
    # A session that goes on with another one holds copies of it; that one has been told of under its own name.
    beside = frozenset(each.stem for each in path.parent.glob("*.jsonl"))
    return Session(key, path, lambda line: claude_code.message_of(line, path.stem, beside))


def _of_codex(document: Document, environ: Mapping[str, str]) -> Session:
    path = document.transcript or rollout_of(document.session_id, codex_home(environ))
    if path is None or not path.is_file():
        return Session(codex.session_key(document.session_id))
    head = codex.head_of(path)
    key = codex.session_key(head.session_id)
    copies = codex.copies_of(head, lambda session_id: _recorded_rollout(session_id, codex_home(environ)))
    return Session(key, path, lambda line: codex.message_of(line, head, copies), head.is_sub_agent)


def _recorded_rollout(session_id: str, home: Path) -> Path | None:
    path = rollout_of(session_id, home)
    return None if path is None or codex.head_of(path).is_sub_agent else path


def codex_home(environ: Mapping[str, str]) -> Path:
    named = environ.get("CODEX_HOME")
    return Path(named) if named else Path("~/.codex").expanduser()


def rollout_of(session_id: str, home: Path) -> Path | None:
    """The newest file of a session. `notify` names only the session."""
    if not session_id or not all(letter.isalnum() or letter == "-" for letter in session_id):
        return None  # it becomes part of a pattern
    for day in _days(home / "sessions"):
        for path in sorted(day.glob(f"rollout-*-{session_id}.jsonl"), reverse=True):
            return path
    return None


def _days(sessions: Path) -> Iterator[Path]:
    """The newest first: `YYYY/MM/DD`."""
    yield from sorted(sessions.glob("*/*/*"), reverse=True)
