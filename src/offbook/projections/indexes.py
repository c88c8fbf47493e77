"""Each agent's index, opened when it is needed and kept in step with the agent's log.

There is one way in: the log is followed through the audit chain, by the worker all the time and by a recall for
what has come since. So whatever was acknowledged before a recall is found by it.
"""

from __future__ import annotations

import asyncio
import errno
import shutil
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import structlog

from offbook.log.store import Blobs, Store
from offbook.model.errors import StoreCorrupt, StoreError, StoreFull
from offbook.model.memory_entry import Arrivals
from offbook.model.private_files import make_private
from offbook.projections.index_reader import Before, SayingReader
from offbook.projections.threads import to_the_end
from offbook.search.index.records import IndexDamaged
from offbook.search.index.text import is_indexed

if TYPE_CHECKING:
    from offbook.search.index.agent_index import AgentIndex

BATCH, QUICK_BATCH = 200, 50
"""Messages taken at a time: about 20 ms of work, in a thread; and where somebody waits for an answer."""
COMMIT_SECONDS = 1.0
REST_SECONDS = 30.0
"""Without news after which the text index lets go of its writer's memory."""
UNWRITABLE = (OSError, ValueError, IndexDamaged)
"""tantivy's errors are ValueErrors, whatever they are about."""
LEAST_FREE_BYTES = 16_000_000
"""Of a disk on which a failure is taken for want of room: about what one segment of the text index needs."""
MOST_OPEN = 32
"""Indexes open at once. One is files and maps, no copy in memory, so opening it again is quick."""

P = ParamSpec("P")
T = TypeVar("T")
log = structlog.get_logger("offbook.index")


@dataclass
class _Kept:
    """An open index. Who holds the lock writes; who reads keeps the index it was given, also where another has
    taken its place meanwhile."""

    index: AgentIndex
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    before: Before | None = None
    """Of the index that this one takes the place of, until it has as much."""
    committed_at: float = field(default_factory=time.monotonic)
    news_at: float = field(default_factory=time.monotonic)
    users: int = 0
    is_resting: bool = False
    """It has let go of what it only needs for writing."""
    followed_version: tuple[int, ...] = ()
    """The version of the log that was taken in to its end."""
    trouble: str | None = None
    """Why what has come cannot be taken or committed."""


