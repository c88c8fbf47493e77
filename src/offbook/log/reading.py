"""Messages of the log as they came, their large parts back in their places."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import msgspec

from offbook.log.store import Blobs, Store
from offbook.model.errors import StoreCorrupt
from offbook.model.large_parts import internalise, told_lost
from offbook.model.types import BlobRef, LoggedMessage, LogLine, Message, Scope

MOST_BYTES_OF_A_PAGE = 8_000_000


class LogReader:
    def __init__(self, store: Store, blobs: Blobs) -> None:
        self._store = store
        self._blobs = blobs

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
        message, missing = await self.read(scope, logged)
        return LogLine(
            seq=logged.seq,
            received_at=logged.received_at,
            message=message,
            noise=logged.entry.noise,
            redactions=logged.entry.redactions,
            missing_parts=missing,
        )

    async def whole(self, scope: Scope, logged: LoggedMessage) -> Message:
        return (await self.read(scope, logged))[0]

    async def read(self, scope: Scope, logged: LoggedMessage) -> tuple[Message, list[BlobRef]]:
        return await with_parts(self._blobs, scope.agent_id, logged, logged.entry.blobs)


async def with_parts(
    blobs: Blobs, agent_id: str, logged: LoggedMessage, wanted: Sequence[BlobRef]
) -> tuple[Message, list[BlobRef]]:
    """The message with these large parts back in their places, and those that cannot be read back: their stand-ins
    say so, and the others are there all the same. `doctor` and `audit --verify` tell of the damage."""
    if not wanted:
        return logged.message, []
    data: dict[str, bytes] = {}
    for part in wanted:
        with suppress(StoreCorrupt):
            data[part.sha256] = await blobs.get(agent_id, part.sha256)
    lost = [part for part in wanted if part.sha256 not in data]
    content = internalise(told_lost(logged.message.content, lost), list(wanted), data)
    return msgspec.structs.replace(logged.message, content=content), lost
