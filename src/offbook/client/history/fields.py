"""What every reader of a foreign format needs to make a message of what it finds: ids, keys, times, sizes. Any field of
others may be missing, or be something else."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from offbook.client.history.conversations import Ready
from offbook.client.history.formats import Owner
from offbook.client.recorder import encoded, without_surrogates
from offbook.model.plain_names import is_digits
from offbook.model.types import MAX_KEY_BYTES

LONGEST_LABEL_CHARS = 512
EARLIEST, AFTER_LATEST = datetime(1901, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
"""The years that a provider takes."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DIGEST_BYTES = 16
_SECONDS_BELOW, _MILLISECONDS_BELOW = 1e11, AFTER_LATEST.timestamp() * 1000
"""1e11 is the year 5138 in seconds, and 1973 in milliseconds: nobody talked to an agent at either end."""
_LENGTHS = (10, 13, 16)
"""Seconds, milliseconds or microseconds of our days. Other lengths are dates: 20260510, 20260510120000."""
_INCOGNITO_IN = ("dashboard", "subagent", "internal-session-effects")


def ready(
    message_id: str,
    role: str,
    content: str | list[dict[str, Any]],
    *,
    at: datetime | None,
    where: str,
    labels: dict[str, Any] | None = None,
    meta: dict[str, Any] | None = None,
) -> Ready:
    """A message as it is sent. `labels` are `name`, `toolCallId`, `model`, `origin`; empty ones are left out, and so is
    what is empty in `meta`."""
    wire: dict[str, Any] = {"id": bounded(message_id), "role": role, "content": content}
    if at is not None:
        wire["ts"] = iso(at)
    wire |= {name: value for name, value in (labels or {}).items() if _is_label(value)}
    kept = {name: value for name, value in (meta or {}).items() if value not in (None, "", [], {})}
    if kept:
        wire["meta"] = kept
    return Ready(wire, at, len(encoded(wire)), where)


def _is_label(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= LONGEST_LABEL_CHARS and "\0" not in value


def bounded(key: str) -> str:
    """A key or an id as the contract takes it: no NUL, at most 512 bytes, the same for the same input each time."""
    whole = key.replace("\0", "").encode(errors="replace")
    if len(whole) <= MAX_KEY_BYTES and "\0" not in key:
        return whole.decode()
    kept = whole[: MAX_KEY_BYTES - 2 * _DIGEST_BYTES - 1].decode(errors="ignore")
    return f"{kept}~{digest_of(key)}"


def digest_of(*parts: str) -> str:
    """Of the parts and of where each ends: ("ab", "c") is not ("a", "bc")."""
    return blake2b(encoded(list(parts)), digest_size=_DIGEST_BYTES).hexdigest()


def key_of(value: Any) -> str | None:
    """A session key or a message id as a provider takes it; None where there is none."""
    return bounded(value) if isinstance(value, str) and value else None


def owner_in(folder: Path, owner: Owner) -> Owner:
    """Plugins keep what is of an agent in `agents/<agentId>/<name>`: it is of that one, unless its key says another or
    somebody else was named."""
    agents, agent_id = ("", "", *folder.absolute().parts)[-3:-1]
    if agents != "agents":
        return owner
    return lambda key: owner(key if key.startswith("agent:") else f"agent:{agent_id}:")


def is_incognito(session_key: str) -> bool:
    """Nobody wants these recorded: the plugin passes them over, and so does an import."""
    parts = session_key.strip().lower().split(":")
    if len(parts) != 4 or not all(parts):
        return False
    return parts[0] == "agent" and parts[2] in _INCOGNITO_IN and parts[3].startswith("incognito-")


# ── times ──


def time_of(value: Any) -> datetime | None:
    """ISO 8601 (UTC where it names no zone), or a number since 1970. None for what is no time that a provider takes."""
    found = any_time_of(milliseconds(value))
    return found if found is not None and EARLIEST <= found < AFTER_LATEST else None


def moment_of(value: Any) -> datetime | None:
    """ISO 8601, or a number since 1970, in UTC. None for what is no time that a provider takes."""
    value = milliseconds(value)
    if not isinstance(value, str):
        return moment(value)
    try:
        found = datetime.fromisoformat(value.strip())
        found = found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
    return found if EARLIEST <= found < AFTER_LATEST else None


def moment(milliseconds: Any) -> datetime | None:
    """None for what is no time that a provider takes."""
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        return None
    try:
        found = _EPOCH + timedelta(milliseconds=int(milliseconds))
    except (ValueError, OverflowError):  # NaN has no whole part; infinity and many digits fit into no time
        return None
    return found if EARLIEST <= found < AFTER_LATEST else None


def any_time_of(value: Any) -> datetime | None:
    """ISO 8601 (UTC where it names no zone), or milliseconds since 1970, of whatever year."""
    try:
        if isinstance(value, str):
            found = datetime.fromisoformat(value)
            return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None


def milliseconds(value: Any) -> Any:
    """A number since 1970 in milliseconds. Its size says what it counts, for a program may count in another unit than
    its format is known for: seconds, milliseconds or microseconds. What is no number stays as it is."""
    if isinstance(value, str) and len(value.strip()) in _LENGTHS and is_digits(value.strip()):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if abs(value) < _SECONDS_BELOW:
        return value * 1000
    is_microseconds = _MILLISECONDS_BELOW <= abs(value) < _MILLISECONDS_BELOW * 1000
    return value / 1000 if is_microseconds else value


def iso(at: datetime) -> str:
    """As JavaScript writes it; to the microsecond where there is more than milliseconds: a store keeps that."""
    exactness = "microseconds" if at.microsecond % 1_000 else "milliseconds"
    return at.astimezone(UTC).isoformat(timespec=exactness).replace("+00:00", "Z")


# ── values ──


def decoded(raw: bytes | str | msgspec.Raw) -> Any:
    """JSON, also such as holds half of a character or NaN, as other programs write it. Raises ValueError or
    RecursionError."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return without_surrogates(json.loads(raw if isinstance(raw, str) else bytes(raw)))


def text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def dictionary(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def dictionaries(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def without_blanks(blocks: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Content of blocks: a plain text where there is nothing but text."""
    kept = [block for block in blocks if block.get("type") != "text" or block.get("text")]
    if all(block.get("type") == "text" for block in kept):
        return "\n".join(str(block["text"]) for block in kept)
    return kept
