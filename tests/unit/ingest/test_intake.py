"""Large parts on their way into the log: nobody drops them before a message refers to them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from offbook.api.memory import Memory
from offbook.log.blobs import BlobFiles
from offbook.model.errors import StoreBusy
from offbook.model.record import MessageRecord, SessionRecord
from offbook.model.types import now
from tests.unit.small_memory import small_memory, user

LARGE = "a long tale of ships and harbours and nets that dry in the sun; " * 5_000
DIGEST = sha256(LARGE.encode()).hexdigest()


async def nobody() -> set[str]:
    return set()


async def recorded(memory: Memory) -> None:
    await memory.on_message(memory.scope("chat"), [user(LARGE)])


async def saved(memory: Memory) -> None:
    await memory.pre_compaction(memory.scope("chat"), [user(LARGE)])


async def imported(memory: Memory) -> None:
    session = SessionRecord(session_id="chat", started_at=now())
    message = MessageRecord(session_id="chat", seq=1, message=user(LARGE, ts=now()))
    assert (await memory.import_records("main", [session, message], done=True)).taken == 2


@pytest.mark.parametrize("way", [recorded, saved, imported])
async def test_they_are_held_until_the_message_is_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: Callable[[Memory], Awaitable[None]]
) -> None:
    async with small_memory(tmp_path) as memory:
        blobs = memory._intake._blobs
        assert isinstance(blobs, BlobFiles)
        store: Any = memory._store
        dropped: list[list[str]] = []

        def tried_before(write: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
            async def wrapped(*given: Any, **named: Any) -> Any:
                dropped.append(await blobs.drop("main", [DIGEST], nobody))
                return await write(*given, **named)

            return wrapped

        for verb in ("append", "admit"):
            monkeypatch.setattr(store, verb, tried_before(getattr(store, verb)))
        await way(memory)
        assert dropped == [[DIGEST]]
        (line,) = (await memory.log(memory.scope("chat"))).messages
        assert line.message.content == LARGE
        assert await blobs.drop("main", [DIGEST], nobody) == []


async def test_they_are_let_go_where_the_message_is_turned_away(tmp_path: Path) -> None:
    async with small_memory(tmp_path) as memory:
        with suppress(StoreBusy):
            async with memory._intake.entries(memory.scope("chat"), [user(LARGE)]):
                assert await memory._intake._blobs.drop("main", [DIGEST], nobody) == [DIGEST]
                raise StoreBusy("send it again")
        assert await memory._intake._blobs.drop("main", [DIGEST], nobody) == []
