"""What a provider's answer means: a value, a refusal, or nothing we can use."""

from __future__ import annotations

from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from offbook.client.transport import Answer
from offbook.model.errors import ProviderRefused, ProviderUnavailable

T = TypeVar("T")


def content_of(answer: Answer) -> bytes:
    """The body of a success. A problem document is raised as the refusal it is."""
    if 200 <= answer.status < 300:
        return answer.body
    try:
        document = msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        document = None
    if isinstance(document, dict) and isinstance(document.get("title") or document.get("type"), str):
        raise ProviderRefused({"status": answer.status, **document})
    raise ProviderUnavailable(
        f"the answer has status {answer.status} and no problem document: is this a memory provider?"
    )


def value_of(answer: Answer, kind: type[T]) -> T:
    """The success as a value. Fields that a newer provider added are passed over."""
    content = content_of(answer)
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:
        return msgspec.convert(known_fields(msgspec.json.decode(content), kind), kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProviderUnavailable(f"the answer cannot be read ({error}): is this a memory provider?") from None


def known_fields(value: Any, kind: Any) -> Any:
    """`value` without the fields that `kind` does not have, at every depth."""
    if isinstance(value, dict) and isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = get_type_hints(kind)
        return {
            field.encode_name: known_fields(value[field.encode_name], hints[field.name])
            for field in msgspec.structs.fields(kind)
            if field.encode_name in value
        }
    if isinstance(value, list) and get_origin(kind) is list:
        return [known_fields(item, get_args(kind)[0]) for item in value]
    if value is not None:
        for choice in get_args(kind):
            if isinstance(choice, type) and issubclass(choice, msgspec.Struct):
                return known_fields(value, choice)
    return value
