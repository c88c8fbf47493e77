"""A backup put back as it was at a moment: compared with what was there at that moment."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest

from offbook.api.memory import Memory
from offbook.log.audit_chain import fingerprint, moment
from offbook.log.blobs import BlobFiles
from offbook.log.sql import ledger
from offbook.log.sqlite.connection import open_reader
from offbook.log.sqlite.point_in_time import Cut, cut_after
from offbook.log.sqlite.store import SqliteStore
from offbook.log.verification import verify
from offbook.model.content import text_of
from offbook.model.errors import InvalidInput, StoreCorrupt
from offbook.model.home import Home
from offbook.model.types import AuditDraft, Entry, Message, Scope, SessionGaps, now
from offbook.transfer.backup import check_archive, restore, write_backup
from offbook.transfer.backup.archive import Manifest
from offbook.transfer.backup.restoring import cut_unpacked
from tests.contract.test_store_compression import context as handed
from tests.places import REPOSITORY
from tests.unit.small_memory import caught_up, exchange, small_memory, user
from tests.unit.transfer.backup.conftest import LARGE

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
AHEAD = range(5000, 5010)
AS_IT_WAS = {
    "messages": "SELECT a.name, s.key, m.* FROM messages m JOIN sessions s ON s.session = m.session "
    "JOIN agents a ON a.agent = s.agent ORDER BY m.place",
    "sessions": "SELECT a.name, s.key, s.generation, s.started_at, s.ended_at, iif(s.ended_at, s.end_reason, NULL), "
    "iif(s.ended_at, s.ended_seq, NULL) FROM sessions s JOIN agents a ON a.agent = s.agent ORDER BY s.session",
    "marks": "SELECT * FROM marks ORDER BY mark",
    "audit": "SELECT * FROM audit ORDER BY agent, seq",
    "pins": "SELECT place, pin FROM holds WHERE pin IS NOT NULL ORDER BY place",
    "summaries": "SELECT summary, agent, level, number, session, first_seq, last_seq, parent FROM summaries ORDER BY 1",
    "texts": "SELECT * FROM summary_texts ORDER BY summary",
    "spans": "SELECT * FROM summary_spans ORDER BY session, level, last_seq",
    "contexts": "SELECT context, session, generation, at FROM contexts ORDER BY context",
    "turns": "SELECT memory, agent, session_key, at FROM turn_memories ORDER BY memory",
    "supersessions": "SELECT old_place, new_place, kind FROM supersessions ORDER BY 1, 2",
    "notes": "SELECT agent, name, value FROM agent_notes WHERE name IN ('cross-search', 'offloaded-through') ORDER BY 1, 2",
    "agents": "SELECT agent, name FROM agents ORDER BY agent",
}


class Then(NamedTuple):
    at: datetime
    what: str
    rows: dict[str, list[Any]]


def rows_of(database: Path, *left_out: str) -> dict[str, list[Any]]:
    connection = open_reader(database)
    try:
        return {name: connection.execute(query).fetchall() for name, query in AS_IT_WAS.items() if name not in left_out}
    finally:
        connection.close()


class Diary:
    """What was there, time and again."""

    def __init__(self, memory: Memory, home: Path) -> None:
        self._memory = memory
        self._database = home / "offbook.db"
        self.entries: list[Then] = []

    async def write(self, what: str) -> None:
        """The same before and after the moment, so at it: the background may be between two of its steps."""
        while True:
            await caught_up(self._memory)
            await asyncio.sleep(0.1)
            before, at, after = rows_of(self._database), now(), rows_of(self._database)
            if before == after and not (await self._memory.ping()).backlog:
                self.entries.append(Then(at, what, before))
                await asyncio.sleep(0.005)
                return


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Then]]:
    """A memory that has seen something of everything, its backup, and its diary."""
    folder = tmp_path_factory.mktemp("lived")
    return asyncio.run(_live(folder))


async def _live(folder: Path) -> tuple[Path, list[Then]]:
    home = folder / "home"
    async with small_memory(home, prune_threshold=60, prune_keep=50) as memory:
        diary = Diary(memory, home)
        await diary.write("nothing")
        chat, other, bea = memory.scope("chat"), memory.scope("其他 🐘"), memory.scope("notes", "bea")
        for number in range(6):
            await memory.on_message(chat, exchange(number))
        await diary.write("a talk")
        await memory.on_message(other, [user("My cat is called Miro."), user(LARGE)])
        await memory.session_end(other, reason="idle")
        await diary.write("another that ended")
        await memory.pin("main", session_id="其他 🐘")
        await memory.swap(chat, used_tokens=99, context_window=100, force=True)
        await diary.write("pinned and swapped")
        await memory.on_message(bea, [user("Bea's note with 大象")])
        await memory.cross("main", enabled=True)
        for number in range(6, 20):
            await memory.on_message(chat, exchange(number))
        await diary.write("a second agent, and more talk")
        await memory.on_message(other, [user("Correction: my cat is called Mira now.")])
        await memory.session_start(chat)
        await memory.on_message(memory.scope("later"), [user(LARGE + "2")])
        await diary.write("the cat again")
        await memory.cross("main", enabled=False)
        await memory.prepare_turn(chat, "What is my cat called?")
        await memory.swap(chat, used_tokens=99, context_window=100, force=True)
        for number in range(20, 40):
            await memory.on_message(chat, exchange(number))
        await memory.session_end(chat, reason="done")
        await memory.session_end(memory.scope("later"))
        await memory.maintain("main")
        await diary.write("much more")
        await memory.pin("main", keyword="cat")
        await diary.write("pinned more")
        await memory.on_message(bea, [user("the last")])
        await diary.write("the end")
    archive = folder / "made.tar.gz"
    await write_backup(Home(home), archive)
    return archive, diary.entries


async def faults_of(home: Home) -> list[Any]:
    store = SqliteStore(home.database)
    try:
        found: list[Any] = [fault async for fault in store.faults()]
        for agent in await store.agents():
            found += [fault async for fault in verify(store, agent, blobs=BlobFiles(home.blobs))]
    finally:
        await store.close()
    return found


# ── each moment ──


@pytest.mark.parametrize("number", range(1, 9))  # at the first there was nothing: see below
async def test_the_memory_is_as_it_was(number: int, lived: tuple[Path, list[Then]], tmp_path: Path) -> None:
    archive, diary = lived
    then = diary[number]
    home = Home(tmp_path / "then")
    restored = await restore(archive, home, at=then.at)
    assert restored.faults == []
    assert restored.cut is not None
    found = rows_of(home.database)
    for name in AS_IT_WAS:
        assert found[name] == then.rows[name], f"{name} after {then.what}"
    assert await faults_of(home) == []
    assert restored.manifest.messages == len(then.rows["messages"])
    assert [agent.agent_id for agent in restored.manifest.agents] == sorted(name for _, name in then.rows["agents"])
    assert not list(home.folder.glob("offbook.db-*"))


async def test_a_time_before_everything_is_refused_and_nothing_moves(
    lived: tuple[Path, list[Then]], tmp_path: Path
) -> None:
    home = Home(tmp_path / "then")
    await restore(lived[0], home)
    before = home.database.read_bytes()
    oldest = moment(min(row[2] for row in lived[1][-1].rows["audit"]))
    for at in (datetime(1999, 1, 1, tzinfo=UTC), lived[1][0].at, oldest - timedelta(microseconds=1)):
        told = re.escape(f"the oldest moment in this backup is {oldest.astimezone().isoformat()}.")
        with pytest.raises(InvalidInput, match=told):
            await restore(lived[0], home, at=at, force=True)
    assert home.database.read_bytes() == before
    assert [path.name for path in home.folder.iterdir() if path.name.startswith((".restore-", "before-"))] == []
    restored = await restore(lived[0], home, at=oldest, force=True)
    assert restored.cut is not None
    assert any(not agent.is_gone for agent in restored.cut.agents)


async def test_a_memory_of_nothing_is_put_back_as_at_any_moment(tmp_path: Path) -> None:
    archive = tmp_path / "made.tar.gz"
    async with small_memory(tmp_path / "home"):
        pass
    await write_backup(Home(tmp_path / "home"), archive)
    restored = await restore(archive, Home(tmp_path / "then"), at=datetime(1999, 1, 1, tzinfo=UTC))
    assert restored.manifest.agents == []


async def test_agents_of_whom_nothing_was_known_leave_nothing(lived: tuple[Path, list[Then]], tmp_path: Path) -> None:
    check_archive(lived[0], into=tmp_path)
    cut = cut_after(tmp_path / "offbook.db", datetime(1999, 1, 1, tzinfo=UTC))
    assert all(agent.is_gone for agent in cut.agents)
    assert cut.messages == check_archive(lived[0]).messages
    connection = apsw.Connection(str(tmp_path / "offbook.db"))
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()]
    left = {name: connection.execute(f"SELECT count(*) FROM {name}").get for name in tables}
    connection.close()
    assert {name: rows for name, rows in left.items() if rows and not name.startswith("sqlite_")} == {"installation": 2}


async def test_a_time_after_the_backup_is_refused_with_that_of_the_backup(
    lived: tuple[Path, list[Then]], tmp_path: Path
) -> None:
    made_at = check_archive(lived[0]).created_at
    with pytest.raises(InvalidInput, match=f"is of {made_at.astimezone():%Y-%m-%d %H:%M:%S}"):
        await restore(lived[0], Home(tmp_path / "then"), at=made_at + timedelta(seconds=1))
    assert not (tmp_path / "then").exists()


async def test_the_time_of_the_backup_cuts_nothing(lived: tuple[Path, list[Then]], tmp_path: Path) -> None:
    archive, diary = lived
    restored = await restore(archive, Home(tmp_path / "then"), at=check_archive(archive).created_at)
    assert restored.cut is not None
    assert (restored.cut.agents, restored.cut.unknown) == ([], [])
    assert restored.manifest == check_archive(archive)
    assert rows_of(tmp_path / "then" / "offbook.db") == diary[-1].rows


async def test_what_went_is_in_no_file(lived: tuple[Path, list[Then]], tmp_path: Path) -> None:
    archive, diary = lived
    home = Home(tmp_path / "then")
    await restore(archive, home, at=diary[2].at)
    held = b"".join(path.read_bytes() for path in home.folder.rglob("*") if path.is_file())
    assert b"Miro" in held
    assert b"module_5" in held
    for later in (b"Mira", b"module_19", "大象".encode(), b"the last", (LARGE + "2")[-200:].encode()):
        assert later not in held


async def test_it_goes_on_from_there(lived: tuple[Path, list[Then]], tmp_path: Path) -> None:
    archive, diary = lived
    home = Home(tmp_path / "then")
    await restore(archive, home, at=diary[3].at)
    async with small_memory(home.folder) as memory:
        found = await memory.recall(memory.scope("chat"), "What is my cat called?")
        assert any("Miro" in entry.text for entry in found.entries)
        assert not any("Mira" in entry.text for entry in found.entries)
        await memory.on_message(memory.scope("chat"), exchange(99))
        for number in range(50, 80):
            await memory.on_message(memory.scope("chat"), exchange(number))
        await memory.swap(memory.scope("chat"), used_tokens=99, context_window=100, force=True)
        await caught_up(memory)
        assert (await memory.status("main")).summaries.counts
    assert await faults_of(home) == []


async def test_a_folder_with_data_is_left_alone_unless_forced(lived: tuple[Path, list[Then]], tmp_path: Path) -> None:
    archive, diary = lived
    home = Home(tmp_path / "then")
    await restore(archive, home)
    before = home.database.read_bytes()
    with pytest.raises(InvalidInput, match="--force"):
        await restore(archive, home, at=diary[2].at)
    assert home.database.read_bytes() == before
    restored = await restore(archive, home, at=diary[2].at, force=True)
    assert restored.moved_to is not None
    assert (Path(restored.moved_to) / "offbook.db").read_bytes() == before
    async with small_memory(home.folder) as memory:  # with the index of the longer history beside it
        found = await memory.recall(memory.scope("chat"), "module_19 error")
        assert not any("module_19" in entry.text for entry in found.entries)


async def test_a_cut_that_fails_changes_nothing(
    lived: tuple[Path, list[Then]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(path: Path, at: datetime) -> Cut:
        cut_after(path, at)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("offbook.transfer.backup.restoring.cut_after", breaks)
    home = Home(tmp_path / "then")
    with pytest.raises(Exception, match="no room"):
        await restore(lived[0], home, at=lived[1][2].at)
    assert [path.name for path in home.folder.iterdir() if path.name != "offbook.lock"] == []


# ── what cannot be known, and what stays ──


async def test_what_was_forgotten_since_stays_forgotten(tmp_path: Path) -> None:
    async with small_memory(tmp_path / "home") as memory:
        for text in ("the secret of 1234", "something else", "the secret of 5678"):
            await memory.on_message(memory.scope("chat"), [user(text)])
        then = now()
        await asyncio.sleep(0.01)
        await memory.on_message(memory.scope("chat"), [user("the secret of 9999")])
        await memory.on_message(memory.scope("new"), [user("a secret elsewhere")])
        await memory.forget("main", matching="secret")
        await caught_up(memory)
    archive, home = tmp_path / "made.tar.gz", Home(tmp_path / "then")
    await write_backup(Home(tmp_path / "home"), archive)
    restored = await restore(archive, home, at=then)
    assert restored.faults == []
    assert await faults_of(home) == []
    async with small_memory(home.folder) as memory:
        lines = (await memory.log(memory.scope("chat"))).messages
    assert len(lines) == 3
    assert [line.message.content for line in lines if "secret" in str(line.message.content)] == []


async def test_what_cannot_be_known_is_told(tmp_path: Path) -> None:
    async with small_memory(tmp_path / "home") as memory:
        await memory.on_message(memory.scope("chat"), [user("one about cats"), user("two about dogs")])
        await memory.pin("main", session_id="chat")
        then = now()
        await asyncio.sleep(0.01)
        await memory.pin("main", keyword="cats", pinned=False)
        await memory.recall(memory.scope("chat"), "dogs")
    archive = tmp_path / "made.tar.gz"
    await write_backup(Home(tmp_path / "home"), archive)
    restored = await restore(archive, Home(tmp_path / "then"), at=then)
    assert restored.cut is not None
    assert [told.split(": ")[1][:14] for told in restored.cut.unknown] == ["which messages", "how often mess"]


async def said_by(path: Path, hours: Sequence[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A message and a context at each of these hours after NOON, in this order."""
    store = SqliteStore(path)
    scope = Scope(agent_id="main", session_id="chat")
    for number, hour in enumerate(hours):
        at = NOON + timedelta(hours=hour)
        monkeypatch.setattr(ledger, "now", lambda at=at: at)
        message = Message(role="user", content=f"message {number}")
        entry = Entry(message=message, chars=len(text_of(message.content)), fingerprint=fingerprint(message))
        event = AuditDraft(verb="onMessage", actor="test", session_id="chat")
        await store.append(scope, [entry], event, gaps=SessionGaps())
        await store.hand_over(scope, handed(number + 1, at), None)
    await store.close()


