"""Each check finds what it is for, and says how to mend it."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import time
from collections import namedtuple
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from offbook.api import doctor
from offbook.api.doctor import Finding, examine, fix
from offbook.api.doctor import folder as of_folder
from offbook.api.doctor import machine as of_machine
from offbook.api.doctor import provider as of_provider
from offbook.api.doctor import record as of_record
from offbook.api.doctor import upkeep as of_upkeep
from offbook.api.embedded import open_memory
from offbook.client.outbox import Outbox
from offbook.context.session_notes import working_state
from offbook.log.sqlite.store import SqliteStore
from offbook.model.errors import ProviderUnavailable
from offbook.model.home import Home, Lock
from offbook.model.settings import load
from offbook.model.status import CaptureClaim, TaskHealth
from offbook.model.types import AuditDraft, Message, Scope, now
from offbook.projections.indexes import folder_name
from offbook.statements.state import WorkingState
from offbook.transfer.backup import write_backup
from offbook.transfer.backup.rotation import note_backup
from tests.unit.client.fake_provider import FakeProvider
from tests.unit.log.test_sqlite_compression import MADE_BY_0002, filled, older_store

Usage = namedtuple("Usage", "total used free")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "home"

    async def make() -> None:
        async with open_memory(folder) as memory:
            await memory.on_message(memory.scope("chat"), [Message(role="user", content="hello there")])
            await memory.on_message(memory.scope("chat"), [Message(role="user", content="large " * 20_000)])

    asyncio.run(make())
    return folder


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Home:
    return Home(shutil.copytree(made, tmp_path / "home"))


async def levels(home: Home, **keywords: bool) -> dict[str, str]:
    return {finding.check: finding.level for finding in await examine(home, {}, **keywords)}


async def found(home: Home, check: str) -> Finding:
    findings = [finding for finding in await examine(home, {}) if finding.check == check]
    return max(findings, key=lambda finding: ("ok", "warn", "fail").index(finding.level))


async def test_a_sound_folder_without_a_provider_fails_in_that_alone(home: Home) -> None:
    assert {check for check, level in (await levels(home)).items() if level != "ok"} == {"provider"}


async def test_whatever_is_not_ok_says_how_to_mend_it(home: Home, tmp_path: Path) -> None:
    for place in (home, Home(tmp_path / "missing")):
        assert all(finding.mend for finding in await examine(place, {}) if finding.level != "ok")


async def test_a_folder_that_is_not_there_is_told_and_not_made(tmp_path: Path) -> None:
    assert (await found(Home(tmp_path / "missing"), "folder")).level == "warn"
    assert not (tmp_path / "missing").exists()


async def test_a_quick_look_leaves_out_what_grows(home: Home) -> None:
    left_out = set(await levels(home)) - set(await levels(home, is_quick=True))
    assert left_out == {"references", "summaries", "integrity", "audit"}


# ── the machine ──


@pytest.mark.parametrize(
    ("version", "level"),
    [("3.6.23", "ok"), ("3.7.0", "fail"), ("3.40.1", "fail"), ("3.51.2", "fail"), ("3.51.3", "ok"), ("3.54.1", "ok")],
)
def test_sqlite_with_the_wal_reset_bug_is_found(version: str, level: str) -> None:
    assert of_machine.check_sqlite(version).level == level


def test_an_old_python_is_found() -> None:
    assert of_machine.check_python((3, 10, 1)).level == "fail"
    assert of_machine.check_python((3, 14, 0)).level == "ok"


@pytest.mark.parametrize(
    ("free", "total", "level"), [(2e9, 10e9, "ok"), (0.9e9, 10e9, "warn"), (4e9, 100e9, "warn"), (6e9, 100e9, "ok")]
)
def test_a_full_disk_is_found(
    free: float, total: float, level: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_machine.shutil, "disk_usage", lambda path: Usage(total, total - free, free))
    assert of_machine.check_space(Home(tmp_path)).level == level


async def test_a_wrong_setting_is_found(home: Home) -> None:
    home.config.write_text("minScore = 3\n")
    finding = await found(home, "settings")
    assert finding.level == "fail"
    assert "minScore" in finding.what


# ── the folder ──


async def test_what_others_can_open_is_found_and_fixed(home: Home) -> None:
    home.owner_token()
    home.write_bound_tokens([])
    home.folder.chmod(0o755)
    home.token.chmod(0o644)
    home.bound_tokens.chmod(0o640)
    for folder in (home.indexes, home.summaries):
        folder.mkdir(mode=0o755, exist_ok=True)
        folder.chmod(0o755)
    told = of_folder.check_modes(home)
    assert [finding.level for finding in told] == ["fail"] * 5
    assert f"chmod 600 {home.token}" in str(told[3].mend)
    assert len(fix(home)) == 5
    assert [finding.level for finding in of_folder.check_modes(home)] == ["ok"]
    assert fix(home) == []


def test_a_folder_of_somebody_else_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 4_711)
    assert "belongs to user" in of_folder.check_folder(Home(tmp_path)).what


@pytest.mark.parametrize("kind", ["shared", "foreign", "somebody else's"])
def test_a_folder_that_is_not_ours_is_told_and_never_closed_to_others(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path)
    home.config.write_text("")
    if kind != "foreign":
        home.owner_token()
        home.token.chmod(0o644)
    tmp_path.chmod(0o1777 if kind == "shared" else 0o755)
    if kind == "somebody else's":
        monkeypatch.setattr(os, "getuid", lambda: 4_711)
    mode = tmp_path.stat().st_mode
    (told,) = of_folder.check_modes(home)
    assert told.level == "warn"
    assert "chmod" not in str(told.mend)
    assert fix(home) == []
    assert tmp_path.stat().st_mode == mode


async def test_a_home_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    finding = await found(Home(tmp_path / "file"), "folder")
    assert (finding.level, "is a file" in finding.what) == ("fail", True)
    assert fix(Home(tmp_path / "file")) == []


async def test_a_restore_that_broke_off_is_found(home: Home) -> None:
    (home.folder / "restore.json").write_text("{}")
    finding = await found(home, "restore")
    assert (finding.level, finding.mend) == ("fail", f"offbook --home {home.folder} restore --resume")


@pytest.mark.parametrize("content", [b'[{"name":"laptop",}]', b"\xff\xfe", b"{}"])
async def test_broken_tokens_are_found(content: bytes, home: Home) -> None:
    home.owner_token()
    assert (await found(home, "tokens")).level == "ok"
    home.bound_tokens.write_bytes(content)
    finding = await found(home, "tokens")
    assert (finding.level, str(home.bound_tokens) in finding.what) == ("fail", True)
    home.bound_tokens.unlink()
    home.token.write_text("short")
    assert (await found(home, "tokens")).level == "fail"


async def test_an_outbox_that_cannot_be_read_does_not_end_the_examination(home: Home) -> None:
    outbox = Outbox(home.outboxes / "sound", max_bytes=1_000_000)
    outbox.append(b'{"n":1}')
    outbox.close()
    (home.outboxes / "broken" / "1.jsonl").mkdir(parents=True)
    (home.outboxes / "broken" / "state.json").mkdir()
    findings = await examine(home, {})
    told = [finding.what for finding in findings if finding.check == "outboxes"]
    assert len(told) == 2
    assert told[0].startswith("broken cannot be read")
    assert told[1] == "sound: 1 to be delivered"
    assert "audit" in {finding.check for finding in findings}


async def test_a_mend_names_the_folder_unless_it_is_the_default(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (await found(home, "provider")).mend == f"offbook --home {home.folder} serve"
    monkeypatch.setenv("HOME", str(home.folder.parent))
    default = home.folder.rename(home.folder.with_name(".offbook"))
    assert (await found(Home(default), "provider")).mend == "offbook serve"


async def test_what_is_not_ours_among_the_large_parts_is_found(home: Home) -> None:
    (home.blobs / "notes.txt").write_text("mine")
    assert (await found(home, "large parts")).level == "warn"


async def test_what_a_crash_left_is_found_and_what_is_being_written_is_not(home: Home) -> None:
    unfinished = home.blobs / "0123.tmp"
    unfinished.write_bytes(b"x")
    assert (await found(home, "large parts")).level == "ok"
    os.utime(unfinished, (time.time() - 7_200,) * 2)
    finding = await found(home, "large parts")
    assert (finding.level, "-delete" in str(finding.mend)) == ("warn", True)


def test_what_waits_in_an_outbox_is_found(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert [finding.level for finding in of_folder.check_outboxes(home)] == ["ok"]
    outbox = Outbox(home.outboxes / "python", max_bytes=1_000_000)
    for number in range(3):
        outbox.append(b'{"n":%d}' % number)
    outbox.peek(1, 1_000)
    outbox.advance(1)
    outbox.close()
    (waiting,) = of_folder.check_outboxes(home)
    assert (waiting.level, waiting.what, waiting.mend) == ("warn", "python: 2 to be delivered", "offbook flush")
    (home.outboxes / "python" / "rejected.jsonl").write_text("{}\n")
    assert "refused for good" in of_folder.check_outboxes(home)[1].what
    (home.outboxes / "python" / "rejected.jsonl").rename(home.outboxes / "python" / "rejected.1.jsonl")
    assert "rejected.1.jsonl" in str(of_folder.check_outboxes(home)[1].mend)


# ── the provider ──


def test_a_stale_socket_is_found_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    home = Home(Path())
    home.owner_token()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("offbook.sock")
    assert of_provider.check_lock(home, is_answering=False).level == "warn"
    home.folder.chmod(0o700)
    assert any("nobody listened" in done for done in fix(home))
    assert not home.socket.exists()
    assert of_provider.check_lock(home, is_answering=False).level == "ok"


def test_the_socket_of_a_provider_that_runs_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    home = Home(Path())
    lock = Lock(home)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("offbook.sock")
        home.socket.chmod(0o600)
    fix(home)
    assert home.socket.exists()
    lock.release()


def test_a_process_that_owns_the_folder_and_does_not_answer_is_named(tmp_path: Path) -> None:
    home = Home(tmp_path)
    lock = Lock(home)
    finding = of_provider.check_lock(home, is_answering=False)
    assert (finding.level, str(os.getpid()) in finding.what) == ("fail", True)
    lock.release()
    assert of_provider.check_lock(home, is_answering=False).level == "ok"


async def test_nobody_at_the_port_is_found(home: Home) -> None:
    home.owner_token()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        settings = load(home.folder, environ={}, flags={"port": port}).settings
        assert (await of_provider.check_port(home, settings)).level == "warn"
    settings = load(home.folder, environ={}, flags={"port": 0}).settings
    assert (await of_provider.check_port(home, settings)).level == "ok"


async def test_a_default_port_that_nobody_chose_is_no_warning(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    async def nobody(*_: object, **__: object) -> None:
        raise ProviderUnavailable("nobody")

    home.owner_token()
    monkeypatch.setattr(of_provider, "_ping", nobody)
    finding = await of_provider.check_port(home, load(home.folder, environ={}).settings)
    assert (finding.level, "or another port" in finding.what) == ("ok", True)


async def test_the_provider_that_was_chosen_is_the_one_asked(home: Home) -> None:
    with FakeProvider() as provider:
        findings = {each.check: each for each in await examine(home, {"OFFBOOK_URL": provider.url})}
        assert (findings["provider"].level, findings["provider"].what) == ("ok", f"answers at {provider.url}")
        assert "port" not in findings
    findings = {each.check: each for each in await examine(home, {"OFFBOOK_URL": provider.url})}
    assert findings["provider"].what == f"nobody answers at {provider.url}"
    findings = {each.check: each for each in await examine(home, {"OFFBOOK_URL": provider.url, "OFFBOOK_TOKEN": ""})}
    assert "OFFBOOK_TOKEN is set and empty" in findings["provider"].what
    findings = {each.check: each for each in await examine(home, {"OFFBOOK_URL": "nonsense"})}
    assert findings["provider"].level == "fail"


# ── upkeep ──


async def test_pages_that_are_not_understood_are_told_of_whichever_agent(home: Home) -> None:
    """Also where nobody has spoken to the agent that is meant by default."""
    settings = load(home.folder, environ={}).settings
    store = SqliteStore(home.database)
    for agent_id in ("bea", "ada"):
        await store.record(agent_id, AuditDraft(verb="test", actor="test"))
    await store.close()
    (home.indexes / folder_name("ada")).mkdir(parents=True, exist_ok=True)
    broken = {
        agent_id: [health("wiki", did={"pages not understood": 1}, waits=[agent_id])] for agent_id in ("ada", "bea")
    }
    with FakeProvider(home.socket) as provider:
        for tasks in broken.values():
            body = msgspec.json.encode({"maintenance": tasks, "agents": ["ada", "bea"]})
            provider.plan.append(b"HTTP/1.1 200 X\r\ncontent-type: application/json\r\n" + _length(body) + body)
        (found,) = await of_upkeep.check_maintenance(home, settings)
    assert (found.level, found.what) == ("warn", "2 pages of lessons in the wiki not understood; ada; bea")


def _length(body: bytes) -> bytes:
    return b"content-length: %d\r\n\r\n" % len(body)


def health(task: str, **fields: Any) -> TaskHealth:
    return TaskHealth(**({"task": task, "runs": 1, "failures": 0, "did": {}} | fields))


async def test_maintenance_that_fails_is_told_with_what_to_do(home: Home) -> None:
    settings = load(home.folder, environ={}).settings
    tasks = [health("index"), health("wiki", failures=4, error="the disk is full", did={"pages not understood": 1})]
    shutil.rmtree(home.indexes, ignore_errors=True)  # which the background may have begun, or not
    assert await of_upkeep.check_maintenance(home, settings) == []  # asking would make an agent
    (home.indexes / folder_name("main")).mkdir(parents=True, exist_ok=True)
    with FakeProvider(home.socket) as provider:
        body = msgspec.json.encode({"maintenance": tasks})
        provider.plan.append(b"HTTP/1.1 200 X\r\ncontent-type: application/json\r\n" + _length(body) + body)
        failing, broken = await of_upkeep.check_maintenance(home, settings)
    assert (failing.level, broken.level) == ("warn", "warn")
    assert failing.what == "wiki fails, 4 times in a row: the disk is full"
    assert "offbook maintain --task wiki" in str(failing.mend)
    assert broken.what.startswith("1 page of lessons")
    assert [each.level for each in of_upkeep.of_tasks([health("index"), health("wiki")])] == ["ok"]
    theirs = health("wiki", did={"pages not understood": 1}, waits=["wiki/bea/lessons/lesson-0001.md: it is empty"])
    (of_others,) = of_upkeep.of_tasks([health("wiki")], [theirs])
    assert of_others.level == "warn"
    assert "wiki/bea/lessons/lesson-0001.md" in of_others.what
    (unanswered,) = await of_upkeep.check_maintenance(home, settings)
    assert unanswered.level == "warn"


async def test_much_without_a_backup_is_told(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (await found(home, "backups")).level == "ok"
    monkeypatch.setattr(of_upkeep, "MESSAGES_WITHOUT_BACKUP", 1)
    finding = await found(home, "backups")
    assert (finding.level, "2 messages" in finding.what) == ("warn", True)
    assert f"offbook --home {home.folder} backup" in str(finding.mend)
    note_backup(home, tmp_path / "made.tar.gz", await write_backup(home, tmp_path / "made.tar.gz"))
    assert (await found(home, "backups")).level == "ok"


# ── the record ──


def tamper(home: Home, *statements: str) -> None:
    connection = apsw.Connection(str(home.database))
    for statement in statements:
        connection.execute(statement)
    connection.close()


async def test_a_newer_store_is_found(home: Home) -> None:
    tamper(home, "PRAGMA user_version = 999")
    finding = await found(home, "store")
    assert (finding.level, "upgrade Offbook" in finding.what) == ("fail", True)


@pytest.mark.parametrize(("is_schema_whole", "check"), [(False, "store"), (True, "integrity")])
async def test_a_torn_file_is_found(home: Home, is_schema_whole: bool, check: str) -> None:
    """Without its schema it cannot be opened; with it, the check of the whole file finds what is torn."""
    connection = apsw.Connection(str(home.database))
    root: int = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'holds_pinned'").get
    connection.close()
    content = bytearray(home.database.read_bytes())
    torn = slice((root - 1) * 4_096, root * 4_096) if is_schema_whole else slice(4_096, None)
    content[torn] = os.urandom(len(content[torn]))
    home.database.write_bytes(content)
    failed = {check for check, level in (await levels(home)).items() if level == "fail"}
    assert failed >= {check, "provider"}


async def test_a_message_that_was_altered_is_found(home: Home) -> None:
    tamper(home, "UPDATE messages SET content = '\"forged\"' WHERE seq = 1")
    finding = await found(home, "audit")
    assert (finding.level, "altered" in finding.what) == ("fail", True)


@pytest.mark.parametrize("content", [None, b"another"])
async def test_a_large_part_that_is_gone_or_damaged_is_found(content: bytes | None, home: Home) -> None:
    path = next(path for path in home.blobs.rglob("*") if path.is_file())
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    assert (await found(home, "references")).level == "fail"


async def test_what_never_arrived_is_found(home: Home) -> None:
    async with open_memory(home.folder) as memory:
        claim = CaptureClaim(client="plugin", first=5, last=5, sent=5)
        await memory.on_message(memory.scope("chat"), [Message(role="user", content="the fifth")], claim=claim)
        claim = CaptureClaim(client="plugin", first=9, last=9, sent=9)
        await memory.on_message(memory.scope("chat"), [Message(role="user", content="the ninth")], claim=claim)
    finding = await found(home, "capture")
    assert finding.level == "warn"
    assert "of 9 messages of plugin never arrived" in finding.what


async def test_a_message_from_the_future_is_found(home: Home) -> None:
    async with open_memory(home.folder) as memory:
        tomorrow = Message(role="user", content="from tomorrow", ts=now() + timedelta(days=1))
        await memory.on_message(memory.scope("chat"), [tomorrow])
    finding = await found(home, "messages")
    assert (finding.level, "in the future" in finding.what) == ("warn", True)


async def test_no_messages_at_all_are_found(tmp_path: Path) -> None:
    async with open_memory(tmp_path / "home"):
        pass
    assert (await found(Home(tmp_path / "home"), "messages")).level == "warn"


@pytest.fixture
async def compressed(tmp_path: Path) -> Home:
    home = Home(tmp_path / "compressed")
    home.folder.mkdir()
    await (await filled(home.database)).close()
    tamper(home, "DELETE FROM session_notes")
    return home


async def test_what_was_made_of_the_log_and_is_whole_is_told_so(compressed: Home) -> None:
    tamper(compressed, "INSERT INTO session_notes VALUES (1, 'workingState', '{}')")
    assert (await found(compressed, "summaries")).level == "ok"


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        ("UPDATE summary_texts SET draft = 'no JSON' WHERE summary = 1", "summary L1-0001 cannot be read"),
        ("UPDATE contexts SET payload = X'00' WHERE generation = 2", "the context of generation 2 cannot be read"),
        ("UPDATE completions SET answer = '{'", "a model's answer f1 cannot be read"),
        (
            "INSERT INTO session_notes VALUES (1, 'workingState', CAST(X'ff' AS TEXT))",
            "the working state cannot be read, of agent main, chat",
        ),
    ],
)
async def test_what_nothing_makes_again_is_named_and_said_to_be_lost(compressed: Home, damage: str, named: str) -> None:
    tamper(compressed, damage)
    finding = await found(compressed, "summaries")
    assert (finding.level, named in finding.what, "agent main" in finding.what) == ("warn", True, True)
    assert f"`offbook --home {compressed.folder} restore` from a backup" in str(finding.mend)
    assert "nothing makes these again" in str(finding.mend)


@pytest.mark.parametrize("note", ["no JSON", "[]", '{"goals": 7}'])
async def test_a_working_state_that_cannot_be_read_is_made_anew(compressed: Home, note: str) -> None:
    tamper(compressed, f"INSERT INTO session_notes VALUES (1, 'workingState', '{note}')")
    finding = await found(compressed, "summaries")
    assert (finding.level, "of agent main, chat" in finding.what) == ("warn", True)
    assert "made anew from the log" in str(finding.mend)
    store = SqliteStore(compressed.database)
    try:
        assert await working_state(store, Scope(agent_id="main", session_id="chat")) == WorkingState()
    finally:
        await store.close()


async def test_much_damage_is_counted_and_some_of_it_shown(compressed: Home) -> None:
    tamper(compressed, "UPDATE summary_texts SET draft = '{}'", "UPDATE contexts SET payload = X'00'")
    finding = await found(compressed, "summaries")
    assert finding.what.startswith("faults: 8; ")
    assert finding.what.count("cannot be read") == 5


async def test_what_a_projection_finds_is_told_with_what_mends_it(compressed: Home) -> None:
    tamper(
        compressed,
        "INSERT INTO vector_sets (vector_set, agent, model, vectors, last_number) VALUES (1, 1, 'words', 1, 1)",
        "INSERT INTO vectors VALUES ((1 << 40) + 1, 1, 999999, 0, X'00')",
    )
    finding = await found(compressed, "summaries")
    assert finding.what == "faults: 1; 1 of no message, of agent main, the vectors of words"
    assert "reindex --embeddings" in str(finding.mend)


async def test_a_projection_that_cannot_be_looked_at_is_told_and_keeps_none_back(
    compressed: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(*_: object) -> list[object]:
        raise PermissionError("not yours")

    monkeypatch.setattr("offbook.projections.wiki.projection.Wiki.check", refused)
    tamper(compressed, "UPDATE completions SET answer = '{'")
    finding = await found(compressed, "summaries")
    assert "a model's answer f1 cannot be read" in finding.what
    assert "it cannot be looked at: not yours, of agent main, wiki" in finding.what


async def test_a_store_of_before_summaries_has_none_that_are_damaged(tmp_path: Path) -> None:
    home = Home(tmp_path / "older")
    home.folder.mkdir()
    older_store(MADE_BY_0002, home.database)
    finding = await found(home, "summaries")
    assert (finding.level, finding.what.startswith("none yet")) == ("ok", True)


async def test_it_looks_beside_writes_without_false_alarms(home: Home) -> None:
    async with open_memory(home.folder) as memory:
        for number in range(10):
            await memory.on_message(memory.scope("chat"), [Message(role="user", content=f"message {number}")])
            findings = await of_record.check_store(home)
            assert {finding.level for finding in findings} == {"ok"}


def test_the_names_it_offers() -> None:
    assert doctor.__all__ == ["Finding", "Level", "examine", "fix", "mend_log"]
