"""Messages on their way into the log: prepared (`ingest`), their large parts on disk."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from offbook.ingest import entries as ingest
from offbook.ingest.fair_threads import LARGE_BYTES, FairThreads
from offbook.log.store import Blobs
from offbook.model.settings import Settings
from offbook.model.types import Entry, Message, Scope

MANY_MESSAGES = 50
"""From here on they are prepared in a thread, so that they do not hold up the others."""
VALUE_BYTES = 8
"""What an item of a list or an object counts for: to come to it takes as long as a few characters."""
WIDE_BYTES = 3
"""Of a character that is not ASCII: most take as many."""


class Intake:
    """Messages made ready for the log."""

    def __init__(self, blobs: Blobs, settings: Settings, frame_key: bytes) -> None:
        self._blobs = blobs
        self._settings = settings
        self._frame_key = frame_key
        self._threads = FairThreads("offbook-intake")
        self._turns: WeakValueDictionary[Scope, asyncio.Lock] = WeakValueDictionary()
        """Of sessions that have a large message on its way: what comes after it stays behind it."""

    @asynccontextmanager
    async def entries(self, scope: Scope, messages: Sequence[Message]) -> AsyncIterator[list[Entry]]:
        """Ready to append, within this: their large parts are on disk, and nobody drops them meanwhile."""
        is_large = is_heavy(messages)
        turn = self._turns.setdefault(scope, asyncio.Lock()) if is_large else self._turns.get(scope)
        async with turn or nullcontext():
            prepare = partial(self._prepared, scope, messages)
            prepared = await self._threads.run(scope.agent_id, prepare) if is_large else prepare()
            entries = [one.entry for one in prepared]
            with self._blobs.holding(scope.agent_id, [part.sha256 for entry in entries for part in entry.blobs]):
                for one in prepared:
                    for data in one.large:
                        await self._blobs.put(scope.agent_id, data)
                yield entries

    def _prepared(self, scope: Scope, messages: Sequence[Message]) -> list[ingest.Prepared]:
        settings = self._settings.for_agent(scope.agent_id)
        return [
            ingest.prepare(
                message,
                frame_key=self._frame_key,
                externalise_over=settings.store.externalise_chars,
                redacts=settings.redaction.enabled,
                with_personal_numbers=settings.redaction.personal_numbers,
            )
            for message in messages
        ]


def is_heavy(messages: Sequence[Message]) -> bool:
    """Whether reading them would hold up others: by all their texts, and by how many pieces they are in."""
    left = LARGE_BYTES
    for message in messages:
        left -= _weight([message.content, message.meta], left)
        if left <= 0:
            return True
    return len(messages) > MANY_MESSAGES


def _weight(waiting: list[Any], most: int) -> int:
    """Of texts about their bytes; no more is looked at than it takes to know that it is `most`."""
    weight = 0
    while waiting and weight < most:
        item = waiting.pop()
        if isinstance(item, str):
            weight += len(item) if item.isascii() else WIDE_BYTES * len(item)
        elif isinstance(item, dict | list):
            weight += VALUE_BYTES * len(item)
            if weight < most:
                waiting.extend(item.values() if isinstance(item, dict) else item)
    return weight
