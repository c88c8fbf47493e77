"""The database that answers after a connection was lost: an older copy, one that waits for a standby, one that is unfit."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import psycopg
import pytest

from offbook.log.postgres.connection import PostgresConnection
from offbook.log.postgres.store import PostgresStore
from offbook.model.errors import LogLost, SettingsError, StoreBusy, StoreError, StoreOwned
from tests.contract.test_store import add, entry, texts
from tests.postgres_server import Server, server
from tests.unit.log.postgres.test_postgres import end_connections, own_server, store, url

__all__ = ["own_server", "store", "url"]


def name_of(url: str) -> str:
    return str(psycopg.conninfo.conninfo_to_dict(url)["dbname"])


def lose_answer(monkeypatch: pytest.MonkeyPatch, then: Callable[[], object], *, is_done: bool = True) -> None:
    """Of the next commit. `then`: what happens to the database before it is asked again."""
    execute, lost = PostgresConnection.execute, []

    def lose(self: PostgresConnection, statement: str, values: object = None, /) -> object:
        if statement != "COMMIT" or lost:
            return execute(self, statement, values)  # type: ignore[arg-type]
        lost.append(statement)
        if is_done:
            execute(self, statement)
        self._connection.close()
        then()
        raise psycopg.OperationalError("the answer was lost")

    monkeypatch.setattr(PostgresConnection, "execute", lose)


def copy_database(url: str) -> str:
    name = name_of(url)
    end_connections(url, "%")
    server().ask(f"CREATE DATABASE {name}_older TEMPLATE {name}")
    return f"{name}_older"


def put_in_place(url: str, older: str) -> None:
    name = name_of(url)
    end_connections(url, "%")
    server().ask(f"ALTER DATABASE {name} RENAME TO {name}_newer")
    server().ask(f"ALTER DATABASE {older} RENAME TO {name}")


@pytest.mark.parametrize("is_in_commit", [False, True], ids=["between", "in a commit"])
async def test_nothing_is_written_to_an_older_copy(
    store: PostgresStore, url: str, monkeypatch: pytest.MonkeyPatch, is_in_commit: bool
) -> None:
    await add(store, entry("one"))
    older = await asyncio.to_thread(copy_database, url)
    await add(store, entry("two"))
    if is_in_commit:
        lose_answer(monkeypatch, lambda: put_in_place(url, older))
    else:
        await asyncio.to_thread(put_in_place, url, older)
    with pytest.raises(LogLost, match="older copy"):
        await add(store, entry("three"))
    with pytest.raises(LogLost):
        await texts(store)
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM offbook.messages").fetchone() == (1,)


async def test_what_is_kept_of_rows_goes_with_the_connection(store: PostgresStore, url: str) -> None:
    await add(store, entry("one"))
    assert store._write()._ledger._sessions
    known = next(iter(store._write()._ledger._sessions.values()))
    await asyncio.to_thread(end_connections, url)
    await add(store, entry("two"))
    assert next(iter(store._write()._ledger._sessions.values())) is not known


async def test_nothing_is_acknowledged_without_the_synchronous_standby(own_server: Server) -> None:
    """Whoever ends a connection that waits for the standby leaves its transaction visible, and not replicated."""
    own_url = own_server.new_database()
    store = PostgresStore(own_url, node="one")
    await add(store, entry("one"))
    unfit = own_server.new_database()
    own_server.ask(f"ALTER DATABASE {name_of(unfit)} SET synchronous_commit = local")
    own_server.ask("ALTER SYSTEM SET synchronous_standby_names = 'nowhere'")
    own_server.ask("SELECT pg_reload_conf()")

    def waiting() -> set[object]:
        return {pid for (pid,) in own_server.ask("SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'")}

    said = ["two"]
    sent = asyncio.create_task(add(store, entry("two")))
    while not (first := await asyncio.to_thread(waiting)):
        if sent.done():  # the server has not read its settings again yet
            said.append(f"two, {len(said)}")
            sent = asyncio.create_task(add(store, entry(said[-1])))
        await asyncio.sleep(0.05)
    own_server.ask(f"SELECT pg_terminate_backend({first.pop()})")
    while not sent.done() and not (await asyncio.to_thread(waiting)) - first:
        await asyncio.sleep(0.05)
    assert not sent.done()
    with pytest.raises(SettingsError, match="standby"):
        PostgresStore(unfit)
    own_server.ask("ALTER SYSTEM RESET synchronous_standby_names")
    own_server.ask("SELECT pg_reload_conf()")
    assert (await sent).accepted == 1
    assert await texts(store) == ["one", *said]
    await store.close()


async def test_no_statement_of_ours_is_cut_short(url: str) -> None:
    """A commit that waits for a standby would be answered."""
    server().ask(f"ALTER DATABASE {name_of(url)} SET statement_timeout = '1min'")
    connection = PostgresConnection(url, name="test")
    assert connection.execute("SHOW statement_timeout").get == "0"
    connection.close()


async def test_an_unknown_outcome_on_a_database_that_became_unfit_is_not_tried_again(
    store: PostgresStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(store, entry("one"))
    lose_answer(monkeypatch, lambda: server().ask(f"ALTER DATABASE {name_of(url)} SET synchronous_commit = off"))
    with pytest.raises(StoreBusy, match="outcome is unknown"):
        await add(store, entry("two"))
    server().ask(f"ALTER DATABASE {name_of(url)} RESET synchronous_commit")
    end_connections(url)
    await add(store, entry("three"))
    assert await texts(store) == ["one", "two", "three"]


async def test_a_transaction_that_was_given_up_is_not_acknowledged(store: PostgresStore) -> None:
    await add(store, entry("one"))

    def fail_unnoticed(ledger: object) -> None:
        with suppress(psycopg.Error):
            ledger._connection.execute("SELECT 1 / 0")  # type: ignore[attr-defined]

    with pytest.raises(StoreError, match="given up"):
        await store._write().submit(fail_unnoticed)
    await add(store, entry("two"))
    assert await texts(store) == ["one", "two"]


async def test_a_server_that_became_read_only_is_left_for_the_one_that_is_not(store: PostgresStore, url: str) -> None:
    await add(store, entry("one"))
    connection = store._write()._connection
    connection.execute("SET default_transaction_read_only = on")  # as on one that became a standby
    await add(store, entry("two"))
    assert await texts(store) == ["one", "two"]
    server().ask(f"ALTER DATABASE {name_of(url)} SET default_transaction_read_only = on")
    with pytest.raises(StoreError, match="read-only"):
        PostgresStore(url, node="one")
    server().ask(f"ALTER DATABASE {name_of(url)} RESET default_transaction_read_only")


@pytest.mark.parametrize("is_in_transaction", [True, False])
async def test_a_lease_is_renewed_while_something_takes_long(url: str, is_in_transaction: bool) -> None:
    one = PostgresStore(url, node="one", lease_seconds=6.0)
    is_over = threading.Event()
    work = one._write()
    if is_in_transaction:
        busy = asyncio.create_task(work.submit(lambda _ledger: is_over.wait(60)))
    else:
        busy = asyncio.create_task(work.submit_between(lambda: is_over.wait(60)))
    await asyncio.sleep(7.0)  # longer than it lasts
    with pytest.raises(StoreOwned, match="holds this database until"):
        await asyncio.to_thread(PostgresStore, url, node="two")
    assert await texts(one) == []
    is_over.set()
    assert await busy
    await add(one, entry("said then"))
    await one.close()
    two = PostgresStore(url, node="two")  # free at once
    assert await texts(two) == ["said then"]
    await two.close()


async def test_nothing_is_answered_once_the_lease_has_lapsed(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(store, entry("one"))
    writer = store._write()
    writer._is_over.set()
    writer._renewing.join()
    monkeypatch.setattr(writer, "_between_groups", lambda: None)  # nobody renews it
    writer._renewed_at = time.monotonic() - writer._lease.seconds - 1
    with pytest.raises(StoreBusy, match="another node"):
        await texts(store)
    await add(store, entry("two"))
    assert await texts(store) == ["one", "two"]


async def test_a_purge_does_not_wait_for_who_reads(store: PostgresStore, url: str) -> None:
    await add(store, entry("one"))
    with psycopg.connect(url) as reading:
        reading.execute("SELECT * FROM offbook.messages")
        kept = await store._write().submit_between(lambda: store._rewritten(["messages", "marks"]))
    assert "messages" in kept
    assert await store._write().submit_between(lambda: store._rewritten(["messages"])) == []


async def test_tables_are_left_alone_while_another_node_holds_the_database(
    store: PostgresStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def migrate(_connection: object) -> None:
        raise AssertionError("the tables of another node")

    monkeypatch.setattr("offbook.log.postgres.writer.migrate", migrate)
    with pytest.raises(StoreOwned):
        PostgresStore(url, node="two")
