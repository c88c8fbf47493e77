from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from offbook.ingest.entries import prepare
from offbook.log.blobs import BlobFiles
from offbook.log.sqlite.store import SqliteStore
from offbook.model.errors import StoreFull
from offbook.model.types import AuditDraft, Message, Scope, SessionGaps
from offbook.projections import indexes as indexes_module
from offbook.projections.indexes import BATCH, Indexes, folder_name
from offbook.search.candidates import matching_rows
from offbook.search.index import text as saying
from offbook.search.index.agent_index import AgentIndex
from tests.unit.log.sqlite.test_sqlite import tamper
from tests.unit.projections.conftest import CHAT, add, indexed, numbered, open_indexes, places_of, until


async def rows_with(indexes: Indexes, keyword: str, agent_id: str = "main") -> list[int]:
    async with indexes.following(agent_id, seconds=10) as (index, _):
        return matching_rows(index, keyword, None, 1_000).tolist()


# ── following ──


async def test_whatever_was_acknowledged_before_is_found(store: SqliteStore, indexes: Indexes) -> None:
    for number in range(5):
        await add(store, f"the cat number{number}")
        assert await indexed(indexes) == await places_of(store)
        assert await rows_with(indexes, f"number{number}") == [number]


async def test_a_long_log_is_taken_in_batches_as_time_allows(store: SqliteStore, indexes: Indexes) -> None:
    for first in range(0, 5 * BATCH, 50):
        await add(store, *numbered(50, f"batch{first}"))
    async with indexes.following("main", seconds=0, is_patient=True) as (index, has_all):
        assert (index.rows.count, has_all) == (BATCH, False)
    assert await indexed(indexes) == await places_of(store)


async def test_an_agent_without_messages_has_an_empty_index(indexes: Indexes) -> None:
    assert await indexed(indexes, "nobody") == []
    await indexes.commit("nobody", at_once=True)
    assert indexes.peek("stranger") is None
    await indexes.commit("stranger")


async def test_noise_has_no_row(store: SqliteStore, indexes: Indexes) -> None:
    await add(store, "a cat")
    await add(store, "HEARTBEAT_OK", noise="heartbeat")
    await add(store, Message(role="system", content="You are an assistant."), Message(role="tool", content="42 files"))
    places = await places_of(store)
    assert await indexed(indexes) == [places[0], places[2], places[3]]


async def test_agents_have_indexes_of_their_own(store: SqliteStore, indexes: Indexes) -> None:
    other = Scope(agent_id="other", session_id="chat")
    await add(store, "my cat")
    await add(store, "another cat", scope=other)
    assert await indexed(indexes) == await places_of(store)
    assert await indexed(indexes, "other") == await places_of(store, "other")
    assert indexes.open_agents() == ["main", "other"]


def test_a_folder_is_of_one_agent_and_safe() -> None:
    names = ["ada", "Ada", "ada/..", "ada ", "..", "ada" * 80, "ada" * 80 + "!", "阿达", "CON"]
    folders = [folder_name(name) for name in names]
    assert len({folder.lower() for folder in folders}) == len(names)
    assert all(len(folder) < 60 and "/" not in folder and not folder.startswith(".") for folder in folders)


@pytest.mark.parametrize("mode", [None, 0o755])
async def test_only_the_owner_can_look_into_the_folder(
    store: SqliteStore, indexes: Indexes, tmp_path: Path, mode: int | None
) -> None:
    folder = tmp_path / "index"
    if mode is not None:
        folder.mkdir(mode=mode)
    await add(store, "a cat")
    await indexed(indexes)
    assert [path.stat().st_mode & 0o777 for path in (folder, folder / folder_name("main"))] == [0o700, 0o700]


async def test_two_that_follow_at_once_take_each_message_once(store: SqliteStore, indexes: Indexes) -> None:
    async def write() -> None:
        for number in range(40):
            await add(store, *numbered(15, f"batch{number}"))

    async def follow() -> None:
        for _ in range(40):
            async with indexes.following("main", seconds=0.01):
                await asyncio.sleep(0)

    await asyncio.gather(write(), *(follow() for _ in range(4)))
    assert await indexed(indexes) == await places_of(store)


