from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from offbook.api import background as background_module
from offbook.api.background import Background
from offbook.api.embedded import open_memory
from offbook.log.blobs import BlobFiles
from offbook.log.sqlite.store import SqliteStore
from offbook.model.errors import ModelUnavailable, StoreBusy
from offbook.model.memory_entry import Recollection
from offbook.model.settings.sections import Search
from offbook.model.types import Message, Scope
from offbook.models import embedder as opening_module
from offbook.projections import embedders as embedders_module
from offbook.projections import embeddings as embedding_module
from offbook.projections import indexes as indexes_module
from offbook.projections import runner as runner_module
from offbook.projections.embeddings import embedded_in
from offbook.search.ask import Ask
from tests.unit.projections.conftest import add, numbered, open_background, places_of, until
from tests.unit.projections.doubles import Shelf, WordsEmbedder


@pytest.fixture
def opening(store: SqliteStore, blobs: BlobFiles, tmp_path: Path, shelf: Shelf) -> Callable[..., Any]:
    @asynccontextmanager
    async def opened(model: str = "old", **fields: object) -> AsyncIterator[Background]:
        background = open_background(store, blobs, tmp_path, model, **fields)
        background.start()
        try:
            yield background
        finally:
            await background.close()

    return opened


def embedded(background: Background, agent_id: str = "main", model: str | None = None) -> int:
    index = background.indexes.peek(agent_id)
    return embedded_in(index, model or background.embedders.fingerprint) if index else 0


async def recalled(background: Background, query: str, agent_id: str = "main") -> Recollection:
    scope = Scope(agent_id=agent_id, session_id="chat")
    found, _ = await background.recall(Ask(scope=scope, query=query, limit=5))
    return found


def texts(found: Recollection) -> list[str]:
    return [entry.text for entry in found.entries]


# ── everything gets done ──


async def test_everything_ends_indexed_embedded_and_committed(
    store: SqliteStore, opening: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexes_module, "COMMIT_SECONDS", 0.1)
    await add(store, *numbered(30))
    async with opening() as background:
        await until(lambda: embedded(background) == 30)
        await add(store, *numbered(5, "news"))
        background.runner.notify_agent("main")
        await until(lambda: embedded(background) == 35 and background.runner.backlog() == 0)
        index = background.indexes.peek("main")
        await until(lambda: not index.is_dirty)
        status, tiers = await background.status("main")
        assert (status.entries, status.embedded, status.waiting, status.model) == (35, 35, 0, "old")
        assert tiers.hot == 35
        found = await recalled(background, "news number3")
        assert texts(found)[0] == "news number3"
        assert found.degraded == []
        assert await background.search_index.matching("main", "news number3", None, 10) == [
            (await places_of(store))[33]
        ]


async def test_the_backlog_is_there_from_the_first_message_to_its_vector(
    store: SqliteStore, opening: Callable[..., Any], shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexes_module, "COMMIT_SECONDS", 0.1)
    may_go_on = threading.Event()
    shelf.embedders["old"].before_each = lambda: may_go_on.wait(120)
    async with opening() as background:
        await until(lambda: background.runner.backlog() == 0)
        await add(store, *numbered(20))
        background.runner.notify_agent("main")
        for _ in range(30):
            assert background.runner.backlog() > 0
            await asyncio.sleep(0.01)
        may_go_on.set()
        await until(lambda: background.runner.backlog() == 0)
        assert embedded(background) == 20
        index = background.indexes.peek("main")
        async with asyncio.timeout(120):
            while index.is_dirty:
                assert background.runner.backlog() == 0, "a commit is no backlog"
                await asyncio.sleep(0.01)


async def test_many_agents_do_not_wait_for_each_others_news(
    store: SqliteStore, opening: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_module, "GATHER_SECONDS", 3.0)
    for number in range(20):
        await add(store, "a cat", scope=Scope(agent_id=f"agent-{number}", session_id="chat"))
    async with opening() as background:
        await until(lambda: len(background.embedders._opened) and background.runner.backlog() == 0, seconds=50)
        for number in range(20):
            agent_id = f"agent-{number}"
            assert await store.vector_models(agent_id) == {"old:1": 1}


async def test_a_rebuild_makes_everything_again(store: SqliteStore, opening: Callable[..., Any], shelf: Shelf) -> None:
    await add(store, *numbered(30))
    model = shelf.embedders["old"]
    async with opening() as background:
        for _ in range(5):
            await until(lambda: embedded(background) == 30)
            await background.rebuild("main", embeddings=False)
        await until(lambda: embedded(background) == 30)
        assert len(model.texts) == 30, "vectors are in the store"
        await background.rebuild("main", embeddings=True)
        await until(lambda: embedded(background) == 30)
        assert len(model.texts) == 60
        assert await store.vector_models("main") == {"old:1": 30}


async def test_two_threads(store: SqliteStore, opening: Callable[..., Any], shelf: Shelf) -> None:
    await add(store, *numbered(80))
    async with opening(threads=2) as background:
        await until(lambda: embedded(background) == 80)
    assert sorted(shelf.embedders["old"].texts) == sorted(numbered(80))


