"""A damaged database file: doctor names it, `--fix` saves all that does not stand on a damaged page, and it goes on."""

from __future__ import annotations

import asyncio
import json
import random
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

import apsw
import pytest
from click.testing import CliRunner, Result
from docs.generate.pages import DETAIL_MEANINGS

from offbook.api.doctor import mend_log
from offbook.api.doctor.record import check_store
from offbook.cli.root import root
from offbook.log.sql.head import head_path
from offbook.log.sqlite.point_in_time import cut_after
from offbook.log.sqlite.salvage import salvage
from offbook.log.sqlite.salvaged_chain import LOST_TEXT
from offbook.log.sqlite.store import SqliteStore
from offbook.log.verification import salvages, verify
from offbook.model.home import Home, Lock
from offbook.model.record import MessageRecord
from offbook.model.types import LOST, Fault, LoggedMessage, Message, Scope
from offbook.transfer.backup import damage
from tests.unit.small_memory import exchange, small_memory, user

PAGE = 4096
SMALL, LARGE = 64, 3
"""Messages on one page, and messages that reach over several."""
AGENTS = {"main": ("chat", "desk"), "second": ("chat",)}
MARKER = re.compile(rb"<([a-z]+/[a-z]+/\d+)>")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every message has a name that stands in it again and again."""
    folder = tmp_path_factory.mktemp("made") / "home"
    asyncio.run(_make(folder))
    return folder


async def _make(folder: Path) -> None:
    async with small_memory(folder) as memory:
        for agent, sessions in AGENTS.items():
            for session in sessions:
                scope = memory.scope(session, agent)
                for number in range(6):
                    await memory.on_message(scope, exchange(number))
                for first in range(13, 13 + SMALL, 8):
                    await memory.on_message(scope, [_named(scope, seq, 5) for seq in range(first, first + 8)])
                for seq in range(13 + SMALL, 13 + SMALL + LARGE):
                    await memory.on_message(scope, [_named(scope, seq, 900)])
        await memory.session_end(memory.scope("desk"))
        await memory.forget("main", matching="stale cache of 3 MB")
        await memory.maintain("main")
        await memory.maintain("second")


def _named(scope: Scope, seq: int, times: int) -> Message:
    return user(f"<{scope.agent_id}/{scope.session_id}/{seq}> was said here. " * times, id=f"id-{seq}")


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Home:
    return Home(shutil.copytree(made, tmp_path / "home"))


def overwrite(path: Path, pages: Iterable[int], seed: int) -> None:
    with path.open("r+b") as file:
        for page in pages:
            file.seek((page - 1) * PAGE)
            file.write(random.Random(seed * 1_000 + page).randbytes(PAGE))


def names_on(path: Path, pages: Iterable[int]) -> set[str]:
    data = path.read_bytes()
    return {name.decode() for page in pages for name in MARKER.findall(data[(page - 1) * PAGE : page * PAGE])}


async def everything(path: Path) -> dict[tuple[str, str, int], LoggedMessage]:
    store = SqliteStore(path, read_only=True)
    try:
        found = {}
        for agent in await store.agents():
            for session in await store.sessions(agent):
                scope = Scope(agent_id=agent, session_id=session.session_id)
                page = await store.messages(scope, limit=10_000)
                assert [one.seq for one in page] == list(range(1, len(page) + 1))
                found |= {(agent, session.session_id, one.seq): one for one in page}
        return found
    finally:
        await store.close()


async def faults_of(path: Path) -> list[Fault]:
    store = SqliteStore(path, read_only=True, snapshot=True)
    try:
        faults = [fault async for fault in store.faults()]
        faults += [fault async for fault in store.derived_faults()]
        return faults + [fault for agent in await store.agents() async for fault in verify(store, agent)]
    finally:
        await store.close()


def pages_of(path: Path) -> int:
    return path.stat().st_size // PAGE


async def test_a_sound_file_is_left_alone_and_would_lose_nothing(home: Home, tmp_path: Path) -> None:
    assert await mend_log(home, {}) == ([], [])
    assert not list(home.folder.glob("damaged-*"))
    salvaged = salvage(home.database, tmp_path / "fresh.db", kept_as="elsewhere")
    assert [(each.messages, each.events) for each in salvaged.agents] == [(0, 0), (0, 0)]
    assert await everything(tmp_path / "fresh.db") == await everything(home.database)
    assert await faults_of(tmp_path / "fresh.db") == []


def damaged_pages(path: Path, seed: int) -> set[int]:
    """Of every fourth seed also the first, which has the list of all tables."""
    chosen = random.Random(seed).sample(range(2, pages_of(path) + 1), 1 + seed % 12)
    return {*chosen, *([1] if seed % 4 == 0 else [])}


@pytest.mark.parametrize("seed", range(24))
async def test_what_does_not_stand_on_a_damaged_page_is_saved(home: Home, made: Path, seed: int) -> None:
    before = await everything(home.database)
    pages = damaged_pages(home.database, seed)
    on_them = names_on(home.database, pages)
    overwrite(home.database, pages, seed)
    salvage(home.database, home.folder / "fresh.db", kept_as="elsewhere", names=list(AGENTS))
    after = await everything(home.folder / "fresh.db")
    assert set(after) <= set(before)
    assert {"/".join(map(str, place)) for place in set(before) - set(after)} <= on_them
    for place, logged in after.items():
        if 12 < place[2] <= 12 + SMALL and "/".join(map(str, place)) not in on_them:
            assert logged == before[place]
        else:
            assert logged == before[place] or logged.message.content == LOST_TEXT
    assert await faults_of(home.folder / "fresh.db") == []


@pytest.mark.parametrize("seed", [3, 8])
async def test_it_is_found_mended_and_goes_on(home: Home, seed: int) -> None:
    overwrite(home.database, damaged_pages(home.database, seed), seed)
    damaged = home.database.read_bytes()
    assert any(finding.level == "fail" for finding in await check_store(home))
    done, unmended = await mend_log(home, {})
    assert unmended == []
    assert "saved into a fresh file" in done[0]
    (kept,) = home.folder.glob("damaged-*")
    assert (kept / home.database.name).read_bytes() == damaged
    assert {finding.level for finding in await check_store(home)} <= {"ok", "warn"}

    async with small_memory(home.folder) as memory:
        for agent, sessions in AGENTS.items():
            for session in sessions:
                scope = memory.scope(session, agent)
                receipt = await memory.on_message(scope, [user("It goes on after the salvage.")])
                assert receipt.first_seq == 13 + SMALL + LARGE
                context = await memory.get_compressed_context(scope, max_chars=20_000)
                assert "It goes on after the salvage." in str(context.messages)
            assert all(run.error is None for run in (await memory.maintain(agent)).runs)
        assert (await memory.recall(memory.scope("chat"), "It goes on after the salvage")).entries
        assert (await memory.audit("main")).verified
        assert [one for one in (await memory.export("main")).records if isinstance(one, MessageRecord)]
    assert await faults_of(home.database) == []
    assert await damage(home) == []


async def test_the_chain_names_what_is_lost_and_a_cut_before_it_still_does(home: Home, made: Path) -> None:
    gone = sorted(names_on(made / "offbook.db", [page_with(made, "main/desk/60")]))
    overwrite(home.database, [page_with(made, "main/desk/60")], 1)
    done, _ = await mend_log(home, {})
    seqs = sorted(int(name.rpartition("/")[2]) for name in gone)
    assert f"fixed: {done[1]}".endswith(f"session desk: messages {seqs[0]} to {seqs[-1]}")
    store = SqliteStore(home.database, read_only=True)
    (event,) = await salvages(store, "main")
    messages = await store.messages(Scope(agent_id="main", session_id="desk"), after_seq=seqs[0] - 1, limit=1)
    moment = (await store.audit_events("main", after_seq=event.seq - 3, limit=1))[0].at
    await store.close()
    assert event.details["spans"] == [{"sessionId": "desk", "firstSeq": seqs[0], "lastSeq": seqs[-1]}]
    assert event.details["kept"].startswith("damaged-")
    assert set(event.details) <= set(DETAIL_MEANINGS)
    assert (messages[0].entry.noise, messages[0].message.content) == (LOST, LOST_TEXT)

    tamper(home.database, "UPDATE audit SET verb = 'status' WHERE verb = 'salvage'")
    assert await faults_of(home.database) != []
    tamper(home.database, "UPDATE audit SET verb = 'salvage' WHERE seq = ?1 AND agent = 1", event.seq)
    assert not [fault for fault in await faults_of(home.database) if fault.agent_id == "main"]
    cut_after(home.database, moment)
    assert not [fault for fault in await faults_of(home.database) if fault.agent_id == "main"]


def test_the_commands_tell_of_it(home: Home, made: Path) -> None:
    overwrite(home.database, [page_with(made, "main/desk/60")], 1)

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(
            root, [*arguments, "--home", str(home.folder)], env={"OFFBOOK_HOME": str(home.folder)}
        )

    assert run("audit", "--verify").exit_code == 1
    fixed = run("doctor", "--fix")
    assert "saved into a fresh file" in fixed.stdout
    assert "was salvaged on" in fixed.stdout
    verified = run("audit", "--verify")
    assert verified.exit_code == 0
    assert "was salvaged on" in verified.stderr
    (event,) = json.loads(run("audit", "main", "--verify", "--json").stdout)["salvages"]["main"]
    assert event["details"]["lostMessages"] > 0
    assert "fixed" not in run("doctor", "--fix").stdout


async def test_a_stand_in_that_no_salvage_vouches_for_is_a_fault(home: Home) -> None:
    tamper(
        home.database,
        "UPDATE audit SET verb = 'lost', details = '{}' WHERE agent = 1 AND seq = 1",
        "UPDATE messages SET noise = 'lost', content = '\"[This message is lost]\"' WHERE place = (1 << 32) + 50",
    )
    assert {fault.seq for fault in await faults_of(home.database)} >= {1, 50}


async def test_what_is_in_the_write_ahead_log_is_saved_too(made: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(made, tmp_path / "running")
    home = Home(tmp_path / "home")
    async with small_memory(folder) as memory:
        await memory.on_message(memory.scope("chat"), [user("It is in the write-ahead log only.")])
        shutil.copytree(folder, home.folder)
    assert home.database.with_name("offbook.db-wal").stat().st_size
    overwrite(home.database, [1, page_with(made, "main/chat/60")], 1)
    done, unmended = await mend_log(home, {})
    assert (unmended, "saved into a fresh file" in done[0]) == ([], True)
    contents = [one.message.content for one in (await everything(home.database)).values()]
    assert "It is in the write-ahead log only." in contents
    assert await faults_of(home.database) == []


async def test_messages_that_were_forgotten_stay_so_where_the_event_that_says_it_is_lost(home: Home) -> None:
    forgotten = [place for place, one in (await everything(home.database)).items() if one.entry.noise == "forgotten"]
    tamper(home.database, "DELETE FROM audit WHERE verb = 'forget'")
    assert await damage(home)
    await mend_log(home, {})
    after = await everything(home.database)
    assert forgotten
    assert all(after[place].entry.noise == "forgotten" for place in forgotten)
    assert await faults_of(home.database) == []


async def test_it_waits_for_a_provider_that_runs(home: Home) -> None:
    overwrite(home.database, [5], 1)
    damaged = home.database.read_bytes()
    lock = Lock(home)
    try:
        done, (finding,) = await mend_log(home, {})
    finally:
        lock.release()
    assert done == []
    assert "while no provider runs" in finding.what
    assert home.database.read_bytes() == damaged


@pytest.mark.parametrize("content", [b"no database at all" * 1_000, b"SQLite format 3\0" + b"\x10\x00" + bytes(8_174)])
async def test_what_nothing_can_be_read_of_is_left_as_it_is(home: Home, content: bytes) -> None:
    home.database.write_bytes(content)
    done, (finding,) = await mend_log(home, {})
    assert (done, finding.level) == ([], "fail")
    assert home.database.read_bytes() == content
    assert not list(home.folder.glob("damaged-*"))
    assert not list(home.folder.glob(".restore-*"))


async def test_a_file_of_another_program_is_left_alone(home: Home) -> None:
    home.database.unlink()
    tamper(home.database, "CREATE TABLE theirs (a)", "INSERT INTO theirs VALUES (1)")
    done, (finding,) = await mend_log(home, {})
    assert done == []
    assert "another program" in finding.what


def page_with(made: Path, name: str) -> int:
    data = (made / "offbook.db").read_bytes()
    return data.index(f"<{name}>".encode()) // PAGE + 1


def tamper(path: Path, *statements: str | int) -> None:
    connection = apsw.Connection(str(path))
    bindings = tuple(each for each in statements if isinstance(each, int))
    for statement in statements:
        if isinstance(statement, str):
            connection.execute(statement, bindings)
    connection.close()
    head_path(path).unlink(missing_ok=True)
