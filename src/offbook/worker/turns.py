"""Whose turn it is."""

from __future__ import annotations

import asyncio


class Turns:
    """Agents with something to do, each once, in turns."""

    def __init__(self) -> None:
        self._waiting: dict[str, None] = {}
        self._in_hand: str | None = None
        self._news = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def undone(self) -> int:
        """Those that wait, and the one whose turn it is until the next is asked for."""
        return len(self._waiting) + (self._in_hand is not None)

    def add(self, agent_id: str) -> None:
        self._waiting[agent_id] = None
        self._news.set()

    async def next(self) -> str:
        self._in_hand = None
        while not self._waiting:
            self._news.clear()
            await self._news.wait()
        agent_id = next(iter(self._waiting))
        del self._waiting[agent_id]
        self._in_hand = agent_id
        return agent_id
