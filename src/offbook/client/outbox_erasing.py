"""What is forgotten goes from the outboxes of the data folder, too: what a provider refused, and what was delivered and
lies there until its file is done with. What waits is delivered first, by whoever forgets: it is a message to come.

A line is overwritten where it stands, by as many bytes. So a client that has the outbox open goes on adding to the same
file, and nothing that it adds can be lost. Where nobody has it open, what a provider refused is then written again
without the empty lines, in one step.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

from offbook.client.courier import Envelope
from offbook.client.outbox_folder import OutboxBusy, OutboxFolder, State, rejected_number
from offbook.client.segment import line_of, queued_of
from offbook.ingest.scope import resolve_agent
from offbook.log.store import Store
from offbook.model.content import said_in
from offbook.model.errors import StoreError, WrongShape
from offbook.model.home import Home
from offbook.model.private_files import OPEN_OURS
from offbook.model.receipt import ForgottenSpan, Residue
from offbook.model.types import Scope
from offbook.projections.base import Erased, Removal, Says

PAGE = 500
TEMPORARY = ".new"


class Named(NamedTuple):
    """Whose, and which."""

    agent_id: str
    says: Says
    ids: frozenset[tuple[str, str]]
    """Session and id of messages that are forgotten in the log."""
    session_id: str | None
    before: datetime | None

    def has(self, kept: Kept) -> bool:
        if kept.agent_id != self.agent_id:
            return False
        if kept.session_id == self.session_id or (kept.id is not None and (kept.session_id, kept.id) in self.ids):
            return True
        if self.before is not None and kept.at is not None and kept.at < self.before:
            return True
        return any(self.says(text) for text in kept.texts)


class Outboxes:
    name = "outbox_records"
    folder: str | None = "outbox"

    def __init__(self, home: Home, store: Store, *, default_agent: str) -> None:
        self._outboxes = home.outboxes
        self._store = store
        self._default_agent = default_agent
        self._one_at_a_time = asyncio.Lock()
        """Two agents' would each overwrite lines of a file that the other just put aside."""

    async def forget(self, erased: Erased) -> Removal:
        """One that fails keeps none of the others back."""
        named = await self._named(erased)
        if erased.is_dry_run:
            return Removal({self.name: await asyncio.to_thread(self._count, named)})
        async with self._one_at_a_time:
            return Removal({self.name: await asyncio.to_thread(self._erase, named)})

    def outside(self, _agent_id: str) -> list[str]:
        return []

    async def search(self, erased: Erased) -> list[Residue]:
        """Also in lines that cannot be read, whosever they are."""
        named = await self._named(erased)
        return await asyncio.to_thread(self._search, named)

    # ── which there are ──

    def _folders(self) -> list[Path]:
        return [folder for folder in sorted(self._outboxes.glob("*")) if folder.is_dir() and not folder.is_symlink()]

    async def _named(self, erased: Erased) -> Named:
        agent_id, selection = erased.agent_id, erased.selection
        ids = await self._ids(agent_id, erased.spans) if await asyncio.to_thread(self._folders) else frozenset()
        return Named(
            agent_id,
            erased.says,
            ids,
            session_id=selection.session_id if selection is not None else None,
            before=selection.before if selection is not None else None,
        )

    async def _ids(self, agent_id: str, spans: Sequence[ForgottenSpan]) -> frozenset[tuple[str, str]]:
        ids: set[tuple[str, str]] = set()
        for span in spans:
            scope, after = Scope(agent_id=agent_id, session_id=span.session_id), span.first_seq - 1
            while after < span.last_seq:
                page = await self._store.messages(scope, after_seq=after, limit=min(PAGE, span.last_seq - after))
                if not page:
                    break
                ids.update((span.session_id, one.message.id) for one in page if one.message.id is not None)
                after = page[-1].seq
        return frozenset(ids)

    def _kept(self, file: BinaryIO, path: Path, state: State) -> Iterator[tuple[OutboxLine, Kept | None]]:
        """Each line of a file, and the message that it holds."""
        for line in lines_of(file):
            yield line, kept_in(line.line, path, state, self._default_agent)

    def _count(self, named: Named) -> int:
        number = 0
        for folder in self._folders():
            with suppress(OSError):  # told when it is to be erased there
                number += sum(
                    kept is not None and not kept.is_waiting and named.has(kept)
                    for _, (_, kept) in self._looked_through(folder)
                )
        return number

    def _looked_through(self, folder: Path) -> Iterator[tuple[Path, tuple[OutboxLine, Kept | None]]]:
        """Raises OSError."""
        state = state_of(folder)
        for path in files_of(folder):
            with suppress(FileNotFoundError), path.open("rb") as file:  # cleared away, or sent again, while we looked
                for one in self._kept(file, path, state):
                    yield path, one

    # ── taking it out ──

    def _erase(self, named: Named) -> int:
        erased = 0
        troubles: list[str] = []
        for folder in self._folders():
            try:
                state = state_of(folder)
                erased += sum(self._erase_in(path, state, named) for path in files_of(folder))
                _clear(folder)
            except OSError as error:
                troubles.append(f"{folder}: {error.strerror or error}")
        if troubles:
            raise StoreError("; ".join(troubles) + ": see that these can be written, then forget once more")
        return erased

    def _erase_in(self, path: Path, state: State, named: Named) -> int:
        """Read and written by one descriptor: somebody may put another file in its place meanwhile."""
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return 0
        with os.fdopen(descriptor, "rb") as file:
            gone = [
                (line.offset, kept.blank)
                for line, kept in self._kept(file, path, state)
                if kept is not None and not kept.is_waiting and len(kept.blank) == len(line.line) and named.has(kept)
            ]
            for offset, blank in gone:
                os.pwrite(descriptor, blank, offset)
            if gone:
                os.fsync(descriptor)
        return len(gone)

    # ── looking for what is left ──

    def _search(self, named: Named) -> list[Residue]:
        found: list[Residue] = []
        for folder in self._folders():
            where = f"{self.folder}/{folder.name}"
            try:
                found += [
                    Residue(where=f"{where}/{path.name}", what=what)
                    for path, (line, kept) in self._looked_through(folder)
                    if (what := _left(line.line, kept, named)) is not None
                ]
            except OSError as error:
                found.append(Residue(where=where, what=f"not looked through: {error.strerror or error}"))
        return found


