"""Every store is given to the same tests. A new backend adds one opener here and nothing else.

What belongs to a file is SQLite's alone, and tested there: a full disk, the reserve, pages that were damaged and what is
salvaged of them, the write-ahead log and its checkpoints, query plans (`tests/unit/log/sqlite`, `tests/unit/log/test_sqlite_*`,
`tests/acceptance/test_disk_full.py`), going back to a moment and `offbook backup` (`tests/unit/transfer/backup`). What belongs
to a server is PostgreSQL's alone (`tests/unit/log/postgres`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from offbook.log.postgres.store import PostgresStore
from offbook.log.sqlite.store import SqliteStore
from offbook.log.store import Store
from tests.postgres_server import emptied_database
from tests.unit.encrypted_home import encrypted

OpenStore = Callable[[], Store]


def _sqlite(folder: Path) -> OpenStore:
    return lambda: SqliteStore(folder / "offbook.db")


def _postgres(folder: Path) -> OpenStore:
    """The database of this process, emptied. The node is the same: what opens it again takes it over from what was not
    closed. The folder is told where it is."""
    url = emptied_database()
    (folder / "postgres.url").write_text(url)
    return lambda: PostgresStore(url, node="test")


def _encrypted(folder: Path) -> OpenStore:
    encrypted(folder)
    return _sqlite(folder)


OPENERS = {"sqlite": _sqlite, "encrypted": _encrypted, "postgres": _postgres}


def fresh_stores(folders: pytest.TempPathFactory) -> Iterator[Store]:
    """An empty one of each kind, for one example of many: of PostgreSQL the same database each time, emptied."""
    yield SqliteStore(folders.mktemp("fresh") / "offbook.db")
    yield PostgresStore(emptied_database(), node="test")


ENCRYPTED_TOO = ("test_store", "test_store_forget")
"""What is read and written is the same, whatever the pages are on the disk: these have every kind of statement."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "open_store" in metafunc.fixturenames:
        is_too = metafunc.module.__name__.rpartition(".")[2] in ENCRYPTED_TOO
        kinds = [kind for kind in sorted(OPENERS) if kind != "encrypted" or is_too]
        metafunc.parametrize("open_store", kinds, indirect=True)


@pytest.fixture
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> OpenStore:
    """Opens the same data each time it is called."""
    return OPENERS[request.param](tmp_path)


@pytest.fixture
async def store(open_store: OpenStore) -> AsyncIterator[Store]:
    opened = open_store()
    yield opened
    await opened.close()
