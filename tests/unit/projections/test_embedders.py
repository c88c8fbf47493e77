from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from offbook.log.sqlite.store import SqliteStore
from offbook.model.errors import ModelUnavailable
from offbook.model.settings.sections import Embedding
from offbook.projections import embedders as embedders_module
from offbook.projections.embedders import ACTIVE, Embedders
from tests.unit.projections.conftest import add
from tests.unit.projections.doubles import Shelf

OLD = Embedding(model="old", dimensions=64)
NEW = Embedding(model="new", dimensions=72)


def embedders(wanted: Embedding) -> Embedders:
    return Embedders(wanted, Path("models"))


async def test_the_wanted_model_is_opened_once_however_many_ask(shelf: Shelf) -> None:
    opened = embedders(OLD)
    assert (opened.name, opened.fingerprint, opened.trouble) == (None, None, None)
    found = await asyncio.gather(*(opened.wanted() for _ in range(5)))
    assert {id(one) for one in found} == {id(shelf.embedders["old"])}
    assert shelf.opened == ["old"]
    assert (opened.name, opened.fingerprint) == ("old", "old:1")
    await opened.close()
    assert shelf.embedders["old"].is_closed
    assert opened.name is None


async def test_a_missing_model_is_told_and_tried_again_after_a_while(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = shelf.embedders.pop("old")
    opened = embedders(OLD)
    for _ in range(3):
        with pytest.raises(ModelUnavailable, match="no old here"):
            await opened.wanted()
    assert shelf.opened == ["old"], "not asked for again and again"
    assert opened.trouble == "no old here"
    shelf.embedders["old"] = model
    monkeypatch.setattr(embedders_module, "RETRY_SECONDS", 0)
    assert await opened.wanted() is model
    assert (opened.trouble, opened.name) == (None, "old")


async def test_the_old_model_serves_until_it_is_switched(store: SqliteStore, shelf: Shelf) -> None:
    await add(store, "a cat")
    before = embedders(OLD)
    assert (await before.serving(store, "main")).name == "old"
    await before.switch(store, "main", await before.wanted())
    after = embedders(NEW)
    assert (await after.serving(store, "main")).name == "old"
    await after.switch(store, "main", await after.wanted())
    assert (await after.serving(store, "main")).name == "new"
    assert (await embedders(NEW).serving(store, "main")).name == "new"
    await after.switch(store, "main", await after.wanted())


async def test_where_the_old_model_cannot_be_had_any_more_the_wanted_one_serves(
    store: SqliteStore, shelf: Shelf
) -> None:
    await add(store, "a cat")
    before = embedders(OLD)
    await before.switch(store, "main", await before.wanted())
    del shelf.embedders["old"]
    assert (await embedders(NEW).serving(store, "main")).name == "new"


async def test_where_the_wanted_one_is_missing_the_old_model_goes_on(store: SqliteStore, shelf: Shelf) -> None:
    await add(store, "a cat")
    before = embedders(OLD)
    await before.switch(store, "main", await before.wanted())
    del shelf.embedders["new"]
    assert (await embedders(NEW).serving(store, "main")).name == "old"


async def test_another_make_of_the_old_model_does_not_serve_for_it(store: SqliteStore, shelf: Shelf) -> None:
    await add(store, "a cat")
    before = embedders(OLD)
    await before.switch(store, "main", await before.wanted())
    shelf.embedders["old"].fingerprint = "old:2"
    assert (await embedders(NEW).serving(store, "main")).name == "new"


async def test_more_threads_are_not_another_model(store: SqliteStore, shelf: Shelf) -> None:
    await add(store, "a cat")
    before = embedders(OLD)
    await before.switch(store, "main", await before.wanted())
    shelf.opened.clear()
    after = embedders(msgspec.structs.replace(OLD, threads=4))
    assert (await after.serving(store, "main")).name == "old"
    assert await after.wanted() is await after.serving(store, "main")
    assert shelf.opened == ["old"]


async def test_an_unreadable_note_is_as_none(store: SqliteStore, shelf: Shelf) -> None:
    await add(store, "a cat")
    await store.set_agent_note("main", ACTIVE, "what is this?", None)
    assert (await embedders(NEW).serving(store, "main")).name == "new"


async def test_after_a_start_it_is_known_by_whom_the_vectors_are_before_any_model_is_opened(
    store: SqliteStore, shelf: Shelf
) -> None:
    await add(store, "a cat")
    before = embedders(OLD)
    assert await before.fingerprint_for(store, "main") is None
    await before.switch(store, "main", await before.wanted())
    assert await before.fingerprint_for(store, "main") == "old:1"
    shelf.opened.clear()
    assert await embedders(OLD).fingerprint_for(store, "main") == "old:1"
    assert await embedders(NEW).fingerprint_for(store, "main") == "old:1", "until it is switched"
    assert shelf.opened == []
