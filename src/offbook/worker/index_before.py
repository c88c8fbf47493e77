"""What need not be found out again where an agent's index is made anew, because the one before it knew it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from offbook.model.memory_entry import PlacedMessage
from offbook.search.index.text import KnownFlags

if TYPE_CHECKING:
    from offbook.search.index.rows import Rows


class Before:
    def __init__(self, rows: Rows, relinked: Collection[int]) -> None:
        """Of rows whose messages were all looked through for what they replace: the links are in the store.
        `relinked`: places of those that are looked through all the same."""
        self._flags = KnownFlags(rows)
        self._relinked = frozenset(relinked)

    def flags_of(self, messages: Sequence[PlacedMessage]) -> list[int | None]:
        """None where there was no row."""
        return self._flags.of([placed.place for placed in messages])

    def unlinked(self, messages: Sequence[PlacedMessage]) -> list[PlacedMessage]:
        """Those that are still to be looked through."""
        known = zip(messages, self.flags_of(messages), strict=True)
        return [placed for placed, flags in known if flags is None or placed.place in self._relinked]
