"""What is SQLite's own about compression: its migration from older stores, its plans, its copies, its damage."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw
import msgspec
import pytest

from offbook.log.sql import derived_faults, reads, summary_reads
from offbook.log.sql.summary_writes import packed
from offbook.log.sqlite.connection import latest_version, migrations, open_reader, schema_version
from offbook.log.sqlite.store import SqliteStore
from offbook.log.verification import verify
from offbook.model.errors import StoreCorrupt, StoreError
from offbook.model.home import Home
from offbook.model.summary import Completion, HandedContext, Ledger, SourceSpan, SummaryDraft, Usage
from offbook.model.types import AuditDraft, Scope
from offbook.transfer.backup import restore, write_backup
from tests.places import REPOSITORY
from tests.unit.log.sqlite.test_sqlite import CHAT, add, tamper, with_steps
from tests.unit.log.test_sqlite_recall import MADE_BY_0001, plans, schema_of

MADE_BY_0002 = Path(__file__).with_name("made_by_0002.sql")
MADE_BY_0003 = Path(__file__).with_name("made_by_0003.sql")
every_older_store = pytest.mark.parametrize(
    "made_by", [MADE_BY_0001, MADE_BY_0002, MADE_BY_0003], ids=["version 1", "version 2", "version 3"]
)
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
WORK = Scope(agent_id="main", session_id="work")
EVENT = AuditDraft(verb="summarize", actor="test")
AGAIN = AuditDraft(verb="summarize", actor="test", details={"again": True})


def older_store(made_by: Path, path: Path) -> Path:
    connection = apsw.Connection(str(path))
    connection.execute(made_by.read_text())
    connection.close()
    return path


def draft(
    first: int, last: int, *, level: int = 1, session_id: str = "chat", sources: list[str] | None = None
) -> SummaryDraft:
    return SummaryDraft(
        level=level,
        spans=[SourceSpan(session_id=session_id, first_seq=first, last_seq=last)],
        text="They moved the harbour trip to Friday.",
        rank=[0],
        brief="harbour trip",
        source_messages=last - first + 1,
        source_tokens=400,
        tokens=40,
        first_at=NOON + timedelta(minutes=first),
        last_at=NOON + timedelta(minutes=last),
        summarizer="extractive",
        prompt_version="1",
        fingerprint="f" * 64,
        sources=sources or [],
    )


def context(generation: int) -> HandedContext:
    return HandedContext(
        kind="swap",
        generation=generation,
        at=NOON + timedelta(minutes=generation),
        last_seq=1,
        used_tokens=900,
        context_window=1_000,
        tokens_after=90,
        max_chars=400,
        memory="what stays",
        messages=[],
        parts=[],
        ledger=Ledger(),
    )


def answer(fingerprint: str = "f1") -> Completion:
    usage = Usage(input_tokens=100, cached_tokens=60, output_tokens=10, dollars=0.25)
    return Completion(fingerprint=fingerprint, summarizer="openai:a-model", text="an answer", usage=usage)


async def filled(path: Path) -> SqliteStore:
    """Some of everything that compression keeps."""
    store = SqliteStore(path)
    for scope in (CHAT, WORK, Scope(agent_id="other", session_id="chat")):
        await add(store, *[f"message {number}" for number in range(10)], scope=scope)
    made = [await store.add_summary("main", draft(each, each), EVENT) for each in (1, 2, 3, 4)]
    await store.add_summary("main", draft(1, 2, level=2, sources=[made[0].id, made[1].id]), EVENT)
    await store.add_summary("main", draft(1, 2, session_id="work"), EVENT)
    await store.add_completion("main", answer(), NOON)
    await store.hand_over(CHAT, context(1), EVENT)
    await store.hand_over(CHAT, context(2), EVENT)
    await store.set_session_note(CHAT, "state", "value")
    return store


async def kept(store: SqliteStore) -> list[object]:
    return [
        await store.summaries("main"),
        await store.nodes(CHAT, level=1),
        await store.nodes(CHAT, level=2),
        await store.summary_texts("main", ["L1-0001", "L2-0001"]),
        await store.unmerged("main", level=1),
        await store.summary_counts("main"),
        await store.completion("main", "f1"),
        await store.spending(NOON.date()),
        await store.spent("main"),
        await store.handed(CHAT),
        await store.handed(CHAT, at=NOON + timedelta(minutes=1)),
        await store.session_note(CHAT, "state"),
        await store.sessions_after("main"),
    ]


# ── migration ──


def test_the_second_migration_is_what_stores_were_made_with(tmp_path: Path) -> None:
    older = apsw.Connection(str(older_store(MADE_BY_0002, tmp_path / "older.db")))
    second = apsw.Connection(":memory:")
    for _, sql in migrations()[:2]:
        second.execute(sql)
    assert schema_of(second) == schema_of(older)
    assert schema_version(older) == 2


@every_older_store
async def test_an_older_store_opens_with_all_it_held(tmp_path: Path, made_by: Path) -> None:
    path = older_store(made_by, tmp_path / "offbook.db")

    async def record(store: SqliteStore) -> list[object]:
        agents = await store.agents()
        return [
            agents,
            [(await store.counts(agent), await store.audit_events(agent)) for agent in agents],
            [await store.sessions(agent) for agent in agents],
            await store.messages(CHAT),
            await store.marks(CHAT),
            await store.captures("main"),
        ]

    before = SqliteStore(path, read_only=True)
    held = await record(before)
    await before.close()
    store = SqliteStore(path)
    assert schema_version(open_reader(path)) == latest_version() >= 4
    assert await record(store) == held
    for agent in ("main", "other"):
        assert [fault async for fault in verify(store, agent)] == []
    assert [fault async for fault in store.faults()] == []
    await store.close()


async def test_what_recall_kept_is_there_after_the_third_migration(tmp_path: Path) -> None:
    path = older_store(MADE_BY_0002, tmp_path / "offbook.db")

    async def recalled(store: SqliteStore) -> list[object]:
        places = [message.place for message in (await store.arrivals("main", after_event=0)).messages]
        return [
            await store.messages_at("main", places),
            await store.vectors("main", "m"),
            await store.vector_models("main"),
            await store.holds("main", places),
            await store.pinned("main"),
            await store.hold_counts("main"),
            await store.supersessions("main", places),
            await store.agent_note("main", "consent"),
        ]

    before = SqliteStore(path, read_only=True)
    held = await recalled(before)
    assert all(held)
    await before.close()
    store = SqliteStore(path)
    assert await recalled(store) == held
    await store.close()


@pytest.mark.parametrize("made_by", [MADE_BY_0001, MADE_BY_0002], ids=["version 1", "version 2"])
async def test_compression_works_over_what_an_older_store_held(tmp_path: Path, made_by: Path) -> None:
    store = SqliteStore(older_store(made_by, tmp_path / "offbook.db"))
    session = await store.session(CHAT)
    assert session is not None
    assert [each.session_id for each in await store.sessions_after("main")][:1] == ["chat"]
    first = await store.add_summary("main", draft(1, session.last_seq), EVENT)
    merged = await store.add_summary("main", draft(1, session.last_seq, level=2, sources=[first.id]), EVENT)
    assert [node.parent for node in await store.nodes(CHAT, level=1)] == [merged.id]
    await store.hand_over(CHAT, context(1), EVENT)
    await store.add_completion("main", answer(), NOON)
    await store.set_session_note(CHAT, "state", "value")
    assert await store.handed(CHAT) == context(1)
    assert [fault async for fault in verify(store, "main")] == []
    assert [fault async for fault in store.faults()] == []
    await store.close()


@every_older_store
async def test_a_migrated_store_has_the_schema_of_a_new_one(tmp_path: Path, made_by: Path) -> None:
    await SqliteStore(older_store(made_by, tmp_path / "old.db")).close()
    await SqliteStore(tmp_path / "new.db").close()
    assert schema_of(open_reader(tmp_path / "old.db")) == schema_of(open_reader(tmp_path / "new.db"))


async def test_a_store_that_was_not_migrated_yet_can_be_looked_at(tmp_path: Path) -> None:
    reader = SqliteStore(older_store(MADE_BY_0002, tmp_path / "offbook.db"), read_only=True)
    assert await reader.vector_models("main") == {"m": 5}
    assert len(await reader.sessions_after("main")) == 2
    with pytest.raises(StoreError):
        await reader.nodes(CHAT, level=1)
    await reader.close()


# ── copies ──


async def test_a_copy_holds_all_of_it(tmp_path: Path) -> None:
    store = await filled(tmp_path / "offbook.db")
    before = await kept(store)
    assert all(before)
    await store.backup(tmp_path / "copy.db")
    await store.close()
    copy = SqliteStore(tmp_path / "copy.db")
    assert await kept(copy) == before
    assert [fault async for fault in copy.faults()] == []
    await copy.close()


async def test_it_survives_backup_and_restore(tmp_path: Path) -> None:
    home, elsewhere = Home(tmp_path / "home"), Home(tmp_path / "elsewhere")
    home.folder.mkdir()
    elsewhere.folder.mkdir()
    store = await filled(home.database)
    before = await kept(store)
    await store.close()
    await write_backup(home, tmp_path / "backup.tar.gz")
    assert (await restore(tmp_path / "backup.tar.gz", elsewhere)).faults == []
    again = SqliteStore(elsewhere.database)
    assert await kept(again) == before
    await again.close()


# ── plans ──


async def test_no_question_of_compression_reads_a_whole_table(tmp_path: Path) -> None:
    store = await filled(tmp_path / "offbook.db")
    await store.close()
    connection = open_reader(tmp_path / "offbook.db")
    questions: list[Callable[[], object]] = [
        lambda: summary_reads.summaries(connection, "main", None, None, None, 10),
        lambda: summary_reads.summaries(connection, "main", 1, None, "L1-0003", 10),
        lambda: summary_reads.summaries(connection, "main", None, "chat", None, 10),
        lambda: summary_reads.summaries(connection, "main", 1, "chat", "L1-0003", 10),
        lambda: summary_reads.summary(connection, "main", "L1-0001"),
        lambda: summary_reads.nodes(connection, CHAT, 1, 5, 10),
        lambda: summary_reads.nodes_holding(connection, CHAT, 2),
        lambda: summary_reads.summary_texts(connection, "main", ["L1-0001", "L2-0001"]),
        lambda: summary_reads.summarised_through(connection, CHAT),
        lambda: summary_reads.unmerged(connection, "main", 1, None, 10),
        lambda: summary_reads.unmerged(connection, "main", 1, "chat", 10),
        lambda: summary_reads.summary_counts(connection, "main"),
        lambda: summary_reads.completion(connection, "main", "f1"),
        lambda: summary_reads.spending(connection, NOON.date(), None),
        lambda: summary_reads.spending(connection, NOON.date(), "main"),
        lambda: summary_reads.spent(connection, "main"),
        lambda: summary_reads.handed(connection, CHAT, None),
        lambda: summary_reads.handed(connection, CHAT, NOON),
        lambda: summary_reads.session_note(connection, CHAT, "state"),
        lambda: summary_reads.sessions_after(connection, "main", "chat", 10),
    ]
    for question in questions:
        steps = plans(connection, question)
        assert steps
        assert [step for step in steps if step.startswith("SCAN") and "CONSTANT ROW" not in step] == []
        # The spending of one day is put together by summarizer.
        assert [step for step in steps if "TEMP B-TREE" in step and "FROM spending" not in step] == []
    connection.close()


async def test_nodes_are_one_stretch_of_an_index(tmp_path: Path) -> None:
    store = await filled(tmp_path / "offbook.db")
    await store.close()
    connection = open_reader(tmp_path / "offbook.db")
    steps = plans(connection, lambda: summary_reads.nodes(connection, CHAT, 1, 5, 10))
    nodes = [step for step in steps if "SEARCH s USING" in step and "FROM summaries" in step]
    assert len(nodes) == 1
    assert "summaries_by_end (session=? AND level=? AND last_seq<?)" in nodes[0]
    steps = plans(connection, lambda: summary_reads.nodes_holding(connection, CHAT, 5))
    assert sum("summaries_by_end (session=? AND level=? AND last_seq>?)" in step for step in steps) == 9
    for session_id, index in (
        (None, "summaries_unmerged (agent=?"),
        ("chat", "summaries_unmerged_of_session (session=?"),
    ):
        steps = plans(connection, lambda: summary_reads.unmerged(connection, "main", 1, session_id, 10))  # noqa: B023
        assert [step for step in steps if index in step]
    steps = plans(connection, lambda: summary_reads.handed(connection, CHAT, NOON))
    assert [step for step in steps if "COVERING INDEX contexts_by_session (session=?" in step]
    steps = plans(connection, lambda: summary_reads.sessions_after(connection, "main", None, 10))
    assert [step for step in steps if "sessions_by_making (agent=? AND session>?" in step]
    connection.close()


async def test_the_new_index_over_sessions_is_not_taken_for_their_activity(tmp_path: Path) -> None:
    store = await filled(tmp_path / "offbook.db")
    await store.close()
    connection = open_reader(tmp_path / "offbook.db")
    steps = plans(connection, lambda: reads.sessions(connection, "main", 10))
    assert [step for step in steps if "sessions_by_activity" in step]
    assert [step for step in steps if "sessions_by_making" in step] == []
    connection.close()


async def test_no_write_of_compression_reads_a_whole_table(tmp_path: Path) -> None:
    store = await filled(tmp_path / "offbook.db")
    ledger = store._writer._ledger  # type: ignore[union-attr]
    compression, connection = ledger.compression, store._writer._connection  # type: ignore[union-attr]
    three = context(3)
    writes: list[Callable[[], object]] = [
        lambda: compression.add_summary("main", draft(5, 6), EVENT),
        lambda: compression.add_summary("main", draft(5, 6), EVENT),
        lambda: compression.add_summary("main", draft(3, 6, level=2, sources=["L1-0003", "L1-0006"]), EVENT),
        lambda: compression.add_completion("main", answer("f2"), NOON),
        lambda: compression.hand_over(CHAT, three, packed(three), EVENT),
        lambda: compression.set_session_note(CHAT, "state", "another"),
        lambda: compression.set_session_note(CHAT, "state", None),
    ]
    with connection:
        steps = [step for write in writes for step in plans(connection, write)]
    await store.close()
    assert [step for step in steps if step.startswith("SCAN")] == []


# ── damage ──


@pytest.mark.parametrize("written", ["no JSON", "{}", '{"level": 1}'])
async def test_a_damaged_summary_is_told(tmp_path: Path, written: str) -> None:
    await (await filled(tmp_path / "offbook.db")).close()
    tamper(tmp_path / "offbook.db", f"UPDATE summary_texts SET draft = '{written}' WHERE summary = 1")
    store = SqliteStore(tmp_path / "offbook.db")
    with pytest.raises(StoreCorrupt, match="summary L1-0001 of agent 'main'"):
        await store.summary_texts("main", ["L1-0001"])
    with pytest.raises(StoreCorrupt, match="a summary of agent 'main'"):
        await store.summaries("main")
    with pytest.raises(StoreCorrupt):
        await store.add_summary("main", draft(1, 1), AGAIN)
    assert len(await store.nodes(CHAT, level=1)) == 4
    assert (await store.summary("main", "L1-0002")) is not None
    await store.close()


async def test_a_summary_without_its_text_is_told(tmp_path: Path) -> None:
    await (await filled(tmp_path / "offbook.db")).close()
    tamper(tmp_path / "offbook.db", "DELETE FROM summary_texts WHERE summary = 1")
    store = SqliteStore(tmp_path / "offbook.db", read_only=True)
    with pytest.raises(StoreCorrupt, match="summary L1-0001 of agent 'main'"):
        await store.summary_texts("main", ["L1-0001"])
    await store.close()


@pytest.mark.parametrize("payload", ["X'00'", "X'789c030000000001'", "X''"])
async def test_a_damaged_context_is_told(tmp_path: Path, payload: str) -> None:
    await (await filled(tmp_path / "offbook.db")).close()
    tamper(tmp_path / "offbook.db", f"UPDATE contexts SET payload = {payload} WHERE generation = 2")
    reader = SqliteStore(tmp_path / "offbook.db", read_only=True)
    with pytest.raises(StoreCorrupt, match="a context of session 'chat' of agent 'main'"):
        await reader.handed(CHAT)
    assert await reader.handed(CHAT, at=NOON + timedelta(minutes=1)) == context(1)
    await reader.close()


async def test_a_damaged_answer_is_told(tmp_path: Path) -> None:
    await (await filled(tmp_path / "offbook.db")).close()
    tamper(tmp_path / "offbook.db", "UPDATE completions SET answer = '{'")
    reader = SqliteStore(tmp_path / "offbook.db", read_only=True)
    with pytest.raises(StoreCorrupt, match="an answer of a model to agent 'main'"):
        await reader.completion("main", "f1")
    await reader.close()


async def test_what_was_derived_and_cannot_be_read_is_told_page_by_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "offbook.db"
    await (await filled(path)).close()
    tamper(
        path,
        "UPDATE summary_texts SET draft = '{}' WHERE summary = 2",
        "UPDATE summary_texts SET draft = CAST(X'22ff22' AS TEXT) WHERE summary = 4",
        "DELETE FROM summary_texts WHERE summary = 5",
        "UPDATE contexts SET payload = X'00' WHERE generation = 2",
        "UPDATE completions SET answer = '{'",
        "UPDATE agents SET name = CAST(X'ff' AS TEXT) WHERE name = 'other'",
    )
    for rows in (1, 2, 3, 50):
        monkeypatch.setattr(derived_faults, "ROWS_AT_A_TIME", rows)
        reader = SqliteStore(path, read_only=True, snapshot=True)
        faults = [fault async for fault in reader.derived_faults()]
        await reader.close()
        assert [(fault.what.partition(" cannot")[0], fault.agent_id, fault.session_id) for fault in faults] == [
            ("summary L1-0002", "main", "chat"),
            ("summary L1-0004", "main", "chat"),
            ("summary L2-0001", "main", "chat"),
            ("the context of generation 2", "main", "chat"),
            ("a model's answer f1", "main", None),
        ]


async def test_a_row_that_nobody_owns_any_more_is_told_by_its_number(tmp_path: Path) -> None:
    await (await filled(tmp_path / "offbook.db")).close()
    tamper(tmp_path / "offbook.db", "UPDATE contexts SET session = 99 WHERE generation = 1")
    reader = SqliteStore(tmp_path / "offbook.db", read_only=True)
    (fault,) = [fault async for fault in reader.derived_faults()]
    assert fault.what.startswith("row 1 of contexts cannot be read")
    await reader.close()


# ── threads ──


async def test_a_context_is_packed_beside_the_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqliteStore(tmp_path / "offbook.db")
    await add(store, "hello")
    threads: list[str] = []

    class Decoder:
        def decode(self, data: bytes) -> HandedContext:
            threads.append(threading.current_thread().name)
            return msgspec.json.decode(data, type=HandedContext)

    monkeypatch.setattr(summary_reads, "context_decoder", Decoder())
    await store.hand_over(CHAT, context(1), EVENT)
    assert len(threads) == 1
    assert threads[0] not in (threading.main_thread().name, store._write()._thread.name)
    assert await store.handed(CHAT) == context(1)
    await store.close()


# ── kill -9 ──

_SWAPPING = """
import asyncio, sys
from pathlib import Path
from offbook.log.sqlite.store import SqliteStore
from tests.unit.log.test_sqlite_compression import CHAT, EVENT, add, context, draft

