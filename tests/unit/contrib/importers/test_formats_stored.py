"""Each format into a real store, twice: what a provider takes, and what it gives back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from offbook.api.embedded import open_memory
from offbook.api.memory import Memory
from offbook.model.types import Message
from tests.unit.contrib.importers.foreign_files import one_of_each
from tests.unit.contrib.importers.reading_files import read


async def stored(memory: Memory, name: str, path: Path) -> tuple[int, int]:
    found = read(name, path)
    accepted = duplicates = 0
    for key, wires in found.sessions.items():
        messages = [_message(wire) for wire in wires]
        receipt = await memory.on_message(memory.scope(key, found.agents[key]), messages)
        assert receipt.conflicts == []
        accepted, duplicates = accepted + receipt.accepted, duplicates + receipt.duplicates
    return accepted, duplicates


def _message(wire: dict[str, Any]) -> Message:
    return msgspec.convert(wire, Message)


@pytest.mark.parametrize("name", ["lcm", "mem0", "chatgpt", "claude", "claude-code", "codex", "markdown"])
async def test_a_store_takes_each_message_once(tmp_path: Path, name: str) -> None:
    path, count = one_of_each(tmp_path / "files")[name]
    async with open_memory(tmp_path / "home") as memory:
        assert await stored(memory, name, path) == (count, 0)
        assert await stored(memory, name, path) == (0, count)
