"""From a host's message to an entry of the log. Pure: nothing is stored here.

message ─▶ checked ─▶ our own frames and what was to be forgotten cut out ─▶ secrets redacted ─▶ noise marked
        ─▶ large parts moved out ─▶ entry
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import get_args

import msgspec

from offbook.ingest.frames import strip_message
from offbook.ingest.noise import noise_kind, without_the_forgotten
from offbook.ingest.redaction import redact_message
from offbook.ingest.scope import checked_key
from offbook.log.audit_chain import _canonical, fingerprint
from offbook.model.content import MAX_DEPTH, depth, text_of
from offbook.model.errors import WrongShape
from offbook.model.large_parts import externalise
from offbook.model.types import MAX_KEY_BYTES, Entry, Message, Role

EARLIEST = datetime(1900, 1, 1, tzinfo=UTC)
LATEST = datetime(9000, 1, 1, tzinfo=UTC)
ROLES = frozenset(get_args(Role))
_message = msgspec.json.Decoder(Message)


class Prepared(msgspec.Struct, frozen=True):
    """An entry, and the large parts that must be kept before it is stored."""

    entry: Entry
    large: list[bytes]


def prepare(
    message: Message,
    *,
    frame_key: bytes,
    externalise_over: int,
    redacts: bool = True,
    with_personal_numbers: bool = False,
) -> Prepared:
    checked = check(message)
    stripped, _ = strip_message(checked, frame_key)
    reported = without_the_forgotten(stripped)
    redactions: dict[str, int] = {}
    redacted = reported
    if redacts:
        redacted, redactions = redact_message(reported, with_personal_numbers=with_personal_numbers)
    noise = noise_kind(redacted)
    content, moved = externalise(redacted.content, externalise_over)
    kept = msgspec.structs.replace(redacted, content=content) if moved else redacted
    return Prepared(
        entry=Entry(
            message=kept,
            noise=noise,
            redactions=redactions,
            blobs=[reference for reference, _ in moved],
            chars=len(text_of(redacted.content)),
            fingerprint=fingerprint(kept),
        ),
        large=[data for _, data in moved],
    )


def check(message: Message) -> Message:
    """Refuse what could not be stored or given back; bring the time to UTC."""
    if message.id is not None:
        checked_key(message.id, "message.id", MAX_KEY_BYTES)
    if not _is_plain(message):
        _check_structure(message)
    return message if message.ts is None else msgspec.structs.replace(message, ts=in_utc(message.ts))


def _is_plain(message: Message) -> bool:
    """Most messages are a text and nothing else, and ASCII: there is nothing in them to go wrong."""
    content = message.content
    if not isinstance(content, str) or not content.isascii() or message.role not in ROLES:
        return False
    labels = (message.name, message.tool_call_id, message.model, message.origin)
    return message.meta is None and labels == (None, None, None, None)


def _check_structure(message: Message) -> None:
    for part, value in (("content", message.content), ("meta", message.meta)):
        if depth(value) > MAX_DEPTH:
            raise WrongShape(f"`message.{part}` is nested more than {MAX_DEPTH} levels deep: flatten it")
    try:
        # Over the wire the shape was checked already; a caller in this process may hand us anything.
        _message.decode(_canonical.encode(message))
    except UnicodeEncodeError:
        raise WrongShape("the message holds a lone surrogate: send valid UTF-8") from None
    except msgspec.ValidationError as error:
        raise WrongShape(f"the message has the wrong shape: {error}") from None
    except (TypeError, OverflowError, ValueError) as error:
        raise WrongShape(f"the message cannot be written as JSON: {error}") from None
    for name in ("name", "tool_call_id", "model", "origin"):
        value = getattr(message, name)
        if value is not None and "\x00" in value:
            raise WrongShape(f"`message.{name}` holds a NUL character: leave it out")


def in_utc(ts: datetime, field: str = "message.ts") -> datetime:
    """A time without a zone is taken as UTC."""
    aware = ts if ts.tzinfo else ts.replace(tzinfo=UTC)
    if not EARLIEST.year < aware.year < LATEST.year:
        raise WrongShape(f"`{field}` {ts.isoformat()} is not a time something was said: use the years 1901 to 8999")
    return aware.astimezone(UTC)
