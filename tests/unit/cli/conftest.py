"""A data folder with something in it, and commands run in this process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from offbook.api.embedded import open_memory
from offbook.cli.root import root
from offbook.model.home import Home
from offbook.model.settings import Settings
from offbook.model.settings.sections import Embedding
from offbook.model.types import Message
from tests.unit.cli.answering import Answering

Run = Callable[..., Result]
WITHOUT_MODEL = Settings(embedding=Embedding(model="none"))
"""It would be put into the folder meanwhile."""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A data folder that does not exist yet, and nothing of the machine's own settings."""
    for name in [name for name in os.environ if name.startswith("OFFBOOK_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("OFFBOOK_HOME", str(tmp_path / "home"))
    return Home(tmp_path / "home")


@pytest.fixture
def run() -> Run:
    def run(*arguments: str, **keywords: object) -> Result:
        return CliRunner().invoke(root, list(arguments), **keywords)  # type: ignore[arg-type]

    return run


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Answering:
    """Nobody is asked but this one."""
    return Answering(monkeypatch)


@pytest.fixture
def stored(home: Home) -> Home:
    """Ten messages and one large part, of two agents."""
    asyncio.run(_store(home))
    return home


async def _store(home: Home) -> None:
    async with open_memory(home.folder, settings=WITHOUT_MODEL) as memory:
        for number in range(10):
            await memory.on_message(memory.scope("chat"), [Message(role="user", content=f"message {number}")])
        await memory.on_message(memory.scope("other", "second"), [Message(role="user", content="large " * 20_000)])
