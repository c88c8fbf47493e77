"""Messages read into words for the index, with their large texts: one that takes seconds is read once, whoever loses
patience meanwhile; and where an index is made anew, what the one before it knew is not found out again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from offbook.log.store import Blobs
from offbook.model.deadline import looked_at
from offbook.model.memory_entry import PlacedMessage
from offbook.model.types import Message
from offbook.search.index.text import KnownReadings, Reading, said_by
from offbook.search.whole_messages import LARGEST_FOUND_CHARS, is_large, read_together, whole_text

if TYPE_CHECKING:
    from offbook.search.index.rows import IndexedMessage, Rows


class Before:
    def __init__(self, rows: Rows) -> None:
        self._readings = KnownReadings(rows)

    def readings_of(self, messages: Sequence[PlacedMessage]) -> list[Reading | None]:
        """None where there was no row."""
        return self._readings.of([placed.place for placed in messages])


class SayingReader:
    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self._going: dict[tuple[str, int], asyncio.Task[list[IndexedMessage]]] = {}
        """Of large messages, by agent and place: what one who waited no longer has begun, the next goes on with."""

    async def said(
        self, agent_id: str, messages: Sequence[PlacedMessage], before: Before | None
    ) -> list[IndexedMessage]:
        found: list[IndexedMessage] = []
        for some in read_together(messages):
            known = before.readings_of(some) if before else [None] * len(some)
            read = self._once if is_large(some[0]) else self._read
            found += await read(agent_id, some, known)
        return found

    def forget(self, agent_id: str) -> None:
        """Let go of what nobody will ask for again."""
        for key in [key for key in self._going if key[0] == agent_id]:
            self._going.pop(key).cancel()

    async def _once(
        self, agent_id: str, messages: Sequence[PlacedMessage], known: Sequence[Reading | None]
    ) -> list[IndexedMessage]:
        key = (agent_id, messages[0].place)
        if key not in self._going:
            self._going[key] = asyncio.create_task(self._read(agent_id, messages, known))
            self._going[key].add_done_callback(looked_at)
        task = self._going[key]
        try:
            return await asyncio.shield(task)
        finally:
            if task.done():
                self._going.pop(key, None)

    async def _read(
        self, agent_id: str, messages: Sequence[PlacedMessage], known: Sequence[Reading | None]
    ) -> list[IndexedMessage]:
        wholes = [
            await whole_text(self._blobs, agent_id, placed, most_chars=LARGEST_FOUND_CHARS) for placed in messages
        ]
        return await asyncio.to_thread(_said_by, messages, wholes, known)


def _said_by(
    messages: Sequence[PlacedMessage], wholes: Sequence[Message | None], known: Sequence[Reading | None]
) -> list[IndexedMessage]:
    return [said_by(placed, whole, known=one) for placed, whole, one in zip(messages, wholes, known, strict=True)]
