"""Messages as they can be read: those that are not damaged, with their large texts back in their places, as far as
they can be found by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from offbook.log.reading import with_parts
from offbook.log.store import Blobs, Store
from offbook.model.errors import StoreCorrupt
from offbook.model.memory_entry import PlacedMessage
from offbook.model.types import Message
from offbook.search.index.text import INDEXED_CHARS

LARGEST_READ_CHARS = 4 * INDEXED_CHARS
"""Where the beginning will do: several are read at a time."""
LARGEST_FOUND_CHARS = 64_000_000
"""Found by any of its words: four times what a request may hold by default."""
READ_AT_ONCE_CHARS = 8_000_000


async def whole_text(
    blobs: Blobs, agent_id: str, placed: PlacedMessage, *, most_chars: int = LARGEST_READ_CHARS
) -> Message | None:
    """None where it has none, or where they are too large: the stand-in says how it began."""
    references = [ref for ref in placed.logged.entry.blobs if not ref.is_binary and ref.chars <= most_chars]
    if not references:
        return None
    return (await with_parts(blobs, agent_id, placed.logged, references))[0]


def large_chars(placed: PlacedMessage) -> int:
    """Of its texts that are kept apart."""
    return sum(ref.chars for ref in placed.logged.entry.blobs if not ref.is_binary)


def is_large(placed: PlacedMessage) -> bool:
    """So that to read all of it takes a while."""
    return large_chars(placed) > LARGEST_READ_CHARS


def read_together(messages: Sequence[PlacedMessage]) -> Iterator[list[PlacedMessage]]:
    """The messages in their order, as many at a time as may be in memory with their large texts; a large one alone."""
    together: list[PlacedMessage] = []
    chars = 0
    for placed in messages:
        chars += large_chars(placed)
        if together and (chars > READ_AT_ONCE_CHARS or is_large(placed) or is_large(together[0])):
            yield together
            together, chars = [], large_chars(placed)
        together.append(placed)
    if together:
        yield together


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
