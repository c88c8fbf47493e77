from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from offbook.ingest.entries import prepare
from offbook.log.blobs import BlobFiles
from offbook.log.sqlite.store import SqliteStore
from offbook.model.content import LOST_PART, text_of
from offbook.model.types import AuditDraft, Message, Scope, SessionGaps
from offbook.search import whole_messages as whole_module
from offbook.search.whole_messages import LARGEST_FOUND_CHARS, read_together, readable, whole_text
from tests.unit.log.sqlite.test_sqlite import tamper

CHAT = Scope(agent_id="main", session_id="chat")
LONG = "The harbour master is Ophelia Quint. " * 3_000


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore(tmp_path / "offbook.db")
    yield opened
    await opened.close()


@pytest.fixture
def blobs(tmp_path: Path) -> BlobFiles:
    return BlobFiles(tmp_path / "blobs")


async def add(store: SqliteStore, blobs: BlobFiles, *texts: str) -> list[int]:
    """Their places."""
    event = AuditDraft(verb="onMessage", actor="test", session_id=CHAT.session_id)
    for text in texts:
        message = Message(role="user", content=text)
        prepared = prepare(message, frame_key=b"k" * 32, externalise_over=65_536, redacts=False)
        for data in prepared.large:
            await blobs.put("main", data)
        await store.append(CHAT, [prepared.entry], event, gaps=SessionGaps())
    return [placed.place for placed in (await store.arrivals("main", after_event=0, limit=100)).messages]


async def read(store: SqliteStore, places: Sequence[int]) -> list[int]:
    return [placed.place for placed in await readable(store, "main", places)]


async def test_a_large_text_is_put_back_and_a_short_one_is_whole_as_it_is(store: SqliteStore, blobs: BlobFiles) -> None:
    large, short = await readable(store, "main", await add(store, blobs, LONG, "I bake bread."))
    assert text_of(large.logged.message.content) != LONG
    whole = await whole_text(blobs, "main", large)
    assert whole is not None
    assert text_of(whole.content) == LONG
    assert await whole_text(blobs, "main", short) is None


async def test_a_large_text_that_is_lost_says_so(store: SqliteStore, blobs: BlobFiles, tmp_path: Path) -> None:
    (large,) = await readable(store, "main", await add(store, blobs, LONG))
    for path in (tmp_path / "blobs").rglob("*"):
        if path.is_file():
            path.unlink()
    whole = await whole_text(blobs, "main", large)
    assert whole is not None
    assert LOST_PART in str(whole.content)


async def test_what_is_damaged_keeps_none_of_the_others_back(
    store: SqliteStore, blobs: BlobFiles, tmp_path: Path
) -> None:
    places = await add(store, blobs, "one", "two", "three")
    backwards = places[::-1]
    assert await read(store, backwards) == backwards
    tamper(tmp_path / "offbook.db", f"UPDATE messages SET content = '{{' WHERE place = {places[1]}")
    assert await read(store, backwards) == [places[2], places[0]]
    assert await read(store, [places[1]]) == []
    assert await read(store, []) == []


async def test_how_large_a_text_is_read_can_be_said(store: SqliteStore, blobs: BlobFiles) -> None:
    (large,) = await readable(store, "main", await add(store, blobs, LONG * 10))
    assert await whole_text(blobs, "main", large) is None
    whole = await whole_text(blobs, "main", large, most_chars=LARGEST_FOUND_CHARS)
    assert whole is not None
    assert text_of(whole.content) == LONG * 10


async def test_as_many_are_read_together_as_memory_holds(
    store: SqliteStore, blobs: BlobFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole_module, "READ_AT_ONCE_CHARS", 2 * len(LONG))
    one, two, three = LONG, f"{LONG}two", f"{LONG}three"
    messages = await readable(store, "main", await add(store, blobs, one, "short", LONG, two, "short", three))
    assert [len(some) for some in read_together(messages)] == [3, 2, 1]
    assert [one for some in read_together(messages) for one in some] == messages
    assert list(read_together([])) == []