# ── trouble ──


async def test_without_a_model_text_is_found_and_the_model_is_tried_again(
    store: SqliteStore, opening: Callable[..., Any], shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_module, "NO_MODEL_SECONDS", 0.05)
    monkeypatch.setattr(embedders_module, "RETRY_SECONDS", 0.05)
    model = shelf.embedders.pop("old")
    await add(store, "my cat Ada", "a dog")
    async with opening() as background:
        await until(lambda: len(shelf.opened) >= 2)
        found = await recalled(background, "cat Ada")
        assert texts(found)[0] == "my cat Ada"
        assert found.degraded == ["embeddings: no old here"]
        status, _ = await background.status("main")
        assert (status.entries, status.embedded, status.model, status.trouble) == (2, 0, None, "no old here")
        shelf.embedders["old"] = model
        await until(lambda: embedded(background) == 2)
        assert (await recalled(background, "cat Ada")).degraded == []


async def test_a_model_that_fails_now_and_then_is_asked_again(
    store: SqliteStore, opening: Callable[..., Any], shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_module, "NO_MODEL_SECONDS", 0.02)
    failures = iter([ModelUnavailable("away"), None, ModelUnavailable("away"), None, None, None, None, None])

    def fail_now_and_then() -> None:
        error = next(failures, None)
        if error is not None:
            raise error

    shelf.embedders["old"].before_each = fail_now_and_then
    await add(store, *numbered(40))
    async with opening() as background:
        await until(lambda: embedded(background) == 40)


