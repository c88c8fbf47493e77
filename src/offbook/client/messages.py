"""A message of a host's as a `Message`, in our dialect or in OpenAI's. And for who writes an integration, messages as
the APIs of models take them: both shapes, what a model would refuse, and the texts that stand where a shape asks for
one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from offbook.client.recorder import MessageLike, without_surrogates
from offbook.context.provider_shapes import OPENING, to_anthropic, to_openai
from offbook.context.replayable import QUOTED_RESULT, THOUGHT
from offbook.context.validity import faults
from offbook.ingest.frames import is_framed
from offbook.model.errors import WrongShape
from offbook.model.types import Message

__all__ = [
    "OPENING",
    "QUOTED_RESULT",
    "THOUGHT",
    "Counted",
    "counted",
    "faults",
    "is_framed",
    "message_of",
    "to_anthropic",
    "to_openai",
]

_FIELDS = frozenset(field.encode_name for field in msgspec.structs.fields(Message))
_OTHER_NAMES = {"tool_call_id": "toolCallId"}
_OTHER_ROLES = {"developer": "system"}


def message_of(given: MessageLike) -> Message:
    """Raises WrongShape where it is no message, or cannot be sent. What comes back is what the provider will have.

    What we have no field for is kept in `meta`, OpenAI's calls too. Objects of an SDK become what they dump.
    """
    try:
        fields = _fields_of(given)
        try:
            return _sendable(fields)
        except (TypeError, ValueError, msgspec.ValidationError):
            return _sendable(without_surrogates(msgspec.to_builtins(fields, enc_hook=_dumped, str_keys=True)))
    except WrongShape:
        raise
    # What a host holds may raise anything when it is read.
    except Exception as error:  # noqa: BLE001
        raise WrongShape(str(error) or type(error).__name__) from None


def _sendable(fields: Message | dict[str, Any]) -> Message:
    message = fields if isinstance(fields, Message) else msgspec.convert(fields, Message)
    msgspec.json.encode(message)
    return message


def _dumped(value: Any) -> Any:
    """What stands for an object of somebody else's: a mapping, or a model of an SDK."""
    if isinstance(value, Mapping):
        return dict(value)
    dump = getattr(value, "model_dump", None) or getattr(value, "dict", None)
    if not isinstance(value, type) and callable(dump):
        dumped = dump()
        if isinstance(dumped, Mapping):
            return dict(dumped)
    raise WrongShape(f"a message is JSON, and a {type(value).__name__} is not")


def _fields_of(given: MessageLike) -> Message | dict[str, Any]:
    if isinstance(given, Message):
        return given
    if isinstance(given, tuple) and len(given) == 2:
        given = {"role": given[0], "content": given[1]}
    if not isinstance(given, Mapping):
        raise WrongShape(f"a message is a Message, a mapping or (role, text), not {type(given).__name__}")
    named = {_OTHER_NAMES.get(name, name): value for name, value in given.items() if value is not None}
    fields = {name: value for name, value in named.items() if name in _FIELDS}
    beside = {name: value for name, value in named.items() if name not in _FIELDS}
    if beside:
        fields["meta"] = {**fields.get("meta", {}), **beside}
    if "tool_calls" in beside:
        fields.setdefault("content", "")  # a message that calls need not say anything
    role = fields.get("role")
    if isinstance(role, str):
        fields["role"] = _OTHER_ROLES.get(role, role)
    return fields


# ── How a host learns that something was forgotten for good. Pure ──


class Counted(NamedTuple):
    forgets: int
    """To be compared with what the next turn says."""
    is_more: bool
    """Something was forgotten since the turn before: what a host keeps, and that turn itself, may still show it."""


def counted(known: int | None, reported: int | None) -> Counted:
    """`told` is what a turn says of `forgets`, `known` what was counted before, None at the first.

    A provider that does not count, or not yet, says nothing; an agent is counted from its first time on.
    """
    if known is None:
        return Counted(reported or 0, is_more=False)
    forgets = known if reported is None else reported
    return Counted(forgets, is_more=forgets != known)