async def test_a_large_text_is_found_by_its_words(
    store: SqliteStore, blobs: BlobFiles, indexes: Indexes, tmp_path: Path
) -> None:
    text = "A long report. " + "filler text " * 8_000 + " the lighthouse at the very end"
    prepared = prepare(Message(role="user", content=text), frame_key=b"k" * 32, externalise_over=65_536, redacts=False)
    assert prepared.large
    for data in prepared.large:
        await blobs.put("main", data)
    event = AuditDraft(verb="onMessage", actor="test", session_id=CHAT.session_id)
    await store.append(CHAT, [prepared.entry], event, gaps=SessionGaps())
    assert await rows_with(indexes, "lighthouse") == [0]
    for path in (tmp_path / "blobs").rglob("*"):
        if path.is_file():
            path.unlink()
    await indexes.rebuild("main")
    assert await indexed(indexes) == await places_of(store), "where it is lost its stand-in is indexed"
    assert await rows_with(indexes, "lighthouse") == []


# ── damage, other histories ──


async def test_a_damaged_message_is_passed_over_and_the_others_are_found(
    store: SqliteStore, indexes: Indexes, tmp_path: Path
) -> None:
    for number in range(10):
        await add(store, f"cat number{number}")
    places = await places_of(store)
    tamper(tmp_path / "offbook.db", f"UPDATE messages SET content = '{{' WHERE place = {places[4]}")
    assert await indexed(indexes) == [*places[:4], *places[5:]]
    assert await rows_with(indexes, "number9") == [8]


async def test_another_history_under_the_same_name_begins_anew(blobs: BlobFiles, tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "one.db")
    await add(store, *numbered(5))
    indexes = open_indexes(store, blobs, tmp_path)
    await indexed(indexes)
    await indexes.close()
    await store.close()
    restored = SqliteStore(tmp_path / "other.db")
    await add(restored, "quite another history")
    indexes = open_indexes(restored, blobs, tmp_path)
    assert await indexed(indexes) == await places_of(restored)
    assert await rows_with(indexes, "message") == []
    await indexes.close()
    await restored.close()


async def test_it_is_opened_again_where_it_was(store: SqliteStore, blobs: BlobFiles, tmp_path: Path) -> None:
    await add(store, *numbered(5))
    indexes = open_indexes(store, blobs, tmp_path)
    await indexed(indexes)
    await indexes.close()
    again = open_indexes(store, blobs, tmp_path)
    await add(store, "one more")
    async with again.following("main", seconds=10) as (index, _):
        assert index.checkpointed_event == 1
        assert index.rows.count == 6
    await again.close()


# ── rebuilding ──


async def test_rebuilt_it_is_the_same_as_before(store: SqliteStore, indexes: Indexes) -> None:
    await add(store, *numbered(50))
    before = await indexed(indexes)
    await indexes.rebuild("main")
    index = indexes.peek("main")
    assert index is not None
    assert index.rows.count == 0
    assert await indexed(indexes) == before
    assert await rows_with(indexes, "number49") == [49]


