from __future__ import annotations

import asyncio
import threading

import pytest

from offbook.projections.threads import to_the_end
from tests.unit.projections.conftest import until


async def test_its_answer_and_its_error_come_back() -> None:
    assert await to_the_end(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        await to_the_end(divmod, 7, 0)


async def test_who_is_cancelled_waits_for_the_thread_however_often() -> None:
    may_end = threading.Event()
    task = asyncio.create_task(to_the_end(may_end.wait, 10))
    for _ in range(3):
        await asyncio.sleep(0.01)
        task.cancel()
    await asyncio.sleep(0.01)
    assert not task.done()
    may_end.set()
    await until(task.done)
    assert task.cancelled()
