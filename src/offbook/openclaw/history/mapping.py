"""A message of the host as Offbook keeps it: unchanged, under the id it has in the host's own transcript.

The plugin does the same while it happens (`plugins/openclaw/src/messages.ts`); `tests/data/openclaw_messages.json`
holds both to it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from offbook.client.history.fields import moment

ROLES = {"user": "user", "assistant": "assistant", "toolResult": "tool"}
LONGEST_LABEL = 512
"""In UTF-16 units, as JavaScript counts. A longer name is left out."""


def wire_message(entry_id: str, message: dict[str, Any], host_session_id: str | None) -> dict[str, Any]:
    host_role = message["role"]
    role = ROLES.get(host_role)
    wire: dict[str, Any] = {"id": entry_id, "role": role or "system", "content": _content(message)}
    spoken_at = moment(message.get("timestamp"))
    if spoken_at is not None:
        wire["ts"] = iso(spoken_at)
    if host_role == "toolResult":
        labels = {"name": message.get("toolName"), "toolCallId": message.get("toolCallId")}
        wire |= {name: value for name, value in labels.items() if _is_label(value)}
    if _is_label(message.get("model")):
        wire["model"] = message["model"]
    meta = _meta(message, None if role else host_role, host_session_id)
    if meta:
        wire["meta"] = meta
    return wire


def _content(message: dict[str, Any]) -> Any:
    if isinstance(message.get("content"), str | list):
        return message["content"]
    return next((message[name] for name in ("summary", "text") if isinstance(message.get(name), str)), "")


def _meta(message: dict[str, Any], host_role: str | None, host_session_id: str | None) -> dict[str, Any]:
    own = message.get("__openclaw")
    found = {name: message.get(name) for name in ("provider", "api", "stopReason")}
    found |= {"hostRole": host_role, "hostSessionId": host_session_id}
    found["runId"] = own.get("runId") if isinstance(own, dict) else None
    meta: dict[str, Any] = {name: value for name, value in found.items() if isinstance(value, str) and value}
    if message.get("isError") is True:
        meta["isError"] = True
    if isinstance(own, dict) and own.get("contextFreeCommand") is True:
        meta["isCommand"] = True
    return meta


def _is_label(value: Any) -> bool:
    if not isinstance(value, str) or not value or "\0" in value:
        return False
    return len(value.encode("utf-16-le", "surrogatepass")) // 2 <= LONGEST_LABEL


def iso(at: datetime) -> str:
    """As JavaScript writes it, to the millisecond."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
