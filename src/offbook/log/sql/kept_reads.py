"""What every turn asks for and what seldom changes, kept in memory where only this process writes it."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Sized
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")
MOST_BYTES = 16_000_000
"""Of all agents, about."""
ENTRY_BYTES, ITEM_BYTES = 400, 320
"""Of what is kept beside a value, and of one of several rows."""


class _Kept(NamedTuple):
    version: tuple[int, ...]
    value: Any
    size: int


class KeptReads:
    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, Hashable], _Kept] = OrderedDict()
        self._size = 0
        self._written: Counter[str] = Counter()

    async def get(self, agent_id: str, key: Hashable, version: tuple[int, ...], read: Callable[[], Awaitable[T]]) -> T:
        """As it was read of this version, unless it was `written` since."""
        known = self._kept.get((agent_id, key))
        if known is not None and known.version == version:
            self._kept.move_to_end((agent_id, key))
            found: T = known.value
            return found
        written = self._written[agent_id]
        value = await read()
        if self._written[agent_id] == written:  # else it may be older than what was written meanwhile
            self._keep((agent_id, key), version, value)
        return value

    def written(self, agent_id: str, key: Hashable, version: tuple[int, ...], value: object) -> None:
        """Kept where it was asked for before."""
        self._written[agent_id] += 1
        if (agent_id, key) in self._kept:
            self._keep((agent_id, key), version, value)

    def let_go(self, agent_id: str) -> None:
        """Keep nothing of the agent's."""
        self._written[agent_id] += 1
        for one in [one for one in self._kept if one[0] == agent_id]:
            self._size -= self._kept.pop(one).size

    def _keep(self, key: tuple[str, Hashable], version: tuple[int, ...], value: object) -> None:
        size = ENTRY_BYTES + _bytes_of(value)
        before = self._kept.pop(key, None)
        self._size += size - (before.size if before else 0)
        self._kept[key] = _Kept(version, value, size)
        while self._size > MOST_BYTES:
            self._size -= self._kept.popitem(last=False)[1].size


def _bytes_of(value: object) -> int:
    if isinstance(value, str):
        return len(value) * (1 if value.isascii() else 4)
    return len(value) * ITEM_BYTES if isinstance(value, Sized) else 0
