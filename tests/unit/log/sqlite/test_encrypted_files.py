"""Files of an encrypted store without SQLite, and what SQLite puts beside a file on its way."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import apsw
import pytest

from offbook.log.sqlite.connection import TEMPORARY_FILES, connect, open_reader
from offbook.log.sqlite.encrypted_pages import page_bytes, pages_of_file
from offbook.log.sqlite.purge import rewritten
from offbook.log.sqlite.store import PAGES_AT_A_TIME, SqliteStore, _pieces
from offbook.model.keys import keys_of
from tests.unit.encrypted_home import encrypted

PAGE = 4096


@pytest.fixture(params=[False, True], ids=["plain", "encrypted"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    if request.param:
        encrypted(folder)
    SqliteStore(folder / "offbook.db")._close()
    return folder / "offbook.db"


def test_what_is_built_on_the_way_of_a_copy_is_not_built_in_memory(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def listen(connection: apsw.Connection) -> None:
        connection.exec_trace = lambda _cursor, sql, _bindings: said.append(sql) or True

    monkeypatch.setattr(apsw, "connection_hooks", [*apsw.connection_hooks, listen])
    asyncio.run(SqliteStore(database, read_only=True).backup(tmp_path / "copy.db"))
    connection = connect(database)
    rewritten(connection)
    connection.close()
    vacuums = [number for number, sql in enumerate(said) if sql.startswith("VACUUM")]
    assert len(vacuums) == 2
    assert all(said[number - 1] == TEMPORARY_FILES for number in vacuums)


def test_a_reader_sorts_in_files_unless_they_would_be_plain_text(database: Path) -> None:
    connection = open_reader(database)
    is_plain = keys_of(database.parent) is None
    assert connection.pragma("temp_store") == (1 if is_plain else 0)
    connection.close()


@pytest.mark.parametrize("first", [b"", bytes(PAGE), b"\xff" * PAGE, bytes(16) + b"\x02\x00" + bytes(PAGE - 18)])
def test_where_the_first_page_does_not_say_it_a_page_is_as_usual(tmp_path: Path, first: bytes) -> None:
    keys = encrypted(tmp_path / "home")
    path = tmp_path / "home" / "offbook.db"
    SqliteStore(path)._close()
    with path.open("r+b") as file:
        file.write(first)
    with path.open("rb") as file:
        assert page_bytes(file.fileno(), keys.database_key) == PAGE
        pages = list(pages_of_file(file.fileno(), keys.database_key))
    assert len(pages) == path.stat().st_size // PAGE
    assert [number for number, page in enumerate(pages) if page is None] == ([0] if first else [])


def test_pages_that_cannot_be_decrypted_do_not_end_the_search(caplog: pytest.LogCaptureFixture) -> None:
    def pages(_descriptor: int, _key: bytes):  # type: ignore[no-untyped-def]
        yield b"before"
        yield from [None] * (3 * PAGES_AT_A_TIME)
        yield b"behind"

    with caplog.at_level(logging.WARNING, "offbook.store"):
        found = b"".join(_pieces(0, bytes(32), pages))
    assert found == b"beforebehind"
    assert [record.getMessage().split()[0] for record in caplog.records] == [str(3 * PAGES_AT_A_TIME)]
