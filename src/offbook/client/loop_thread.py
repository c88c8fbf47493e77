"""An event loop on a thread of its own, for callers that block."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

LONGEST_WAIT_SECONDS = 1.0
_inherited: list[asyncio.AbstractEventLoop] = []


async def _cancel_others() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class LoopThread:
    """Starts with the first coroutine, and anew in a forked child."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._process_id = os.getpid()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(coroutine, self._running_loop())
        try:
            return _awaited(future)
        except RuntimeError as error:
            # Python's own: an interrupt while the wait begins leaves its lock released, and the release fails.
            if isinstance(error.__context__, KeyboardInterrupt):
                raise error.__context__ from None
            raise
        finally:
            future.cancel()  # for the caller who was interrupted; one that is done takes no notice

    def close(self) -> None:
        if self._process_id != os.getpid() or self._loop is None or self._thread is None:
            return
        loop, thread, self._loop = self._loop, self._thread, None
        # Other threads may wait for an answer; nobody would ever give it once the loop stands still.
        asyncio.run_coroutine_threadsafe(_cancel_others(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._process_id != os.getpid():
            self._forget()
        with self._lock:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                thread = threading.Thread(target=loop.run_forever, name="offbook-client", daemon=True)
                try:
                    thread.start()
                except RuntimeError:
                    loop.close()
                    raise
                self._loop, self._thread = loop, thread
            return self._loop

    def _forget(self) -> None:
        """The parent's thread is not here, and its loop, if finalised here, would reach into the parent's."""
        if self._loop is not None:
            _inherited.append(self._loop)
        self._loop = self._thread = None
        self._lock = threading.Lock()
        self._process_id = os.getpid()


def _awaited(future: Future[T]) -> T:
    """Its result. Looks up now and then: an interrupt that comes just before the wait begins does not end the wait."""
    while True:
        try:
            return future.result(LONGEST_WAIT_SECONDS)
        except TimeoutError:
            if future.done():
                return future.result()  # its own, if it is one


class OnLoop:
    """What stands for something that lives on the loop of a thread."""

    def __init__(self, thread: LoopThread, inner: object) -> None:
        self._thread = thread
        self._inner = inner


def blocking(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[OnLoop, P], T]:
    """The same method for callers that block: that of what lives on the loop, run there to its end."""

    @wraps(method)
    def run(self: OnLoop, /, *args: P.args, **kwargs: P.kwargs) -> T:
        coroutine: Coroutine[Any, Any, T] = getattr(self._inner, method.__name__)(*args, **kwargs)
        return self._thread.run(coroutine)

    return run


def passed_on(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[OnLoop, P], T]:
    """The same for a method that never waits."""

    @wraps(method)
    def call(self: OnLoop, /, *args: P.args, **kwargs: P.kwargs) -> T:
        answer: T = getattr(self._inner, method.__name__)(*args, **kwargs)
        return answer

    return call
