"""Every projection, over random logs: killed and run again it is the same, rebuilt it equals what grew, what is
forgotten leaves nothing, and `check` finds what was damaged."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from offbook.api.background import Background
from offbook.api.embedded import open_parts
from offbook.api.memory import Memory
from offbook.log.sqlite.store import SqliteStore
from offbook.model.home import Home
from offbook.model.settings import Settings
from offbook.model.types import Scope
from offbook.projections.base import Projection
from tests.unit.small_memory import SMALL, assistant, caught_up, user

WORD = "zanzibar"
TEXTS = (
    "Please look at src/module_{n}.py: the error is E{n}, and Alice wants it by noon.",
    "My uncle Otto lives in Bern, number {n}.",
    "Actually my uncle Otto lives in Zug now, number {n}.",
    "I prefer tea over coffee, always, since day {n}.",
    "Remember that the vault code is zanzibar {n}, and tell nobody.",
)
Step = tuple[str, int]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.integers(0, len(TEXTS) - 1)),
        st.tuples(st.just("kill"), st.just(0)),
        st.tuples(st.just("forget"), st.just(0)),
        st.tuples(st.just("end"), st.integers(0, 1)),
    ),
    min_size=3,
    max_size=12,
)


async def settled(memory: Memory) -> None:
    await caught_up(memory)
    await memory.maintain("main")
    await caught_up(memory)


async def view_of(memory: Memory, store: SqliteStore, home: Home) -> dict[str, Any]:
    """What each projection has made, as far as it can be compared."""
    background = memory._background
    summaries = sorted(await store.summaries("main", limit=1_000), key=lambda one: one.id)
    places = [one.place for one in (await store.arrivals("main", after_event=0, limit=100_000)).messages]
    links = await store.supersessions("main", places)
    notes = {}
    for session in await store.sessions_after("main"):
        scope = Scope(agent_id="main", session_id=session.session_id)
        notes[session.session_id] = [await store.session_note(scope, name) for name in ("workingState", "continuity")]
    async with background.indexes.following("main", seconds=30, is_patient=True) as (index, has_all):
        assert has_all
        rows = sorted(index.rows.view()["place"].tolist())
    pages = {path.name: path.read_text() for path in sorted(home.folder.glob("wiki/*/logs/*.md"))}
    files = {path.name: path.read_text() for path in sorted(home.summaries.glob("*/L*/*.md"))}
    return {
        "search_index": rows,
        "links": sorted((one.old_place, one.new_place, one.kind) for one in links),
        "session_state": notes,
        "summaries": [(one.id, one.draft.text, one.draft.spans) for one in summaries],
        "summary_files": files,
        "lessons": sorted((one.key, one.text, one.status) for one in await store.lessons("main", limit=1_000)),
        "wiki": pages,
    }


async def rebuilt(memory: Memory) -> None:
    for projection in memory._background.projections:
        await projection.rebuild("main")
    memory._background.runner.notify_agent("main")
    await settled(memory)


def of(background: Background, name: str) -> Projection:
    (found,) = [projection for projection in background.projections if projection.name == name]
    return found


async def lived(home: Home, steps: list[Step]) -> None:
    """A history with stops at random points, each without an orderly end."""
    spoken = 0
    left = list(steps)
    while left:
        async with open_parts(home, msgspec.structs.replace(Settings(), **SMALL)) as (memory, _):
            while left:
                kind, number = left.pop(0)
                if kind == "kill":
                    # What was being done is broken off in the middle: nothing is waited for.
                    await asyncio.sleep(0.02 * (spoken % 5))
                    break
                if kind == "say":
                    scope = memory.scope(f"chat{spoken % 2}")
                    said = [user(TEXTS[number].format(n=1_000 + spoken)), assistant(f"I looked at {spoken}: done.")]
                    await memory.on_message(scope, said)
                    spoken += 1
                elif kind == "end":
                    await memory.session_end(memory.scope(f"chat{number}"))
                elif spoken:
                    receipt = await memory.forget("main", matching=WORD)
                    assert receipt.residue == []


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=STEPS)
def test_killed_rebuilt_and_forgotten_every_projection_is_what_the_log_says(steps: list[Step]) -> None:
    folder = Path(tempfile.mkdtemp())

    async def scenario() -> None:
        home = Home(folder)
        await lived(home, [*steps, ("say", 0)])
        async with open_parts(home, msgspec.structs.replace(Settings(), **SMALL)) as (memory, store):
            await settled(memory)
            grown = await view_of(memory, store, home)
            assert {name: found for name, found in (await memory._background.check("main")).items() if found} == {}
            await rebuilt(memory)
            assert await view_of(memory, store, home) == grown
            receipt = await memory.forget("main", matching=WORD)
            assert receipt.residue == []
            assert {name: found for name, found in (await memory._background.check("main")).items() if found} == {}
        left = [path for path in folder.rglob("*") if path.is_file() and WORD.encode() in path.read_bytes()]
        assert left == []

    try:
        asyncio.run(scenario())
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# ── damage that was planted is found ──

Plant = Callable[[Memory, SqliteStore, Home], Awaitable[None]]


async def _entry_missing(memory: Memory, store: SqliteStore, home: Home) -> None:
    place = (await store.arrivals("main", after_event=0, limit=1)).messages[0].place
    index = memory._background.indexes.peek("main")
    assert index is not None
    index.rows.view()["place"][index.rows.find([place])[0]] = 10**9


async def _note_damaged(memory: Memory, store: SqliteStore, home: Home) -> None:
    await store.set_session_note(memory.scope("chat0"), "workingState", "{")


async def _page_changed(memory: Memory, store: SqliteStore, home: Home) -> None:
    next(iter(home.summaries.glob("*/L1/*.md"))).write_text("something else")


async def _page_removed(memory: Memory, store: SqliteStore, home: Home) -> None:
    next(iter(home.folder.glob("wiki/*/logs/*.md"))).unlink()


async def _cursor_beyond(memory: Memory, store: SqliteStore, home: Home) -> None:
    await store.set_agent_note("main", "lessons-through", "999999999", None)


async def _offloaded_in_future(memory: Memory, store: SqliteStore, home: Home) -> None:
    await store.set_agent_note("main", "offloaded-through", "9000-01-01T00:00:00+00:00", None)


@pytest.mark.parametrize(
    ("name", "plant"),
    [
        ("search_index", _entry_missing),
        ("session_state", _note_damaged),
        ("summary_files", _page_changed),
        ("wiki", _page_removed),
        ("lessons", _cursor_beyond),
        ("tiers", _offloaded_in_future),
    ],
)
async def test_planted_damage_is_found(tmp_path: Path, name: str, plant: Plant) -> None:
    home = Home(tmp_path)
    async with open_parts(home, msgspec.structs.replace(Settings(), **SMALL)) as (memory, store):
        for number in range(40):
            await memory.on_message(memory.scope("chat0"), [user(TEXTS[number % 3].format(n=number))])
        await settled(memory)
        projection = of(memory._background, name)
        assert await projection.check("main") == []
        await plant(memory, store, home)
        assert await projection.check("main") != []
