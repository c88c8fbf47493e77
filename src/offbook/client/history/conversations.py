"""What every format is read into: conversations, each with its messages in order, ready to be sent."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from offbook.client.history.formats import Owner
from offbook.client.recorder import encoded, without_surrogates
from offbook.model.types import MAX_KEY_BYTES

MESSAGES_AT_A_TIME = 500
BYTES_AT_A_TIME = 4 * 1024 * 1024
"""A quarter of what a provider takes in one request by default."""


class Damage(NamedTuple):
    """What could not be read. `is_whole`: not one entry but a file, or all that follows in it."""

    where: str
    reason: str
    is_whole: bool = False


class Ready(NamedTuple):
    """A message as `onMessage` takes it. Its `id` is that of its origin, so that it is stored once however often it is
    told."""

    wire: dict[str, Any]
    at: datetime | None
    size_bytes: int
    where: str


Damaged = Callable[[Damage], None]


class Conversation(NamedTuple):
    """One session of one agent. `messages` reads it anew each time, a message at a time, and tells of damage."""

    agent_id: str
    key: str
    size_bytes: int
    messages: Callable[[Damaged], Iterator[Ready]]


def batches(found: Iterator[Ready]) -> Iterator[list[Ready]]:
    batch: list[Ready] = []
    size = 0
    for ready in found:
        if batch and (len(batch) >= MESSAGES_AT_A_TIME or size + ready.size_bytes > BYTES_AT_A_TIME):
            yield batch
            batch, size = [], 0
        batch.append(ready)
        size += ready.size_bytes
    if batch:
        yield batch


# ── The ids of messages that their format gives none: by the exchange that each is part of ──

USER, AGENT = "user", "agent"


class Said(NamedTuple):
    at: str
    sender: str
    session: str


def bases(day: Sequence[Said]) -> list[str]:
    """The time of the exchange and who speaks: an answer has the time of its question."""
    found = []
    asked_at: str | None = None
    for said in day:
        if said.sender == USER:
            found.append(base(said.at, USER))
            asked_at = said.at
        else:
            found.append(base(asked_at or said.at, AGENT))
            asked_at = None
    return found


def base(exchange_at: str, sender: str) -> str:
    return f"{exchange_at}_{sender}"


class Numbering:
    """Two messages of a session may have one base: the second gets a number."""

    def __init__(self) -> None:
        self._seen: Counter[tuple[str, str]] = Counter()

    def id_of(self, session: str, base: str) -> str:
        self._seen[session, base] += 1
        count = self._seen[session, base]
        return base if count == 1 else f"{base}#{count}"


def exchange_ids(day: Sequence[Said]) -> list[str]:
    """For all messages of a day, in the order of its file."""
    numbering = Numbering()
    return [numbering.id_of(said.session, base) for said, base in zip(day, bases(day), strict=True)]


# ── What every reader of a foreign format needs to make a message of what it finds: ids, keys, ──

LONGEST_LABEL_CHARS = 512
_DIGEST_BYTES = 16
EARLIEST, AFTER_LATEST = datetime(1901, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
"""The years that a provider takes."""
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


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(milliseconds: Any) -> datetime | None:
    """None for what is no time that a provider takes."""
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        return None
    try:
        found = _EPOCH + timedelta(milliseconds=int(milliseconds))
    except (ValueError, OverflowError):  # NaN has no whole part; infinity and many digits fit into no time
        return None
    return found if EARLIEST <= found < AFTER_LATEST else None


LONGEST_EVENT_BYTES = 64 * 1024 * 1024
"""What is longer is no message anyone can send; a file of rubbish without a line's end must not fill the memory."""


def moment_of(value: Any) -> datetime | None:
    """The time of an entry, which is ISO 8601 there and milliseconds in a row."""
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None


# ── What the records of others hold, read with care: any field may be missing, or be something ──


def moment_in_fields(value: Any) -> datetime | None:
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
