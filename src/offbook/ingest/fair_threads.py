"""Threads for what is too large for the event loop's: each owner has one piece of work in them at a time.

So whoever sends a hundred large messages waits for himself, and the next to come is next in turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar
from weakref import WeakValueDictionary

LARGE_BYTES = 65_536
"""From here on reading a request is done in a thread: it takes about a millisecond."""
THREADS = 2
"""They share one interpreter: with two, a small piece is done while a large one goes on, and more bring nothing."""

T = TypeVar("T")


class FairThreads:
    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix=name)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._free = asyncio.Semaphore(THREADS)
        """Nothing waits in the pool itself: who is cancelled while waiting leaves nothing behind."""

    async def run(self, owner: str, work: Callable[[], T]) -> T:
        """What `work` returns, done in a thread when it is this owner's turn. Those of one owner keep their order."""
        turn = self._turns.setdefault(owner, asyncio.Lock())
        loop = asyncio.get_running_loop()

        def end() -> None:
            self._free.release()
            turn.release()

        def end_turn(_done: object) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits for a turn any more
                loop.call_soon_threadsafe(end)

        await turn.acquire()
        try:
            await self._free.acquire()
        except BaseException:
            turn.release()
            raise
        try:
            running = self._pool.submit(work)
        except BaseException:
            end()
            raise
        # Not where we end: who is cancelled does not wait, but what a thread has begun goes on.
        running.add_done_callback(end_turn)
        return await asyncio.wrap_future(running)
