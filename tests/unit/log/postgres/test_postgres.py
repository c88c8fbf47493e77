"""What a database adds: a connection that is lost, a lease that changes hands, text that it cannot hold as it is."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.log.postgres import dialect, schema
from offbook.log.postgres.connection import PostgresConnection
from offbook.log.postgres.store import REWRITTEN, PostgresStore
from offbook.log.sql.copying import KEYS
from offbook.log.sql.schema import latest_version
from offbook.log.sqlite.connection import open_writer
from offbook.log.verification import verify
from offbook.model.errors import SettingsError, StoreBusy, StoreError, StoreOwned, StoreTooNew
from tests.contract.test_store import CHAT, add, entry, texts
from tests.contract.test_store_forget import SECRET, forgetting, lineage_of, receipt
from tests.postgres_server import Server, new_database, server

SECONDS = 5.0


@pytest.fixture
def url() -> str:
    return new_database()


@pytest.fixture
async def store(url: str) -> AsyncIterator[PostgresStore]:
    opened = PostgresStore(url, node="one")
    yield opened
    await opened.close()


@pytest.fixture
def own_server() -> Iterator[Server]:
    """One that may be stopped."""
    made = Server()
    yield made
    made.remove()


def end_connections(url: str, like: str = "offbook%") -> int:
    database = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
    return len(
        server().ask(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            f"WHERE datname = '{database}' AND application_name LIKE '{like}'"
        )
    )


async def faults(store: PostgresStore) -> list[object]:
    return [fault for agent in await store.agents() async for fault in verify(store, agent)]


# ── a connection that is lost ──


async def test_a_connection_that_was_ended_is_opened_again(store: PostgresStore, url: str) -> None:
    await add(store, entry("one"))
    assert end_connections(url) >= 1
    await add(store, entry("two"))
    assert await texts(store) == ["one", "two"]
    assert end_connections(url) >= 2
    assert await texts(store) == ["one", "two"]


async def keep_sending(store: PostgresStore, client: int, is_over: asyncio.Event) -> list[str]:
    """As an outbox does: each until it is acknowledged, in order. Returns those that were."""
    sent: list[str] = []
    while not is_over.is_set():
        id_ = f"{client}-{len(sent)}"
        while True:
            try:
                await add(store, entry(f"said {id_}", id=id_))
            except StoreBusy:
                await asyncio.sleep(0.02)
            else:
                break
        sent.append(f"said {id_}")
    return sent


async def check_kept_once(store: PostgresStore, sent: list[list[str]]) -> None:
    logged = [str(text) for text in await texts(store)]
    assert len(logged) == len(set(logged))
    for client, acknowledged in enumerate(sent):
        assert [text for text in logged if text.startswith(f"said {client}-")] == acknowledged
    assert await faults(store) == []


async def test_under_load_nothing_is_lost_or_doubled_where_connections_end(store: PostgresStore, url: str) -> None:
    is_over = asyncio.Event()
    clients = [asyncio.create_task(keep_sending(store, client, is_over)) for client in range(8)]
    for _ in range(12):
        await asyncio.sleep(0.1)
        await asyncio.to_thread(end_connections, url, "offbook writer%")
    is_over.set()
    sent = await asyncio.gather(*clients)
    assert all(sent), "each came through"
    await check_kept_once(store, sent)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT], ids=["stopped", "crashed"])
async def test_under_load_nothing_is_lost_or_doubled_where_the_server_starts_anew(
    own_server: Server, how: signal.Signals
) -> None:
    store = PostgresStore(own_server.new_database(), node="one")
    is_over = asyncio.Event()
    clients = [asyncio.create_task(keep_sending(store, client, is_over)) for client in range(8)]
    for _ in range(3):
        await asyncio.sleep(0.3)
        await asyncio.to_thread(own_server.stop, how)
        with pytest.raises(StoreBusy):
            await texts(store)
        await asyncio.to_thread(own_server.start)
    await asyncio.sleep(0.3)
    is_over.set()
    await check_kept_once(store, await asyncio.gather(*clients))
    await store.close()


@pytest.mark.parametrize("is_done", [True, False])
async def test_the_outcome_of_a_commit_without_an_answer_is_found_out(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, is_done: bool
) -> None:
    await add(store, entry("before"))
    execute, lost = PostgresConnection.execute, []

    def lose(self: PostgresConnection, statement: str, values: object = None, /) -> object:
        if statement != "COMMIT" or lost:
            return execute(self, statement, values)  # type: ignore[arg-type]
        lost.append(statement)
        if is_done:
            execute(self, statement)
        self._connection.close()
        raise psycopg.OperationalError("the answer was lost")

    monkeypatch.setattr(PostgresConnection, "execute", lose)
    if is_done:
        assert (await add(store, entry("in doubt"))).accepted == 1
    else:
        with pytest.raises(StoreBusy, match="nothing was stored"):
            await add(store, entry("in doubt"))
    await add(store, entry("after"))
    assert lost
    assert await texts(store) == ["before", *["in doubt"] * is_done, "after"]
    assert await faults(store) == []


async def test_an_outcome_that_is_never_found_out_misleads_nobody_later(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first commit is done and never known to be; the second is not done, and must not be taken for the first."""
    monkeypatch.setattr("offbook.log.postgres.writer.OUTCOME_SECONDS", 0.0)
    execute, reopen, commits = PostgresConnection.execute, PostgresConnection.reopen, []

    def lose(self: PostgresConnection, statement: str, values: object = None, /) -> object:
        if statement != "COMMIT":
            return execute(self, statement, values)  # type: ignore[arg-type]
        commits.append(statement)
        done = execute(self, statement) if len(commits) != 2 else None
        if len(commits) <= 2:
            self._connection.close()
            raise psycopg.OperationalError("the answer was lost")
        return done

    def unreachable(self: PostgresConnection) -> None:
        if len(commits) == 1:
            monkeypatch.setattr(PostgresConnection, "reopen", reopen)
            raise psycopg.OperationalError("nobody answers")
        reopen(self)

    monkeypatch.setattr(PostgresConnection, "execute", lose)
    monkeypatch.setattr(PostgresConnection, "reopen", unreachable)
    with pytest.raises(StoreBusy):
        await add(store, entry("first", id="1"))
    with pytest.raises(StoreBusy, match="nothing was stored"):
        await add(store, entry("second", id="2"))
    assert (await add(store, entry("first", id="1"))).duplicates == 1
    assert await texts(store) == ["first"]
    assert await faults(store) == []


