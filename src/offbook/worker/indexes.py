"""Each agent's index, opened when it is needed and kept in step with the agent's log.

There is one way in: the log is followed through the audit chain, by the worker all the time and by a recall for
what has come since. So whatever was acknowledged before a recall is found by it.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec
import structlog

from offbook.content import internalise
from offbook.entries import PlacedMessage
from offbook.errors import StoreCorrupt
from offbook.protocols import Blobs, Store
from offbook.retrieval.index.saying import INDEXED_CHARS, is_indexed, said_by
from offbook.types import Message
from offbook.worker.linking import Linker

if TYPE_CHECKING:
    from offbook.retrieval.index.agent_index import AgentIndex
    from offbook.retrieval.index.rows import Said

BATCH = 200
"""Messages taken at a time: about 20 ms of work, in a thread."""
COMMIT_SECONDS = 1.0
REST_SECONDS = 30.0
"""Without news after which the text index lets go of its writer's memory."""
MOST_OPEN = 32
"""Indexes open at once. One is files and maps, no copy in memory, so opening it again is quick."""

T = TypeVar("T")
log = structlog.get_logger("offbook.index")


@dataclass
class _Kept:
    index: AgentIndex
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    committed_at: float = 0.0
    news_at: float = 0.0
    users: int = 0
    has_caught_up: bool = False


