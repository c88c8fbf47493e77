"""What is SQLite's own: the file, its migrations, its tampering, its neighbours."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import apsw
import pytest

from offbook.log.audit_chain import fingerprint
from offbook.log.sql import audit_reads, reads
from offbook.log.sqlite.connection import latest_version, migrations, open_reader, open_writer, schema_version
from offbook.log.sqlite.store import SqliteStore
from offbook.log.store import PARENT_NOTE
from offbook.log.verification import verify
from offbook.model.errors import StoreBusy, StoreCorrupt, StoreReadOnly, StoreTooNew
from offbook.model.types import AuditDraft, BlobRef, Entry, Fault, Mark, Message, Scope, SessionGaps, now

CHAT = Scope(agent_id="main", session_id="chat")
T = TypeVar("T")


async def add(store: SqliteStore, *texts: str, scope: Scope = CHAT) -> None:
    entries = []
    for text in texts:
        message = Message(role="user", content=text)
        entries.append(Entry(message=message, chars=len(text), fingerprint=fingerprint(message)))
    draft = AuditDraft(verb="onMessage", actor="test", session_id=scope.session_id)
    await store.append(scope, entries, draft, gaps=SessionGaps())


def tamper(path: Path, *statements: str) -> None:
    connection = apsw.Connection(str(path))
    for statement in statements:
        connection.execute(statement)
    connection.close()


async def faults_after(tmp_path: Path, *statements: str) -> list[Fault]:
    """Ten messages in five events, then somebody with an SQL shell."""
    store = SqliteStore(tmp_path / "offbook.db")
    for number in range(5):
        await add(store, f"first {number}", f"second {number}")
    await store.close()
    tamper(tmp_path / "offbook.db", *statements)
    reader = SqliteStore(tmp_path / "offbook.db", read_only=True)
    found = [fault async for fault in verify(reader, "main")]
    await reader.close()
    return found


async def test_the_schema_is_what_the_migrations_say(tmp_path: Path) -> None:
    await SqliteStore(tmp_path / "offbook.db").close()
    connection = apsw.Connection(str(tmp_path / "offbook.db"))
    assert schema_version(connection) == latest_version() == len(migrations())
    assert connection.pragma("journal_mode") == "wal"


def test_migrations_are_numbered_without_gaps() -> None:
    assert [number for number, _ in migrations()] == list(range(1, len(migrations()) + 1))


async def test_a_newer_store_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "offbook.db"
    await SqliteStore(path).close()
    tamper(path, "PRAGMA user_version = 999")
    before = path.read_bytes()
    with pytest.raises(StoreTooNew, match="upgrade Offbook"):
        SqliteStore(path)
    with pytest.raises(StoreTooNew):
        SqliteStore(path, read_only=True)
    assert path.read_bytes() == before


async def test_a_file_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "offbook.db"
    tamper(path, "CREATE TABLE somebody_elses (x)")
    with pytest.raises(StoreCorrupt, match="another program"):
        SqliteStore(path)


@pytest.mark.parametrize("is_ours", [True, False])
@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
async def test_what_is_refused_is_not_changed(tmp_path: Path, is_ours: bool, mode: str) -> None:
    path = tmp_path / "offbook.db"
    if is_ours:
        await SqliteStore(path).close()
    neighbour = apsw.Connection(str(path))
    neighbour.pragma("journal_mode", mode)
    neighbour.execute("CREATE TABLE somebody_elses (x)")
    neighbour.pragma("user_version", 999 if is_ours else 0)
    if mode == "DELETE":
        neighbour.close()
    else:  # it dies: what it wrote is in the WAL only
        neighbour.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        neighbour.close()
    before, touched_at = path.read_bytes(), path.stat().st_mtime_ns
    with pytest.raises(StoreTooNew if is_ours else StoreCorrupt):
        SqliteStore(path)
    assert path.read_bytes() == before
    assert path.stat().st_mtime_ns == touched_at
    assert (tmp_path / "offbook.db-wal").exists() == (mode == "WAL")


def test_a_commit_reaches_the_disk_on_macos_too(tmp_path: Path) -> None:
    connection = open_writer(tmp_path / "offbook.db")
    assert [connection.pragma(name) for name in ("fullfsync", "checkpoint_fullfsync", "synchronous")] == [1, 1, 2]
    connection.close()


async def test_a_closed_store_is_busy_to_who_reads(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "offbook.db")
    await store.close()
    with pytest.raises(StoreBusy, match="closed"):
        await store.messages(CHAT)


async def test_an_error_in_a_read_is_not_taken_for_a_closed_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(connection: apsw.Connection) -> list[str]:
        raise RuntimeError("something of its own")

    monkeypatch.setattr(reads, "agents", broken)
    store = SqliteStore(tmp_path / "offbook.db")
    with pytest.raises(RuntimeError, match="of its own"):
        await store.agents()
    await store.close()


@pytest.mark.parametrize("newest_first", [True, False])
async def test_the_events_of_a_session_are_found_by_their_index(tmp_path: Path, newest_first: bool) -> None:
    store = SqliteStore(tmp_path / "offbook.db")
    await add(store, "hello")
    await store.close()
    connection = open_reader(tmp_path / "offbook.db")
    asked: list[tuple[str, object]] = []
    connection.exec_trace = lambda cursor, sql, bindings: not asked.append((sql, bindings))
    assert len(audit_reads.audit_events(connection, "main", "chat", 0, 10, newest_first)) == 1
    connection.exec_trace = None
    ((sql, bindings),) = asked
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", bindings)]  # type: ignore[arg-type]
    assert any("USING INDEX audit_by_session (agent=? AND session=? AND seq>?)" in step for step in plan)
    assert not any("TEMP B-TREE" in step for step in plan)
    connection.close()


async def test_ids_are_looked_up_in_their_index_in_one_statement(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "offbook.db")
    await add(store, "hello")
    await store.close()
    connection = open_reader(tmp_path / "offbook.db")
    asked: list[tuple[str, object]] = []
    connection.exec_trace = lambda cursor, sql, bindings: not asked.append((sql, bindings))
    assert len(reads.missing(connection, CHAT, [str(number) for number in range(1_000)])) == 1_000
    connection.exec_trace = None
    (sql, bindings) = asked[-1]
    assert [("FROM sessions" in sql, "FROM messages" in sql) for sql, _ in asked] == [(True, False), (False, True)]
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", bindings)]  # type: ignore[arg-type]
    assert "SEARCH messages USING COVERING INDEX messages_by_id (session=? AND id=?)" in plan
    assert not any(step.startswith("SCAN") and "json_each" not in step for step in plan)
    connection.close()


async def test_a_parent_that_cannot_be_read_does_not_take_the_session_with_it(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "offbook.db")
    await add(store, "hello")
    await store.set_session_note(CHAT, PARENT_NOTE, "another")
    await store.close()
    tamper(tmp_path / "offbook.db", "UPDATE session_notes SET value = CAST(x'ff' AS TEXT)")
    again = SqliteStore(tmp_path / "offbook.db")
    session = await again.session(CHAT)
    assert session is not None
    assert (session.parent_session_id, session.last_seq) == (None, 1)
    await again.mark(CHAT, Mark(kind="start", at=now()), AuditDraft(verb="hooks/session-start", actor="test"))
    await again.close()


_LONG_SESSION = """
WITH RECURSIVE n (seq) AS (SELECT 1 UNION ALL SELECT seq + 1 FROM n WHERE seq < 20000)
INSERT INTO audit (agent, seq, at, verb, actor, session, details, previous, hash)
SELECT 1, 10 + seq, seq, iif(seq % 5000 = 7, 'swap', 'onMessage'), 'test', 'chat', '{}', '', '' FROM n
"""


def with_steps(connection: apsw.Connection, read: Callable[[], T]) -> tuple[T, int]:
    """What is read, and how many steps SQLite's machine took for it: as many on a busy machine."""
    steps = 0

    def step() -> bool:
        nonlocal steps
        steps += 1
        return False

    read()  # so that preparing its statements is not counted
    connection.set_progress_handler(step, 1)
    found = read()
    connection.set_progress_handler(None)
    return found, steps


