"""The file a backup is: a compressed tar.

    manifest.json       what is in here: every file with its SHA-256 and size, every agent with its audit head
    offbook.db          one consistent moment of the log
    blobs/…             the large parts that this moment refers to
    keys/…              of an encrypted data folder: the wrapped keys of its agents

That of an encrypted data folder is sealed as a whole (`model.sealed_stream`), and what is in it is encrypted as it was
there. Tokens, sockets and outboxes are not in it: they belong to a machine, not to the memory.
"""

from __future__ import annotations

import errno
import gzip
import os
import re
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import IO, cast

import msgspec

from offbook.model.errors import InvalidInput, OffbookError, StoreFull, StoreTooNew
from offbook.model.home import Home
from offbook.model.keys import KEYS_FILE, keys_of
from offbook.model.private_files import make_folders, write_private
from offbook.model.sealed_stream import SealedWriter, is_sealed, open_maybe_sealed, sealed_keys
from offbook.model.types import AuditHead, Value

FORMAT = 1
MANIFEST = "manifest.json"
DATABASE = "offbook.db"
BLOBS = "blobs"
COMPRESSION = 6
CHUNK_BYTES = 1024 * 1024
MOST_MANIFEST_BYTES = 1024 * 1024 * 1024
"""Some five million large parts. What is larger is not a manifest."""

MOST_HEADER_BYTES = 64 * 1024
"""Ours have two kilobytes. A header says of itself how large it is, and is read into memory."""

# All that may be in an archive: no such path leads out of the folder it is unpacked in.
_MEMBER = re.compile(r"offbook\.db|blobs/[0-9a-f]{32}/([0-9a-f]{2})/\1[0-9a-f]{62}|keys/[0-9a-f]{32}\.key")

Advance = Callable[[int], None]
Progress = Callable[[str, int | None], AbstractContextManager[Advance]]
"""Given what is done and how many steps that takes (None: not known), a context in which to tell of steps done."""


def silent(_description: str, _total: int | None) -> AbstractContextManager[Advance]:
    return nullcontext(lambda steps: None)


class BackupDamaged(OffbookError):
    """The backup is not what was written."""

    status = 422
    slug = "backup-damaged"


class ArchivedFile(Value, frozen=True):
    name: str
    sha256: str
    bytes: int


class ArchivedAgent(Value, frozen=True):
    agent_id: str
    messages: int
    sessions: int
    head: AuditHead


class Manifest(Value, frozen=True):
    format: int
    offbook_version: str
    schema_version: int
    created_at: datetime
    agents: list[ArchivedAgent]
    files: list[ArchivedFile]
    missing: list[str]
    """Large parts that the log refers to and that were gone or damaged already when this was made."""

    @property
    def messages(self) -> int:
        return sum(agent.messages for agent in self.agents)

    @property
    def total_bytes(self) -> int:
        return sum(file.bytes for file in self.files)


# ── writing ───────────────────────────────────────────────────────────────────────────────────


def pack(archive_path: Path, manifest: Manifest, database: Path, home: Path, advance: Advance) -> None:
    """Write the database and, from the data folder, the large parts. Readable by the owner only, and sealed where the
    data folder is encrypted."""
    keys = keys_of(home)
    with new_file(archive_path) as file:
        if keys is None:
            _pack_into(file, COMPRESSION, manifest, database, home, advance)
        else:
            sealing = SealedWriter(file, keys)
            # What is encrypted cannot be compressed.
            _pack_into(cast("IO[bytes]", sealing), 0, manifest, database, home, advance)
            sealing.finish()
        file.flush()
        os.fsync(file.fileno())


def _pack_into(
    file: IO[bytes], compression: int, manifest: Manifest, database: Path, home: Path, advance: Advance
) -> None:
    document = msgspec.json.format(msgspec.json.encode(manifest))
    with tarfile.open(fileobj=file, mode="w:gz", compresslevel=compression) as archive:
        _add(archive, MANIFEST, len(document), BytesIO(document), manifest.created_at)  # first: it is read alone
        for each in manifest.files:
            with (database if each.name == DATABASE else home / each.name).open("rb") as source:
                _add(archive, each.name, each.bytes, _Counted(source, advance), manifest.created_at)


class _Counted:
    """A file that tells how much of it was read."""

    def __init__(self, source: IO[bytes], advance: Advance) -> None:
        self._source = source
        self._advance = advance

    def read(self, size: int = -1) -> bytes:
        chunk = self._source.read(size)
        self._advance(len(chunk))
        return chunk


def _add(archive: tarfile.TarFile, name: str, size: int, source: IO[bytes] | _Counted, at: datetime) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = size, 0o600, int(at.timestamp())
    archive.addfile(member, source)


# ── reading ───────────────────────────────────────────────────────────────────────────────────


def check_archive(path: Path, *, into: Path | None = None, advance: Advance = lambda steps: None) -> Manifest:
    """Read all of it and compare every file with the manifest; unpack `into` a folder on the way, if one is given."""
    with _reading(path) as archive:
        manifest = _read_manifest(path, archive)
        left = {file.name: file for file in manifest.files}
        while (member := archive.next()) is not None:
            expected = left.pop(member.name, None)
            if expected is None or member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
                raise BackupDamaged(f"{path} holds {member.name!r}, which no backup of ours does: it was altered")
            source = archive.open(member)
            target = None if into is None else into / member.name
            if source is None or member.size != expected.bytes:
                raise _altered(path, member.name)
            if _digest_while_copying(source, target, advance) != expected.sha256:
                raise _altered(path, member.name)
        if left:
            raise BackupDamaged(f"{path} is incomplete: {next(iter(left))} is missing; take another backup")
    keys = sealed_keys(path)
    if keys is not None and into is not None:
        write_private(into / KEYS_FILE, msgspec.json.format(msgspec.json.encode(keys)).decode() + "\n")
    return manifest


