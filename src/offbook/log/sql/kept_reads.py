"""What every turn asks for and what seldom changes, kept in memory where only this process writes it."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar

from offbook.model.recent import keep

T = TypeVar("T")
MOST_KEPT = 2_048
"""Of all agents."""


class KeptReads:
    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, Hashable], tuple[tuple[int, ...], Any]] = OrderedDict()
        self._written: Counter[str] = Counter()

    async def get(self, agent_id: str, key: Hashable, version: tuple[int, ...], read: Callable[[], Awaitable[T]]) -> T:
        """As it was read of this version, unless it was `written` since."""
        known = self._kept.get((agent_id, key))
        if known is not None and known[0] == version:
            self._kept.move_to_end((agent_id, key))
            found: T = known[1]
            return found
        written = self._written[agent_id]
        value = await read()
        if self._written[agent_id] == written:  # else it may be older than what was written meanwhile
            keep(self._kept, (agent_id, key), (version, value), MOST_KEPT)
        return value

    def written(self, agent_id: str, key: Hashable, version: tuple[int, ...], value: object) -> None:
        self._written[agent_id] += 1
        keep(self._kept, (agent_id, key), (version, value), MOST_KEPT)

    def let_go(self, agent_id: str) -> None:
        """Keep nothing in memory of what may be forgotten."""
        self._written[agent_id] += 1
        for one in [one for one in self._kept if one[0] == agent_id]:
            del self._kept[one]
