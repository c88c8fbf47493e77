"""Fire and forget: takes a message in microseconds and never raises."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple

import msgspec

from offbook.client.delivery import Delivery, Destination, join_delivery, leave_delivery
from offbook.client.outbox import OutboxBusy, OutboxClosed
from offbook.client.outboxes import folders_that_wait
from offbook.ingest.scope import agent_in
from offbook.model.errors import WrongShape
from offbook.model.types import Message, now

# ── A message on its way to the provider: from what a host holds to the JSON that is sent ──

MessageLike = Message | Mapping[str, Any] | tuple[str, str]


class Outgoing(NamedTuple):
    """One message as JSON, and which of the fields that we may add it lacks."""

    content: bytes
    has_id: bool
    has_ts: bool

    def completed(self, message_id: str) -> bytes:
        """With an id, so that sending it twice stores it once, and with the time of now, where it has none."""
        added = b"" if self.has_id else b'"id":%b,' % msgspec.json.encode(message_id)
        if not self.has_ts:
            added += b'"ts":%b,' % msgspec.json.encode(now())
        return b"{" + added + self.content[1:]


def outgoing(message: MessageLike) -> Outgoing:
    """Raises WrongShape where it is no message, TypeError where something in it is not JSON.

    Whether its fields are right is the provider's to say: a client that guesses would lose messages.
    """
    if isinstance(message, tuple) and len(message) == 2:
        role, text = message
        return Outgoing(encoded({"role": role, "content": text}), has_id=False, has_ts=False)
    if isinstance(message, Message):
        return Outgoing(encoded(message), message.id is not None, message.ts is not None)
    if not isinstance(message, Mapping):
        raise WrongShape(f"a message is a Message, a mapping or (role, text), not {type(message).__name__}")
    if "role" not in message or "content" not in message:
        raise WrongShape("a message needs `role` and `content`")
    fields = dict(message)
    for name in ("id", "ts"):
        if fields.get(name) is None:
            fields.pop(name, None)
    return Outgoing(encoded(fields), "id" in fields, "ts" in fields)


def encoded(value: Any) -> bytes:
    """JSON in UTF-8. A lone surrogate, which UTF-8 cannot carry, becomes U+FFFD."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(without_surrogates(msgspec.to_builtins(value)))


def without_surrogates(value: Any) -> Any:
    """Halves that belong together become the character they stand for; a lone one becomes U+FFFD."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, Mapping):
        return {without_surrogates(name): without_surrogates(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_surrogates(item) for item in value]
    return value


REASONS_REMEMBERED = 100

logger = logging.getLogger("offbook.client")


class Recorder:
    """Puts messages in the outbox of this process and sees to their delivery."""

    def __init__(self, destination: Destination, *, agent_id: str | None) -> None:
        self._destination = destination
        self._agent_id = agent_id
        self._delivery: Delivery | None = None
        self._invalid = 0
        self._dropped = 0
        self._reasons_logged: set[str] = set()

    def record(self, session_id: str, message: MessageLike, agent_id: str | None = None) -> None:
        try:
            self._record(session_id, message, self._agent_id if agent_id is None else agent_id)
        # "Never raises" is the promise, and a mapping of the host's may raise anything when it is read.
        except Exception as error:  # noqa: BLE001
            self._invalid += 1
            self._log_once(_format_error(error))

    def _record(self, session_id: str, message: MessageLike, agent_id: str | None) -> None:
        if not isinstance(session_id, str) or not (agent_id is None or isinstance(agent_id, str)):
            raise WrongShape("`session_id` and `agent_id` are strings")
        content = outgoing(message)
        session = encoded(session_id)
        lane = (agent_in(session_id) or "") if agent_id is None else agent_id
        if not lane.isascii():
            lane = without_surrogates(lane)
        owner = b"" if agent_id is None else b'"agentId":%b,' % encoded(agent_id)

        def envelope() -> bytes:
            outbox = delivery.outbox
            message_id = f"{outbox.client_id}:{outbox.opening}:{next(delivery.numbers)}"
            return b'{"sessionId":%b,%b"message":%b}' % (session, owner, content.completed(message_id))

        delivery = self._current_delivery()
        try:
            is_kept = delivery.outbox.append(envelope(), lane)
        except OutboxClosed:  # by another thread, just now
            delivery = self._current_delivery()
            is_kept = delivery.outbox.append(envelope(), lane)
        if not is_kept:
            self._dropped += 1
            self._log_once(f"the outbox is full ({self._destination.max_bytes} bytes): messages are dropped")
        delivery.wake()

    def _current_delivery(self) -> Delivery:
        delivery = self._delivery
        if delivery is None or delivery.outbox.is_closed or delivery.process_id != os.getpid():
            delivery = self._delivery = join_delivery(self._destination, self)
        return delivery

    async def flush(self, timeout_seconds: float) -> bool:
        delivery = self._delivery_if_any()
        return delivery is None or await _answered(delivery.flush(), timeout_seconds)

    async def settle(self, timeout_seconds: float) -> bool:
        """Let what was told before arrive first, where a provider answers."""
        delivery = self._delivery_if_any()
        return delivery is None or await _answered(delivery.flush(gives_up_early=True), timeout_seconds)

    def sync(self) -> bool:
        """Whether all that was taken here is on disk for good, or has arrived. May take its time."""
        delivery = self._delivery
        return not self._dropped and (delivery is None or delivery.outbox.is_closed or delivery.outbox.sync())

    async def close(self, timeout_seconds: float) -> bool:
        """Flush, but not for a provider that is away; the rest waits on disk. Whether nothing is left."""
        delivery, self._delivery = self._delivery, None
        if delivery is None or delivery.outbox.is_closed or delivery.process_id != os.getpid():
            return True
        is_empty = await _answered(delivery.flush(gives_up_early=True), timeout_seconds)
        ended = leave_delivery(delivery, self)
        if ended is not None:
            await asyncio.wrap_future(ended)
        return is_empty

    def status(self) -> dict[str, Any]:
        delivery = self._delivery_if_any()
        counts = dict.fromkeys(("waiting", "delivered", "dropped", "rejected"), 0)
        known = {} if delivery is None else delivery.outbox.status()
        error = None if delivery is None else delivery.last_error or delivery.outbox.last_error
        return {**counts, **known, "invalid": self._invalid, "last_error": error}

    def _delivery_if_any(self) -> Delivery | None:
        """None as long as nothing was recorded here and nothing is left from before."""
        if self._delivery is None and not folders_that_wait(self._destination.home, self._destination.client):
            return None
        try:
            return self._current_delivery()
        except OutboxBusy:
            return None

    def _log_once(self, reason: str) -> None:
        if reason not in self._reasons_logged and len(self._reasons_logged) < REASONS_REMEMBERED:
            self._reasons_logged.add(reason)
            logger.warning("a message could not be recorded (said once): %s", reason)


def _format_error(error: Exception) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - somebody else's `__str__`
        return type(error).__name__


async def _answered(flush: Future[bool], timeout_seconds: float) -> bool:
    try:
        async with asyncio.timeout(timeout_seconds):
            return await asyncio.wrap_future(flush)
    except TimeoutError:
        return False
