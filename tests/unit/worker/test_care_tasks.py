"""What maintenance does for an index and for tiers."""

from __future__ import annotations

import msgspec
import pytest

from offbook.log.blobs import BlobFiles
from offbook.log.sqlite.store import SqliteStore
from offbook.model.maintenance import Piece
from offbook.model.settings import Settings
from offbook.worker import care_tasks
from offbook.worker.care_tasks import IndexTask, TiersTask
from offbook.worker.indexes import Indexes
from tests.unit.worker.conftest import add, numbered, open_background, until
from tests.unit.worker.doubles import Shelf

FEW = msgspec.structs.replace(Settings(), prune_threshold=10, prune_keep=6)


async def test_the_index_takes_what_it_does_not_have_and_says_what_waits(store: SqliteStore, indexes: Indexes) -> None:
    await add(store, *numbered(5))
    embedded: list[str] = []
    waiting = 5
    task = IndexTask(store, indexes, embed=embedded.append, unembedded=lambda agent_id: waiting)
    assert await task.run("main") == Piece(did={"indexed": 5, "waiting": 5})
    assert embedded == ["main"]
    waiting = 0
    assert await task.run("main") == Piece(did={"waiting": 0})
    assert await task.run("main") == Piece(), "nothing has happened since"
    await add(store, "one more")
    assert (await task.run("main")).did == {"indexed": 1, "waiting": 0}


async def test_an_index_without_news_is_not_opened(
    store: SqliteStore, blobs: BlobFiles, indexes: Indexes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    await add(store, "hello")
    tasks = [
        IndexTask(store, indexes, embed=lambda agent_id: None, unembedded=lambda agent_id: 0),
        TiersTask(store, indexes, FEW),
    ]
    for task in tasks:
        await task.run("main")
        await task.run("stranger")
    assert indexes.open_agents() == ["main"], "one of whom nothing is known has no index"
    await indexes.close()
    for task in tasks:
        assert await task.run("main") == Piece()
    assert indexes.open_agents() == []


async def test_a_long_history_is_taken_in_pieces(
    store: SqliteStore, indexes: Indexes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(care_tasks, "PIECE_SECONDS", 0.0)
    monkeypatch.setattr("offbook.worker.indexes.BATCH", 2)
    for number in range(6):
        await add(store, f"message {number}")
    task = IndexTask(store, indexes, embed=lambda agent_id: None, unembedded=lambda agent_id: 0)
    pieces = [await task.run("main")]
    while not pieces[-1].is_done:
        assert len(pieces) < 20
        pieces.append(await task.run("main"))
    assert len(pieces) > 1
    assert sum(piece.did.get("indexed", 0) for piece in pieces) == 6


async def test_tiers_send_away_what_is_too_much_and_then_nothing(store: SqliteStore, indexes: Indexes) -> None:
    for number in range(12):
        await add(store, f"message {number}")
    task = TiersTask(store, indexes, FEW)
    assert await task.run("main") == Piece(did={"offloaded": 6})
    assert await task.run("main") == Piece()
    assert await task.run("main") == Piece()


async def test_the_background_runs_them_on_demand(
    store: SqliteStore, blobs: BlobFiles, shelf: Shelf, tmp_path_factory: pytest.TempPathFactory
) -> None:
    await add(store, *numbered(3))
    background = open_background(store, blobs, tmp_path_factory.mktemp("home"))
    background.start()
    try:
        runs = await background.caring.maintenance.now("main")
        assert [(run.task, run.agent_id, run.error) for run in runs][:2] == [
            ("index", "main", None),
            ("tiers", "main", None),
        ]
        await until(lambda: background.backlog() == 0)
        (index, *_) = await background.caring.maintenance.now("main", ["index"])
        assert index.did.get("waiting", 0) == 0
    finally:
        await background.close()
