"""What is written into the formats of others: everything of one agent, in the order it was made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from offbook.portability.report import LeftOut
from offbook.summaries import SummaryView
from offbook.types import Message


class ExportedMessage(NamedTuple):
    """A message in its place, whole, its `ts` set."""

    session_id: str
    seq: int
    message: Message
    noise: str | None
    pinned: bool


class Exported(Protocol):
    """Both may be read again, and are the same then."""

    @property
    def agent_id(self) -> str: ...

    def messages(self) -> Iterator[ExportedMessage]:
        """Of all sessions in the order they were made, each in order of seq."""

    def summaries(self) -> Iterator[SummaryView]:
        """By level, then number."""


class Written(NamedTuple):
    """What a writer wrote, and what its format has no place for."""

    files: int
    records: int
    left_out: list[LeftOut]
