"""What every format is read into: conversations, each with its messages in order, ready to be sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

MESSAGES_AT_A_TIME = 500
BYTES_AT_A_TIME = 4 * 1024 * 1024
"""A quarter of what a provider takes in one request by default."""


class Damage(NamedTuple):
    """What could not be read. `is_whole`: not one entry but a file, or all that follows in it."""

    where: str
    reason: str
    is_whole: bool = False


class Ready(NamedTuple):
    """A message as `onMessage` takes it. Its `id` is that of its origin, so that it is stored once however often it is
    told."""

    wire: dict[str, Any]
    at: datetime | None
    size_bytes: int
    where: str


Damaged = Callable[[Damage], None]


class Conversation(NamedTuple):
    """One session of one agent. `messages` reads it anew each time, a message at a time, and tells of damage."""

    agent_id: str
    key: str
    size_bytes: int
    messages: Callable[[Damaged], Iterator[Ready]]


def batches(found: Iterator[Ready]) -> Iterator[list[Ready]]:
    batch: list[Ready] = []
    size = 0
    for ready in found:
        if batch and (len(batch) >= MESSAGES_AT_A_TIME or size + ready.size_bytes > BYTES_AT_A_TIME):
            yield batch
            batch, size = [], 0
        batch.append(ready)
        size += ready.size_bytes
    if batch:
        yield batch
