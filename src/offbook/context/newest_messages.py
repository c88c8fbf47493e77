"""The end of a session, read as far as it is asked for: what a context shows word for word."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import TypeVar

from offbook.context.tail import Piece, piece_of
from offbook.ingest.entries import is_heavy
from offbook.log.reading import LogReader
from offbook.log.store import Store
from offbook.model.errors import StoreCorrupt
from offbook.model.types import LoggedMessage, Message, Scope

TAIL_PAGES = (16, 64, 256)
"""How many messages are read at a time, newest first: few for a small context, more as it grows."""
MOST_PIECES_AT_ONCE = 100
"""Rendering more than this would hold up whoever else is being served: it is done in a thread."""

T = TypeVar("T")


class NewestMessages:
    """The newest messages of a session."""

    def __init__(self, store: Store, log: LogReader, scope: Scope, last_seq: int, max_chars: int) -> None:
        self._store = store
        self._log = log
        self._scope = scope
        self._max_chars = max_chars
        self._before = last_seq + 1
        self._spent = 0
        self._turns = 0
        self._page_sizes = list(TAIL_PAGES)
        self.newest_first: list[Piece] = []

    @property
    def built_at(self) -> datetime:
        return self.newest_first[0].received_at

    async def read(self, chars: int, turns: int = 0) -> bool:
        """Until they take more than `chars`, with at least so many turns; True where these are all there are."""
        while self._before > 1 and (self._spent <= chars or self._turns < turns) and self._spent <= self._max_chars:
            size = self._page_sizes.pop(0) if len(self._page_sizes) > 1 else self._page_sizes[0]
            page = await self._page(size)
            pieces = [await read_piece(self._log, self._scope, logged, self._max_chars) for logged in page]
            self._spent += await aside(len(pieces), partial(_cost_of, pieces))
            self._turns += sum(piece.is_turn for piece in pieces)
            self.newest_first += pieces
            self._before = page[-1].seq
        return self._before <= 1

    async def cost_after(self, seq: int) -> int | None:
        """What the messages after this one take; None where that is more than could be shown."""
        while self._before > seq + 1:
            if self._spent > self._max_chars:
                return None
            await self.read(self._spent)
        return sum(piece.cost for piece in self.newest_first if piece.seq > seq)

    async def _page(self, limit: int) -> list[LoggedMessage]:
        page = await self._store.messages_before(self._scope, before_seq=self._before, limit=limit)
        if not page:
            raise StoreCorrupt(
                f"message {self._before - 1} of {self._scope.session_id!r} is missing: run `offbook doctor`"
            )
        return page


async def read_piece(log: LogReader, scope: Scope, logged: LoggedMessage, max_chars: int) -> Piece:
    """A message with its large texts put back where they could fit; images stay references."""
    references = logged.entry.blobs
    whole: Message | None = None
    is_shown_whole = sum(reference.chars for reference in references) <= max_chars
    if references and is_shown_whole and not any(reference.is_binary for reference in references):
        whole = await log.whole(scope, logged)
    if is_heavy([whole or logged.message]):
        return await asyncio.to_thread(piece_of, logged, whole)
    return piece_of(logged, whole)


async def aside(pieces: int, work: Callable[[], T]) -> T:
    """In a thread, where there are many."""
    return await asyncio.to_thread(work) if pieces > MOST_PIECES_AT_ONCE else work()


def _cost_of(pieces: Sequence[Piece]) -> int:
    return sum(piece.cost for piece in pieces)