class Indexes:
    def __init__(self, store: Store, blobs: Blobs, folder: Path, *, silence: Callable[[str], timedelta]) -> None:
        """`silence`: how long a pause of an agent's session must be to end an episode."""
        self._store = store
        self._blobs = blobs
        self._folder = folder
        self._silence = silence
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._opening: dict[str, asyncio.Lock] = {}
        self._linker = Linker(store)

    def open_agents(self) -> list[str]:
        return list(self._kept)

    def peek(self, agent_id: str) -> AgentIndex | None:
        """The index as it is, where it is open."""
        kept = self._kept.get(agent_id)
        return kept.index if kept else None

    @asynccontextmanager
    async def following(self, agent_id: str, *, seconds: float) -> AsyncIterator[tuple[AgentIndex, bool]]:
        """The agent's index and whether it has all that was acknowledged; takes what it can in the time given."""
        kept = await self._open(agent_id)
        kept.users += 1
        try:
            yield kept.index, await self._follow(agent_id, kept, seconds)
        finally:
            kept.users -= 1

    async def change(self, agent_id: str, work: Callable[[AgentIndex], T]) -> T:
        """Run `work`, which appends to the index, in a thread and alone."""
        kept = await self._open(agent_id)
        async with kept.lock:
            return await asyncio.to_thread(work, kept.index)

    async def commit(self, agent_id: str, *, is_due: bool = False) -> None:
        """Make what was taken durable; where `is_due` is not said, only about once a second."""
        kept = self._kept.get(agent_id)
        if kept is None:
            return
        async with kept.lock:
            since = time.monotonic() - kept.committed_at
            if kept.index.is_dirty and (is_due or since >= COMMIT_SECONDS):
                await self._commit(agent_id, kept)
            elif time.monotonic() - kept.news_at > REST_SECONDS:
                await asyncio.to_thread(kept.index.text.rest)

    async def rebuild(self, agent_id: str) -> None:
        """Throw the files away; the worker follows the log from its beginning."""
        kept = await self._open(agent_id)
        async with kept.lock:
            await asyncio.to_thread(kept.index.reset)
            kept.has_caught_up = False
        log.info("rebuilding", action="index.rebuild", agent=agent_id)

    async def close(self) -> None:
        for agent_id in list(self._kept):
            await self.commit(agent_id, is_due=True)
            await asyncio.to_thread(self._kept.pop(agent_id).index.close)

    # ── how ──

    async def _open(self, agent_id: str) -> _Kept:
        async with self._opening.setdefault(agent_id, asyncio.Lock()):
            kept = self._kept.get(agent_id)
            if kept is None:
                from offbook.retrieval.index.agent_index import AgentIndex

                await self._make_room()
                folder = self._folder / folder_name(agent_id)
                kept = _Kept(await asyncio.to_thread(AgentIndex, folder, silence=self._silence(agent_id)))
                if not await self._is_of_this_history(agent_id, kept.index):
                    log.warning("another history: made anew", action="index.reset", agent=agent_id)
                    await asyncio.to_thread(kept.index.reset)
                self._kept[agent_id] = kept
            self._kept.move_to_end(agent_id)
            return kept

    async def _make_room(self) -> None:
        for agent_id, kept in list(self._kept.items()):
            if len(self._kept) < MOST_OPEN:
                return
            if kept.users == 0 and not kept.lock.locked():
                await self.commit(agent_id, is_due=True)
                self._kept.pop(agent_id, None)
                await asyncio.to_thread(kept.index.close)

    async def _is_of_this_history(self, agent_id: str, index: AgentIndex) -> bool:
        """A restored store has another chain than the one the index followed."""
        if not index.checkpointed_event:
            return True
        return index.through_hash == await self._hash_of(agent_id, index.checkpointed_event)

    async def _hash_of(self, agent_id: str, event: int) -> str:
        events = await self._store.audit_events(agent_id, after_seq=event - 1, limit=1) if event else []
        return events[0].hash if events and events[0].seq == event else ""

    async def _follow(self, agent_id: str, kept: _Kept, seconds: float) -> bool:
        stop_at = time.monotonic() + seconds
        while True:
            async with kept.lock:
                is_end = await self._take(agent_id, kept)
            if is_end:
                kept.has_caught_up = True
                return True
            if time.monotonic() >= stop_at:
                return False

    async def _take(self, agent_id: str, kept: _Kept) -> bool:
        after = kept.index.through_event
        try:
            arrivals = await self._store.arrivals(agent_id, after_event=after, limit=BATCH)
        except StoreCorrupt as error:
            return await self._take_past_damage(agent_id, kept, after, error)
        messages = [placed for placed in arrivals.messages if is_indexed(placed)]
        if messages:
            said = await self._said(agent_id, messages)
            await asyncio.to_thread(kept.index.take, said, arrivals.through_event)
            kept.news_at = time.monotonic()
            await self._linker.link(agent_id, kept.index, messages, said)
        else:
            kept.index.take((), arrivals.through_event)
        if kept.index.is_dirty and time.monotonic() - kept.committed_at >= 5 * COMMIT_SECONDS:
            await self._commit(agent_id, kept)  # a long import: what was taken should not be taken again
        return arrivals.is_end

    async def _take_past_damage(self, agent_id: str, kept: _Kept, after: int, error: StoreCorrupt) -> bool:
        """One event at a time up to the damaged one, which is passed over: `doctor` and `audit --verify` tell of it."""
        try:
            arrivals = await self._store.arrivals(agent_id, after_event=after, limit=1)
        except StoreCorrupt:
            log.error("passed over", action="index.damage", agent=agent_id, event=after + 1, detail=error.detail)
            kept.index.take((), after + 1)
            return False
        messages = [placed for placed in arrivals.messages if is_indexed(placed)]
        said = await self._said(agent_id, messages)
        await asyncio.to_thread(kept.index.take, said, arrivals.through_event)
        return arrivals.is_end

    async def _said(self, agent_id: str, messages: Sequence[PlacedMessage]) -> list[Said]:
        wholes = [await self._whole(agent_id, placed) for placed in messages]
        return await asyncio.to_thread(
            lambda: [said_by(placed, whole) for placed, whole in zip(messages, wholes, strict=True)]
        )

    async def _whole(self, agent_id: str, placed: PlacedMessage) -> Message | None:
        return await whole_text(self._blobs, agent_id, placed)

    async def _commit(self, agent_id: str, kept: _Kept) -> None:
        through_hash = await self._hash_of(agent_id, kept.index.through_event)
        await asyncio.to_thread(kept.index.commit, through_hash)
        kept.committed_at = time.monotonic()


async def whole_text(blobs: Blobs, agent_id: str, placed: PlacedMessage) -> Message | None:
    """The message with its large texts back in their places, as far as they are indexed; None where it has none."""
    references = [ref for ref in placed.logged.entry.blobs if not ref.is_binary and ref.chars <= 4 * INDEXED_CHARS]
    if not references:
        return None
    try:
        data = {ref.sha256: await blobs.get(agent_id, ref.sha256) for ref in references}
    except StoreCorrupt:
        return None  # the stand-in says how it began
    message = placed.logged.message
    return msgspec.structs.replace(message, content=internalise(message.content, references, data))


def folder_name(agent_id: str) -> str:
    """Safe on every file system, and of one agent only."""
    readable = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in agent_id)[:40].lower()
    return f"{readable}-{sha256(agent_id.encode()).hexdigest()[:12]}"
