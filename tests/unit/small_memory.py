"""A memory with small stretches, so that a short talk has summaries of every level."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from offbook.api.embedded import open_memory
from offbook.api.memory import Memory
from offbook.model.settings import Settings
from offbook.model.settings.sections import Embedding
from offbook.model.types import Message, Scope

SMALL: dict[str, Any] = {
    "chunk_tokens": 120,
    "pruning_boundary_tokens": 150,
    "summary_target_tokens": 50,
    "merge_threshold": 3,
    "embedding": Embedding(model="none"),
}


def small_memory(home: Path, **fields: Any) -> AbstractAsyncContextManager[Memory]:
    return open_memory(home, settings=msgspec.structs.replace(Settings(), **{**SMALL, **fields}), environ={})


def user(text: str, **fields: Any) -> Message:
    return Message(role="user", content=text, **fields)


def assistant(text: str, **fields: Any) -> Message:
    return Message(role="assistant", content=text, **fields)


def exchange(number: int) -> list[Message]:
    return [
        user(f"Please look at src/module_{number}.py: the error is E{1000 + number}, and Alice wants it by noon."),
        assistant(f"I looked at src/module_{number}.py. E{1000 + number} came from a stale cache of {number} MB."),
    ]


async def talk(memory: Memory, exchanges: int, session: str = "chat", first: int = 0) -> Scope:
    scope = memory.scope(session)
    for number in range(first, first + exchanges):
        await memory.on_message(scope, exchange(number))
    return scope


_TALKED = TemporaryDirectory(prefix="offbook-talks-")


async def talked(home: Path, exchanges: int, **fields: Any) -> None:
    """A memory at `home` that has had such a talk and was closed with nothing left to do. The talk is had once in a
    process, and copied."""
    made = Path(_TALKED.name) / f"{exchanges} {sorted(fields.items())}"
    if not made.exists():
        async with small_memory(made, **fields) as memory:
            await talk(memory, exchanges)
            await caught_up(memory)
    shutil.copytree(made, home, dirs_exist_ok=True)


async def caught_up(memory: Memory, seconds: float = 120.0) -> None:
    async with asyncio.timeout(seconds):
        while (await memory.ping()).backlog:
            await asyncio.sleep(0.02)


def contents(messages: Sequence[Message]) -> list[object]:
    return [message.content for message in messages]