async def left_in(path: Path) -> tuple[int, int]:
    """Messages and contexts; and it is without a fault."""
    store = SqliteStore(path)
    scope = Scope(agent_id="main", session_id="chat")
    messages = len(await store.messages(scope, after_seq=0, limit=50))
    assert [fault async for fault in verify(store, "main")] == []
    await store.close()
    return messages, len(rows_of(path)["contexts"])


@pytest.mark.parametrize(
    ("hours", "at", "left"),
    [
        ([0, 5000, 1, 2, 3], 2, (4, 3)),  # for a while it was ahead: what came after was there
        ([0, 1, 700, 800, -9999, 900, 901], 2, (2, 2)),  # for a while behind: what came before was not
        ([0, 700, -9999, 800], 2, (1, 1)),  # as many say this as that: the first
        ([0, 1, 2, 3, 1, 2, 3, 4], 9, (8, 8)),
        ([*AHEAD, *range(8)], 4, (15, 5)),  # ahead from the beginning, then set right: what came by then was there
        ([*AHEAD, *range(8)], 9, (18, 18)),
        ([*AHEAD, 0, 1, 2, 3, -9999, 5, 6], 3, (14, 4)),
        ([*range(6, 16), *range(1, 9)], 5, (15, 5)),  # by hours only
    ],
)
async def test_a_clock_that_was_wrong_for_a_while_is_told_and_decides_nothing(
    hours: list[int], at: int, left: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "offbook.db"
    await said_by(path, hours, monkeypatch)
    cut = cut_after(path, NOON + timedelta(hours=at))
    assert await left_in(path) == left
    assert cut.messages == len(hours) - left[0]
    is_wrong = max(hours) > at
    assert ["the clock was wrong for a while" in told for told in cut.unknown] == [True] * is_wrong
    assert cut_after(path, NOON + timedelta(hours=at)).agents == [], "done twice it changes nothing"


@pytest.mark.parametrize("hours", [[0, 1, -9999, 2], [0, 1, 2, -9999, -9998, 3, 4]])
async def test_a_moment_that_only_a_wrong_clock_names_is_refused(
    hours: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await said_by(tmp_path / "offbook.db", hours, monkeypatch)
    manifest = Manifest(1, "0", 1, NOON, agents=[], files=[], missing=[])
    with pytest.raises(InvalidInput, match="only events of a wrong clock say an earlier time"):
        cut_unpacked(tmp_path, manifest, NOON - timedelta(hours=5))


@pytest.mark.parametrize("made_by", ["made_by_0001.sql", "made_by_0002.sql", "made_by_0003.sql"])
def test_a_store_of_an_older_offbook_is_cut_too(made_by: str, tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / "offbook.db"))
    connection.execute((REPOSITORY / "tests" / "unit" / "log" / made_by).read_text())
    connection.close()
    cut = cut_after(tmp_path / "offbook.db", datetime(1999, 1, 1, tzinfo=UTC))
    assert cut.agents
    assert all(agent.is_gone for agent in cut.agents)


@pytest.mark.parametrize("details", ["{}x", '{"accepted": 1}', '{"accepted": "x", "firstSeq": []}', "[]"])
def test_a_chain_that_cannot_be_followed_is_told_and_nothing_is_cut(
    details: str, lived: tuple[Path, list[Then]], tmp_path: Path
) -> None:
    archive, diary = lived
    check_archive(archive, into=tmp_path)
    connection = apsw.Connection(str(tmp_path / "offbook.db"))
    connection.execute("UPDATE audit SET details = ? WHERE verb = 'onMessage' AND agent = 1", (details,))
    connection.close()
    before = rows_of(tmp_path / "offbook.db", "audit")
    with pytest.raises(StoreCorrupt):
        cut_after(tmp_path / "offbook.db", diary[4].at)
    assert rows_of(tmp_path / "offbook.db", "audit") == before
