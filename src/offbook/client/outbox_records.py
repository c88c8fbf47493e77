"""The lines of an outbox's files that hold messages, whoever has it open: what waits, what was delivered and not
cleared away yet, what a provider refused, what could not be read to its end.

<ordinal>.jsonl                      [ordinal, lane ordinal, lane, record]; `State.awaits` tells what was delivered
*.damaged                            the same, kept for people
rejected.jsonl, rejected.1.jsonl …   {at, reason, ordinal, record}
rejected.leaving, rejected*.new      the same, while it is put back in line, or written again
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

from offbook.client.courier import Envelope
from offbook.client.outbox_folder import OutboxFolder, State, rejected_number
from offbook.client.segment import line_of, queued_of
from offbook.ingest.scope import resolve_agent
from offbook.model.content import said_in
from offbook.model.errors import WrongShape


class OutboxLine(NamedTuple):
    """One of a file: where it begins, and its bytes without the line break."""

    offset: int
    line: bytes


class Kept(NamedTuple):
    """A message that lies in an outbox."""

    agent_id: str
    session_id: str
    id: str | None
    texts: list[str]
    at: datetime | None
    """When it was refused, or said, whatever was later; None where neither is known."""
    blank: bytes
    """What stands in its place when it is gone: as many bytes, and for a segment still a record."""
    is_waiting: bool


class _Refused(msgspec.Struct):
    record: msgspec.Raw
    at: datetime | None = None
    reason: str = ""


class _MessageStamp(msgspec.Struct):
    id: str | None = None
    ts: datetime | None = None


def files_of(folder: Path) -> list[Path]:
    """Those of an outbox that may hold messages."""
    rejected = sorted(filter(is_rejected, folder.glob("rejected.*")))
    found = [*OutboxFolder(folder).segment_paths(), *sorted(folder.glob("*.damaged")), *rejected]
    return [path for path in found if path.is_file() and not path.is_symlink()]


def lines_of(file: BinaryIO) -> Iterator[OutboxLine]:
    """All but the empty ones. Raises OSError."""
    offset = 0
    for line in file:
        if not line.isspace():
            yield OutboxLine(offset, line.removesuffix(b"\n"))
        offset += len(line)


def is_rejected(path: Path) -> bool:
    """Whether it holds what a provider refused."""
    return rejected_number(path.name) >= 0


def state_of(folder: Path) -> State:
    """It tells which records have arrived. Raises OSError."""
    return OutboxFolder(folder).load()


def kept_in(line: bytes, path: Path, state: State, default_agent: str) -> Kept | None:
    """The message of a line; None where it cannot be read, or does not say whose it is."""
    blank, refused_at, reason, is_waiting = b" " * len(line), None, "", False
    try:
        if is_rejected(path):
            refused = msgspec.json.decode(line, type=_Refused)
            record, refused_at, reason = bytes(refused.record), refused.at, refused.reason
        else:
            queued = queued_of(line)
            if queued is None:
                return None
            record, is_waiting = queued.record, path.suffix == ".jsonl" and state.awaits(queued)
            if path.suffix == ".jsonl":
                blank = line_of(queued._replace(record=b"{}".ljust(len(record))))[:-1]
        envelope = msgspec.json.decode(record, type=Envelope)
        agent_id = _owner(envelope, default_agent)
        message: Any = msgspec.json.decode(envelope.message)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, WrongShape):
        return None
    said = _stamp_of(envelope.message)
    times = [each for each in (refused_at, said.ts) if each is not None and each.tzinfo is not None]
    texts = [reason, *said_in(message)]
    return Kept(agent_id, envelope.session_id, said.id, texts, max(times, default=None), blank, is_waiting)


def _owner(envelope: Envelope, default_agent: str) -> str:
    """Whose it is. What was refused because its key names nobody there can be is the default agent's to forget."""
    try:
        return resolve_agent(envelope.session_id, envelope.agent_id, default_agent)
    except WrongShape:
        if envelope.agent_id is not None:
            raise
        return default_agent


def _stamp_of(message: msgspec.Raw) -> _MessageStamp:
    """As far as it is one: it may have been refused because it is none."""
    try:
        return msgspec.json.decode(message, type=_MessageStamp)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _MessageStamp()
