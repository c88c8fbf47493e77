from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from offbook.api.background import Background
from offbook.log.audit_chain import fingerprint
from offbook.log.blobs import BlobFiles
from offbook.log.sqlite.store import SqliteStore
from offbook.model.content import text_of
from offbook.model.types import AuditDraft, Entry, Message, Scope, SessionGaps
from offbook.models import embedder
from offbook.projections.indexes import Indexes
from tests.unit.projections.doubles import Shelf, WordsEmbedder, settings_for

CHAT = Scope(agent_id="main", session_id="chat")
EVENT = AuditDraft(verb="test", actor="test")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore(tmp_path / "offbook.db")
    yield opened
    await opened.close()


@pytest.fixture
def blobs(tmp_path: Path) -> BlobFiles:
    return BlobFiles(tmp_path / "blobs")


@pytest.fixture
async def indexes(store: SqliteStore, blobs: BlobFiles, tmp_path: Path) -> AsyncIterator[Indexes]:
    opened = open_indexes(store, blobs, tmp_path)
    yield opened
    await opened.close()


def open_indexes(store: SqliteStore, blobs: BlobFiles, folder: Path) -> Indexes:
    return Indexes(store, blobs, folder / "index", silence=lambda agent_id: timedelta(hours=2))


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch) -> Shelf:
    made = Shelf(WordsEmbedder("old"), WordsEmbedder("new", dimensions=72))
    monkeypatch.setattr(embedder, "open_embedder", made)
    return made


def open_background(
    store: SqliteStore, blobs: BlobFiles, folder: Path, model: str = "old", **fields: object
) -> Background:
    settings = settings_for(model, **fields)  # type: ignore[arg-type]
    return Background(
        store,
        blobs,
        settings,
        indexes=folder / "index",
        models=folder / "models",
        summaries=folder / "summaries",
        frame_key=b"k" * 32,
    )


async def add(store: SqliteStore, *texts: str | Message, scope: Scope = CHAT, noise: str | None = None) -> None:
    """One event."""
    messages = [text if isinstance(text, Message) else Message(role="user", content=text) for text in texts]
    entries = [
        Entry(message=one, chars=len(text_of(one.content)), noise=noise, fingerprint=fingerprint(one))
        for one in messages
    ]
    draft = AuditDraft(verb="onMessage", actor="test", session_id=scope.session_id)
    await store.append(scope, entries, draft, gaps=SessionGaps())


async def places_of(store: SqliteStore, agent_id: str = "main") -> list[int]:
    return [placed.place for placed in (await store.arrivals(agent_id, after_event=0, limit=100_000)).messages]


async def indexed(indexes: Indexes, agent_id: str = "main", seconds: float = 200) -> list[int]:
    """The places that are in the agent's index, in its order."""
    async with indexes.following(agent_id, seconds=seconds, is_patient=True) as (index, has_all):
        assert has_all
        return index.rows.view()["place"].tolist()


async def until(holds: Callable[[], object], seconds: float = 200) -> None:
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.01)


def numbered(count: int, what: str = "message") -> Sequence[str]:
    return [f"{what} number{number}" for number in range(count)]
