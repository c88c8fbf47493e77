"""An agent's memory as a provider exports it: all its records, or what the formats of others have a place for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol
from uuid import UUID, uuid5

import msgspec

from offbook.client.blocking import Client
from offbook.client.history.conversations import LeftOut
from offbook.model.content import FILE_TYPES, IMAGE_TYPES, REASONING_TYPES, block_text, is_call, is_result, text_of
from offbook.model.receipt import FORGOTTEN
from offbook.model.record import (
    AgentRecord,
    LessonRecord,
    MarkRecord,
    MessageRecord,
    Record,
    SessionRecord,
    SummaryRecord,
)
from offbook.model.summary import SummaryView
from offbook.model.types import Block, Message

# ── What is written into the formats of others: everything of one agent, in its order ──


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


HIGHEST_LEVEL = 9
SUMMARIES_AT_A_TIME = 100


def records(client: Client, agent_id: str) -> Iterator[Record]:
    after: str | None = None
    while True:
        page = client.export(after, agent_id=agent_id)
        yield from page.records
        after = page.next
        if after is None:
            return


class WholeRecords:
    """Records whose sources are among them. An agent that goes on talking while it is exported has summaries and
    lessons of messages that came too late for it; `left_out` counts them: they are in the next export."""

    def __init__(self) -> None:
        self.left_out = 0
        self.missing_parts = 0
        """Large parts of messages that the provider could not read back."""
        self._last_seqs: dict[str, int] = {}
        self._missing: set[str] = set()

    def of(self, found: Iterator[Record]) -> Iterator[Record]:
        for record in found:
            kept = self._whole(record)
            if kept is None:
                self.left_out += 1
            else:
                yield kept

    def _whole(self, record: Record) -> Record | None:
        if isinstance(record, MessageRecord):
            self._last_seqs[record.session_id] = record.seq
            self.missing_parts += len(record.missing_parts)
        elif isinstance(record, SummaryRecord) and not self._has_summarised(record):
            self._missing.add(record.id)
            return None
        elif isinstance(record, LessonRecord) and record.sources:
            sources = [source for source in record.sources if self._has(source.session_id, source.seq)]
            return msgspec.structs.replace(record, sources=sources) if sources else None
        return record

    def _has_summarised(self, record: SummaryRecord) -> bool:
        has_messages = all(self._has(span.session_id, span.last_seq) for span in record.spans)
        return has_messages and self._missing.isdisjoint(record.sources)

    def _has(self, session_id: str, seq: int) -> bool:
        return seq <= self._last_seqs.get(session_id, 0)


class ProviderExported:
    """See `exported.Exported`."""

    def __init__(self, client: Client, agent_id: str, advance: Callable[[int], None]) -> None:
        self.agent_id = agent_id
        self._client = client
        self._advance = advance
        self.missing_parts = 0
        """Of the messages that were read last."""

    def messages(self) -> Iterator[ExportedMessage]:
        self.missing_parts = 0
        for record in records(self._client, self.agent_id):
            if not isinstance(record, AgentRecord | SessionRecord | MessageRecord | MarkRecord):
                return
            if isinstance(record, MessageRecord):
                self._advance(1)
                self.missing_parts += len(record.missing_parts)
                yield ExportedMessage(
                    record.session_id, record.seq, record.message, record.noise, record.pinned is not None
                )

    def summaries(self) -> Iterator[SummaryView]:
        for level in range(1, HIGHEST_LEVEL + 1):
            yield from reversed(list(self._newest_first(level)))

    def _newest_first(self, level: int) -> Iterator[SummaryView]:
        before: str | None = None
        while True:
            page = self._client.summaries(level=level, before=before, limit=SUMMARIES_AT_A_TIME, agent_id=self.agent_id)
            yield from page.summaries
            before = page.next
            if before is None:
                return


# ── What of a message goes into a format that holds texts of users and assistants, and nothing else ──


ORIGIN = "memory:summaries"
"""Of messages that were imported as summaries."""
NO_PLACE = "the format has no place for them"
_NAMESPACE = UUID("6f1c2f0e-5a0b-5c6e-9d0b-0ff0b00c0001")
"""Of the ids of messages that have none; another one would give all of them other ids."""


class LeftOutCounts:
    """What is not written, counted by kind."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()

    def leave(self, what: str, why: str = NO_PLACE, count: int = 1) -> None:
        self._counts[what, why] += count

    def described(self) -> list[LeftOut]:
        return [LeftOut(what=what, why=why, count=count) for (what, why), count in sorted(self._counts.items())]


def spoken(exported: ExportedMessage, leaving: LeftOutCounts, *, has_pins: bool = False) -> str | None:
    """The text of a message that is written; None for one that is not. What goes with it is counted as left.
    `has_pins`: the format says what is pinned."""
    message = exported.message
    if exported.noise == FORGOTTEN:
        leaving.leave("forgotten messages", "nothing is left of what they said")
        return None
    if message.origin == ORIGIN:
        leaving.leave("imported summaries", "nobody said them: `--format summaries` writes them back")
        return None
    if message.role not in ("user", "assistant"):
        leaving.leave(f"messages of role {message.role}")
        return None
    blocks = [] if isinstance(message.content, str) else message.content
    parts = [kind for block in blocks if (kind := _kind(block)) is not None]
    for kind in parts:
        leaving.leave(kind)
    text = text_of(message.content)
    if not text:
        if not parts:
            leaving.leave("messages without text", "there is nothing in them")
        return None
    if exported.pinned and not has_pins:
        leaving.leave("pins")
    if message.name or message.model or message.origin or message.meta or message.tool_call_id:
        leaving.leave("details of messages (name, model, origin, meta)")
    return text


def _kind(block: Block) -> str | None:
    """What a block is that is no text."""
    if block_text(block) is not None:
        return None
    if is_call(block):
        return "tool calls"
    if is_result(block):
        return "tool results"
    kind = block.get("type")
    if isinstance(kind, str) and kind in IMAGE_TYPES | FILE_TYPES:
        return "images and files"
    return "thoughts" if isinstance(kind, str) and kind in REASONING_TYPES else "other parts of messages"


def id_of(agent_id: str, exported: ExportedMessage) -> str:
    """The message's own id, else one that is the same each time."""
    if exported.message.id is not None:
        return exported.message.id
    return str(uuid5(_NAMESPACE, f"{len(agent_id)}:{agent_id}:{exported.seq}:{exported.session_id}"))
