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


class _Entry(NamedTuple):
    version: tuple[int, ...]
    value: Any
    size: int


class ReadCache:
    def __init__(self) -> None:
        self._entries: OrderedDict[tuple[str, Hashable], _Entry] = OrderedDict()
        self._size = 0
        self._written: Counter[str] = Counter()

    async def get(self, agent_id: str, key: Hashable, version: tuple[int, ...], read: Callable[[], Awaitable[T]]) -> T:
        """As it was read of this version, unless another was `put` since."""
        known = self._entries.get((agent_id, key))
        if known is not None and known.version == version:
            self._entries.move_to_end((agent_id, key))
            found: T = known.value
            return found
        written = self._written[agent_id]
        value = await read()
        if self._written[agent_id] == written:  # else it may be older than what was written meanwhile
            self._keep((agent_id, key), version, value)
        return value

    def put(self, agent_id: str, key: Hashable, version: tuple[int, ...], value: object) -> None:
        """Kept where it was asked for before."""
        self._written[agent_id] += 1
        if (agent_id, key) in self._entries:
            self._keep((agent_id, key), version, value)

    def let_go(self, agent_id: str) -> None:
        """Keep nothing of the agent's."""
        self._written[agent_id] += 1
        for one in [one for one in self._entries if one[0] == agent_id]:
            self._size -= self._entries.pop(one).size

    def _keep(self, key: tuple[str, Hashable], version: tuple[int, ...], value: object) -> None:
        size = ENTRY_BYTES + _bytes_of(value)
        before = self._entries.pop(key, None)
        self._size += size - (before.size if before else 0)
        self._entries[key] = _Entry(version, value, size)
        while self._size > MOST_BYTES:
            self._size -= self._entries.popitem(last=False)[1].size


def _bytes_of(value: object) -> int:
    if isinstance(value, str):
        return len(value) * (1 if value.isascii() else 4)
    return len(value) * ITEM_BYTES if isinstance(value, Sized) else 0
