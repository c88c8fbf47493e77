"""Files of other programs, read with care: what a file is by its first bytes, what lies under a folder, JSON lines.

Whoever gives the wrong file is told what it is; what is not looked into is told, since a folder that is passed over in
silence looks imported; no line fills the memory, and a bad one costs only itself.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec

from offbook.client.history.conversations import Damage, ImportReport, Ready
from offbook.client.history.formats import Owner
from offbook.client.recorder import encoded, without_surrogates
from offbook.model.files import open_regular
from offbook.model.plain_names import is_digits
from offbook.model.types import MAX_KEY_BYTES

LONGEST_EVENT_BYTES = 64 * 1024 * 1024
"""What is longer is no message anyone can send; a file of rubbish without a line's end must not fill the memory."""
HEAD_BYTES = 1_024
ZIP, DATABASE = "a zip", "an SQLite database"
_BEGINNINGS = {
    b"PK\x03\x04": ZIP,
    b"PK\x05\x06": ZIP,
    b"SQLite format 3\0": DATABASE,
    b"\x1f\x8b": "packed with gzip",
    b"\x28\xb5\x2f\xfd": "packed with zstd",
    b"%PDF-": "a PDF",
    b"\xff\xfe": "a text in UTF-16, where UTF-8 is read",
    b"\xfe\xff": "a text in UTF-16, where UTF-8 is read",
}
LINKS = ("links", "what they lead to lies elsewhere: give that itself")
Why = tuple[str, str]
"""What it is and why it is left out, as a report tells it."""
_BLOCK_BYTES = 65_536


def no_text(head: bytes) -> str | None:
    """What it is instead of a text in UTF-8; None where it may be one."""
    for beginning, kind in _BEGINNINGS.items():
        if head.startswith(beginning):
            return kind
    # A file of JSON that a crash left with NULs in it is still one.
    return "no text" if b"\0" in head and head.lstrip()[:1] not in (b"{", b"[") else None


def kind_of_file(path: Path) -> str | None:
    """As `no_text`. What cannot be opened is told where it is read."""
    try:
        with open_regular(path) as source:
            return no_text(source.read(HEAD_BYTES))
    except OSError:
        return None


def files_under(
    folder: Path, report: ImportReport, left_out: Callable[[str], Why | None] = lambda name: None
) -> Iterator[Path]:
    """In the order of their names, those of a folder before those of the folders in it. `left_out` says by its name
    why a folder is not looked into; one that is a link never is."""

    def unreadable(error: OSError) -> None:
        report.cannot_read(str(error.filename), f"cannot be read: {error.strerror}")

    for here, folders, names in os.walk(folder, onerror=unreadable):
        for name in sorted(folders):
            why = LINKS if Path(here, name).is_symlink() else left_out(name)
            if why is not None:
                report.leave(*why)
                folders.remove(name)
        folders.sort()
        yield from (Path(here, name) for name in sorted(names))


class TranscriptLine(NamedTuple):
    number: int
    fields: dict[str, Any]
    where: str


def readable(files: Iterable[Path], folder: Path, report: ImportReport) -> Iterator[tuple[Path, str, os.stat_result]]:
    """Each that is there, its name in the folder, and what the disk says of it."""
    for each in files:
        name = each.relative_to(folder).as_posix()
        try:
            yield each, name, each.stat()
        except OSError as error:
            report.cannot_read(name, f"cannot be read: {error}")


def json_lines(path: Path, name: str, give: str = "") -> Iterator[TranscriptLine | Damage]:
    """Every object, and every line that is none. What cannot be read from some point on is one damage, and so is a file
    that is something else altogether: then `give` says what to give instead."""
    number = 0
    try:
        with open_regular(path) as source:
            if kind := no_text(source.read(HEAD_BYTES)):
                instead = f": {give}" if give else ""
                yield Damage(name, f"is {kind}, and no file of JSON lines{instead}", is_whole=True)
                return
            source.seek(0)
            while line := source.readline(LONGEST_EVENT_BYTES):
                number += 1
                where = f"{name} line {number}"
                if len(line) == LONGEST_EVENT_BYTES and not line.endswith(b"\n"):
                    _pass_over_the_rest(source)
                    yield Damage(where, f"longer than {LONGEST_EVENT_BYTES:,} bytes")
                elif line.strip():
                    yield line_of(number, line, where)
    except OSError as error:
        yield Damage(f"{name} after line {number}", f"cannot be read: {error}", is_whole=True)


def line_of(number: int, line: bytes, where: str) -> TranscriptLine | Damage:
    try:
        fields = decoded(line.removeprefix(b"\xef\xbb\xbf"))
    except (ValueError, RecursionError) as error:
        return Damage(where, f"not JSON: {error}")
    return TranscriptLine(number, fields, where) if isinstance(fields, dict) else Damage(where, "not a JSON object")


def _pass_over_the_rest(source: IO[bytes]) -> None:
    while (part := source.readline(_BLOCK_BYTES)) and not part.endswith(b"\n"):
        pass


# ── What every reader of a foreign format needs to make a message of what it finds ──
# Ids, keys, times, sizes. Any field of others may be missing, or be something else.


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
