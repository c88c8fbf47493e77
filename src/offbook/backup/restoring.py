"""Putting a backup back: all of it is checked before anything is touched, and nothing that was there is deleted."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from offbook.backup.archive import (
    BLOBS,
    DATABASE,
    Advance,
    Manifest,
    Progress,
    check_archive,
    disk_errors,
    read_manifest,
    silent,
    sync_folder,
)
from offbook.errors import InvalidInput, StoreFull, StoreTooNew
from offbook.home import Home, Lock
from offbook.store.sqlite import SqliteStore
from offbook.store.sqlite.connection import latest_version
from offbook.types import Fault, Value, now
from offbook.verification import verify

DATA = (DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", BLOBS)


class Restored(Value, frozen=True):
    """`faults`: what is not as it was written, and was not in the backup either."""

    manifest: Manifest
    moved_to: str | None
    faults: list[Fault]


async def restore(archive: Path, home: Home, *, force: bool = False, progress: Progress = silent) -> Restored:
    """Put a backup in place. With `force`, data that is there moves aside first."""
    manifest = read_manifest(archive)
    _refuse_unwanted(archive, manifest, home, force=force)
    with progress("checking", manifest.total_bytes) as advance:
        await asyncio.to_thread(check_archive, archive, advance=advance)
    home.prepare()
    lock = Lock(home)
    try:
        with disk_errors(home.folder):
            moved_to = await asyncio.to_thread(_put_in_place, archive, home, manifest, progress)
        with progress("verifying", sum(agent.head.seq for agent in manifest.agents)) as advance:
            faults = await _faults(home, manifest, advance)
    finally:
        lock.release()
    return Restored(manifest=manifest, moved_to=str(moved_to) if moved_to else None, faults=faults)


def _refuse_unwanted(archive: Path, manifest: Manifest, home: Home, *, force: bool) -> None:
    """What can be told before the long reading."""
    if manifest.schema_version > latest_version():
        raise StoreTooNew(
            f"{archive} has schema version {manifest.schema_version}, this Offbook knows up to {latest_version()}: "
            "upgrade Offbook, then restore it"
        )
    if home.lock.exists():
        Lock(home).release()
    if _data_of(home) and not force:
        raise InvalidInput(
            f"there is data in {home.folder} already: restore elsewhere with --home, or move it aside with --force"
        )


def _put_in_place(archive: Path, home: Home, manifest: Manifest, progress: Progress) -> Path | None:
    free = shutil.disk_usage(home.folder).free
    if free < manifest.total_bytes:
        raise StoreFull(f"{home.folder} has {free:,} bytes free, the backup needs {manifest.total_bytes:,}: make room")
    with TemporaryDirectory(prefix=".restore-", dir=home.folder) as unpacked:
        with progress("unpacking", manifest.total_bytes) as advance:
            check_archive(archive, into=Path(unpacked), advance=advance)
        moved_to = _move_aside(home)
        for name in (BLOBS, DATABASE):  # the log last: it must never refer to what is not there
            if (found := Path(unpacked, name)).exists():
                found.rename(home.folder / name)
        sync_folder(home.folder)
    return moved_to


def _data_of(home: Home) -> list[Path]:
    return [path for name in DATA if (path := home.folder / name).exists()]


def _move_aside(home: Home) -> Path | None:
    found = _data_of(home)
    if not found:
        return None
    aside = home.folder / f"before-restore-{now().astimezone():%Y%m%d-%H%M%S-%f}"
    aside.mkdir(mode=0o700)
    for path in found:
        path.rename(aside / path.name)
    return aside


async def _faults(home: Home, manifest: Manifest, advance: Advance) -> list[Fault]:
    """Opened as a provider would open it, so an older schema is brought up to date here."""
    store = SqliteStore(home.database)
    try:
        faults = [fault async for fault in store.faults()]
        for agent in manifest.agents:
            faults += [fault async for fault in verify(store, agent.agent_id, progress=advance)]
            if await store.audit_head(agent.agent_id) != agent.head:
                faults.append(Fault(what="the audit head is not the one the backup names", agent_id=agent.agent_id))
    finally:
        await store.close()
    return faults