async def swap(path):
    store = SqliteStore(path)
    for number in range(1, 100_000):
        await add(store, f"message {number}")
        made = await store.add_summary("main", draft(number, number), EVENT)
        await store.add_summary("main", draft(number, number, level=2, sources=[made.id]), EVENT)
        await store.hand_over(CHAT, context(number), EVENT)
        print(number, flush=True)

asyncio.run(swap(Path(sys.argv[1])))
"""


@pytest.mark.slow
async def test_a_kill_leaves_whole_steps(tmp_path: Path) -> None:
    path = tmp_path / "offbook.db"
    root = REPOSITORY
    process = subprocess.Popen(
        [sys.executable, "-c", _SWAPPING, str(path)],
        stdout=subprocess.PIPE,
        cwd=root,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(root), *sys.path])},
        text=True,
    )
    assert process.stdout is not None
    for _ in range(50):
        process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    told = 50 + len(process.stdout.read().splitlines())
    process.wait()

    store = SqliteStore(path)
    session, handed = await store.session(CHAT), await store.handed(CHAT)
    assert session is not None
    assert handed is not None
    assert session.generation == handed.generation in (told, told + 1)
    counts = await store.summary_counts("main")
    assert counts[1] >= counts[2] >= handed.generation >= counts[1] - 1
    merged = [node.parent is not None for node in await store.nodes(CHAT, level=1, limit=10_000)]
    assert sum(merged) == counts[2]
    verbs = [event.verb for event in await store.audit_events("main", limit=1_000_000)]
    assert verbs.count("summarize") == counts[1] + counts[2] + handed.generation
    assert [fault async for fault in verify(store, "main")] == []
    assert [fault async for fault in store.faults()] == []
    await store.close()


# ── speed ──


async def test_looking_for_a_cover_does_not_grow_with_history(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "offbook.db")
    await add(store, *["x" for _ in range(300)])
    connection = open_reader(tmp_path / "offbook.db")

    async def steps_with(first: int, last: int) -> list[int]:
        await asyncio.gather(*[store.add_summary("main", draft(each, each), EVENT) for each in range(first, last + 1)])
        nodes, for_nodes = with_steps(connection, lambda: summary_reads.nodes(connection, CHAT, 1, None, 30))
        free, for_free = with_steps(connection, lambda: summary_reads.unmerged(connection, "main", 1, None, 1))
        counts, for_counts = with_steps(connection, lambda: summary_reads.summary_counts(connection, "main"))
        newest, for_newest = with_steps(
            connection, lambda: summary_reads.summaries(connection, "main", None, None, None, 1)
        )
        assert (len(nodes), len(free), counts, len(newest)) == (30, 1, {1: last}, 1)
        return [for_nodes, for_free, for_counts, for_newest]

    few = await steps_with(1, 40)
    assert await steps_with(41, 300) == few
    connection.close()
    await store.close()