@pytest.mark.parametrize("asked", [{}, {"before_seq": 9_000}, {"until": datetime.fromtimestamp(0.009, UTC)}])
async def test_a_few_verbs_are_found_in_a_long_session_without_reading_it(
    tmp_path: Path, asked: dict[str, Any]
) -> None:
    store = SqliteStore(tmp_path / "offbook.db")
    await add(store, "hello")
    await store.close()
    tamper(tmp_path / "offbook.db", _LONG_SESSION)
    connection = open_reader(tmp_path / "offbook.db")
    questions: list[tuple[str, Any]] = []
    connection.exec_trace = lambda cursor, sql, bindings: not questions.append((sql, bindings))
    before, until, verbs = asked.get("before_seq"), asked.get("until"), ["swap", "compress", "hooks/session-end"]
    found, steps = with_steps(
        connection,
        lambda: audit_reads.newest_audit_events(connection, "main", "chat", 50, before, verbs, until),
    )
    connection.exec_trace = None
    assert [event.seq for event in found] == [17, 5_017, 10_017, 15_017][: 2 if asked else 4]
    assert steps < 1_000  # of SQLite's machine: reading the session takes several for each event
    for sql, bindings in questions:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", bindings)]
        assert any("INDEX audit_by_verb (agent=? AND session=? AND verb=? AND seq<?)" in each for each in plan)
        assert not any("TEMP B-TREE" in each for each in plan)
    connection.close()


