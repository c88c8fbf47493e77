"""Making a backup while messages arrive: the log is copied first, then the large parts that the copy refers to."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apsw

from offbook.log.blobs import BlobFiles
from offbook.log.sqlite.connection import connect, open_reader, schema_version, store_errors
from offbook.log.sqlite.store import SqliteStore
from offbook.log.verification import ALL_SESSIONS
from offbook.model.errors import InvalidInput, OffbookError, StoreBusy, StoreError
from offbook.model.home import Home
from offbook.model.keys import KEYS_FOLDER
from offbook.model.private_files import sync_folder
from offbook.model.types import Scope, now
from offbook.model.version import VERSION
from offbook.transfer.backup.archive import (
    DATABASE,
    FORMAT,
    Advance,
    ArchivedAgent,
    ArchivedFile,
    Manifest,
    Progress,
    check_archive,
    digest_of,
    disk_errors,
    pack,
    silent,
)
from offbook.transfer.backup.restoring import refuse_unfinished

# ── The private folders in which backups are made, changed and looked through: they hold whole copies ──

UNFINISHED = ".offbook-backup-"
"""How the name of such a folder begins."""
OWNER = ".offbook-owner"
"""The file in it that is locked, and says which process it is."""
UNOWNED_SECONDS = 3600
"""A folder without that file was just made, or by an older Offbook: nobody works on one for so long."""


@contextmanager
def working_folder(beside: Path) -> Iterator[Path]:
    """In the same folder: on the same disk, and private, since a copy takes its mode from the umask."""
    with TemporaryDirectory(prefix=UNFINISHED, dir=beside.parent) as name:
        folder = Path(name)
        descriptor = os.open(folder / f"{OWNER}-new", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with suppress(OSError):  # where nothing can be locked, it goes by its age
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.write(descriptor, f"{os.getpid()}\n".encode())
                (folder / f"{OWNER}-new").rename(folder / OWNER)  # by that name it is locked already
            yield folder
        finally:
            os.close(descriptor)


def left_behind(folder: Path) -> list[Path]:
    """Those in which nobody works now, as far as can be told."""
    try:
        found = [path for path in folder.glob(f"{UNFINISHED}*") if path.is_dir() and not path.is_symlink()]
    except OSError:
        return []
    return sorted(path for path in found if not _is_worked_in(path))


def remove_abandoned(folder: Path) -> list[Path]:
    """What was left behind for certain; returns what could not be removed."""
    going = [path for path in left_behind(folder) if (path / OWNER).exists() or _is_old(path)]
    for path in going:
        shutil.rmtree(path, ignore_errors=True)
    return [path for path in going if path.exists()]


def _is_worked_in(folder: Path) -> bool:
    try:
        descriptor = os.open(folder / OWNER, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _is_old(folder: Path) -> bool:
    try:
        return time.time() - folder.stat().st_mtime > UNOWNED_SECONDS
    except OSError:
        return False


MESSAGES_AT_A_TIME = 1_000
ATTEMPTS = 3
"""To pack it without something being forgotten meanwhile."""

Forgets = list[tuple[int, bool]]
"""What was ever forgotten in a store, by number, and whether that is finished."""


def default_name(at: datetime) -> str:
    return f"offbook-{at:%Y%m%d-%H%M%S}.tar.gz"


async def write_backup(home: Home, destination: Path, *, progress: Progress = silent) -> Manifest:
    """A backup of this moment, beside a provider or without one. The file appears whole and checked, or not at all.

    What is forgotten while it is packed is in the copy, and nobody else could know of that: it is made again.
    """
    _refuse_needless(home, destination)
    for _ in range(ATTEMPTS):
        with disk_errors(destination), working_folder(destination) as folder:
            copy, unfinished = Path(folder, DATABASE), Path(folder, destination.name)
            with progress("copying", None):
                await _finished(_copy(home.database, copy))
            forgets = await asyncio.to_thread(_forgets, copy)
            try:
                manifest = await _packed(home, copy, unfinished, progress)
            except (OffbookError, OSError):
                if await asyncio.to_thread(_forgets, home.database) == forgets:
                    raise
                continue  # a large part that was to be packed is forgotten
            if await asyncio.to_thread(_forgets, home.database) != forgets:
                continue
            publish(unfinished, destination)
            if await asyncio.to_thread(_forgets, home.database) == forgets:
                return manifest
            # Between two looks: whoever forgot it may not have seen this one.
            await asyncio.to_thread(destination.unlink)
    raise StoreBusy(
        f"{destination} was not written: something was forgotten each of the {ATTEMPTS} times while it was packed, and "
        "would be in it. Make it again when that is done"
    )


async def _packed(home: Home, copy: Path, unfinished: Path, progress: Progress) -> Manifest:
    manifest = await described(copy, BlobFiles(home.blobs))
    with progress("packing", manifest.total_bytes) as advance:
        await in_thread(partial(pack, unfinished, manifest, copy, home.folder), advance)
    with progress("checking", manifest.total_bytes) as advance:
        await in_thread(lambda copied: check_archive(unfinished, advance=copied), advance)
    return manifest


def _forgets(database: Path) -> Forgets:
    with store_errors():
        connection = open_reader(database)
        try:
            if not connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'erasures'").get:
                return []  # of an older Offbook
            return [
                (number, bool(is_finished))
                for number, is_finished in connection.execute(
                    "SELECT erasure, receipt ->> '$.unfinished' IS NULL FROM erasures ORDER BY erasure"
                )
            ]
        finally:
            connection.close()


async def blob_references(store: SqliteStore) -> AsyncIterator[tuple[str, str]]:
    """Every large part the log refers to, once: its agent and its digest."""
    for agent_id in await store.agents():
        if not (await store.counts(agent_id)).blobs:
            continue
        seen: set[str] = set()
        for session in await store.sessions(agent_id, limit=ALL_SESSIONS):
            scope, after = Scope(agent_id=agent_id, session_id=session.session_id), 0
            while page := await store.messages(scope, after_seq=after, limit=MESSAGES_AT_A_TIME):
                for digest in (reference.sha256 for logged in page for reference in logged.entry.blobs):
                    if digest not in seen:
                        seen.add(digest)
                        yield agent_id, digest
                after = page[-1].seq


def _refuse_needless(home: Home, destination: Path) -> None:
    refuse_unfinished(home)
    if not home.database.exists():
        raise InvalidInput(f"there is nothing to back up: {home.database} does not exist")
    if destination.exists():
        raise InvalidInput(f"{destination} exists already: choose another name")
    if not destination.parent.is_dir():
        raise InvalidInput(f"{destination} cannot be written: there is no folder {destination.parent}; make it first")


async def in_thread(work: Callable[[Advance], object], advance: Advance = lambda steps: None) -> None:
    """To its end: whoever is cancelled waits until it has noticed."""
    is_over = threading.Event()

    def copied(steps: int) -> None:
        if is_over.is_set():
            raise asyncio.CancelledError
        advance(steps)

    await _finished(asyncio.to_thread(work, copied), is_over.set)


async def _finished(work: Coroutine[Any, Any, object], stop: Callable[[], None] = lambda: None) -> None:
    """Whoever is cancelled removes the folder that `work` writes in, so it must have ended by then."""
    running = asyncio.ensure_future(work)
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        stop()
        await asyncio.wait([running])
        raise


async def _copy(database: Path, copy: Path) -> None:
    store = SqliteStore(database, read_only=True)
    try:
        await store.backup(copy)
    finally:
        await store.close()


async def described(copy: Path, blobs: BlobFiles) -> Manifest:
    """Reads the copy, not the store: what it says is what will be in the archive."""
    files, missing = [await asyncio.to_thread(archived, copy, DATABASE)], []
    store = SqliteStore(copy, read_only=True)
    try:
        async for agent_id, digest in blob_references(store):
            name = f"{blobs.root.name}/{digest}"  # where the agent's key is damaged, nobody knows its file
            try:
                name = blobs.path_of(agent_id, digest).relative_to(blobs.root.parent).as_posix()
                data = await blobs.get(agent_id, digest)
            except StoreError:
                missing.append(name)
            else:
                if blobs.keys is None:
                    files.append(ArchivedFile(name=name, sha256=digest, bytes=len(data)))
                else:
                    files.append(await asyncio.to_thread(archived, blobs.root.parent / name, name))
        if blobs.keys is not None:
            for key in sorted((blobs.root.parent / KEYS_FOLDER).glob("*.key")):
                files.append(await asyncio.to_thread(archived, key, f"{KEYS_FOLDER}/{key.name}"))
        return await manifest_of(store, files, missing)
    finally:
        await store.close()


async def manifest_of(store: SqliteStore, files: list[ArchivedFile], missing: list[str]) -> Manifest:
    return Manifest(
        format=FORMAT,
        offbook_version=VERSION,
        schema_version=_schema_of(store.path),
        created_at=now(),
        agents=[await _agent(store, agent_id) for agent_id in await store.agents()],
        files=files,
        missing=missing,
    )


async def _agent(store: SqliteStore, agent_id: str) -> ArchivedAgent:
    counts = await store.counts(agent_id)
    head = await store.audit_head(agent_id)
    return ArchivedAgent(agent_id=agent_id, messages=counts.messages, sessions=counts.sessions, head=head)


def archived(path: Path, name: str) -> ArchivedFile:
    return ArchivedFile(name=name, sha256=digest_of(path), bytes=path.stat().st_size)


def _schema_of(database: Path) -> int:
    connection = connect(database, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return schema_version(connection)
    finally:
        connection.close()


def publish(unfinished: Path, destination: Path) -> None:
    unfinished.rename(destination)
    sync_folder(destination.parent)