def read_manifest(path: Path) -> Manifest:
    """What a backup says of itself; the rest of it is not looked at."""
    with _reading(path, to_the_end=False) as archive:
        return _read_manifest(path, archive)


def refuse_other_kind(archive: Path, home: Home) -> None:
    """A backup in plain text would leave an encrypted data folder as one in plain text, and the other way round."""
    if home.is_encrypted and not is_sealed(archive):
        raise InvalidInput(
            f"{archive} is not encrypted, and {home.folder} is: restore it elsewhere with --home, and run `offbook "
            "encrypt` there"
        )
    if not home.is_encrypted and is_sealed(archive):
        raise InvalidInput(
            f"{archive} is encrypted, and {home.folder} is not: restore it elsewhere with --home, or run `offbook "
            "encrypt` first"
        )


def digest_of(path: Path) -> str:
    with path.open("rb") as source:
        return _digest_while_copying(source, None, lambda steps: None)


@contextmanager
def _reading(path: Path, *, to_the_end: bool = True) -> Iterator[_Members]:
    try:
        with open_maybe_sealed(path) as file, gzip.open(file, "rb") as stream:
            bounded = _Bounded(stream)
            with tarfile.open(fileobj=cast("IO[bytes]", bounded), mode="r|", errorlevel=2) as archive:
                yield _Members(archive, bounded)
            while to_the_end and stream.read(CHUNK_BYTES):  # the checksum stands at the very end
                continue
    except (EOFError, zlib.error, gzip.BadGzipFile, tarfile.TarError) as error:
        raise BackupDamaged(f"{path} is cut off or damaged ({error}): take another backup") from None


class _Bounded:
    """A stream of which a header may take only so much."""

    def __init__(self, source: gzip.GzipFile) -> None:
        self.left: int | None = MOST_HEADER_BYTES
        self._source = source

    def read(self, size: int = -1) -> bytes:
        chunk = self._source.read(size)
        if self.left is not None:
            self.left -= len(chunk)
            if self.left < 0:
                raise tarfile.ReadError("a header is larger than any of ours")
        return chunk


class _Members:
    """The files of an archive, one after the other."""

    def __init__(self, archive: tarfile.TarFile, stream: _Bounded) -> None:
        self._archive = archive
        self._stream = stream

    def next(self) -> tarfile.TarInfo | None:
        self._stream.left = MOST_HEADER_BYTES
        try:
            return self._archive.next()  # a loop over the archive would begin with the manifest again
        finally:
            self._stream.left = None

    def open(self, member: tarfile.TarInfo) -> IO[bytes] | None:
        return self._archive.extractfile(member)


def _read_manifest(path: Path, archive: _Members) -> Manifest:
    first = archive.next()
    source = archive.open(first) if first is not None and first.name == MANIFEST else None
    if first is None or source is None or first.size > MOST_MANIFEST_BYTES:
        raise BackupDamaged(f"{path} is not a backup of Offbook: it does not begin with a manifest")
    document = source.read()
    try:
        made_as = msgspec.json.decode(document, type=dict[str, msgspec.Raw]).get("format", msgspec.Raw(b"0"))
        if msgspec.json.decode(made_as, type=int) > FORMAT:
            raise StoreTooNew(f"{path} was made by a newer Offbook: upgrade Offbook, then restore it")
        manifest = msgspec.json.decode(document, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BackupDamaged(f"the manifest of {path} cannot be read ({error}): take another backup") from None
    names = [file.name for file in manifest.files]
    foreign = [name for name in names if not _MEMBER.fullmatch(name)]
    if foreign or len(set(names)) != len(names) or DATABASE not in names:
        what = f"it names {foreign[0]!r}" if foreign else "it names files twice, or no log"
        raise BackupDamaged(f"the manifest of {path} was altered ({what}): take another backup")
    return manifest


def _altered(path: Path, name: str) -> BackupDamaged:
    return BackupDamaged(f"{name} in {path} is not what was backed up: it was altered or damaged; take another backup")


def _digest_while_copying(source: IO[bytes], target: Path | None, advance: Advance) -> str:
    digest = sha256()
    with new_file(target) if target is not None else nullcontext() as copy:
        while chunk := source.read(CHUNK_BYTES):
            digest.update(chunk)
            advance(len(chunk))
            if copy is not None:
                copy.write(chunk)
        if copy is not None:
            copy.flush()
            os.fsync(copy.fileno())
    return digest.hexdigest()


# ── files ─────────────────────────────────────────────────────────────────────────────────────


def new_file(path: Path) -> IO[bytes]:
    make_folders(path.parent)
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


@contextmanager
def disk_errors(place: Path) -> Iterator[None]:
    """The system's errors in our words."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreFull(f"there is no room for {place}: free some space, then try again") from error
        raise InvalidInput(f"{place} cannot be written: {error.strerror or error}") from error
