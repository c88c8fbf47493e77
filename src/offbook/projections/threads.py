"""Work in a thread that is seen to its end, whoever loses patience."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def to_the_end(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """As `asyncio.to_thread`; but who is cancelled waits until the thread has ended.

    A thread cannot be stopped. Were its caller to leave at once, it would leave the lock, too, under which the
    thread still writes.
    """
    running = asyncio.get_running_loop().run_in_executor(None, partial(work, *args, **kwargs))
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        running.exception()  # looked at, so that nobody is told that nobody did
        raise cancelled
    return running.result()
