"""What a coding agent tells its hooks: one JSON document, on stdin or, from Codex's `notify`, as an argument."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from offbook.errors import InvalidInput
from offbook.portability.wires import decoded, text_or_none
from offbook.types import Value

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
