"""Messages as they can be read: those that are not damaged, with their large texts back in their places, as far as
they can be found by."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import msgspec

from offbook.content import internalise
from offbook.entries import PlacedMessage
from offbook.errors import StoreCorrupt
from offbook.protocols import Blobs, Store
from offbook.retrieval.index.saying import INDEXED_CHARS
from offbook.types import Message

LARGEST_READ_CHARS = 4 * INDEXED_CHARS


async def whole_text(blobs: Blobs, agent_id: str, placed: PlacedMessage) -> Message | None:
    """None where it has none, or where they are too large or damaged: the stand-in says how it began."""
    references = [ref for ref in placed.logged.entry.blobs if not ref.is_binary and ref.chars <= LARGEST_READ_CHARS]
    if not references:
        return None
    try:
        data = {ref.sha256: await blobs.get(agent_id, ref.sha256) for ref in references}
    except StoreCorrupt:
        return None
    message = placed.logged.message
    return msgspec.structs.replace(message, content=internalise(message.content, references, data))


async def readable(store: Store, agent_id: str, places: Sequence[int]) -> list[PlacedMessage]:
    """The messages at these places. One that is damaged is passed over and keeps none of the others back: `doctor`
    tells of it."""
    try:
        return await store.messages_at(agent_id, places)
    except StoreCorrupt:
        found: list[PlacedMessage] = []
        for place in places:
            with suppress(StoreCorrupt):
                found += await store.messages_at(agent_id, [place])
        return found
