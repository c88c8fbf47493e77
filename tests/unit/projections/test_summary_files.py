"""Summaries as files: what is in them, when they are written, and what happens where they cannot be."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from offbook.api.memory import Memory
from offbook.log.sqlite.store import SqliteStore
from offbook.model.errors import StoreCorrupt
from offbook.model.home import LONGEST_NAME, Home
from offbook.model.settings import Settings
from offbook.model.summary import SourceSpan, Summary, SummaryDraft, Usage, summary_id
from offbook.model.types import AuditDraft
from offbook.projections import summary_files
from offbook.projections.base import Erased
from offbook.projections.summary_files import SummaryFiles, agent_folder, file_of, joined, line_of, page_of
from tests.unit.projections.conftest import add
from tests.unit.small_memory import caught_up, small_memory, talk, talked

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def summary(number: int = 1, level: int = 1, **fields: Any) -> Summary:
    given = {
        "level": level,
        "spans": [SourceSpan(session_id="chat", first_seq=number, last_seq=number)],
        "text": f"We met for the {number}. time.",
        "rank": [0],
        "brief": "We met.",
        "source_messages": 1,
        "source_tokens": 100,
        "tokens": 7,
        "first_at": NOON,
        "last_at": NOON,
        "summarizer": "extractive",
        "prompt_version": "1",
        "fingerprint": "f" * 64,
        "usage": Usage(dollars=0.25),
        "lost": 3,
    }
    draft = SummaryDraft(**(given | fields))
    return Summary(id=summary_id(level, number), agent_id="main", made_at=NOON, draft=draft)


def read(page: str) -> tuple[dict[str, Any], str]:
    """As anybody would who knows HTML: the comment, and what comes after its end."""
    comment, _, text = page.removeprefix("<!--").partition("-->")
    return json.loads(comment), text


# ── what is in them ──


def test_a_page_is_a_comment_with_what_is_known_and_the_text() -> None:
    known, text = read(page_of(summary()))
    assert text == "\n\nWe met for the 1. time.\n"
    assert known["spans"] == [{"sessionId": "chat", "firstSeq": 1, "lastSeq": 1}]
    assert (known["id"], known["agentId"], known["lost"], known["usage"]["dollars"]) == ("L1-0001", "main", 3, 0.25)
    assert known["firstAt"] == known["madeAt"] == "2026-11-15T12:00:00Z"
    assert (known["sourceTokens"], known["tokens"], known["summarizer"]) == (100, 7, "extractive")
    assert not {"text", "losses", "parent"} & set(known)


@given(st.text(alphabet="-->!<- a\n", min_size=1, max_size=20))
def test_no_name_ends_the_comment(name: str) -> None:
    page = page_of(summary(spans=[SourceSpan(session_id=name, first_seq=1, last_seq=1)], text=name))
    known, text = read(page)
    assert known["spans"][0]["sessionId"] == name
    assert text == f"\n\n{name}\n"
    comment = page.removeprefix("<!--").partition("\n-->")[0]
    assert not re.search("--|[<>]", comment)


@given(st.lists(st.text(min_size=1, max_size=60), unique=True, min_size=2, max_size=8))
def test_every_agent_has_a_folder_of_its_own(agents: list[str]) -> None:
    names = [agent_folder(agent) for agent in agents]
    assert len({name.casefold() for name in names}) == len(agents)
    assert all(re.fullmatch(r"[a-z0-9_%A-F~-][a-z0-9_.%A-F~-]*", name) and len(name) <= LONGEST_NAME for name in names)


def test_folders_of_agents_are_inside_and_readable() -> None:
    assert [agent_folder(agent) for agent in ("main", "..", ".", "a/b", "Main", "x" * 128)] == [
        "main",
        "%2E.",
        "%2E",
        "a%2Fb",
        "%4Dain",
        agent_folder("x" * 128),
    ]
    assert agent_folder("x" * 128) != agent_folder("x" * 127)
    assert agent_folder(agent_folder("x" * 128)) != agent_folder("x" * 128)


def test_an_index_knows_what_merged_what_and_leaves_out_what_is_not_there() -> None:
    lines = [line_of(summary(number)) for number in (3, 1)]
    merging = line_of(summary(1, level=2, sources=["L1-0001", "L1-0002"]))
    news = {line.id: line for line in (merging, line_of(summary(2)), line_of(summary(1, tokens=9)))}
    found = joined(lines, news, {1: 2, 2: 1})
    assert [(line.id, line.parent, line.tokens) for line in found] == [
        ("L1-0001", "L2-0001", 9),
        ("L1-0002", "L2-0001", 7),
        ("L2-0001", None, 7),
    ]
    assert joined(found, {}, {1: 1})[0].parent is None


# ── when they are written ──


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Home(tmp_path).summaries / "main"


def index_of(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "index.json").read_text())
    return document


def stamps(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


async def assert_complete(memory: Memory, folder: Path) -> None:
    lines = {line["id"]: line for line in index_of(folder)["summaries"]}
    page = await memory.summaries("main", limit=100)
    assert {one.id for one in page.summaries} == set(lines) == {known["id"] for known in pages(folder)}
    for one in page.summaries:
        known, text = read((folder / lines[one.id]["file"]).read_text())
        assert text.strip() == one.text.strip()
        assert known["summarizer"] == lines[one.id]["summarizer"] == one.summarizer
        assert lines[one.id]["parent"] == one.parent
        assert lines[one.id]["sources"] == one.sources


def pages(folder: Path) -> list[dict[str, Any]]:
    return [read(path.read_text())[0] for path in folder.glob("L*/*.md")]


async def test_a_talk_leaves_an_index_and_a_page_for_each_summary(tmp_path: Path, folder: Path) -> None:
    async with small_memory(tmp_path) as memory:
        await talk(memory, 60)
        await caught_up(memory)
        await assert_complete(memory, folder)
    index = index_of(folder)
    assert index["agentId"] == "main"
    assert {line["level"] for line in index["summaries"]} == {1, 2, 3}
    assert index["summaries"][0]["file"] == "L1/0001.md"
    for path in (folder.parent, *folder.parent.rglob("*")):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600)


async def test_what_is_there_is_not_written_again_at_the_next_start(tmp_path: Path, folder: Path) -> None:
    await talked(tmp_path, 60)
    before = stamps(folder)
    async with small_memory(tmp_path) as memory:
        await caught_up(memory)
    assert stamps(folder) == before


Broom = Callable[[Path], object]
BROOMS: dict[str, Broom] = {
    "everything": lambda folder: shutil.rmtree(folder.parent),
    "index": lambda folder: (folder / "index.json").unlink(),
    "a page": lambda folder: (folder / "L1/0003.md").unlink(),
    "an empty page": lambda folder: (folder / "L1/0003.md").write_text(""),
    "a damaged index": lambda folder: (folder / "index.json").write_bytes(b'{"agentId": \xff'),
    "an unfinished page": lambda folder: (folder / "L1/.0003.md.aabbccdd").write_text("half"),
    "pages of another": lambda folder: (folder / "L1/9999.md").write_text("of a store that is gone"),
}


@pytest.mark.parametrize("what", BROOMS)
async def test_what_is_missing_is_written_again_at_the_next_start(tmp_path: Path, folder: Path, what: str) -> None:
    await talked(tmp_path, 60)
    names = set(stamps(folder))
    BROOMS[what](folder)
    async with small_memory(tmp_path) as memory:
        await caught_up(memory)
        await assert_complete(memory, folder)
    assert set(stamps(folder)) == names


async def test_what_somebody_else_put_there_stays(tmp_path: Path, folder: Path) -> None:
    await talked(tmp_path, 30)
    (folder / "L1/notes.md").write_text("Mine.")
    async with small_memory(tmp_path) as memory:
        await caught_up(memory)
    assert (folder / "L1/notes.md").read_text() == "Mine."


async def test_another_store_in_its_place_is_noticed(tmp_path: Path, folder: Path) -> None:
    await talked(tmp_path, 60)
    for path in tmp_path.glob("offbook.*"):
        path.unlink()
    shutil.rmtree(tmp_path / "index")
    async with small_memory(tmp_path) as memory:
        await talk(memory, 30, session="another", first=100)
        await caught_up(memory)
    async with small_memory(tmp_path) as memory:
        await caught_up(memory)
        await assert_complete(memory, folder)
        assert {span["sessionId"] for line in index_of(folder)["summaries"] for span in line["spans"]} == {"another"}


async def test_nobody_who_does_not_want_files_gets_any(tmp_path: Path) -> None:
    async with small_memory(tmp_path, summary_files=False) as memory:
        await talk(memory, 30)
        await caught_up(memory)
        assert (await memory.summaries("main")).summaries
    assert not Home(tmp_path).summaries.exists()


# ── over a store ──


class Clock:
    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


async def keep(store: SqliteStore, number: int, **fields: Any) -> Summary:
    event = AuditDraft(verb="compress", actor="test", details={"again": True} if fields else {})
    return await store.add_summary("main", summary(number, **fields).draft, event)


@pytest.fixture
async def files(store: SqliteStore, tmp_path: Path) -> SummaryFiles:
    await add(store, *(f"message {number}" for number in range(60)))
    return SummaryFiles(store, Settings(), tmp_path / "summaries", monotonic=Clock())


async def settled(files: SummaryFiles) -> None:
    while not await files.run("main"):
        pass


async def test_a_page_comes_at_once_and_the_index_every_few_seconds(
    files: SummaryFiles, store: SqliteStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(files, "_monotonic", clock)
    await files.kept(await keep(store, 1))
    for number in (2, 3):
        await files.kept(await keep(store, number))
    assert {path.name for path in folder.glob("L1/*")} == {"0001.md", "0002.md", "0003.md"}
    assert len(index_of(folder)["summaries"]) == 1
    clock.seconds += summary_files.INDEX_SECONDS
    await files.kept(await keep(store, 4))
    assert len(index_of(folder)["summaries"]) == 4
    await files.kept(await keep(store, 5))
    await settled(files)
    assert len(index_of(folder)["summaries"]) == 5
    before = stamps(folder)
    await settled(files)
    assert stamps(folder) == before


async def test_what_is_missing_is_read_in_pieces(files: SummaryFiles, store: SqliteStore, folder: Path) -> None:
    for number in range(1, 51):
        await keep(store, number)
    assert not await files.run("main")
    assert len(list(folder.glob("L1/*.md"))) == summary_files.PAGES_AT_A_TIME
    await settled(files)
    assert len(index_of(folder)["summaries"]) == 50


async def test_a_summary_replaced_before_a_crash_has_its_new_page_after_it(
    files: SummaryFiles, store: SqliteStore, tmp_path: Path, folder: Path
) -> None:
    for number in (1, 2):
        await files.kept(await keep(store, number))
    await settled(files)
    await files.outdated("main", "L1-0001")
    await keep(store, 1, summarizer="better", text="We met, and it was fine.")
    after = SummaryFiles(store, Settings(), tmp_path / "summaries")
    await settled(after)
    assert read((folder / file_of("L1-0001")).read_text())[1].strip() == "We met, and it was fine."
    assert [line["summarizer"] for line in index_of(folder)["summaries"]] == ["better", "extractive"]


async def test_where_files_are_switched_off_none_is_taken_away(
    store: SqliteStore, tmp_path: Path, folder: Path
) -> None:
    page = folder / file_of("L1-0001")
    page.parent.mkdir(parents=True)
    page.write_text("what was there before")
    settings = msgspec.structs.replace(Settings(), summary_files=False)
    files = SummaryFiles(store, settings, tmp_path / "summaries")
    await files.outdated("main", "L1-0001")
    assert page.exists()
    await files.forget(Erased("main", [], lambda text: False, summaries=["L1-0001"]))  # but for that
    assert not page.exists()


async def test_a_summary_that_cannot_be_read_does_not_keep_the_others_back(
    files: SummaryFiles, store: SqliteStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 2, 3):
        await keep(store, number)
    whole = store.summary

    async def damaged(agent_id: str, id_: str) -> Summary | None:
        if id_ == "L1-0002":
            raise StoreCorrupt("damaged")
        return await whole(agent_id, id_)

    monkeypatch.setattr(store, "summary", damaged)
    await settled(files)
    assert [line["id"] for line in index_of(folder)["summaries"]] == ["L1-0001", "L1-0003"]


# ── where they cannot be written ──


async def test_a_disk_that_takes_nothing_is_told_once_and_made_up_for(
    files: SummaryFiles, store: SqliteStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await files.kept(await keep(store, 1))
    await settled(files)
    with structlog.testing.capture_logs() as logs, monkeypatch.context() as full:

        def no_room(*_: object, **__: object) -> None:
            raise OSError(28, "No space left on device")

        full.setattr(summary_files, "write_private", no_room)
        for number in (2, 3):
            await files.kept(await keep(store, number))
            await settled(files)
        await files.outdated("main", "L1-0001")
        await files.kept(await keep(store, 1, summarizer="better"))
    assert [line["action"] for line in logs] == ["summaries.fail"]
    assert "No space left on device" in logs[0]["detail"]
    await files.kept(await keep(store, 4))
    await settled(files)
    assert [(line["id"], line["summarizer"]) for line in index_of(folder)["summaries"]] == [
        ("L1-0001", "better"),
        ("L1-0002", "extractive"),
        ("L1-0003", "extractive"),
        ("L1-0004", "extractive"),
    ]
    assert len(pages(folder)) == 4


async def test_compression_goes_on_where_files_cannot_be_written(tmp_path: Path) -> None:
    Home(tmp_path).summaries.write_text("in the way")
    async with small_memory(tmp_path) as memory:
        await talk(memory, 60)
        await caught_up(memory)
        assert {one.level for one in (await memory.summaries("main", limit=100)).summaries} == {1, 2, 3}
        assert not (await memory.status("main")).backlog


async def test_a_write_that_breaks_off_leaves_nothing_unfinished(
    files: SummaryFiles, store: SqliteStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:

        def fail(*_: object) -> None:
            raise OSError(5, "Input/output error")

        broken.setattr(Path, "replace", fail)
        await files.kept(await keep(store, 1))
    assert not [name for _, _, names in os.walk(folder) for name in names]


async def test_many_at_once_leave_all_of_them(files: SummaryFiles, store: SqliteStore, folder: Path) -> None:
    kept = [await keep(store, number) for number in range(1, 21)]
    await asyncio.gather(*(files.kept(one) for one in kept), settled(files))
    await settled(files)
    assert len(index_of(folder)["summaries"]) == len(pages(folder)) == 20


async def test_a_summary_that_was_imported_has_its_page_never_beside_a_forget(tmp_path: Path, folder: Path) -> None:
    async with small_memory(tmp_path) as memory:
        await talk(memory, 20)
        await caught_up(memory)
        background = memory._background
        summaries = await background._store.summaries("main")
        for path in folder.rglob("*.md"):
            path.unlink()
        async with background.runner.apart("main"):  # as a forget is
            await background.imported([], summaries)
            # Whoever would write now has had every chance to.
            assert [run.error for run in await background.runner.now("main", ["index"])] == [None]
            assert pages(folder) == []
        await caught_up(memory)
        await assert_complete(memory, folder)
