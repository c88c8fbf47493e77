from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from offbook.log.blobs import BlobFiles
from offbook.model.large_parts import externalise
from offbook.model.memory_entry import PlacedMessage
from offbook.model.types import Entry, LoggedMessage, Message
from offbook.projections.index_reader import SayingReader
from offbook.search import whole_messages as whole_module
from tests.unit.search.index.sayings import NOON


class CountedBlobs(BlobFiles):
    """Says how often a text was read; gives none before it may."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.reads = 0
        self.may_read = asyncio.Event()

    async def get(self, agent_id: str, digest: str) -> bytes:
        self.reads += 1
        await self.may_read.wait()
        return await super().get(agent_id, digest)


@pytest.fixture
def blobs(tmp_path: Path) -> CountedBlobs:
    return CountedBlobs(tmp_path / "blobs")


async def placed(blobs: BlobFiles, place: int, text: str) -> PlacedMessage:
    content, moved = externalise(text, 100)
    for _, data in moved:
        await blobs.put("main", data)
    entry = Entry(message=Message(role="user", content=content), blobs=[reference for reference, _ in moved])
    logged = LoggedMessage(seq=place, received_at=NOON, entry=entry)
    return PlacedMessage(place=place, session=1, session_id="chat", logged=logged)


@pytest.fixture
async def messages(blobs: CountedBlobs, monkeypatch: pytest.MonkeyPatch) -> list[PlacedMessage]:
    monkeypatch.setattr(whole_module, "LARGEST_READ_CHARS", 1_000)
    texts = ["a cat", f"{'Word soup. ' * 200}quokka", "a dog"]
    return [await placed(blobs, place, text) for place, text in enumerate(texts, 1)]


async def given_up(reader: SayingReader, blobs: CountedBlobs, messages: list[PlacedMessage]) -> None:
    """Somebody begins to read, and does not wait for the end."""
    waiting = asyncio.create_task(reader.said("main", messages, None))
    async with asyncio.timeout(120):
        while not blobs.reads:
            await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_a_large_message_is_read_once_whoever_loses_patience(
    blobs: CountedBlobs, messages: list[PlacedMessage]
) -> None:
    reader = SayingReader(blobs)
    for _ in range(3):
        await given_up(reader, blobs, messages)
    blobs.may_read.set()
    said = await reader.said("main", messages, None)
    assert [one.place for one in said] == [1, 2, 3]
    assert "quokka" in said[1].terms
    assert blobs.reads == 1
    assert reader._going == {}


async def test_what_is_forgotten_is_read_anew(blobs: CountedBlobs, messages: list[PlacedMessage]) -> None:
    reader = SayingReader(blobs)
    await given_up(reader, blobs, messages)
    reader.forget("other")
    assert len(reader._going) == 1
    reader.forget("main")
    assert reader._going == {}
    blobs.may_read.set()
    assert len(await reader.said("main", messages, None)) == 3
    assert blobs.reads == 2


async def test_one_that_cannot_be_read_is_tried_again(blobs: CountedBlobs, messages: list[PlacedMessage]) -> None:
    reader = SayingReader(blobs)
    blobs.may_read.set()
    broken = blobs.get

    async def fails(agent_id: str, digest: str) -> bytes:
        raise OSError("no such thing")

    blobs.get = fails  # type: ignore[method-assign]
    with pytest.raises(OSError, match="no such thing"):
        await reader.said("main", messages, None)
    blobs.get = broken  # type: ignore[method-assign]
    assert len(await reader.said("main", messages, None)) == 3
