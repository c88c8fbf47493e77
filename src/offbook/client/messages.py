"""A message of a host's as a `Message`, in our dialect or in OpenAI's."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from offbook.client.outgoing import MessageLike
from offbook.errors import WrongShape
from offbook.types import Message

_FIELDS = frozenset(field.encode_name for field in msgspec.structs.fields(Message))
_OTHER_NAMES = {"tool_call_id": "toolCallId"}
_OTHER_ROLES = {"developer": "system"}


def message_of(given: MessageLike) -> Message:
    """Raises WrongShape where it is no message. What we have no field for is kept in `meta`, OpenAI's calls too."""
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
    try:
        return msgspec.convert(fields, Message)
    except msgspec.ValidationError as error:
        raise WrongShape(str(error)) from None
