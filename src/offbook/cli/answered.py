"""What a provider answered, as a value."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from offbook.client.answers import known_fields
from offbook.errors import ProviderUnavailable

T = TypeVar("T")


def typed(document: Any, kind: type[T]) -> T:
    """Fields that a newer provider added are passed over; an answer of another shape is no answer."""
    try:
        return msgspec.convert(known_fields(document, kind), kind)
    except msgspec.ValidationError as error:
        raise ProviderUnavailable(f"the answer cannot be read ({error}): is this a memory provider?") from None
