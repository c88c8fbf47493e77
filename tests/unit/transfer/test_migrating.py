"""A memory that goes from the file into a database and back: the same rows each time, however often it broke off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from offbook.cli.root import root
from offbook.log.opening import open_store
from offbook.log.postgres.connection import PostgresConnection
from offbook.log.postgres.store import PostgresStore
from offbook.log.sql import copying
from offbook.log.sqlite.connection import open_reader, open_writer
from offbook.log.sqlite.store import SqliteStore
from offbook.model.errors import InvalidInput, LogLost, SettingsError, StoreCorrupt, StoreError, StoreOwned
from offbook.model.home import Home, Lock
from offbook.model.settings.sections import StoreSettings
from offbook.transfer import migrating
from offbook.transfer.migrating import FILE, migrate
from tests.contract.test_store import add, entry
from tests.contract.test_two_stores import Narrator, rows_of
from tests.postgres_server import new_database


@pytest.fixture
async def home(tmp_path: Path) -> Home:
    """With a history."""
    home = Home(tmp_path / "home")
    home.prepare()
    store = SqliteStore(home.database)
    await Narrator(store, seed=7).tell(40)
    await store.close()
    return home


def in_file(path: Path) -> dict[str, list[Any]]:
    connection = open_reader(path)
    try:
        return rows_of(connection) | {"installation": connection.execute("SELECT * FROM installation").fetchall()}
    finally:
        connection.close()


def in_database(url: str) -> dict[str, list[Any]]:
    connection = PostgresConnection(url, name="test", read_only=True)
    try:
        return rows_of(connection) | {"installation": connection.execute("SELECT * FROM installation").fetchall()}
    finally:
        connection.close()


async def test_it_is_the_same_in_the_database_and_back_in_a_file(home: Home) -> None:
    url, before = new_database(), in_file(home.database)
    migrated = await migrate(home, FILE, url)
    assert not migrated.is_resumed
    assert migrated.rows == {table: len(rows) for table, rows in before.items()}
    assert in_database(url) == before
    assert in_file(home.database) == before

    store = open_store(home, StoreSettings(url=url))
    await add(store, entry("said since"))
    await store.close()
    with pytest.raises(LogLost, match="newest part"):  # the file is older than what is known of the log now
        open_store(home, StoreSettings())
    with pytest.raises(InvalidInput, match="move it away"):
        await migrate(home, url, FILE)
    home.database.rename(home.folder / "older.db")
    after = in_database(url)
    await migrate(home, url, FILE)
    assert in_file(home.database) == after
    store = open_store(home, StoreSettings())
    await add(store, entry("and it goes on"))
    await store.close()


class BrokenOff(Exception):
    pass


@pytest.mark.parametrize("target", ["database", FILE])
async def test_one_that_broke_off_goes_on(home: Home, monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    monkeypatch.setattr(copying, "ROWS_AT_A_TIME", 7)
    url, before = new_database(), in_file(home.database)
    names = (FILE, url)
    if target == FILE:
        await migrate(home, *names)
        home.database.rename(home.folder / "older.db")
        names = (url, FILE)
    left, starts = 1, 0

    def break_off(_rows: int) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise BrokenOff

    while True:
        left = 5
        try:
            migrated = await migrate(home, *names, progress=break_off)
            break
        except BrokenOff:
            starts += 1
            if target != FILE:
                with pytest.raises(StoreError, match="broke off"):
                    open_store(home, StoreSettings(url=url))
    assert starts > 3
    assert migrated.is_resumed
    assert (in_file(home.database) if target == FILE else in_database(url)) == before


async def test_where_the_source_has_changed_meanwhile_it_begins_anew(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "ROWS_AT_A_TIME", 7)

    def break_off(_rows: int) -> None:
        raise BrokenOff

    url = new_database()
    with pytest.raises(BrokenOff):
        await migrate(home, FILE, url, progress=break_off)
    store = SqliteStore(home.database)
    await add(store, entry("said since"))
    await store.close()
    assert not (await migrate(home, FILE, url)).is_resumed
    assert in_database(url) == in_file(home.database)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE sessions SET touched = touched + 1",
        "INSERT INTO vector_sets (vector_set, agent, model, last_number) VALUES (77, 1, 'another', 0)",
    ],
)
async def test_a_change_that_no_event_tells_of_is_noticed(
    home: Home, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """As when a provider ran in between and embedded what was said before."""
    url = new_database()
    break_verification(monkeypatch)
    with pytest.raises(BrokenOff):
        await migrate(home, FILE, url)
    monkeypatch.undo()
    connection = open_writer(home.database)
    connection.execute(change)
    connection.close()
    assert not (await migrate(home, FILE, url)).is_resumed
    assert in_database(url) == in_file(home.database)


def break_verification(monkeypatch: pytest.MonkeyPatch) -> None:
    def break_off(*_arguments: object, **_named: object) -> None:
        raise BrokenOff

    monkeypatch.setattr(migrating, "verify", break_off)


@pytest.mark.parametrize("target", ["database", FILE])
async def test_what_is_not_verified_yet_is_not_finished(
    home: Home, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    url, before = new_database(), in_file(home.database)
    names = (FILE, url)
    if target == FILE:
        await migrate(home, *names)
        home.database.rename(home.folder / "older.db")
        names = (url, FILE)
    break_verification(monkeypatch)
    with pytest.raises(BrokenOff):
        await migrate(home, *names)
    if target == FILE:
        assert not home.database.exists()
    else:
        with pytest.raises(StoreError, match="run `offbook migrate` again"):
            open_store(home, StoreSettings(url=url))
    monkeypatch.undo()
    assert (await migrate(home, *names)).is_resumed
    assert (in_file(home.database) if target == FILE else in_database(url)) == before


async def test_a_file_that_was_whole_and_not_put_in_its_place_is_copied_anew(home: Home) -> None:
    url, before = new_database(), in_file(home.database)
    await migrate(home, FILE, url)
    home.database.rename(home.database.with_suffix(".migrating"))
    await migrate(home, url, FILE)
    assert in_file(home.database) == before


async def test_a_copy_that_lacks_rows_begins_anew(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    url = new_database()
    monkeypatch.setattr(migrating, "copy_tables", lambda *_arguments, **_named: None)
    with pytest.raises(StoreCorrupt, match="begins anew"):
        await migrate(home, FILE, url)
    monkeypatch.undo()
    assert not (await migrate(home, FILE, url)).is_resumed
    assert in_database(url) == in_file(home.database)


async def test_half_a_memory_is_no_source(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    url = new_database()
    break_verification(monkeypatch)
    with pytest.raises(BrokenOff):
        await migrate(home, FILE, url)
    monkeypatch.undo()
    home.database.rename(home.folder / "older.db")
    with pytest.raises(StoreError, match="broke off"):
        await migrate(home, url, FILE)
    assert not home.database.exists()
    (home.folder / "older.db").rename(home.database)
    connection = open_writer(home.database)
    connection.execute("INSERT INTO installation (name, value) VALUES (?,?)", (copying.MIGRATING, b"something"))
    connection.close()
    with pytest.raises(InvalidInput, match="half a memory"):
        await migrate(home, FILE, new_database())


async def test_a_database_that_is_being_emptied_stays_unfinished(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    url = new_database()
    break_verification(monkeypatch)
    with pytest.raises(BrokenOff):
        await migrate(home, FILE, url)
    monkeypatch.undo()
    store = SqliteStore(home.database)
    await add(store, entry("said since"))
    await store.close()

    def empty_and_break_off(connection: Any) -> None:
        copying.empty_tables(connection)
        raise BrokenOff

    monkeypatch.setattr(migrating, "empty_tables", empty_and_break_off)
    with pytest.raises(BrokenOff):
        await migrate(home, FILE, url)
    with pytest.raises(StoreError, match="broke off"):
        open_store(home, StoreSettings(url=url))


async def test_nobody_may_write_meanwhile(home: Home) -> None:
    url = new_database()
    lock = Lock(home)
    with pytest.raises(StoreOwned):
        await migrate(home, FILE, url)
    lock.release()
    other = PostgresStore(url, node="another")
    with pytest.raises(StoreOwned, match="holds this database"):
        await migrate(home, FILE, url)
    await add(other, entry("something"))
    await other.close()
    with pytest.raises(InvalidInput, match="holds a memory already"):
        await migrate(home, FILE, url)


async def test_what_cannot_be_meant_is_refused(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    for source, target in ((FILE, FILE), (new_database(), new_database())):
        with pytest.raises(InvalidInput, match="either --from or --to"):
            await migrate(home, source, target)
    with pytest.raises(InvalidInput, match="nothing to migrate"):
        await migrate(home, FILE, new_database())
    with pytest.raises(SettingsError) as caught:
        await migrate(home, FILE, "mysql://user:secret@host/name")
    assert "secret" not in str(caught.value)


async def test_a_backup_of_a_database_is_a_file_with_the_same_rows(home: Home) -> None:
    url = new_database()
    await migrate(home, FILE, url)
    store = PostgresStore(url)
    await store.backup(home.folder / "copy.db")
    await store.close()
    assert in_file(home.folder / "copy.db") == in_file(home.database)


async def test_another_database_than_the_one_that_was_here_is_refused(home: Home) -> None:
    await migrate(home, FILE, url := new_database())
    with pytest.raises(LogLost, match="the database is another log") as caught:
        open_store(home, StoreSettings(url=new_database()))
    assert "database's own tools" in caught.value.detail
    assert "offbook restore" not in caught.value.detail
    store = open_store(home, StoreSettings(url=url))
    await store.close()


def test_the_command_says_what_was_copied_and_what_to_do_then(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.prepare()
    SqliteStore(home.database)._close()
    url = new_database()
    done = CliRunner().invoke(root, ["migrate", "--home", str(home.folder), "--to", url])
    assert done.exit_code == 0, done.output
    assert "0 messages of 0 agents" in done.output
    assert "set store.url" in done.output
    again = CliRunner().invoke(root, ["migrate", "--home", str(home.folder), "--to", "mysql://user:secret@host/name"])
    assert again.exit_code == 1
    assert "secret" not in again.output


def test_the_command_takes_the_database_from_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path / "home")
    home.prepare()
    SqliteStore(home.database)._close()
    monkeypatch.delenv("OFFBOOK_STORE_URL", raising=False)
    command = ["migrate", "--home", str(home.folder)]
    for given, said in (([], "say which way"), (["--from", "sqlite"], "which database"), (["--to", "sqlite"], "which")):
        done = CliRunner().invoke(root, [*command, *given])
        assert done.exit_code == 1
        assert said in done.output
    before = in_file(home.database)
    monkeypatch.setenv("OFFBOOK_STORE_URL", new_database())
    done = CliRunner().invoke(root, [*command, "--from", "sqlite"])
    assert done.exit_code == 0, done.output
    home.database.rename(home.folder / "older.db")
    done = CliRunner().invoke(root, [*command, "--to", "sqlite"])
    assert done.exit_code == 0, done.output
    assert in_file(home.database) == before
