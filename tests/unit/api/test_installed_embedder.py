"""From one installed embedding model to another: what was said is embedded again beside the old vectors."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import msgspec

from offbook.api.embedded import open_memory
from offbook.api.memory import Memory
from offbook.model.home import Home
from offbook.model.settings import Settings
from offbook.model.settings.sections import Embedding, Search
from offbook.model.types import Message
from offbook.models.onnx_install import install_folder
from tests.unit.models.onnx_models import DIMENSIONS, embedding_folder


def settings_of(name: str) -> Settings:
    return msgspec.structs.replace(
        Settings(),
        embedding=Embedding(model=f"local:{name}", dimensions=DIMENSIONS),
        search=Search(deadline=timedelta(seconds=60)),
    )


async def embedded(memory: Memory, name: str) -> None:
    async with asyncio.timeout(120):
        while True:
            index = (await memory.status("main")).index
            if index.embedded == index.entries == 2 and index.model == f"local:{name}":
                return
            await asyncio.sleep(0.05)


async def test_recall_goes_on_while_another_model_embeds_all(tmp_path: Path) -> None:
    source, models = embedding_folder(tmp_path / "small"), Home(tmp_path / "home").models
    install_folder(source, models, name="first")
    install_folder(source, models, name="second", query_prefix="query: ", passage_prefix="passage: ")
    said = [Message(role="user", content=text) for text in ("the cat eat fish", "a dog chases the ball")]
    async with open_memory(tmp_path / "home", settings=settings_of("first"), environ={}) as memory:
        await memory.on_message(memory.scope("chat"), said)
        await embedded(memory, "first")
        before = set(await memory._store.vector_models("main"))
    async with open_memory(tmp_path / "home", settings=settings_of("second"), environ={}) as memory:
        found = await memory.recall(memory.scope("now"), "frisst die Katze", limit=1)
        assert found.entries[0].text == "the cat eat fish", "by the vectors there are"
        await embedded(memory, "second")
        async with asyncio.timeout(60):
            while len(after := set(await memory._store.vector_models("main"))) > 1:
                await asyncio.sleep(0.05)
        assert after.isdisjoint(before), "those of the old model went with the switch"
        found = await memory.recall(memory.scope("now"), "frisst die Katze", limit=1)
    assert found.entries[0].text == "the cat eat fish"
    assert "meaning" in found.entries[0].found_by
