"""What a provider answered, as a value, and the agents that it knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from offbook.model.errors import ProviderRefused, ProviderUnavailable

if TYPE_CHECKING:
    from offbook.client.clients import Client

T = TypeVar("T")


def asked(client: Client, verb: str, **fields: Any) -> Any:
    """The answer as it came, so that --json leaves out nothing a newer provider says."""
    body = {"agentId": client.agent_id, **fields}
    return client.call(verb, {name: value for name, value in body.items() if value is not None})


def typed(document: Any, kind: type[T]) -> T:
    """Fields that a newer provider added are passed over; an answer of another shape is no answer."""
    from offbook.client.answers import known_fields

    try:
        return msgspec.convert(known_fields(document, kind), kind)
    except msgspec.ValidationError as error:
        raise ProviderUnavailable(f"the answer cannot be read ({error}): is this a memory provider?") from None


FORBIDDEN = 403


def agents_there(client: Client, wanted: Sequence[str]) -> list[str]:
    """Those that we may see and that have anything. A token of some agents only has to ask for one of them."""
    try:
        agents: list[str] = client.status()["agents"]
    except ProviderRefused as error:
        if error.document.get("status") != FORBIDDEN or not wanted:
            raise
        agents = client.status(wanted[0])["agents"]
    return agents


def refuse_unknown(wanted: Sequence[str], there: Sequence[str], param_hint: str) -> None:
    """A name that was mistyped is a wrong use of the command: exit status 2."""
    unknown = [name for name in wanted if name not in there]
    if unknown:
        names = ", ".join(there) or "none"
        raise click.BadParameter(f"there is no agent {unknown[0]!r}; there is: {names}", param_hint=param_hint)
