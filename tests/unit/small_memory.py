"""A memory with small stretches, so that a short talk has summaries of every level."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
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


async def caught_up(memory: Memory, seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while (await memory.ping()).backlog:
            await asyncio.sleep(0.02)


def contents(messages: Sequence[Message]) -> list[object]:
    return [message.content for message in messages]
