"""Messages on their way into the log: prepared (`ingest`), their large parts on disk."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from offbook.ingest import entries as ingest
from offbook.log.store import Blobs
from offbook.model.settings import Settings
from offbook.model.types import Entry, Message, Scope

HEAVY_CHARS, MANY_MESSAGES = 32_768, 50
"""From here on they are prepared in a thread, so that they do not hold up the others."""


class Intake:
    """Messages made ready for the log."""

    def __init__(self, blobs: Blobs, settings: Settings, frame_key: bytes) -> None:
        self._blobs = blobs
        self._settings = settings
        self._frame_key = frame_key

    @asynccontextmanager
    async def entries(self, scope: Scope, messages: Sequence[Message]) -> AsyncIterator[list[Entry]]:
        """Ready to append, within this: their large parts are on disk, and nobody drops them meanwhile."""
        settings = self._settings.for_agent(scope.agent_id)

        def prepare_all() -> list[ingest.Prepared]:
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

        is_heavy = len(messages) > MANY_MESSAGES or any(_is_heavy(message) for message in messages)
        prepared = await asyncio.to_thread(prepare_all) if is_heavy else prepare_all()
        entries = [one.entry for one in prepared]
        with self._blobs.holding(scope.agent_id, [part.sha256 for entry in entries for part in entry.blobs]):
            for one in prepared:
                for data in one.large:
                    await self._blobs.put(scope.agent_id, data)
            yield entries


def _is_heavy(message: Message) -> bool:
    content = message.content
    return len(content if isinstance(content, str) else repr(content)) > HEAVY_CHARS