# ── the lease ──


async def test_a_second_node_is_told_who_holds_the_database(store: PostgresStore, url: str) -> None:
    with pytest.raises(StoreOwned, match=rf"\(process {os.getpid()}\) holds this database until \d{{4}}-\d\d-\d\d"):
        PostgresStore(url, node="two")
    await store.close()
    two = PostgresStore(url, node="two")
    await add(two, entry("it is free once the first has ended"))
    await two.close()


async def test_one_that_was_overtaken_writes_and_answers_nothing_more(url: str) -> None:
    one = PostgresStore(url, node="one")
    await add(one, entry("first"))
    again = PostgresStore(url, node="one")  # a new process of the same node, which has the lock on its folder
    await add(again, entry("second"))
    with pytest.raises(StoreOwned, match="writes nothing more"):
        await add(one, entry("too late"))
    with pytest.raises(StoreOwned):
        await texts(one)
    await one.close()
    await add(again, entry("third"))
    assert await texts(again) == ["first", "second", "third"]
    assert await faults(again) == []
    await again.close()


async def test_a_lease_is_renewed_while_nothing_is_written(url: str) -> None:
    one = PostgresStore(url, node="one", lease_seconds=SECONDS)
    await asyncio.sleep(1.3 * SECONDS)
    with pytest.raises(StoreOwned):
        PostgresStore(url, node="two")
    await one.close()


WRITES_ON = """
import asyncio, sys
from offbook.log.postgres.store import PostgresStore
from offbook.model.errors import StoreBusy, StoreOwned
from tests.contract.test_store import add, entry

async def main():
    store = PostgresStore(sys.argv[1], node="stopped", lease_seconds=1.0)
    for number in range(10_000):
        try:
            await add(store, entry(f"first {number}"))
        except StoreOwned:
            print("overtaken", flush=True)
            return
        except StoreBusy:  # stopped in the middle of a statement: whether it was stored is not known
            continue
        print(f"first {number}", flush=True)
        await asyncio.sleep(0.01)

asyncio.run(main())
"""


