"""Requests of very many JSON values, read in bounded memory: in Python each value takes up to thirty times its room.

A message's content of more than `MOST_VALUES` is kept as its JSON text. Whatever else is that large is refused.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from offbook.api.fields import MOST_MESSAGES, MOST_MESSAGES_OF_A_CONTEXT, Request
from offbook.api.session_requests import OnMessage, PreCompaction
from offbook.model.errors import TooLarge, WrongShape
from offbook.model.types import Content, Message

MOST_VALUES = 100_000
"""Numbers, texts, lists and objects that a request may hold: far more than tools give, and read in some tenths of a
second. Which contents are kept as text depends on it, so that a message sent again is the same."""

MOST_VALUES_OF_A_CONTEXT = 1_000_000
"""The same of requests that hold a whole context: nobody can send less of one."""
OF_A_CONTEXT = ("hooks/pre-compaction", "hooks/post-compaction")

_STRING = re.compile(rb'"[^"\\]*+(?>(?:\\.[^"\\]*+)*)"', re.DOTALL)
_MARKS = (b",", b"[", b"{")
"""Before each value stands one of these, a key's colon aside."""


class _LargeMessage(Message, frozen=True):
    content: msgspec.Raw  # type: ignore[assignment]
    meta: msgspec.Raw = msgspec.Raw(b"null")  # type: ignore[assignment]


class _LargeOnMessage(OnMessage, frozen=True):
    message: _LargeMessage | None = None
    messages: Annotated[list[_LargeMessage], Meta(min_length=1, max_length=MOST_MESSAGES)] | None = None  # type: ignore[assignment]


class _LargePreCompaction(PreCompaction, frozen=True):
    messages: Annotated[list[_LargeMessage], Meta(max_length=MOST_MESSAGES_OF_A_CONTEXT)] | None = None  # type: ignore[assignment]


_decoders: dict[str, msgspec.json.Decoder[Any]] = {
    "onMessage": msgspec.json.Decoder(_LargeOnMessage),
    "hooks/pre-compaction": msgspec.json.Decoder(_LargePreCompaction),
}
_content: msgspec.json.Decoder[Content] = msgspec.json.Decoder(Content)
_meta = msgspec.json.Decoder(dict[str, Any] | None)


def may_have_many_values(body: bytes) -> bool:
    """Counted roughly: within texts, too."""
    return sum(map(body.count, _MARKS)) > MOST_VALUES


def decode_large(verb: str, body: bytes) -> Request | None:
    """A request that `may_have_many_values`. None where it has not after all, and is read like any other."""
    most = MOST_VALUES_OF_A_CONTEXT if verb in OF_A_CONTEXT else MOST_VALUES
    values = values_in(body, most)
    decoder = _decoders.get(verb)
    if values <= (MOST_VALUES if decoder is not None else most):
        return None
    if decoder is None:
        raise _too_many()
    request: Request = decoder.decode(body)
    left = most
    changed: dict[str, Any] = {}
    for field in ("message", "messages"):
        given: _LargeMessage | list[_LargeMessage] | None = getattr(request, field, None)
        if given is None:
            continue
        read: list[Message] = []
        for one in given if isinstance(given, list) else [given]:
            message, values = _read(one)
            left -= values
            if left < 0:
                raise _too_many()
            read.append(message)
        changed[field] = read if isinstance(given, list) else read[0]
    return msgspec.structs.replace(request, **changed)


def values_in(body: bytes, most: int = MOST_VALUES) -> int:
    """How many JSON values there are, or a number above `most` where there are more than that."""
    found = end_of_last = 0
    for string in _STRING.finditer(body):
        start = string.start()
        found += sum(body.count(mark, end_of_last, start) for mark in _MARKS)
        end_of_last = string.end()
        if found > most:
            return found
    return found + sum(body.count(mark, end_of_last) for mark in _MARKS)


def _read(large: _LargeMessage) -> tuple[Message, int]:
    """The message, and how many values it is made of."""
    fields = msgspec.structs.asdict(large)
    compact = msgspec.json.format(large.content, indent=-1)
    values = values_in(compact)
    if values > MOST_VALUES:
        if not compact.startswith(b"[{"):
            raise WrongShape("`message.content` is neither a text nor a list of blocks")
        fields["content"], values = compact.decode(), 0
    else:
        fields["content"] = _content.decode(compact)
    of_meta = values_in(bytes(large.meta))
    if of_meta > MOST_VALUES:
        raise _too_many()
    fields["meta"] = _meta.decode(large.meta)
    return Message(**fields), values + of_meta


def _too_many() -> TooLarge:
    return TooLarge(
        f"the request holds more than {MOST_VALUES:,} JSON values: send fewer messages at a time, or large data as text"
    )
