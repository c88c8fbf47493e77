"""The ids of messages that their format gives none: by the exchange that each is part of.

The continuity plugin keeps what was said twice: each message in the archive of its day, and the exchanges of a day in
`continuity.db`, which has only the time of an exchange. Paired here as the plugin pairs them, a message has the same
id whichever of the two it is read from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

USER, AGENT = "user", "agent"


class ExchangeKey(NamedTuple):
    at: str
    sender: str
    session: str


def bases(day: Sequence[ExchangeKey]) -> list[str]:
    """The time of the exchange and who speaks: an answer has the time of its question."""
    found = []
    asked_at: str | None = None
    for said in day:
        if said.sender == USER:
            found.append(base(said.at, USER))
            asked_at = said.at
        else:
            found.append(base(asked_at or said.at, AGENT))
            asked_at = None
    return found


def base(exchange_at: str, sender: str) -> str:
    return f"{exchange_at}_{sender}"


class ExchangeNumbers:
    """Two messages of a session may have one base: the second gets a number."""

    def __init__(self) -> None:
        self._seen: Counter[tuple[str, str]] = Counter()

    def id_of(self, session: str, base: str) -> str:
        self._seen[session, base] += 1
        count = self._seen[session, base]
        return base if count == 1 else f"{base}#{count}"


def exchange_ids(day: Sequence[ExchangeKey]) -> list[str]:
    """For all messages of a day, in the order of its file."""
    numbering = ExchangeNumbers()
    return [numbering.id_of(said.session, base) for said, base in zip(day, bases(day), strict=True)]
