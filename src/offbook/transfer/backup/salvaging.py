"""A data folder whose log is damaged goes on with all of it that can be read; the damaged file stays, aside."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from io import RawIOBase
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import apsw
import structlog

from offbook.log.sql.head import read_head
from offbook.log.sqlite.checkpointer import move_log_into
from offbook.log.sqlite.connection import open_writer
from offbook.log.sqlite.encrypted_pages import RESERVED_BYTES, pages_of_file
from offbook.log.sqlite.pages import HEADER_BYTES, MAGIC, USUAL_PAGE_BYTES
from offbook.log.sqlite.salvage import Salvaged, salvage
from offbook.log.sqlite.store import SqliteStore
from offbook.log.verification import verify
from offbook.model.errors import StoreCorrupt, StoreError, StoreFull
from offbook.model.home import Home, Lock
from offbook.model.keys import KEYS_FILE, KEYS_FOLDER, Keys, keys_for, keys_of, shred
from offbook.model.memory_folder import is_in_memory, memory_folder, prepare_memory_folder, remove_memory_folder
from offbook.model.types import Fault
from offbook.transfer.backup.archive import BLOBS, DATABASE, disk_errors
from offbook.transfer.backup.making import manifest_of
from offbook.transfer.backup.restoring import (
    DAMAGED,
    UNPACKED,
    aside_name,
    data_of,
    exchange,
    marker_of,
    refuse_unfinished,
)

log = structlog.get_logger("offbook.encryption")

COPIED = "copy.db"
READS = 5
"""Of a page that the disk does not give at once."""


async def damage(home: Home) -> list[Fault]:
    """Of the log and its chain, as far as a salvage helps: large parts are files of their own."""
    if not home.database.exists() or not home.database.stat().st_size:
        return []  # a log that is gone is told of by itself
    try:
        store = SqliteStore(home.database, read_only=True, snapshot=True)
        try:
            return await _faults(store)
        finally:
            await store.close()
    except StoreError as error:
        is_damage = await asyncio.to_thread(_is_damage, error, home.database)
        return [Fault(what=error.detail)] if is_damage else []


async def _faults(store: SqliteStore) -> list[Fault]:
    faults = [fault async for fault in store.faults()]
    return faults + [fault for agent_id in await store.agents() async for fault in verify(store, agent_id)]


def _is_damage(error: StoreError, database: Path) -> bool:
    """Tables that are gone are, too; that the disk did not answer only where it stays so."""
    if isinstance(error.__cause__, apsw.IOError):
        with database.open("rb", buffering=0) as file:
            return any(page is None for page in _pages(file, database.stat().st_size))
    return isinstance(error, StoreCorrupt) or isinstance(error.__cause__, apsw.SQLError)


async def salvage_folder(home: Home, names: Sequence[str]) -> tuple[Salvaged, Path]:
    """What was saved and lost, and where the damaged file is now. StoreOwned where a provider runs. `names`: of agents,
    as for `salvage`."""
    lock = Lock(home)
    try:
        refuse_unfinished(home)
        with disk_errors(home.folder):
            return await _salvaged(home, names)
    finally:
        lock.release()


async def _salvaged(home: Home, names: Sequence[str]) -> tuple[Salvaged, Path]:
    needed, free = 3 * home.database.stat().st_size, shutil.disk_usage(home.folder).free
    if free < needed:
        raise StoreFull(f"{home.folder} has {free:,} bytes free, saving the log needs {needed:,}: make room")
    keys = keys_of(home.folder)
    unpacked = Path(mkdtemp(prefix=UNPACKED, dir=home.folder))
    aside = aside_name(DAMAGED)
    try:
        head = read_head(home.database)
        copy = await asyncio.to_thread(_copied, home.database, unpacked)
        if keys is not None:
            copy = await asyncio.to_thread(_decrypted, copy, home, keys)
        salvaged = await asyncio.to_thread(
            salvage,
            copy,
            unpacked / DATABASE,
            kept_as=aside,
            names=names,
            installation=head.installation if head else None,
        )
        if not salvaged.agents:
            raise StoreCorrupt(f"nothing of {home.database} can be read: it was left as it is")
        store = SqliteStore(unpacked / DATABASE, read_only=True)
        try:
            if left := await _faults(store):
                raise StoreCorrupt(
                    f"what can be read of {home.database} would still be at fault ({left[0].what}): it was left as it "
                    "is; restore a backup with `offbook restore`"
                )
            manifest = await manifest_of(store, [], [])
        finally:
            await store.close()
        made_from_it = [path.name for path in (home.indexes, home.wiki_state) if path.exists()]
        kept = [name for name in data_of(home) if name not in (BLOBS, KEYS_FILE, KEYS_FOLDER)] + made_from_it
        await asyncio.to_thread(exchange, home, unpacked, manifest, aside, kept)
        return salvaged, home.folder / aside
    finally:
        if not marker_of(home).exists():
            shutil.rmtree(unpacked, ignore_errors=True)
        if keys is not None:
            if not is_in_memory():
                shred(memory_folder(home.folder) / COPIED)
            remove_memory_folder(home.folder)


# ── The file as it was last written: with what is in its write-ahead log ──


def _copied(database: Path, folder: Path) -> Path:
    copy = folder / COPIED
    _copy_readable(database, copy)
    log = database.with_name(f"{database.name}-wal")
    if log.exists() and log.stat().st_size:
        _copy_readable(log, copy.with_name(f"{copy.name}-wal"))
    if keys_for(database) is None:
        _mend_header(copy)
    move_log_into(copy)  # where that fails, without it: the newest messages may be among the lost
    return copy


def _mend_header(copy: Path, reserved_bytes: int = 0) -> None:
    with copy.open("rb+") as file:
        if file.read(len(MAGIC)) != MAGIC:
            pages = copy.stat().st_size // USUAL_PAGE_BYTES
            file.seek(0)
            file.write(_fresh_header(pages, reserved_bytes))


def _decrypted(copy: Path, home: Home, keys: Keys) -> Path:
    """In memory, where there is a folder in it. A page that cannot be opened is zeros."""
    if prepare_memory_folder(home.folder):
        what = f"in plain text, and overwritten at the end: {memory_folder(home.folder)}"
        log.warning("the log is salvaged outside memory", action="encryption.salvage", detail=what)
    plain = memory_folder(home.folder) / COPIED
    with copy.open("rb") as source, plain.open("wb") as target:
        plain.chmod(0o600)
        for page in pages_of_file(source.fileno(), keys.database_key):
            target.write(page or bytes(USUAL_PAGE_BYTES))
    _mend_header(plain, RESERVED_BYTES)
    return plain


def _copy_readable(source: Path, target: Path) -> None:
    """A page that the disk does not give is zeros."""
    with source.open("rb", buffering=0) as file, target.open("xb") as out:
        target.chmod(0o600)
        size = source.stat().st_size
        for at, page in enumerate(_pages(file, size)):
            length = min(USUAL_PAGE_BYTES, size - at * USUAL_PAGE_BYTES)
            out.write((page or b"").ljust(length, b"\0"))


def _pages(file: RawIOBase, size: int) -> Iterator[bytes | None]:
    """None for each that the disk does not give, however often it is asked."""
    for at in range(0, size, USUAL_PAGE_BYTES):
        page = None
        for _ in range(READS):
            with suppress(OSError):
                file.seek(at)
                page = file.read(min(USUAL_PAGE_BYTES, size - at))
                break
        yield page


def _fresh_header(pages: int, reserved_bytes: int) -> bytes:
    """`reserved_bytes`: at the end of each page, for what encrypts it."""
    with TemporaryDirectory() as folder:
        path = Path(folder, DATABASE)
        open_writer(path).close()
        header = bytearray(path.read_bytes()[:HEADER_BYTES])
    header[20] = reserved_bytes
    header[28:32] = pages.to_bytes(4)
    header[32:40] = bytes(8)  # no free pages are known
    return bytes(header)
