"""A data folder whose log is damaged goes on with all of it that can be read; the damaged file stays, aside."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import apsw

from offbook.log.sqlite.connection import open_writer
from offbook.log.sqlite.head import read_head
from offbook.log.sqlite.pages import HEADER_BYTES, MAGIC, USUAL_PAGE_BYTES
from offbook.log.sqlite.salvage import Salvaged, salvage
from offbook.log.sqlite.store import SqliteStore
from offbook.log.verification import verify
from offbook.model.errors import StoreBusy, StoreCorrupt, StoreError, StoreFull, StoreReadOnly, StoreTooNew
from offbook.model.home import Home, Lock
from offbook.model.types import Fault
from offbook.transfer.backup.archive import BLOBS, DATABASE, disk_errors
from offbook.transfer.backup.making import manifest_of
from offbook.transfer.backup.restoring import (
    DAMAGED,
    UNPACKED,
    UnfinishedRestore,
    aside_name,
    data_of,
    exchange,
    marker_of,
    refuse_unfinished,
)

NOT_DAMAGE = (StoreBusy, StoreFull, StoreReadOnly, StoreTooNew, UnfinishedRestore)
COPIED = "copy.db"


async def damage(home: Home) -> list[Fault]:
    """Of the log and its chain, as far as a salvage helps: large parts are files of their own."""
    if not home.database.exists() or not home.database.stat().st_size:
        return []  # a log that is gone is told of by itself
    try:
        store = SqliteStore(home.database, read_only=True, snapshot=True)
    except NOT_DAMAGE:
        return []
    except StoreError as error:
        return [Fault(what=error.detail)]
    try:
        faults = [fault async for fault in store.faults()]
        faults += [fault for agent_id in await store.agents() async for fault in verify(store, agent_id)]
        return faults
    except NOT_DAMAGE:
        return []
    except StoreError as error:
        return [Fault(what=error.detail)]
    finally:
        await store.close()


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
    unpacked = Path(mkdtemp(prefix=UNPACKED, dir=home.folder))
    aside = aside_name(DAMAGED)
    try:
        head = read_head(home.database)
        copy = await asyncio.to_thread(_copied, home.database, unpacked)
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
            manifest = await manifest_of(store, [], [])
        finally:
            await store.close()
        made_from_it = [path.name for path in (home.indexes, home.wiki_state) if path.exists()]
        kept = [name for name in data_of(home) if name != BLOBS] + made_from_it
        await asyncio.to_thread(exchange, home, unpacked, manifest, aside, kept)
        return salvaged, home.folder / aside
    finally:
        if not marker_of(home).exists():
            shutil.rmtree(unpacked, ignore_errors=True)


# ── The file as it was last written: with what is in its write-ahead log ──


def _copied(database: Path, folder: Path) -> Path:
    copy = folder / COPIED
    _copy_readable(database, copy)
    log = database.with_name(f"{database.name}-wal")
    if log.exists() and log.stat().st_size:
        _copy_readable(log, copy.with_name(f"{copy.name}-wal"))
    with copy.open("rb+") as file:
        if file.read(len(MAGIC)) != MAGIC:
            pages = copy.stat().st_size // USUAL_PAGE_BYTES
            file.seek(0)
            file.write(_fresh_header(pages))
    try:
        connection = apsw.Connection(str(copy))
        try:
            connection.execute("PRAGMA schema_version")
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        finally:
            connection.close()
    except apsw.Error:
        pass  # then without it: the newest messages may be among the lost
    return copy


def _copy_readable(source: Path, target: Path) -> None:
    """A page that the disk does not give is zeros."""
    with source.open("rb", buffering=0) as file, target.open("xb") as out:
        target.chmod(0o600)
        size = source.stat().st_size
        for at in range(0, size, USUAL_PAGE_BYTES):
            length = min(USUAL_PAGE_BYTES, size - at)
            try:
                file.seek(at)
                out.write(file.read(length).ljust(length, b"\0"))
            except OSError:
                out.write(bytes(length))


def _fresh_header(pages: int) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder, DATABASE)
        open_writer(path).close()
        header = bytearray(path.read_bytes()[:HEADER_BYTES])
    header[28:32] = pages.to_bytes(4)
    header[32:40] = bytes(8)  # no free pages are known
    return bytes(header)
