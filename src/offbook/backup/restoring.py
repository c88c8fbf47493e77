"""Putting a backup back: all of it is checked before anything is touched, and nothing that was there is deleted."""

from __future__ import annotations

import asyncio
import shutil
from datetime import datetime
from pathlib import Path
from tempfile import mkdtemp

from offbook.backup.archive import Advance, Manifest, Progress, check_archive, disk_errors, read_manifest, silent
from offbook.backup.cutting import cut_unpacked
from offbook.backup.moving import aside_of, data_of, finish, marker_of, move, read_marker, refuse_unfinished
from offbook.errors import InvalidInput, StoreFull, StoreTooNew
from offbook.home import Home, Lock
from offbook.store.sqlite import SqliteStore
from offbook.store.sqlite.connection import latest_version
from offbook.store.sqlite.point_in_time import Cut
from offbook.types import Fault, Value
from offbook.verification import verify

UNPACKED = ".restore-"


class Restored(Value, frozen=True):
    """`faults`: what is not as it was written, and was not in the backup either. `manifest` says what is there now."""

    manifest: Manifest
    moved_to: str | None
    faults: list[Fault]
    cut: Cut | None = None
    """What was left out, where it was to be as at a moment."""


async def restore(
    archive: Path,
    home: Home,
    *,
    force: bool = False,
    at: datetime | None = None,
    progress: Progress = silent,
) -> Restored:
    """Put a backup in place. With `force`, data that is there moves aside first; with `at`, as it was at that moment,
    which is cut out of it before anything is touched."""
    manifest = read_manifest(archive)
    _refuse_unwanted(archive, manifest, home, force=force)
    if at is not None and at > manifest.created_at:
        raise InvalidInput(
            f"{archive} is of {manifest.created_at.astimezone():%Y-%m-%d %H:%M:%S}: what came after that is not in it. "
            "Give --at a time before it, take a backup that was made later, or leave out --at to have all of this one"
        )
    with progress("checking", manifest.total_bytes) as advance:
        await asyncio.to_thread(check_archive, archive, advance=advance)
    home.prepare()
    lock = Lock(home)
    try:
        refuse_unfinished(home)
        with disk_errors(home.folder):
            moved_to, manifest, cut = await asyncio.to_thread(_put_in_place, archive, home, manifest, progress, at)
        return await _verified(home, manifest, moved_to, progress, cut)
    finally:
        lock.release()


async def resume(home: Home, *, progress: Progress = silent) -> Restored | None:
    """Finish a restore that broke off. None: what it had unpacked is gone, so it is undone."""
    if not marker_of(home).exists():
        raise InvalidInput(f"no restore broke off in {home.folder}: there is nothing to finish")
    lock = Lock(home)
    try:
        moving = read_marker(home)
        with disk_errors(home.folder):
            is_done = await asyncio.to_thread(finish, home, moving)
        return await _verified(home, moving.manifest, aside_of(home, moving), progress) if is_done else None
    finally:
        lock.release()


async def _verified(
    home: Home, manifest: Manifest, moved_to: Path | None, progress: Progress, cut: Cut | None = None
) -> Restored:
    with progress("verifying", sum(agent.head.seq for agent in manifest.agents)) as advance:
        faults = await _faults(home, manifest, advance)
    return Restored(manifest=manifest, moved_to=str(moved_to) if moved_to else None, faults=faults, cut=cut)


def _refuse_unwanted(archive: Path, manifest: Manifest, home: Home, *, force: bool) -> None:
    """What can be told before the long reading."""
    if manifest.schema_version > latest_version():
        raise StoreTooNew(
            f"{archive} has schema version {manifest.schema_version}, this Offbook knows up to {latest_version()}: "
            "upgrade Offbook, then restore it"
        )
    if home.lock.exists():
        Lock(home).release()
    refuse_unfinished(home)
    if data_of(home) and not force:
        raise InvalidInput(
            f"there is data in {home.folder} already: restore elsewhere with --home, or move it aside with --force"
        )


def _put_in_place(
    archive: Path, home: Home, manifest: Manifest, progress: Progress, at: datetime | None
) -> tuple[Path | None, Manifest, Cut | None]:
    free = shutil.disk_usage(home.folder).free
    if free < manifest.total_bytes:
        raise StoreFull(f"{home.folder} has {free:,} bytes free, the backup needs {manifest.total_bytes:,}: make room")
    for left in home.folder.glob(f"{UNPACKED}*"):  # by one that broke off before anything moved
        shutil.rmtree(left, ignore_errors=True)
    unpacked = Path(mkdtemp(prefix=UNPACKED, dir=home.folder))
    try:
        with progress("unpacking", manifest.total_bytes) as advance:
            check_archive(archive, into=unpacked, advance=advance)
        cut = None
        if at is not None:
            with progress("cutting", None):
                manifest, cut = cut_unpacked(unpacked, manifest, at)
        return move(home, unpacked, manifest), manifest, cut
    finally:
        if not marker_of(home).exists():  # while it is there, this may be the only way on
            shutil.rmtree(unpacked, ignore_errors=True)


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