@pytest.mark.parametrize("error", [ZeroDivisionError("a defect of ours"), StoreBusy("busy")])
async def test_what_fails_for_one_agent_does_not_stop_another(
    store: SqliteStore, opening: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(background_module, "RETRY_SECONDS", 0.05)
    bad, good = (Scope(agent_id=name, session_id="chat") for name in ("bad", "good"))
    await add(store, "a cat", scope=bad)
    await add(store, "a cat", scope=good)
    fails = True
    as_it_is = store.arrivals

    async def arrivals(agent_id: str, *, after_event: int, limit: int) -> Any:
        if agent_id == "bad" and fails:
            raise error
        return await as_it_is(agent_id, after_event=after_event, limit=limit)

    monkeypatch.setattr(store, "arrivals", arrivals)
    async with opening() as background:
        await until(lambda: embedded(background, "good") == 1)
        assert embedded(background, "bad") == 0
        fails = False
        await until(lambda: embedded(background, "bad") == 1)


# ── moving to another model ──


async def test_the_old_model_serves_until_the_new_one_is_complete(
    store: SqliteStore, opening: Callable[..., Any], shelf: Shelf
) -> None:
    old, new = shelf.embedders["old"], shelf.embedders["new"]
    await add(store, *numbered(60))
    async with opening("old") as background:
        await until(lambda: embedded(background) == 60)
        await until(lambda: background.runner.backlog() == 0)
    old.is_closed = False

    served: list[tuple[str, int]] = []
    gate = threading.Semaphore(0)

    def only_when_let() -> None:
        if threading.current_thread().name.startswith("offbook-embed"):
            assert gate.acquire(timeout=120)

    new.before_each = only_when_let
    async with opening("new") as background:
        for turn in range(1, 5):
            await until(lambda: background.indexes.peek("main") is not None)
            serving = await background.embedders.serving(store, "main")
            served.append((serving.fingerprint, embedded(background)))
            found = await recalled(background, "message number7")
            assert texts(found)[0] == "message number7"
            assert found.degraded == [], "the old vectors are all there"
            assert (await store.vector_models("main"))["old:1"] == 60
            gate.release()
            await until(lambda turn=turn: embedded(background) >= min(60, 16 * turn))
        assert {fingerprint for fingerprint, _ in served} == {"old:1"}
        index = background.indexes.peek("main")
        await until(lambda: index.vectors("old:1") is None)
        assert (await background.embedders.serving(store, "main")).fingerprint == "new:1"
        assert (await recalled(background, "message number7")).degraded == []
        await until(lambda: background.runner.backlog() == 0)
        while await store.vector_models("main") != {"new:1": 60}:
            await asyncio.sleep(0.01)


async def test_a_stop_between_the_switch_and_the_end_of_the_old_vectors_is_made_good(
    store: SqliteStore, opening: Callable[..., Any], shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(store, *numbered(20))
    async with opening("old") as background:
        await until(lambda: embedded(background) == 20)
    shelf.embedders["old"].is_closed = False
    async with opening("new") as background:
        with monkeypatch.context() as patch:
            dropping = asyncio.Event()

            async def never(agent_id: str, model: str) -> int:
                dropping.set()
                await asyncio.Event().wait()
                return 0

            patch.setattr(store, "drop_vectors", never)
            await dropping.wait()
            await background.close()
    assert set(await store.vector_models("main")) == {"old:1", "new:1"}
    shelf.embedders["new"].is_closed = False
    async with opening("new") as background:
        async with asyncio.timeout(120):
            while set(await store.vector_models("main")) != {"new:1"}:
                await asyncio.sleep(0.01)
        assert (await background.embedders.serving(store, "main")).fingerprint == "new:1"
        assert len(shelf.embedders["new"].texts) == 20


# ── closing ──


async def test_a_close_while_busy_is_quick_and_loses_nothing(
    store: SqliteStore, opening: Callable[..., Any], shelf: Shelf
) -> None:
    for number in range(20):
        await add(store, *numbered(20, f"batch{number}"))
    model = shelf.embedders["old"]
    model.before_each = lambda: time.sleep(0.05)
    for _ in range(4):
        background: Background
        async with opening() as background:
            await asyncio.sleep(0.15)
            started = time.monotonic()
        assert time.monotonic() - started < 30
        model.is_closed = False
    model.before_each = lambda: None
    async with opening() as background:
        await until(lambda: embedded(background) == 400)
        index = background.indexes.peek("main")
        assert index.rows.view()["place"].tolist() == await places_of(store)
    assert sum((await store.vector_models("main")).values()) == 400


async def test_a_close_without_a_start(store: SqliteStore, blobs: BlobFiles, tmp_path: Path) -> None:
    await open_background(store, blobs, tmp_path).close()


# ── the real model, through the front door ──


async def test_with_the_real_model_a_memory_is_found_by_its_meaning(tmp_path: Path) -> None:
    async with open_memory(tmp_path, environ={}) as memory:
        said = ["My sister moved to a small village near Porto.", "The build broke again because of a missing header."]
        for text in [*said, *(f"Note {number}: nothing of interest happened today." for number in range(30))]:
            await memory.on_message(memory.scope("chat"), [Message(role="user", content=text)])
        async with asyncio.timeout(120):
            while not (await memory.ping()).model or (await memory.ping()).backlog:
                await asyncio.sleep(0.05)
        found = await memory.recall(memory.scope("chat"), "Where does my sibling have her house?")
        assert found.entries[0].text == said[0]
        assert found.degraded == []


def test_the_double_keeps_the_promise_of_an_embedder() -> None:
    model = WordsEmbedder()
    one, same, empty = model.embed(["a cat", "a cat", ""])
    assert one.tolist() == same.tolist()
    assert float((empty * empty).sum()) == pytest.approx(1)


# ── a model that hangs, an index that cannot be written ──


async def test_a_model_that_hangs_keeps_nobody_from_recalling_nor_from_closing(
    store: SqliteStore, opening: Callable[..., Any], shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_module, "CLOSE_SECONDS", 0.1)
    may_go_on = threading.Event()
    shelf.embedders["old"].before_each = lambda: may_go_on.wait(120)
    await add(store, "my cat Ada", "a dog")
    try:
        async with opening() as background, asyncio.timeout(60):
            for number in range(20):
                found = await recalled(background, "cat Ada")
                assert texts(found)[0] == "my cat Ada"
                assert any("no answer" in one for one in found.degraded)
                # The second may be asked, too, where the thread of the first one began late.
                assert number < 2 or any("no answer yet" in one for one in found.degraded)
            closing = time.monotonic()
        assert time.monotonic() - closing < 30
    finally:
        may_go_on.set()


async def test_a_model_with_a_defect_is_done_without(
    store: SqliteStore, opening: Callable[..., Any], shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(store, "my cat Ada", "a dog")
    patience = Search(deadline=timedelta(seconds=20))

    def fail(*args: object) -> None:
        raise RecursionError("too deep")

    shelf.embedders["old"].before_each = fail
    async with opening(search=patience) as background:
        found = await recalled(background, "cat Ada")
        assert texts(found)[0] == "my cat Ada"
        assert any("RecursionError" in one for one in found.degraded)
    monkeypatch.setattr(opening_module, "open_embedder", fail)
    async with opening(search=patience) as background:
        found = await recalled(background, "cat Ada")
        assert texts(found)[0] == "my cat Ada"
        assert any("RecursionError" in one for one in found.degraded)


async def test_the_status_tells_what_is_wrong_with_the_index(
    store: SqliteStore, opening: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(store, *numbered(3))
    async with opening() as background:
        await until(lambda: embedded(background) == 3 and background.runner.backlog() == 0)
        await background.indexes.commit("main", at_once=True)
        with monkeypatch.context() as patch:

            def refuse(*args: object, **kwargs: object) -> None:
                raise OSError(28, "No space left on device")

            patch.setattr("offbook.search.index.text.TextIndex.add", refuse)
            await add(store, *numbered(3, "newer"))
            status, _ = await background.status("main")
            assert (status.entries, status.embedded) == (3, 3)
            assert "No space left" in (status.trouble or "")
            assert texts(await recalled(background, "message number2"))[0] == "message number2"
            patch.setattr("offbook.search.index.agent_index.AgentIndex.__init__", refuse)
            status, tiers = await background.status("other")
            assert (status.entries, tiers.hot) == (0, 0)
            assert "No space left" in (status.trouble or "")
        background.runner.notify_agent("main")
        await until(lambda: embedded(background) == 6)
        await background.indexes.commit("main", at_once=True)
        assert (await background.status("main"))[0].trouble is None
