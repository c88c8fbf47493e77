"""Putting a backup back: all of it is checked before anything is touched, and nothing that was there is deleted."""

from __future__ import annotations

import asyncio
import shlex
import shutil
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from tempfile import mkdtemp

import apsw
import msgspec

from offbook.log.audit_chain import micros, moment
from offbook.log.blobs import BlobFiles
from offbook.log.sql import audit_reads, reads
from offbook.log.sql.head import head_path
from offbook.log.sql.schema import latest_version
from offbook.log.sqlite.checkpointer import move_log_into
from offbook.log.sqlite.connection import open_reader, store_errors
from offbook.log.sqlite.point_in_time import Cut, cut_after
from offbook.log.sqlite.store import SqliteStore
from offbook.log.verification import verify
from offbook.model.errors import InvalidInput, StoreCorrupt, StoreError, StoreFull, StoreTooNew
from offbook.model.home import Home, Lock, refuse_owned
from offbook.model.keys import KEYS_FILE, KEYS_FOLDER
from offbook.model.private_files import sync_folder, write_private
from offbook.model.types import BlobRef, Fault, Value, now
from offbook.transfer.backup.archive import (
    BLOBS,
    DATABASE,
    Advance,
    ArchivedAgent,
    Manifest,
    Progress,
    check_archive,
    disk_errors,
    read_manifest,
    refuse_other_kind,
    silent,
)

# ── The one step of a restore that must not stay half done: the old data out of the way, the new in ──

HEAD = head_path(Path(DATABASE)).name
DATA = (f"{DATABASE}-wal", f"{DATABASE}-shm", HEAD, DATABASE, BLOBS, KEYS_FILE, KEYS_FOLDER)
ASIDE = "before-restore-"
"""The folder that takes what was there before."""
DAMAGED = "damaged-"
"""The same for a damaged log that was salvaged."""
INCOMING = (KEYS_FOLDER, KEYS_FILE, BLOBS, DATABASE)
"""The log last: it must never refer to what is not there."""


class UnfinishedRestore(StoreError):
    """A restore broke off half-way."""

    slug = "unfinished-restore"


class Moving(Value, frozen=True):
    """`kept` moves from the data folder to `aside`, then `incoming` from `unpacked` to the data folder."""

    manifest: Manifest
    unpacked: str
    incoming: list[str]
    aside: str
    kept: list[str]


def marker_of(home: Home) -> Path:
    return home.unfinished_restore


def finishing_command(home: Home) -> str:
    named = "" if home.folder == Path("~/.offbook").expanduser() else f" --home {shlex.quote(str(home.folder))}"
    return f"offbook restore --resume{named}"


def refuse_unfinished(home: Home) -> None:
    if marker_of(home).exists():
        raise UnfinishedRestore(f"a restore broke off half-way in {home.folder}: finish it with {_finishing(home)}")


def data_of(home: Home) -> list[str]:
    return [name for name in DATA if (home.folder / name).exists()]


def move(home: Home, unpacked: Path, manifest: Manifest) -> Path | None:
    """Put what was unpacked in place. Returns where the old data is now; on an error all is as it was."""
    move_log_into(home.database)
    return exchange(home, unpacked, manifest, aside_name(ASIDE), data_of(home))


def aside_name(beginning: str) -> str:
    return f"{beginning}{now().astimezone():%Y%m%d-%H%M%S-%f}"


def exchange(home: Home, unpacked: Path, manifest: Manifest, aside: str, kept: list[str]) -> Path | None:
    moving = Moving(
        manifest=msgspec.structs.replace(manifest, files=[]),
        unpacked=unpacked.name,
        incoming=[name for name in INCOMING if (unpacked / name).exists()],
        aside=aside,
        kept=kept,
    )
    for folder in [unpacked, *(path for path in unpacked.rglob("*") if path.is_dir())]:
        sync_folder(folder)
    write_private(marker_of(home), msgspec.json.format(msgspec.json.encode(moving)).decode() + "\n")
    finish(home, moving)
    return aside_of(home, moving)


def aside_of(home: Home, moving: Moving) -> Path | None:
    return home.folder / moving.aside if moving.kept else None


def read_marker(home: Home) -> Moving:
    try:
        return msgspec.json.decode(marker_of(home).read_bytes(), type=Moving)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnfinishedRestore(
            f"{marker_of(home)} cannot be read ({error}): put {DATABASE} and {BLOBS} where they belong by hand, "
            f"from before-restore-… or .restore-… in {home.folder}, then remove it"
        ) from None


def finish(home: Home, moving: Moving) -> bool:
    """Do what is left to do. False: what was unpacked is gone, and all is as it was before."""
    try:
        is_done = all(_is_new(home, moving, name) or _at(home, moving.unpacked, name) for name in moving.incoming)
        if is_done:
            _forth(home, moving)
        else:
            _back(home, moving)
    except OSError as error:
        try:
            _back(home, moving)
        except OSError:
            raise UnfinishedRestore(
                f"the restore in {home.folder} broke off half-way ({error}): mend that, then finish it with "
                f"{_finishing(home)}"
            ) from error
        _end(home, moving)
        raise
    _end(home, moving)
    return is_done