async def test_a_message_pays_for_no_index_over_verbs(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "offbook.db")
    ledger, connection = store._writer._ledger, store._writer._connection  # type: ignore[union-attr]
    indexed = "SELECT count(*) FROM audit INDEXED BY audit_by_verb WHERE session IS NOT NULL AND verb <> 'onMessage'"
    await add(store, "hello")
    assert connection.execute(indexed).get == 0
    with connection:
        ledger.record("main", AuditDraft(verb="swap", actor="test", session_id="chat"))
        ledger.flush()
    assert connection.execute(indexed).get == 1
    await store.close()


async def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / "offbook.db"
    path.write_bytes(b"this is not a database, whatever its name says" * 100)
    with pytest.raises(StoreCorrupt, match=r"offbook doctor --fix.*offbook restore"):
        SqliteStore(path)


async def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreReadOnly):
        SqliteStore(tmp_path / "missing" / "offbook.db")


async def test_a_reader_beside_the_owner_sees_what_is_committed_and_cannot_write(tmp_path: Path) -> None:
    owner = SqliteStore(tmp_path / "offbook.db")
    await add(owner, "hello")
    reader = SqliteStore(tmp_path / "offbook.db", read_only=True)
    assert len(await reader.messages(CHAT)) == 1
    await add(owner, "again")
    assert len(await reader.messages(CHAT)) == 2
    with pytest.raises(StoreReadOnly):
        await add(reader, "no")
    await reader.close()
    await owner.close()


async def test_too_many_waiting_writes_are_refused_as_busy(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "offbook.db", max_queued_writes=10)
    outcomes = await asyncio.gather(*[add(store, str(number)) for number in range(2_000)], return_exceptions=True)
    refused = [outcome for outcome in outcomes if isinstance(outcome, StoreBusy)]
    assert refused
    assert all(outcome is None or isinstance(outcome, StoreBusy) for outcome in outcomes)
    assert (await store.counts("main")).messages == len(outcomes) - len(refused)
    await store.close()


async def test_a_backup_opens_and_verifies(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "offbook.db")
    await add(store, *[f"message {number}" for number in range(100)])
    await store.backup(tmp_path / "copy.db")
    await store.close()
    copy = SqliteStore(tmp_path / "copy.db")
    assert len(await copy.messages(CHAT, limit=1_000)) == 100
    assert [fault async for fault in verify(copy, "main")] == []
    await copy.close()


async def test_damage_inside_the_file_is_found(tmp_path: Path) -> None:
    path = tmp_path / "offbook.db"
    store = SqliteStore(path)
    await add(store, *[f"message {number} " + "x" * 500 for number in range(200)])
    await store.close()
    data = bytearray(path.read_bytes())
    pages = len(data) // 4096
    for page in range(pages - 20, pages):  # of the log: without the first, its schema, the file would not open at all
        data[page * 4096 : page * 4096 + 12] = b"\xff" * 12
    path.write_bytes(bytes(data))
    reader = SqliteStore(path, read_only=True)
    assert [fault async for fault in reader.faults()]
    await reader.close()


async def test_sessions_are_listed_after_a_kill_too(tmp_path: Path) -> None:
    """A kill may come before activity was noted; what is noted later must not hide it."""
    store = SqliteStore(tmp_path / "offbook.db")
    names = [f"session {number}" for number in range(30)]
    for name in names:
        await add(store, "hello", scope=Scope(agent_id="main", session_id=name))
    await add(store, "again", scope=Scope(agent_id="main", session_id=names[0]))
    store._writer._ledger.forget()  # type: ignore[union-attr]
    for _ in range(300):
        await add(store, "other", scope=Scope(agent_id="main", session_id=names[5]))
    listed = [session.session_id for session in await store.sessions("main", limit=3)]
    await store.close()
    assert listed == [names[5], names[0], names[29]]


async def test_the_wal_is_moved_into_the_file_while_it_is_written(tmp_path: Path) -> None:
    """Only a checkpoint writes to the file itself; the one at the end is not what is meant."""
    path = tmp_path / "offbook.db"
    store = SqliteStore(path)
    for _ in range(10):
        await add(store, *["x" * 20_000 for _ in range(100)])
    for _ in range(100):
        if path.stat().st_size > 10_000_000:
            break
        await asyncio.sleep(0.1)
    moved = path.stat().st_size
    await store.close()
    assert moved > 10_000_000


