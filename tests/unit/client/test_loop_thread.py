from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any

import pytest

from offbook.client.loop_thread import LoopThread


class Interrupted(Future[Any]):
    """As where Ctrl-C comes while the wait for a result begins."""

    def result(self, timeout: float | None = None) -> Any:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise RuntimeError("cannot release un-acquired lock")  # noqa: B904 - as Python does it


def test_an_interrupt_is_an_interrupt_whenever_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(coroutine: Coroutine[Any, Any, Any], loop: asyncio.AbstractEventLoop) -> Interrupted:
        coroutine.close()
        return Interrupted()

    thread = LoopThread()
    try:
        with monkeypatch.context() as patched:
            patched.setattr(asyncio, "run_coroutine_threadsafe", started)
            with pytest.raises(KeyboardInterrupt):
                thread.run(asyncio.sleep(0))
        assert thread.run(asyncio.sleep(0, "still there")) == "still there"
    finally:
        thread.close()


def test_an_interrupt_that_does_not_wake_the_wait_is_noticed() -> None:
    """As one that comes just before the wait begins: another thread takes the signal, and nothing wakes this one."""

    async def answered_late() -> None:
        threading.Thread(target=lambda: signal.pthread_kill(threading.get_ident(), signal.SIGINT)).start()
        await asyncio.sleep(60)
        answered.append(True)

    answered: list[bool] = []
    thread = LoopThread()
    try:
        with pytest.raises(KeyboardInterrupt):
            thread.run(answered_late())
        assert not answered
        with pytest.raises(TimeoutError, match="its own"):
            thread.run(_fails())
    finally:
        thread.close()


async def _fails() -> None:
    raise TimeoutError("its own")
