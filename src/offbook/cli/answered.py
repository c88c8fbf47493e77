"""What a provider answered, as a value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from offbook.client.answers import known_fields
from offbook.model.errors import ProviderUnavailable

if TYPE_CHECKING:
    from offbook import Client

T = TypeVar("T")


def asked(client: Client, verb: str, **fields: Any) -> Any:
    """The answer as it came, so that --json leaves out nothing a newer provider says."""
    body = {"agentId": client.agent_id, **fields}
    return client.call(verb, {name: value for name, value in body.items() if value is not None})


def typed(document: Any, kind: type[T]) -> T:
    """Fields that a newer provider added are passed over; an answer of another shape is no answer."""
    try:
        return msgspec.convert(known_fields(document, kind), kind)
    except msgspec.ValidationError as error:
        raise ProviderUnavailable(f"the answer cannot be read ({error}): is this a memory provider?") from None
