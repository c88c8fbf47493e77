"""What every reader of a foreign format needs to make a message of what it finds: ids, keys, times, sizes."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

import msgspec

from offbook.client.outgoing import encoded, without_surrogates
from offbook.portability.conversations import Ready
from offbook.portability.openclaw.events import moment_of
from offbook.portability.openclaw.mapping import AFTER_LATEST, EARLIEST
from offbook.types import MAX_KEY_BYTES

LONGEST_LABEL_CHARS = 512
_DIGEST_BYTES = 16
_SECONDS_BELOW, _MILLISECONDS_BELOW = 1e11, AFTER_LATEST.timestamp() * 1000
"""1e11 is the year 5138 in seconds, and 1973 in milliseconds: nobody talked to an agent at either end."""
_DIGITS = re.compile(r"[0-9]{10}(?:[0-9]{3}){0,2}")
"""Seconds, milliseconds or microseconds of our days. Other lengths are dates: 20260510, 20260510120000."""


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


def time_of(value: Any) -> datetime | None:
    """ISO 8601 (UTC where it names no zone), or a number since 1970. None for what is no time that a provider takes."""
    found = moment_of(milliseconds(value))
    return found if found is not None and EARLIEST <= found < AFTER_LATEST else None


def milliseconds(value: Any) -> Any:
    """A number since 1970 in milliseconds. Its size says what it counts, for a program may count in another unit than
    its format is known for: seconds, milliseconds or microseconds. What is no number stays as it is."""
    if isinstance(value, str) and _DIGITS.fullmatch(value.strip()):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if abs(value) < _SECONDS_BELOW:
        return value * 1000
    is_microseconds = _MILLISECONDS_BELOW <= abs(value) < _MILLISECONDS_BELOW * 1000
    return value / 1000 if is_microseconds else value


def decoded(raw: bytes | str | msgspec.Raw) -> Any:
    """JSON, also such as holds half of a character or NaN, as other programs write it. Raises ValueError or
    RecursionError."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return without_surrogates(json.loads(raw if isinstance(raw, str) else bytes(raw)))


def iso(at: datetime) -> str:
    """As JavaScript writes it; to the microsecond where there is more than milliseconds: a store keeps that."""
    exactness = "microseconds" if at.microsecond % 1_000 else "milliseconds"
    return at.astimezone(UTC).isoformat(timespec=exactness).replace("+00:00", "Z")


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