def _left(line: bytes, kept: Kept | None, named: Named) -> str | None:
    if kept is None:
        is_said = named.says(line.decode(errors="replace"))
        return "a line that cannot be read: look at it, and remove it" if is_said else None
    if not named.has(kept):
        return None
    return "it waits to be delivered: `offbook flush`, then forget it again" if kept.is_waiting else "its text"


def _clear(folder: Path) -> None:
    """Take out empty lines of what was refused; nothing where somebody has the outbox open. Raises OSError."""
    if not any(path.suffix == TEMPORARY or _has_blank_lines(path) for path in _rejected(folder)):
        return
    held = OutboxFolder(folder)
    try:
        held.claim()
    except OutboxBusy:
        return
    try:
        # One that broke off left it: the file that it was to take the place of is there.
        for path in (each for each in _rejected(folder) if each.suffix == TEMPORARY):
            path.unlink(missing_ok=True)
        for path in filter(_has_blank_lines, _rejected(folder)):
            _write_again(path)
    finally:
        held.release()


def _rejected(folder: Path) -> list[Path]:
    return list(filter(is_rejected, files_of(folder)))


def _has_blank_lines(path: Path) -> bool:
    with suppress(FileNotFoundError), path.open("rb") as file:
        return any(line.isspace() for line in file)
    return False


def _write_again(path: Path) -> None:
    """Without its empty lines. Whoever calls holds the outbox."""
    temporary = path.with_suffix(TEMPORARY)
    is_empty = True
    descriptor = os.open(temporary, OPEN_OURS | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as left, path.open("rb") as file:
        for line in file:
            if not line.isspace():
                left.write(line)
                is_empty = False
        left.flush()
        os.fsync(descriptor)
    if is_empty:
        path.unlink()
        temporary.unlink()
    else:
        temporary.replace(path)


# ── The lines of an outbox's files that hold messages, whoever has it open ──
# What waits, what was delivered and not cleared away yet, what a provider refused, what could not be read to its
# end.
# <ordinal>.jsonl                      [ordinal, lane ordinal, lane, record]; `State.awaits` tells what was
# delivered *.damaged                            the same, kept for people rejected.jsonl, rejected.1.jsonl …   {at,
# reason, ordinal, record} rejected.leaving, rejected*.new      the same, while it is put back in line, or written
# again


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
