"""A message on its way to the provider: from what a host holds to the JSON that is sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from offbook.errors import WrongShape
from offbook.types import Message, now

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