async def test_a_node_that_is_stopped_is_overtaken_when_its_lease_has_lapsed(url: str) -> None:
    child = subprocess.Popen([sys.executable, "-c", WRITES_ON, url], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "first 0\n"
    child.send_signal(signal.SIGSTOP)
    while True:
        try:
            store = PostgresStore(url, node="next")
            break
        except StoreOwned:
            await asyncio.sleep(0.1)
    await add(store, entry("second"))
    child.send_signal(signal.SIGCONT)
    acknowledged = ["first 0", *(await asyncio.to_thread(child.stdout.read)).split("\n")[:-1]]
    assert child.wait(60) == 0
    assert acknowledged.pop() == "overtaken"
    logged = await texts(store)
    assert logged.pop() == "second"
    # What was under way when it was stopped may be there without an answer.
    assert logged[: len(acknowledged)] == acknowledged
    assert len(logged) <= len(acknowledged) + 1
    assert await faults(store) == []
    await store.close()


async def test_of_a_node_that_was_killed_the_lease_lapses(url: str) -> None:
    child = subprocess.Popen([sys.executable, "-c", WRITES_ON, url], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "first 0\n"
    child.kill()
    child.wait(60)
    began = time.monotonic()
    with pytest.raises(StoreOwned):
        PostgresStore(url, node="next")
    while True:
        try:
            store = PostgresStore(url, node="next")
            break
        except StoreOwned:
            assert time.monotonic() - began < 60
            await asyncio.sleep(0.1)
    assert (await texts(store))[0] == "first 0"
    await store.close()


# ── the database ──


async def test_a_database_that_answers_before_it_is_durable_is_refused(url: str) -> None:
    name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
    server().ask(f"ALTER DATABASE {name} SET synchronous_commit = off")
    with pytest.raises(SettingsError, match="synchronous_commit"):
        PostgresStore(url)


async def test_a_database_that_is_not_there_is_named(url: str) -> None:
    with pytest.raises(StoreError, match=r"cannot be opened .* check `store.url`"):
        PostgresStore(server().url("nowhere"))
    with pytest.raises(StoreError, match="holds no memory yet"):
        PostgresStore(server().new_database(), read_only=True)


async def test_a_newer_schema_is_left_alone(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("INSERT INTO offbook.migrations (kind, version) VALUES ('store', 999)")
    for read_only in (False, True):
        with pytest.raises(StoreTooNew, match="999"):
            PostgresStore(url, read_only=read_only)


def migrated(url: str) -> int:
    connection = PostgresConnection(url, name="test")
    try:
        schema.migrate(connection)
        return schema.schema_version(connection)
    finally:
        connection.close()


async def test_of_several_that_migrate_at_once_one_does() -> None:
    url = server().new_database()
    assert await asyncio.gather(*[asyncio.to_thread(migrated, url) for _ in range(4)]) == [latest_version()] * 4


async def test_both_databases_have_the_same_tables(url: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    sqlite = open_writer(tmp_path / "offbook.db")
    tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    theirs = {
        table: [row[1] for row in sqlite.execute(f"PRAGMA table_info({table})")]
        for (table,) in sqlite.execute(tables).fetchall()
    }
    sqlite.close()
    assert theirs.keys() == KEYS.keys()
    with psycopg.connect(url) as connection:
        columns = connection.execute(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'offbook' "
            "ORDER BY table_name, ordinal_position"
        ).fetchall()
    ours: dict[str, list[str]] = {}
    for table, column in columns:
        ours.setdefault(table, []).append(column)
    assert {table: ours[table] for table in theirs} == theirs
    assert ours.keys() - theirs.keys() == {"lease", "migrations", "nodes", "buckets", "node_writes"}
    assert set(REWRITTEN) <= theirs.keys()


async def test_after_a_purge_no_table_holds_what_was_erased(
    store: PostgresStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("offbook.log.postgres.store.TRIES", 2)
    monkeypatch.setattr("offbook.log.postgres.store.PAUSE_SECONDS", 0.0)
    filler = [entry(f"filler {number} " + "x" * 300) for number in range(200)]
    await add(store, *filler[:100], entry(f"it is {SECRET}" + " y" * 100), *filler[100:])
    name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
    [(oid,)] = server().ask(f"SELECT oid FROM pg_database WHERE datname = '{name}'")

    def is_in_tables() -> bool:
        server().ask("CHECKPOINT")
        folder = server().folder / "data" / "base" / str(oid)
        return any(SECRET.encode() in path.read_bytes() for path in folder.iterdir())

    assert is_in_tables()
    with psycopg.connect(server().url("postgres")) as other:  # whatever database of the server it is
        other.execute("SELECT pg_current_xact_id()")
        await store.erase("main", await lineage_of(store, 101), {}, receipt(101), forgetting(101))
        with pytest.raises(StoreBusy, match="older moment"):
            await store.purge()
        assert is_in_tables()
    await store.purge()
    assert not is_in_tables()
    assert len(await store.messages(CHAT, limit=1_000)) == 201


async def test_an_error_quotes_nothing_that_was_said(store: PostgresStore) -> None:
    await add(store, entry("one"))
    with pytest.raises(StoreError) as caught:
        await store._write().submit(
            lambda ledger: ledger._connection.execute(
                "INSERT INTO agents (agent, name, noted_hash) VALUES (1, ?, '')", (SECRET,)
            )
        )
    assert SECRET not in str(caught.value)
    assert SECRET not in caught.value.detail


# ── the dialect ──


@given(st.text(alphabet=st.sampled_from("\x00\x01\x02ab0"), max_size=8), st.text(alphabet="\x00\x01\x02a", max_size=8))
def test_text_is_written_so_that_it_comes_back_and_keeps_its_order(one: str, other: str) -> None:
    assert dialect.unescaped(dialect.escaped(one)) == one
    assert "\x00" not in dialect.escaped(one)
    assert (dialect.escaped(one) < dialect.escaped(other)) == (one < other)


def test_statements_are_translated() -> None:
    asked = "SELECT 1 FROM audit e INDEXED BY audit_by_verb ON true WHERE a = ? AND b IN () AND c = ?"
    assert dialect.statement(asked) == "SELECT 1 FROM audit e ON true WHERE a = $1 AND b IN (NULL) AND c = $2"


def test_the_newest_of_both_kinds_of_migrations_is_known() -> None:
    assert schema._newest_of_ours() >= 1
