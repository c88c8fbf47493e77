"""Every store is given to the same tests. A new backend adds one opener here and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from offbook.log.sqlite.store import SqliteStore
from offbook.log.store import Store

OpenStore = Callable[[], Store]


def _sqlite(folder: Path) -> OpenStore:
    return lambda: SqliteStore(folder / "offbook.db")


OPENERS = {"sqlite": _sqlite}


@pytest.fixture(params=sorted(OPENERS))
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> OpenStore:
    """Opens the same data each time it is called."""
    return OPENERS[request.param](tmp_path)


@pytest.fixture
async def store(open_store: OpenStore) -> AsyncIterator[Store]:
    opened = open_store()
    yield opened
    await opened.close()
