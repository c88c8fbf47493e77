from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from offbook.api.embedded import open_memory
from offbook.model.home import Home
from offbook.model.settings import Settings
from offbook.model.settings.sections import Embedding
from offbook.model.types import Message

WITHOUT_MODEL = Settings(embedding=Embedding(model="none"))
"""It would be put into the folder meanwhile."""
LARGE = "a large part " * 10_000


def erase_derived(connection: apsw.Connection) -> None:
    """Whatever the background may have made of the secret and the large part by now."""
    for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        for _, column, *_ in connection.execute(f"PRAGMA table_info({table})").fetchall():
            if table not in ("messages", "audit"):
                said = f"CAST({column} AS TEXT)"
                connection.execute(f"DELETE FROM {table} WHERE instr({said}, '大象') OR instr({said}, 'large part')")


@pytest.fixture
async def home(tmp_path: Path) -> Home:
    async with open_memory(tmp_path / "home", settings=WITHOUT_MODEL) as memory:
        for text in ("hello", "the secret is 大象 🐘", LARGE):
            await memory.on_message(memory.scope("chat"), [Message(role="user", content=text)])
        await memory.on_message(memory.scope("notes", "second"), [Message(role="user", content="a note")])
    return Home(tmp_path / "home")
