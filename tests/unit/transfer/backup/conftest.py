from __future__ import annotations

from pathlib import Path

import pytest

from offbook.api.embedded import open_memory
from offbook.model.home import Home
from offbook.model.settings import Settings
from offbook.model.settings.sections import Embedding
from offbook.model.types import Message

WITHOUT_MODEL = Settings(embedding=Embedding(model="none"))
"""It would be put into the folder meanwhile."""
LARGE = "a large part " * 10_000


@pytest.fixture
async def home(tmp_path: Path) -> Home:
    async with open_memory(tmp_path / "home", settings=WITHOUT_MODEL) as memory:
        for text in ("hello", "the secret is 大象 🐘", LARGE):
            await memory.on_message(memory.scope("chat"), [Message(role="user", content=text)])
        await memory.on_message(memory.scope("notes", "second"), [Message(role="user", content="a note")])
    return Home(tmp_path / "home")
