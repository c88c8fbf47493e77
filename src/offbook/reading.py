"""From the log to what is shown: whole messages, and as much of a session's end as fits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import msgspec

from offbook.compression.tail import Piece, cost, fit_tail, piece_of
from offbook.content import internalise
from offbook.errors import StoreCorrupt
from offbook.protocols import Blobs, Store
from offbook.types import CompressedContext, LoggedMessage, LogLine, Message, Scope, Session

TAIL_PAGES = (16, 64, 256)
"""How many messages are read at a time, newest first: few for a small context, more as it grows."""


MOST_BYTES_OF_A_PAGE = 8_000_000


MOST_PIECES_AT_ONCE = 100
"""Rendering more than this would hold up whoever else is being served: it is done in a thread."""

T = TypeVar("T")


class SessionReader:
    def __init__(self, store: Store, blobs: Blobs) -> None:
        self._store = store
        self._blobs = blobs

    async def context(self, scope: Scope, session: Session | None, max_chars: int) -> CompressedContext:
        """Reads only as much of the log's end as can fit."""
        pieces: list[Piece] = []
        last_seq = session.last_seq if session else 0
        before, spent, page_sizes = last_seq + 1, 0, list(TAIL_PAGES)
        while before > 1 and spent <= max_chars:
            size = page_sizes.pop(0) if len(page_sizes) > 1 else page_sizes[0]
            page = await self._store.messages_before(scope, before_seq=before, limit=size)
            if not page:
                raise StoreCorrupt(f"message {before - 1} of {scope.session_id!r} is missing: run `offbook doctor`")
            shown = [await self._piece(scope, logged, max_chars) for logged in page]
            spent += await _aside(len(shown), partial(_cost_of, shown))
            pieces += shown
            before = page[-1].seq
        generation = session.generation if session else 0
        return await _aside(
            len(pieces),
            lambda: fit_tail(scope, pieces, last_seq=last_seq, generation=generation, max_chars=max_chars),
        )

    async def lines(self, scope: Scope, page: Sequence[LoggedMessage]) -> list[LogLine]:
        """As many as make an answer of bearable size; at least one."""
        lines: list[LogLine] = []
        size = 0
        for logged in page:
            line = await self._line(scope, logged)
            size += len(msgspec.json.encode(line))
            if lines and size > MOST_BYTES_OF_A_PAGE:
                break
            lines.append(line)
        return lines

    async def _line(self, scope: Scope, logged: LoggedMessage) -> LogLine:
        return LogLine(
            seq=logged.seq,
            received_at=logged.received_at,
            message=await self.whole(scope, logged),
            noise=logged.entry.noise,
            redactions=logged.entry.redactions,
        )

    async def whole(self, scope: Scope, logged: LoggedMessage) -> Message:
        """The message as it came, its large parts back in their places."""
        references = logged.entry.blobs
        if not references:
            return logged.message
        data = {reference.sha256: await self._blobs.get(scope.agent_id, reference.sha256) for reference in references}
        content = internalise(logged.message.content, references, data)
        return msgspec.structs.replace(logged.message, content=content)

    async def _piece(self, scope: Scope, logged: LoggedMessage, max_chars: int) -> Piece:
        """A message with its large texts put back where they could fit; images stay references."""
        references = logged.entry.blobs
        if not references or sum(reference.chars for reference in references) > max_chars:
            return piece_of(logged)
        if any(reference.is_binary for reference in references):
            return piece_of(logged)
        try:
            return piece_of(logged, await self.whole(scope, logged))
        except StoreCorrupt:
            # The stand-in says what is meant; the log itself, `doctor` and `audit --verify` tell of the damage.
            return piece_of(logged)


def _cost_of(pieces: Sequence[Piece]) -> int:
    return sum(map(cost, pieces))


async def _aside(pieces: int, work: Callable[[], T]) -> T:
    return await asyncio.to_thread(work) if pieces > MOST_PIECES_AT_ONCE else work()
