"""Every projection, over random logs: killed and run again it is the same, rebuilt it equals what grew, what is
forgotten leaves nothing, and `check` finds what was damaged."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offbook.api.background import Background
from offbook.api.embedded import open_parts
from offbook.api.memory import Memory
from offbook.log.sqlite.store import SqliteStore
from offbook.model.home import Home
from offbook.model.types import Scope, Span
from offbook.models import embedder
from offbook.models.relation import RelationModel
from offbook.projections.base import Projection
from offbook.projections.lessons import THROUGH
from tests.stateful.lives import (
    SETTINGS,
    TEXTS,
    WORD,
    Step,
    judge_by_words,
    killed,
    killed_forgetting,
    open_words_embedder,
    step,
)
from tests.unit.small_memory import caught_up

STEPS = st.one_of(
    st.tuples(st.just("say"), st.integers(0, len(TEXTS) - 1)),
    st.tuples(st.just("forget"), st.just(0)),
    st.tuples(st.just("end"), st.integers(0, 1)),
)
LIVES = st.lists(st.tuples(st.lists(STEPS, min_size=1, max_size=6), st.integers(0, 150)), min_size=1, max_size=3)
"""What was done in each, and how many milliseconds into the last step it was killed."""
NAMES = (
    "search_index",
    "embeddings",
    "links",
    "session_state",
    "summaries",
    "summary_files",
    "contexts",
    "tiers",
    "lessons",
    "wiki",
)


@pytest.fixture(autouse=True)
def _by_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedder, "open_embedder", open_words_embedder)
    monkeypatch.setattr(RelationModel, "replaces", judge_by_words)


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[tuple[Memory, SqliteStore]]:
    async with open_parts(Home(folder), SETTINGS) as (memory, store):
        await settled(memory)
        yield memory, store


async def settled(memory: Memory) -> None:
    await caught_up(memory)
    await memory.maintain("main")
    await caught_up(memory)


async def view_of(memory: Memory, store: SqliteStore, folder: Path) -> dict[str, Any]:
    """What each projection has made, as far as it can be compared."""
    background = memory._background
    summaries = sorted(await store.summaries("main", limit=1_000), key=lambda one: one.id)
    places = [one.place for one in (await store.arrivals("main", after_event=0, limit=100_000)).messages]
    links = await store.supersessions("main", places)
    notes, contexts = {}, {}
    for session in await store.sessions_after("main"):
        scope = Scope(agent_id="main", session_id=session.session_id)
        notes[session.session_id] = [await store.session_note(scope, name) for name in ("workingState", "continuity")]
        contexts[session.session_id] = (await background.contexts.context(scope, session, 600)).text
    async with background.indexes.following("main", seconds=120, is_patient=True) as (index, has_all):
        assert has_all
        rows = sorted(index.rows.view()["place"].tolist())
    vectors = [one for model in await store.vector_models("main") for one in await store.vectors("main", model)]
    pages = {path.name: path.read_text() for path in folder.glob("wiki/**/*.md")}
    files = {path.name: path.read_text() for path in folder.glob("summaries/*/L*/*.md")}
    return {
        "search_index": rows,
        "embeddings": sorted((one.place, one.part, one.data) for one in vectors),
        "links": sorted((one.old_place, one.new_place, one.kind) for one in links),
        "session_state": notes,
        "summaries": [(one.id, one.draft.text, one.draft.spans) for one in summaries],
        "summary_files": files,
        "contexts": contexts,
        "tiers": await store.agent_note("main", "offloaded-through"),
        "lessons": sorted((one.key, one.text, one.status) for one in await store.lessons("main", limit=1_000)),
        "wiki": pages,
    }


async def faults_in(memory: Memory) -> dict[str, Any]:
    return {name: found for name, found in (await memory._background.check("main")).items() if found}


def files_with_word(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and WORD.encode() in path.read_bytes()]


def of(background: Background, name: str) -> Projection:
    (found,) = [projection for projection in background.projections if projection.name == name]
    return found


@settings(max_examples=5)
@given(lives=LIVES)
def test_killed_rebuilt_and_forgotten_every_projection_is_what_the_log_says(
    lives: list[tuple[list[Step], int]],
) -> None:
    folder = Path(tempfile.mkdtemp())

    async def afterwards() -> None:
        async with opened(folder) as (memory, store):
            await step(memory, "say", 0, 100)
            await settled(memory)
            assert [one.name for one in memory._background.projections] == list(NAMES)
            grown = await view_of(memory, store, folder)
            assert list(grown) == list(NAMES)
            assert await faults_in(memory) == {}
            async with memory._background.runner.apart("main"):
                for projection in memory._background.projections:
                    await projection.rebuild("main")
            memory._background.runner.notify_agent("main")
            await settled(memory)
            rebuilt = await view_of(memory, store, folder)
            # What was compared before it had a vector, where it was killed, is compared with it now: none is lost, and
            # the pages of the wiki and the contexts tell of it.
            assert set(grown["links"]) <= set(rebuilt["links"])
            told_of_links = {"links", "wiki", "contexts"} if grown["links"] != rebuilt["links"] else set[str]()
            assert {**rebuilt, **{name: grown[name] for name in told_of_links}} == grown
            assert (await memory.forget("main", matching=WORD)).residue == []
            await settled(memory)
            assert await faults_in(memory) == {}
        assert files_with_word(folder) == []

    try:
        done = 0
        for steps, after_ms in lives:
            killed(folder, steps, first=done, after_ms=after_ms)
            done += len(steps)
        asyncio.run(afterwards())
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# ── a forget that breaks off ──


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory with something of everything in it, closed with nothing left to do."""
    folder = tmp_path_factory.mktemp("told")

    async def life() -> None:
        async with opened(folder) as (memory, _):
            for number in range(20):
                await step(memory, "say", number % len(TEXTS), number)
            await settled(memory)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedder, "open_embedder", open_words_embedder)
        patch.setattr(RelationModel, "replaces", judge_by_words)
        asyncio.run(life())
    return folder