class Indexes:
    def __init__(self, store: Store, blobs: Blobs, folder: Path, *, silence: Callable[[str], timedelta]) -> None:
        """`silence`: how long a pause of an agent's session must be to end an episode."""
        self._store = store
        self._folder = folder
        self._silence = silence
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._opening: dict[str, tuple[asyncio.Lock, list[None]]] = {}
        """A lock an agent while somebody opens or lets go, and how many those are."""
        self._sayings = SayingReader(blobs)

    def open_agents(self) -> list[str]:
        return list(self._kept)

    def peek(self, agent_id: str) -> AgentIndex | None:
        """The index as it is, where it is open."""
        kept = self._kept.get(agent_id)
        return kept.index if kept else None

    def trouble(self, agent_id: str) -> str | None:
        kept = self._kept.get(agent_id)
        return kept.trouble if kept else None

    @asynccontextmanager
    async def following(
        self, agent_id: str, *, seconds: float, is_patient: bool = False
    ) -> AsyncIterator[tuple[AgentIndex, bool]]:
        """The agent's index and whether it has all that was acknowledged; takes what it can in the time given.

        Who is patient takes one batch at least, and is told what went wrong. Anybody else has an answer to give, with
        what there is: on a full disk, too.
        """
        async with self._using(agent_id) as kept:
            if is_patient:
                has_all = await self._follow(agent_id, kept, seconds, BATCH)
            else:
                has_all = await self._follow_until(agent_id, kept, seconds)
            try:
                yield kept.index, has_all
            except IndexDamaged:
                log.warning("damaged: made anew", action="index.reset", agent=agent_id)
                await self.rebuild(agent_id)
                raise

    async def change(self, agent_id: str, work: Callable[[AgentIndex], T]) -> T:
        """Run `work`, which appends to the index, in a thread and alone."""
        async with self._using(agent_id) as kept, kept.lock:
            return await self._write(agent_id, kept, work, kept.index)

    async def commit(self, agent_id: str, *, at_once: bool = False) -> None:
        """Make what was taken durable: at once, or else about once a second, however often it is asked."""
        if agent_id not in self._kept:
            return
        async with self._using(agent_id) as kept, kept.lock:
            is_due = at_once or time.monotonic() - kept.committed_at >= COMMIT_SECONDS
            if kept.index.is_dirty and is_due:
                await self._commit(agent_id, kept)
            elif not kept.index.is_dirty and time.monotonic() - kept.news_at >= REST_SECONDS:
                await to_the_end(kept.index.text.rest)
                kept.is_resting = True

    def next_look(self, agent_id: str) -> float | None:
        """Seconds until `commit` has something to do; None where it has not."""
        kept = self._kept.get(agent_id)
        if kept is None:
            return None
        if kept.index.is_dirty:
            return COMMIT_SECONDS
        return None if kept.is_resting else max(0.0, REST_SECONDS - (time.monotonic() - kept.news_at))

    async def rebuild(self, agent_id: str, *, keeps_flags: bool = False) -> None:
        """Throw the files away; the worker follows the log from its beginning. With `keeps_flags` what the index knew
        of a message is not found out again."""
        async with self._using(agent_id) as kept, kept.lock:
            kept.before = await to_the_end(Before, kept.index.rows) if keeps_flags else None
            await to_the_end(kept.index.discard)
            await self._open_again(agent_id, kept)
        log.info("rebuilding", action="index.rebuild", agent=agent_id)

    async def discard(self, agent_id: str) -> None:
        """Let go of it and remove its files, once nobody uses it: another node has the agent."""
        async with self._alone(agent_id):
            kept = self._kept.get(agent_id)
            if kept is None:
                await to_the_end(shutil.rmtree, self._folder / folder_name(agent_id), ignore_errors=True)
                return
            async with kept.lock:
                self._sayings.forget(agent_id)
                self._kept.pop(agent_id, None)
                await to_the_end(kept.index.discard)

    async def close(self) -> None:
        """What cannot be committed now is taken again from the log another time."""
        for agent_id, kept in list(self._kept.items()):
            async with self._alone(agent_id), kept.lock:
                kept.users = 0
                if self._kept.get(agent_id) is kept:
                    await self._let_go(agent_id, kept)

    # ── how ──

    @asynccontextmanager
    async def _using(self, agent_id: str) -> AsyncIterator[_Kept]:
        """The agent's index, which stays open as long as somebody uses it."""
        kept = self._kept.get(agent_id) or await self._open(agent_id)
        self._kept.move_to_end(agent_id)
        kept.users += 1
        try:
            yield kept
        finally:
            kept.users -= 1

    async def _open(self, agent_id: str) -> _Kept:
        """One at a time for an agent: two must never open the same files."""
        await self._make_room()
        async with self._alone(agent_id):
            if agent_id not in self._kept:
                index = await self._opened(agent_id)
                if not await self._is_of_this_history(agent_id, index):
                    log.warning("another history: made anew", action="index.reset", agent=agent_id)
                    await to_the_end(index.reset)
                self._kept[agent_id] = _Kept(index)
            return self._kept[agent_id]

    @asynccontextmanager
    async def _alone(self, agent_id: str) -> AsyncIterator[None]:
        """Nobody else opens this agent's index or lets it go. Who is alone with one never asks for another."""
        lock, askers = self._opening.setdefault(agent_id, (asyncio.Lock(), []))
        askers.append(None)
        try:
            async with lock:
                yield
        finally:
            askers.pop()
            if not askers:
                del self._opening[agent_id]

    async def _opened(self, agent_id: str) -> AgentIndex:
        from offbook.search.index.agent_index import AgentIndex

        folder = self._folder / folder_name(agent_id)
        try:
            await to_the_end(make_private, self._folder)
            return await to_the_end(AgentIndex, folder, silence=self._silence(agent_id))
        except UNWRITABLE as error:
            raise self._unwritable(agent_id, error) from error

    async def _open_again(self, agent_id: str, kept: _Kept) -> None:
        """As its checkpoint says; the rest is taken again from the log."""
        with suppress(*UNWRITABLE):  # what could not be written cannot always be taken back
            await to_the_end(kept.index.close)
        self._sayings.forget(agent_id)
        kept.index = await self._opened(agent_id)
        kept.followed_version = ()

    async def _make_room(self) -> None:
        """Those that nobody uses go first that were used first."""
        for agent_id, kept in list(self._kept.items()):
            if len(self._kept) < MOST_OPEN:
                return
            if not kept.users:
                async with self._alone(agent_id), kept.lock:
                    if self._kept.get(agent_id) is kept:
                        await self._let_go(agent_id, kept)

    async def _let_go(self, agent_id: str, kept: _Kept) -> None:
        try:
            if kept.index.is_dirty:
                await self._commit(agent_id, kept)
        except StoreError as error:
            log.warning("not committed", action="index.commit", agent=agent_id, detail=error.detail)
        if not kept.users:  # nobody has come meanwhile
            del self._kept[agent_id]
            self._sayings.forget(agent_id)
            await to_the_end(kept.index.close)

    async def _is_of_this_history(self, agent_id: str, index: AgentIndex) -> bool:
        """A restored store has another chain than the one the index followed."""
        if not index.checkpointed_event:
            return True
        return index.through_hash == await self._hash_of(agent_id, index.checkpointed_event)

    async def _hash_of(self, agent_id: str, event: int) -> str:
        events = await self._store.audit_events(agent_id, after_seq=event - 1, limit=1) if event else []
        return events[0].hash if events and events[0].seq == event else ""

    async def _follow_until(self, agent_id: str, kept: _Kept, seconds: float) -> bool:
        """What it breaks off is gone on with by the next, as after any cancellation."""
        if kept.followed_version == self._version(agent_id):
            return True
        try:
            async with asyncio.timeout(seconds):
                return await self._follow(agent_id, kept, seconds, QUICK_BATCH)
        except TimeoutError:
            return False
        except StoreError as error:
            if kept.trouble is None:
                log.warning("not taken", action="index.follow", agent=agent_id, detail=error.detail)
            kept.trouble = error.detail
            return False

    async def _follow(self, agent_id: str, kept: _Kept, seconds: float, batch: int) -> bool:
        stop_at = time.monotonic() + seconds
        while True:
            try:
                async with asyncio.timeout(stop_at - time.monotonic()):
                    await kept.lock.acquire()
            except TimeoutError:
                return False
            try:
                is_end = await self._take(agent_id, kept, batch)
            finally:
                kept.lock.release()
            if is_end:
                kept.trouble = kept.trouble if kept.index.is_dirty else None
                return True
            if time.monotonic() >= stop_at:
                return False

    async def _take(self, agent_id: str, kept: _Kept, batch: int) -> bool:
        version = self._version(agent_id)
        arrivals = await self._arrivals(agent_id, kept.index.through_event, batch)
        messages = [placed for placed in arrivals.messages if is_indexed(placed)]
        if messages:
            said = await self._sayings.said(agent_id, messages, kept.before)
            kept.news_at, kept.is_resting = time.monotonic(), False
            await self._write(agent_id, kept, kept.index.take, said, arrivals.through_event)
        else:
            kept.index.take((), arrivals.through_event)
        if arrivals.is_end:
            kept.before, kept.followed_version = None, version
        is_due = time.monotonic() - kept.committed_at >= 5 * COMMIT_SECONDS
        if kept.index.is_dirty and is_due and batch == BATCH:
            await self._commit(agent_id, kept)  # a long import: what was taken should not be taken again
        return arrivals.is_end

    def _version(self, agent_id: str) -> tuple[int, ...]:
        return self._store.versions.of(agent_id, "log", "imports", "erased")

    async def _arrivals(self, agent_id: str, after: int, batch: int) -> Arrivals:
        """Where something is damaged one event at a time up to that, which is passed over: `doctor` and
        `audit --verify` tell of it."""
        try:
            return await self._store.arrivals(agent_id, after_event=after, limit=batch)
        except StoreCorrupt as error:
            try:
                return await self._store.arrivals(agent_id, after_event=after, limit=1)
            except StoreCorrupt:
                log.error("passed over", action="index.damage", agent=agent_id, seq=after + 1, detail=error.detail)
                return Arrivals(through_event=after + 1, messages=[], is_end=False)

    async def _commit(self, agent_id: str, kept: _Kept) -> None:
        through_hash = await self._hash_of(agent_id, kept.index.through_event)
        await self._write(agent_id, kept, kept.index.commit, through_hash)
        kept.committed_at = time.monotonic()
        kept.trouble = None

    async def _write(self, agent_id: str, kept: _Kept, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """In a thread, to its end. What breaks off half-way (a full disk) is not gone on with."""
        failed: list[Exception] = []

        def noting() -> T:
            try:
                return work(*args, **kwargs)
            except UNWRITABLE as error:
                failed.append(error)
                raise

        try:
            return await to_the_end(noting)
        except (*UNWRITABLE, asyncio.CancelledError) as error:
            if not failed:
                raise
            trouble = self._unwritable(agent_id, failed[0])
            kept.trouble = trouble.detail
            if isinstance(failed[0], IndexDamaged):
                await to_the_end(kept.index.discard)
            if isinstance(error, asyncio.CancelledError):
                with suppress(StoreError):  # who is cancelled stays cancelled; the next finds it closed, and opens it
                    await self._open_again(agent_id, kept)
                raise
            await self._open_again(agent_id, kept)
            raise trouble from error

    def _unwritable(self, agent_id: str, error: Exception) -> StoreError:
        what = f"the search index of agent {agent_id!r} cannot be opened or written ({error})"
        if _is_for_want_of_room(self._folder.parent, error):
            return StoreFull(f"{what}: free some room on the disk; it goes on by itself")
        return StoreError(f"{what}: see that the data folder can be read and written; it goes on by itself")


def _is_for_want_of_room(folder: Path, error: Exception) -> bool:
    """tantivy does not always say why."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    return shutil.disk_usage(folder).free < LEAST_FREE_BYTES


def folder_name(agent_id: str) -> str:
    """Safe on every file system, and of one agent only."""
    readable = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in agent_id)[:40].lower()
    return f"{readable}-{sha256(agent_id.encode()).hexdigest()[:12]}"
