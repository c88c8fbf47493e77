"""A value of a LangGraph store as a message of ours and back, and the session of an item. Pure."""

from __future__ import annotations

import hashlib
from typing import Any
from urllib.parse import quote

import msgspec

from offbook.client.messages import message_of
from offbook.client.outgoing import encoded
from offbook.errors import WrongShape
from offbook.types import MAX_KEY_BYTES, Message

Name = tuple[tuple[str, ...], str]
"""A namespace and a key."""
MARK = "langgraph"
PIECE_CHARS = 32_000
"""Of a long value: what is longer than `store.externaliseChars` is not in the log itself."""


def message_of_value(namespace: tuple[str, ...], key: str, value: dict[str, Any]) -> Message:
    """Raises WrongShape where the value is not JSON: it could not be given back."""
    told = f"Noted as {key} of {', '.join(namespace)}:"
    try:
        text = encoded(value).decode()
    except (TypeError, ValueError, RecursionError) as error:
        raise WrongShape(f"the value of {key!r} is not JSON: {error}") from None
    pieces = [told, *(text[at : at + PIECE_CHARS] for at in range(0, len(text), PIECE_CHARS))]
    blocks = [{"type": "text", "text": piece} for piece in pieces]
    return message_of({"role": "assistant", "content": blocks, "meta": {MARK: {"key": key}}})


def value_in(message: Message) -> dict[str, Any] | None:
    """None for one that was forgotten."""
    if isinstance(message.content, str):
        return None
    text = "".join(block["text"] for block in message.content[1:])
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:  # a secret was cut out of it, and more than the secret
        return {"text": text}
    return value if isinstance(value, dict) else {"text": text}


def session_of(store: str, name: Name) -> str:
    parts = "/".join(quote(part, safe="") for part in (*name[0], name[1]))
    session_id = f"{store}/{parts}"
    if len(session_id.encode()) <= MAX_KEY_BYTES:
        return session_id
    return f"{store}/sha256/{hashlib.sha256(parts.encode()).hexdigest()}"