async def test_a_forget_killed_before_any_part_has_forgotten_is_finished_by_the_next_start(
    told: Path, tmp_path: Path
) -> None:
    for before in (*NAMES, "the proof"):
        folder = tmp_path / before
        shutil.copytree(told, folder)
        await asyncio.to_thread(killed_forgetting, folder, before)
        if before == "summary_files":
            # What the log has of it is gone by then: only the receipt, which is not signed, tells of the pages.
            assert any("summaries" in path.parts for path in files_with_word(folder))
        async with opened(folder) as (memory, store):
            assert [receipt.unfinished for _, receipt in await store.receipts("main")] == [None], before
            assert [receipt.residue for _, receipt in await store.receipts("main")] == [[]], before
            assert await faults_in(memory) == {}, before
        assert files_with_word(folder) == [], before


# ── damage that was planted is found ──

Plant = Callable[[Memory, SqliteStore, Path], Awaitable[None]]


def changed(folder: Path, sql: str) -> None:
    """As somebody does who has the file and none of our code."""
    connection = apsw.Connection(str(folder / "offbook.db"))
    connection.execute(sql)
    assert connection.total_changes()
    connection.close()


async def _entry_missing(memory: Memory, store: SqliteStore, folder: Path) -> None:
    place = (await store.arrivals("main", after_event=0)).messages[0].place
    index = memory._background.indexes.peek("main")
    assert index is not None
    index.rows.view()["place"][index.rows.find([place])[0]] = 10**9


async def _link_to_nothing(memory: Memory, store: SqliteStore, folder: Path) -> None:
    changed(folder, "UPDATE supersessions SET old_place = old_place + 1000000")


async def _vector_of_nothing(memory: Memory, store: SqliteStore, folder: Path) -> None:
    # By hand: the store itself takes none for a message that is not there.
    changed(folder, "UPDATE vectors SET place = place + 1000000 WHERE number = (SELECT max(number) FROM vectors)")


async def _vector_cut(memory: Memory, store: SqliteStore, folder: Path) -> None:
    changed(folder, "UPDATE vectors SET data = x'00' WHERE number = (SELECT max(number) FROM vectors)")


async def _vector_lost(memory: Memory, store: SqliteStore, folder: Path) -> None:
    changed(folder, "DELETE FROM vectors WHERE number = (SELECT max(number) FROM vectors)")


async def _note_damaged(memory: Memory, store: SqliteStore, folder: Path) -> None:
    await store.set_session_note(memory.scope("chat0"), "workingState", "{")


async def _draft_damaged(memory: Memory, store: SqliteStore, folder: Path) -> None:
    changed(folder, "UPDATE summary_texts SET draft = '{' WHERE summary = (SELECT max(summary) FROM summary_texts)")


async def _page_changed(memory: Memory, store: SqliteStore, folder: Path) -> None:
    next(iter(folder.glob("summaries/*/L1/*.md"))).write_text("something else")


async def _context_of_another_history(memory: Memory, store: SqliteStore, folder: Path) -> None:
    # They are in memory only: the one thing that can be wrong is that the log under them is another by now.
    scope, slots = memory.scope("chat0"), memory._background.slots
    session = await store.session(scope)
    assert session is not None
    ready = await slots.slot_b(scope, session, 1_000)
    covers = Span(first_seq=1, last_seq=session.last_seq + 1)
    context = msgspec.structs.replace(ready.context, covers=covers)
    slots._ready[scope] = ready._replace(composed=ready.composed._replace(context=context))


async def _offloaded_in_future(memory: Memory, store: SqliteStore, folder: Path) -> None:
    await store.set_agent_note("main", "offloaded-through", "9000-01-01T00:00:00+00:00", None)


async def _cursor_beyond(memory: Memory, store: SqliteStore, folder: Path) -> None:
    await store.set_agent_note("main", THROUGH, "999999999", None)


async def _page_removed(memory: Memory, store: SqliteStore, folder: Path) -> None:
    next(iter(folder.glob("wiki/*/sources/session-logs/*.md"))).unlink()


PLANTS: list[tuple[str, Plant]] = [
    ("search_index", _entry_missing),
    ("links", _link_to_nothing),
    ("embeddings", _vector_of_nothing),
    ("embeddings", _vector_cut),
    ("embeddings", _vector_lost),
    ("session_state", _note_damaged),
    ("summaries", _draft_damaged),
    ("summary_files", _page_changed),
    ("contexts", _context_of_another_history),
    ("tiers", _offloaded_in_future),
    ("lessons", _cursor_beyond),
    ("wiki", _page_removed),
]


def test_damage_is_planted_in_every_projection() -> None:
    assert {name for name, _ in PLANTS} == set(NAMES)


@pytest.mark.parametrize(("name", "plant"), PLANTS)
async def test_planted_damage_is_found(told: Path, tmp_path: Path, name: str, plant: Plant) -> None:
    shutil.copytree(told, tmp_path, dirs_exist_ok=True)
    async with opened(tmp_path) as (memory, store):
        await memory._background.runner.close()  # nothing is made good before it is looked at
        projection = of(memory._background, name)
        assert await projection.check("main") == []
        await plant(memory, store, tmp_path)
        assert await projection.check("main") != []