async def test_an_error_in_a_checkpoint_leaves_the_writer_alive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(tmp_path / "offbook.db")
    monkeypatch.setattr("offbook.log.sqlite.checkpointer.PAGES_TOO_MANY", 0)
    monkeypatch.setattr("offbook.log.sqlite.checkpointer._checkpoint", lambda *_: None)
    for number in range(5):
        await asyncio.wait_for(add(store, str(number)), 30)
    await store.close()


async def test_a_foreign_lock_refuses_a_whole_group_at_once(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "offbook.db")
    await add(store, "before")
    store._writer._connection.set_busy_timeout(300)  # type: ignore[union-attr]
    other = apsw.Connection(str(tmp_path / "offbook.db"))
    other.execute("BEGIN IMMEDIATE")
    outcomes = await asyncio.wait_for(
        asyncio.gather(*[add(store, str(number)) for number in range(50)], return_exceptions=True), 5
    )
    other.execute("ROLLBACK")
    assert all(isinstance(outcome, StoreBusy) for outcome in outcomes)
    await add(store, "after")
    await store.close()


# ── tampering: each is found, each is located ──


async def test_an_untouched_store_has_no_faults(tmp_path: Path) -> None:
    assert await faults_after(tmp_path) == []


@pytest.mark.parametrize(
    "change",
    [
        "content = '\"something else\"'",
        "role = 'assistant'",
        "ts = ts + 1",
        "received_at = received_at + 1",
        "name = 'Mallory'",
        "noise = 'short'",
        "meta = '{}'",
        "id = 'forged'",
    ],
)
async def test_an_altered_message_is_located(tmp_path: Path, change: str) -> None:
    (fault,) = await faults_after(tmp_path, f"UPDATE messages SET {change} WHERE seq = 6")
    assert (fault.agent_id, fault.session_id, fault.seq) == ("main", "chat", 6)


async def test_a_message_altered_with_its_hash_is_located(tmp_path: Path) -> None:
    faults = await faults_after(tmp_path, "UPDATE messages SET hash = zeroblob(32) WHERE seq = 6")
    fault = faults[-1]
    assert fault.seq == 5
    assert "audit event 3" in fault.what


async def test_a_deleted_message_is_located(tmp_path: Path) -> None:
    (fault,) = await faults_after(tmp_path, "DELETE FROM messages WHERE seq = 7")
    assert (fault.what, fault.seq) == ("message is missing", 7)


async def test_an_inserted_message_is_located(tmp_path: Path) -> None:
    (fault,) = await faults_after(
        tmp_path,
        "INSERT INTO messages (place, session, seq, role, content, ts, received_at, chars, chars_through, fingerprint, "
        "hash) SELECT place + 10, session, 11, role, content, ts, received_at, chars, chars_through, fingerprint, hash "
        "FROM messages WHERE seq = 1",
    )
    assert (fault.what, fault.seq) == ("message that no audit event vouches for", 11)


async def test_an_altered_event_is_located(tmp_path: Path) -> None:
    (fault,) = await faults_after(tmp_path, "UPDATE audit SET actor = 'somebody else' WHERE seq = 2")
    assert fault.seq == 2


async def test_a_deleted_event_is_located(tmp_path: Path) -> None:
    faults = await faults_after(tmp_path, "DELETE FROM audit WHERE seq = 2")
    assert faults[0].seq == 2
    assert "missing" in faults[0].what


async def test_events_cut_off_at_the_end_are_noticed(tmp_path: Path) -> None:
    faults = await faults_after(tmp_path, "DELETE FROM audit WHERE seq = 5")
    assert any("at the end are missing" in fault.what for fault in faults)


async def test_a_message_whose_sender_has_left_keeps_its_large_parts(tmp_path: Path) -> None:
    """It waits to be written, and is: only then can anybody say what nobody refers to."""
    store = SqliteStore(tmp_path / "offbook.db")
    is_open = threading.Event()
    others = asyncio.create_task(store._write().submit(lambda _: is_open.wait(60)))
    message = Message(role="user", content="")
    part = BlobRef(path=[], sha256="a" * 64, chars=9, bytes=9)
    entry = Entry(message=message, chars=9, fingerprint=fingerprint(message), blobs=[part])
    draft = AuditDraft(verb="onMessage", actor="test", session_id="chat")
    sending = asyncio.create_task(store.append(CHAT, [entry], draft, gaps=SessionGaps()))
    await asyncio.sleep(0)  # both are queued
    sending.cancel()
    await asyncio.wait([sending])
    asking = asyncio.create_task(store.parts_in_use("main", ["a" * 64]))
    await asyncio.wait([asking], timeout=0.1)
    is_open.set()
    assert await asking == {"a" * 64}
    await others
    await store.close()
