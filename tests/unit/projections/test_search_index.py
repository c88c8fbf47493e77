"""The search index and the tiers as projections: a piece at a time, and nothing where nothing has happened."""

from __future__ import annotations

import msgspec
import pytest

from offbook.log.blobs import BlobFiles
from offbook.log.sqlite.store import SqliteStore
from offbook.model.settings import Settings
from offbook.projections.base import Batch, Progress
from offbook.projections.indexes import Indexes
from offbook.projections.search_index import SearchIndex
from offbook.projections.tiers import TierOffload
from tests.unit.projections.conftest import add, numbered, open_background, until
from tests.unit.projections.doubles import Shelf

MAIN = Batch("main")
FEW = msgspec.structs.replace(Settings(), prune_threshold=10, prune_keep=6)


async def test_the_index_takes_what_it_does_not_have_and_says_what_waits(store: SqliteStore, indexes: Indexes) -> None:
    await add(store, *numbered(5))
    waiting = 5
    index = SearchIndex(store, indexes, unembedded=lambda agent_id: waiting)
    first = await index.advance(MAIN)
    assert (first.did, first.is_done, first.is_idle) == ({"indexed": 5, "waiting": 5}, True, False)
    waiting = 0
    assert (await index.advance(MAIN)).did == {"waiting": 0}
    again = await index.advance(MAIN)
    assert (again.did, again.is_done, again.is_idle) == ({}, True, True), "nothing has happened since"
    await add(store, "one more")
    assert (await index.advance(MAIN)).did == {"indexed": 1, "waiting": 0}


async def test_an_index_without_news_is_not_opened(
    store: SqliteStore, blobs: BlobFiles, indexes: Indexes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    await add(store, "hello")
    projections = [SearchIndex(store, indexes, unembedded=lambda agent_id: 0), TierOffload(store, indexes, FEW)]
    for projection in projections:
        await projection.advance(MAIN)
        await projection.advance(Batch("stranger"))
    assert indexes.open_agents() == ["main"], "one of whom nothing is known has no index"
    await indexes.close()
    for projection in projections:
        assert await projection.advance(MAIN) == Progress(is_idle=True)
    assert indexes.open_agents() == []


async def test_a_long_history_is_taken_in_pieces(
    store: SqliteStore, indexes: Indexes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("offbook.projections.indexes.BATCH", 2)
    for number in range(6):
        await add(store, f"message {number}")
    index = SearchIndex(store, indexes, unembedded=lambda agent_id: 0)
    pieces = [await index.advance(MAIN._replace(seconds=0.0))]
    while not pieces[-1].is_done:
        assert len(pieces) < 20
        pieces.append(await index.advance(MAIN._replace(seconds=0.0)))
    assert len(pieces) > 1
    assert sum(piece.did.get("indexed", 0) for piece in pieces) == 6


async def test_tiers_send_away_what_is_too_much_and_then_nothing(store: SqliteStore, indexes: Indexes) -> None:
    for number in range(12):
        await add(store, f"message {number}")
    tiers = TierOffload(store, indexes, FEW)
    assert await tiers.advance(MAIN) == Progress(did={"offloaded": 6})
    assert await tiers.advance(MAIN) == Progress()
    assert await tiers.advance(MAIN) == Progress(is_idle=True)


async def test_the_background_runs_them_on_demand(
    store: SqliteStore, blobs: BlobFiles, shelf: Shelf, tmp_path_factory: pytest.TempPathFactory
) -> None:
    await add(store, *numbered(3))
    background = open_background(store, blobs, tmp_path_factory.mktemp("home"))
    background.start()
    try:
        runs = await background.runner.now("main")
        assert [(run.task, run.agent_id, run.error) for run in runs][:2] == [
            ("index", "main", None),
            ("tiers", "main", None),
        ]
        await until(lambda: background.runner.backlog() == 0)
        (index, *_) = await background.runner.now("main", ["index"])
        assert index.did.get("waiting", 0) == 0
    finally:
        await background.close()
