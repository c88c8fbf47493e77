"""Messages of the log as they came, their large parts back in their places."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from offbook.log.store import Blobs, Store
from offbook.model.large_parts import internalise
from offbook.model.types import LoggedMessage, LogLine, Message, Scope

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