def _finishing(home: Home) -> str:
    return f"`{finishing_command(home)}`"


def _forth(home: Home, moving: Moving) -> None:
    aside, unpacked = home.folder / moving.aside, home.folder / moving.unpacked
    if moving.kept:
        aside.mkdir(mode=0o700, exist_ok=True)
    for name in moving.kept:
        if (home.folder / name).exists() and not (aside / name).exists():
            (home.folder / name).rename(aside / name)
    _sync([aside, home.folder])
    for name in moving.incoming:
        if (unpacked / name).exists():
            (unpacked / name).rename(home.folder / name)
    _sync([unpacked, home.folder])


def _back(home: Home, moving: Moving) -> None:
    aside, unpacked = home.folder / moving.aside, home.folder / moving.unpacked
    for name in reversed(moving.incoming):
        if _is_new(home, moving, name):
            unpacked.mkdir(mode=0o700, exist_ok=True)
            (home.folder / name).rename(unpacked / name)
    for name in reversed(moving.kept):
        if (aside / name).exists():
            (aside / name).rename(home.folder / name)
    if aside.is_dir():
        aside.rmdir()
    _sync([home.folder])


def _is_new(home: Home, moving: Moving, name: str) -> bool:
    """What has this name in the data folder came out of the backup."""
    is_old_away = name not in moving.kept or _at(home, moving.aside, name)
    return (home.folder / name).exists() and is_old_away and not _at(home, moving.unpacked, name)


def _at(home: Home, folder: str, name: str) -> bool:
    return (home.folder / folder / name).exists()


def _end(home: Home, moving: Moving) -> None:
    marker_of(home).unlink()
    sync_folder(home.folder)
    shutil.rmtree(home.folder / moving.unpacked, ignore_errors=True)


def _sync(folders: Sequence[Path]) -> None:
    for folder in folders:
        if folder.is_dir():
            sync_folder(folder)


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
    refuse_owned(home)
    refuse_unfinished(home)
    there = set(data_of(home)) - {HEAD}
    if there and not force:
        raise InvalidInput(
            f"there is data in {home.folder} already: restore elsewhere with --home, or move it aside with --force"
        )
    if there:
        refuse_other_kind(archive, home)


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


# ── What was unpacked of a backup, cut after a moment, before it is put in its place ──


_references = msgspec.json.Decoder(list[BlobRef])


def cut_unpacked(unpacked: Path, manifest: Manifest, at: datetime) -> tuple[Manifest, Cut]:
    """Cut the log, let go of the large parts that only what went referred to, and say of it what it holds now.
    Raises InvalidInput where nothing would be left."""
    _refuse_before_everything(unpacked / DATABASE, at)
    cut = cut_after(unpacked / DATABASE, at)
    if not cut.agents:
        return manifest, cut
    with store_errors():
        connection = open_reader(unpacked / DATABASE)
        try:
            agents = [_agent(connection, name) for name in reads.agents(connection)]
            if not agents:
                raise InvalidInput(_nothing_yet(at, "only events of a wrong clock say an earlier time"))
            names = set(_large_parts(connection, BlobFiles(unpacked / BLOBS)))
        finally:
            connection.close()
    for path in (unpacked / BLOBS).rglob("*"):
        if path.is_file() and path.relative_to(unpacked).as_posix() not in names:
            path.unlink()
    missing = [name for name in manifest.missing if name in names]
    return msgspec.structs.replace(manifest, agents=agents, missing=missing), cut


def _refuse_before_everything(database: Path, at: datetime) -> None:
    """An empty memory is nothing to go back to: more likely the year is wrong, or the zone."""
    with store_errors():
        connection = open_reader(database)
        try:
            oldest: int | None = connection.execute("SELECT min(at) FROM audit").get
        finally:
            connection.close()
    if oldest is not None and micros(at) < oldest:
        oldest_moment = moment(oldest).astimezone().isoformat()
        raise InvalidInput(_nothing_yet(at, f"the oldest moment in this backup is {oldest_moment}"))


def _nothing_yet(at: datetime, why: str) -> str:
    when = f"{at.astimezone():%Y-%m-%d %H:%M:%S}"
    return f"on {when} there was nothing yet: {why}. Give --at a later moment; nothing was moved"


def _agent(connection: apsw.Connection, agent_id: str) -> ArchivedAgent:
    counts, head = reads.counts(connection, agent_id), audit_reads.audit_head(connection, agent_id)
    return ArchivedAgent(agent_id=agent_id, messages=counts.messages, sessions=counts.sessions, head=head)


def _large_parts(connection: apsw.Connection, blobs: BlobFiles) -> Iterator[str]:
    for agent_id, references in connection.execute(
        "SELECT a.name, m.blobs FROM messages m JOIN sessions s ON s.session = m.session "
        "JOIN agents a ON a.agent = s.agent WHERE m.blobs IS NOT NULL"
    ):
        try:
            found = _references.decode(str(references))
        except msgspec.DecodeError as error:
            raise StoreCorrupt(
                f"a message of agent {agent_id!r} does not say what its large parts are ({error}): restore the backup "
                "without --at"
            ) from None
        for reference in found:
            yield blobs.path_of(str(agent_id), reference.sha256).relative_to(blobs.root.parent).as_posix()
