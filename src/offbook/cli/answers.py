"""What a provider answered, as a value or page by page, and the agents that it knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import click
import msgspec

from offbook.model.errors import ProviderRefused, ProviderUnavailable

if TYPE_CHECKING:
    from offbook.client.blocking import Client

T = TypeVar("T")
MOST_AT_A_TIME = 100
"""The contract's."""


def asked(client: Client, verb: str, **fields: Any) -> Any:
    """The answer as it came, so that --json leaves out nothing a newer provider says."""
    body = {"agentId": client.agent_id, **fields}
    return client.call(verb, {name: value for name, value in body.items() if value is not None})


def typed(document: Any, kind: type[T]) -> T:
    """Fields that a newer provider added are passed over; an answer of another shape is no answer."""
    from offbook.client.transport import known_fields

    try:
        return msgspec.convert(known_fields(document, kind), kind)
    except msgspec.ValidationError as error:
        raise ProviderUnavailable(f"the answer cannot be read ({error}): is this a memory provider?") from None


class Page(Protocol):
    @property
    def next(self) -> str | None: ...


P = TypeVar("P", bound=Page)


class Pages(Generic[P]):
    """What a verb gives page by page, each thing as it came: those of the field of its own name, the newest first."""

    last: P
    """The page that was read last."""

    def __init__(
        self,
        client: Client,
        verb: str,
        kind: type[P],
        fields: Mapping[str, Any],
        *,
        limit: int | None,
        before: str | None = None,
    ) -> None:
        self.next = before
        """Where more would go on."""
        self._client, self._verb, self._kind = client, verb, kind
        self._fields, self._limit = fields, limit

    def __iter__(self) -> Iterator[dict[str, Any]]:
        left = self._limit
        while left is None or left > 0:
            most = MOST_AT_A_TIME if left is None else min(left, MOST_AT_A_TIME)
            document = asked(self._client, self._verb, **self._fields, before=self.next, limit=most)
            self.last = typed(document, self._kind)
            yield from document[self._verb]
            if self.last.next is not None and self.last.next == self.next:
                raise click.ClickException(f"the provider answers with the {self._verb} before {self.next} again")
            self.next = self.last.next
            left = None if left is None else left - len(document[self._verb])
            if self.next is None:
                return


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
