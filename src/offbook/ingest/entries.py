"""From a host's message to an entry of the log. Pure: nothing is stored here.

message ─▶ checked ─▶ our own frames and what was to be forgotten cut out ─▶ secrets redacted ─▶ noise marked
        ─▶ large parts moved out ─▶ entry
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from datetime import UTC, datetime
from functools import partial
from typing import Any, get_args
from weakref import WeakValueDictionary

import msgspec

from offbook.ingest.fair_threads import LARGE_BYTES, FairThreads
from offbook.ingest.frames import strip_message
from offbook.ingest.noise import noise_kind, without_the_forgotten
from offbook.ingest.scope import checked_key
from offbook.ingest.secret_scan import redact_message
from offbook.log.audit_chain import _canonical, fingerprint
from offbook.log.store import Blobs
from offbook.model.content import MAX_DEPTH, depth, text_of
from offbook.model.errors import WrongShape
from offbook.model.large_parts import externalise
from offbook.model.settings import Settings
from offbook.model.types import MAX_KEY_BYTES, Entry, Message, Role, Scope

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


# ── Messages on their way into the log ──
# Prepared (`ingest`), their large parts on disk.


MANY_MESSAGES = 50
"""From here on they are prepared in a thread, so that they do not hold up the others."""
VALUE_BYTES = 8
"""What an item of a list or an object counts for: to come to it takes as long as a few characters."""
WIDE_BYTES = 3
"""Of a character that is not ASCII: most take as many."""


class Intake:
    """Messages made ready for the log."""

    def __init__(self, blobs: Blobs, settings: Settings, frame_key: bytes) -> None:
        self._blobs = blobs
        self._settings = settings
        self._frame_key = frame_key
        self._threads = FairThreads("offbook-intake")
        self._turns: WeakValueDictionary[Scope, asyncio.Lock] = WeakValueDictionary()
        """Of sessions that have a large message on its way: what comes after it stays behind it."""

    @asynccontextmanager
    async def entries(self, scope: Scope, messages: Sequence[Message]) -> AsyncIterator[list[Entry]]:
        """Ready to append, within this: their large parts are on disk, and nobody drops them meanwhile."""
        is_large = is_heavy(messages)
        turn = self._turns.setdefault(scope, asyncio.Lock()) if is_large else self._turns.get(scope)
        async with turn or nullcontext():
            prepare = partial(self._prepared, scope, messages)
            prepared = await self._threads.run(scope.agent_id, prepare) if is_large else prepare()
            entries = [one.entry for one in prepared]
            with self._blobs.holding(scope.agent_id, [part.sha256 for entry in entries for part in entry.blobs]):
                for one in prepared:
                    for data in one.large:
                        await self._blobs.put(scope.agent_id, data)
                yield entries

    def _prepared(self, scope: Scope, messages: Sequence[Message]) -> list[Prepared]:
        settings = self._settings.for_agent(scope.agent_id)
        return [
            prepare(
                message,
                frame_key=self._frame_key,
                externalise_over=settings.store.externalise_chars,
                redacts=settings.redaction.enabled,
                with_personal_numbers=settings.redaction.personal_numbers,
            )
            for message in messages
        ]


def is_heavy(messages: Sequence[Message]) -> bool:
    """Whether reading them would hold up others: by all their texts, and by how many pieces they are in."""
    left = LARGE_BYTES
    for message in messages:
        left -= _weight([message.content, message.meta], left)
        if left <= 0:
            return True
    return len(messages) > MANY_MESSAGES


def _weight(waiting: list[Any], most: int) -> int:
    """Of texts about their bytes; no more is looked at than it takes to know that it is `most`."""
    weight = 0
    while waiting and weight < most:
        item = waiting.pop()
        if isinstance(item, str):
            weight += len(item) if item.isascii() else WIDE_BYTES * len(item)
        elif isinstance(item, dict | list):
            weight += VALUE_BYTES * len(item)
            if weight < most:
                waiting.extend(item.values() if isinstance(item, dict) else item)
    return weight
