from __future__ import annotations

import asyncio
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