async def test_made_anew_of_the_one_before_it_is_the_same(
    store: SqliteStore, indexes: Indexes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no message is read again for what was known of it."""
    await add(store, "Ada: is the cat in?", "I don't know anything about that.", "Thanks!", "Do you remember the cat?")
    await add(store, *numbered(2 * BATCH))
    await add(store, Message(role="assistant", content="I have no memory of that."))
    await indexed(indexes)
    read: list[str] = []
    asks = saying.asks
    monkeypatch.setattr(saying, "asks", lambda text: read.append(text) or asks(text))
    await indexes.rebuild("main")
    await indexed(indexes)
    index = indexes.peek("main")
    assert index is not None
    expected = index.rows.view().copy()
    assert len(set(expected["flags"].tolist())) > 2
    assert len(read) == len(expected)
    read.clear()
    await indexes.rebuild("main", keeps_flags=True)
    await add(store, "Is it new?")
    await indexed(indexes)
    index = indexes.peek("main")
    assert index is not None
    assert index.rows.view()[:-1].tolist() == expected.tolist()
    assert read == ["Is it new?"]


async def test_who_reads_while_it_is_rebuilt_reads_on(store: SqliteStore, indexes: Indexes) -> None:
    await add(store, *numbered(100))
    await indexed(indexes)
    await indexes.commit("main", at_once=True)
    async with indexes.following("main", seconds=1) as (index, _):
        await indexes.rebuild("main")
        assert index.rows.count == 100
        assert len(index.text.search(["messag"], 1_000)) == 100
        assert indexes.peek("main") is not index
    assert await indexed(indexes) == await places_of(store)


# ── many agents ──


async def test_only_so_many_are_open_and_what_was_used_first_goes_first(
    store: SqliteStore, indexes: Indexes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexes_module, "MOST_OPEN", 3)
    for number in range(6):
        await add(store, "a cat", scope=Scope(agent_id=f"agent-{number}", session_id="chat"))
    for number in range(6):
        assert len(await indexed(indexes, f"agent-{number}")) == 1
    assert indexes.open_agents() == ["agent-3", "agent-4", "agent-5"]
    async with indexes.following("agent-3", seconds=1) as (index, _):
        for number in range(3):
            await indexed(indexes, f"agent-{number}")
        assert indexes.peek("agent-3") is index, "who is used stays"
        assert len(indexes.open_agents()) == 3
    for number in range(6):
        assert len(await indexed(indexes, f"agent-{number}")) == 1, "what was let go was committed"


async def test_many_agents_at_once_with_few_open(
    store: SqliteStore, indexes: Indexes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexes_module, "MOST_OPEN", 2)

    async def live(agent_id: str) -> None:
        for number in range(6):
            await add(store, f"cat number{number}", scope=Scope(agent_id=agent_id, session_id="chat"))
            assert len(await indexed(indexes, agent_id)) == number + 1
            await indexes.commit(agent_id, at_once=number % 2 == 0)

    async with asyncio.timeout(60):
        await asyncio.gather(*(live(f"agent-{number}") for number in range(5)))
    for number in range(5):
        assert await indexed(indexes, f"agent-{number}") == await places_of(store, f"agent-{number}")


# ── cancelled, broken off ──


def slow(monkeypatch: pytest.MonkeyPatch, method: str) -> tuple[threading.Event, threading.Event]:
    """Makes the method wait in its thread; returns what says that it has begun, and what lets it go on."""
    begun, may_go_on = threading.Event(), threading.Event()
    as_it_is: Callable[..., Any] = getattr(AgentIndex, method)

    def slowly(self: AgentIndex, *args: Any) -> Any:
        begun.set()
        assert may_go_on.wait(60)
        return as_it_is(self, *args)

    monkeypatch.setattr(AgentIndex, method, slowly)
    return begun, may_go_on


@pytest.mark.parametrize("method", ["take", "commit"])
async def test_who_is_cancelled_leaves_nothing_half_done_and_lets_nobody_in_between(
    store: SqliteStore, indexes: Indexes, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    await indexed(indexes)
    await add(store, *numbered(20))
    begun, may_go_on = slow(monkeypatch, method)

    async def work() -> None:
        await indexed(indexes)
        await indexes.commit("main", at_once=True)

    first = asyncio.create_task(work())
    await until(begun.is_set)
    first.cancel()
    second = asyncio.create_task(work())
    await asyncio.sleep(0.05)
    first.cancel()
    await asyncio.sleep(0.05)
    assert not first.done()
    assert not second.done()
    may_go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await first
    await second
    assert await indexed(indexes) == await places_of(store)
    await indexes.close()


async def test_a_full_disk_breaks_nothing(
    store: SqliteStore, indexes: Indexes, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(store, *numbered(5))
    await indexed(indexes)
    await indexes.commit("main", at_once=True)
    await add(store, *numbered(5, "extra"))
    with monkeypatch.context() as patch:

        def refuse(*args: object) -> None:
            raise OSError(28, "No space left on device")

        patch.setattr("offbook.search.index.text.TextIndex.add", refuse)
        for _ in range(2):
            with pytest.raises(StoreFull, match="No space left"):
                await indexed(indexes)
    assert await indexed(indexes) == await places_of(store), "and each message once"
    assert await rows_with(indexes, "extra") == list(range(5, 10))
    await indexes.commit("main", at_once=True)


# ── committing ──


async def test_a_commit_is_made_about_once_a_second_unless_at_once(
    store: SqliteStore, indexes: Indexes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexes_module, "COMMIT_SECONDS", 60)
    await add(store, "one cat")
    await indexed(indexes)
    index = indexes.peek("main")
    assert index is not None
    await indexes.commit("main")
    assert index.is_dirty
    await indexes.commit("main", at_once=True)
    assert not index.is_dirty
    await add(store, "two cats")
    await indexed(indexes)
    monkeypatch.setattr(indexes_module, "COMMIT_SECONDS", 0)
    await indexes.commit("main")
    assert not index.is_dirty


async def test_without_news_it_rests(store: SqliteStore, indexes: Indexes, monkeypatch: pytest.MonkeyPatch) -> None:
    await add(store, "one cat")
    await indexed(indexes)
    await indexes.commit("main", at_once=True)
    monkeypatch.setattr(indexes_module, "REST_SECONDS", 0)
    await indexes.commit("main")
    index = indexes.peek("main")
    assert index is not None
    assert index.text._writer is None
    await add(store, "two cats")
    assert len(await indexed(indexes)) == 2


async def test_a_change_is_made_alone_and_gives_its_answer(store: SqliteStore, indexes: Indexes) -> None:
    await add(store, "one cat")
    await indexed(indexes)
    busy = []

    def work(index: AgentIndex) -> int:
        busy.append(1)
        assert len(busy) == 1
        time.sleep(0.01)
        busy.pop()
        return index.rows.count

    assert await asyncio.gather(*(indexes.change("main", work) for _ in range(5))) == [1] * 5


# ── who waits for an answer ──


async def test_who_cannot_wait_has_what_there_is_in_time(
    store: SqliteStore, indexes: Indexes, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(store, *numbered(5))
    await indexed(indexes)
    await add(store, *numbered(5, "newer"))
    begun, may_go_on = slow(monkeypatch, "take")
    worker = asyncio.create_task(indexed(indexes))
    await until(begun.is_set)
    for is_patient in (False, True):
        started = time.monotonic()
        async with indexes.following("main", seconds=0.1, is_patient=is_patient) as (index, has_all):
            assert time.monotonic() - started < 20
            assert (index.rows.count, has_all) == (5, False)
    may_go_on.set()
    await worker
    assert await indexed(indexes) == await places_of(store)


async def test_what_cannot_be_written_can_be_read(
    store: SqliteStore, indexes: Indexes, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(store, *numbered(5))
    await indexed(indexes)
    await indexes.commit("main", at_once=True)
    await add(store, *numbered(5, "extra"))
    with monkeypatch.context() as patch:

        def refuse(*args: object) -> None:
            raise OSError(28, "No space left on device")

        patch.setattr("offbook.search.index.text.TextIndex.add", refuse)
        for _ in range(2):
            async with indexes.following("main", seconds=5) as (index, has_all):
                assert (index.rows.count, has_all) == (5, False)
                assert matching_rows(index, "message", None, 100).tolist() == list(range(5))
            assert "No space left" in (indexes.trouble("main") or "")
    assert await rows_with(indexes, "extra") == list(range(5, 10))
    await indexes.commit("main", at_once=True)
    assert indexes.trouble("main") is None


async def test_what_fails_while_its_caller_is_cancelled_is_opened_again(
    store: SqliteStore, indexes: Indexes, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(store, *numbered(5))
    await indexed(indexes)
    await indexes.commit("main", at_once=True)
    await add(store, *numbered(5, "extra"))
    begun, may_go_on = threading.Event(), threading.Event()
    with monkeypatch.context() as patch:

        def refuse(*args: object) -> None:
            begun.set()
            assert may_go_on.wait(60)
            raise OSError(28, "No space left on device")

        patch.setattr("offbook.search.index.text.TextIndex.add", refuse)
        task = asyncio.create_task(indexed(indexes))
        await until(begun.is_set)
        task.cancel()
        may_go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await indexed(indexes) == await places_of(store), "each once"
    assert await rows_with(indexes, "extra") == list(range(5, 10))


async def test_one_agent_is_opened_while_another_takes_long(
    store: SqliteStore, indexes: Indexes, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_go_on = threading.Event(), threading.Event()
    opened: list[str] = []
    as_it_is = AgentIndex.__init__

    def slowly(self: AgentIndex, folder: Path, **kwargs: Any) -> None:
        opened.append(folder.name)
        if folder.name.startswith("slow"):
            begun.set()
            assert may_go_on.wait(60)
        as_it_is(self, folder, **kwargs)

    monkeypatch.setattr(AgentIndex, "__init__", slowly)
    tasks = [asyncio.create_task(indexed(indexes, "slow")) for _ in range(3)]
    await until(begun.is_set)
    async with asyncio.timeout(120):
        assert await indexed(indexes, "quick") == []
    may_go_on.set()
    await asyncio.gather(*tasks)
    assert len(opened) == 2, "each once"
    assert indexes._opening == {}
