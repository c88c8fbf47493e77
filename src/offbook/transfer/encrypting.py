"""An existing data folder becomes an encrypted one, and back.

A copy is made beside it, compared with the log, and exchanged with it in the step that a restore takes, which no crash
may halve (`backup.restoring`); only then what was there before is overwritten. Killed anywhere and run again, it goes
on: before the exchange from the beginning, in it with the rest of it, after it with the overwriting.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from urllib.parse import quote

import apsw

from offbook.log.blobs import BlobFiles
from offbook.log.sql.copying import fingerprint
from offbook.log.sql.head import head_of, read_head
from offbook.log.sqlite.checkpointer import move_log_into
from offbook.log.sqlite.connection import CIPHER, TEMPORARY_FILES, connect, open_reader, raw_key, store_errors
from offbook.log.sqlite.lost_log import refuse_lost, refuse_lost_log
from offbook.log.sqlite.store import SqliteStore
from offbook.log.verification import verify
from offbook.model.errors import InvalidInput, StoreCorrupt, StoreError, StoreFull
from offbook.model.home import Home, Lock
from offbook.model.keys import KEYS_FOLDER, Keys, Secret, keys_of, need_cipher, new_keys, refuse_lost_keys, write_keys
from offbook.model.memory_folder import remove_memory_folder
from offbook.model.private_files import sync_folder
from offbook.model.types import Value
from offbook.transfer.backup.archive import BLOBS, DATABASE, Progress, disk_errors, silent
from offbook.transfer.backup.making import blob_references, manifest_of
from offbook.transfer.backup.restoring import (
    DATA,
    UNPACKED,
    aside_name,
    data_of,
    exchange,
    finish,
    marker_of,
    read_marker,
)
from offbook.transfer.plain_copies import DERIVED, REPLACED, Shredding, files, shred_copies, still_plain

ROOM_FOR_EACH = 1.1
MOST_NAMED = 5


class Encrypted(Value, frozen=True):
    home: str
    is_encrypted: bool
    messages: int
    large_parts: int
    overwritten: int
    """Files of before."""
    only_unlinked: int
    """Those that have another name as well, as in a snapshot of hard links: overwriting them would destroy that. And
    those that could not be written."""
    still_plain: list[str]
    """What was not touched and can be read without a key."""


async def encrypt(home: Home, secret: Callable[[], Secret], *, progress: Progress = silent) -> Encrypted:
    """StoreOwned where a provider runs. `secret` is asked for only where a folder is to be encrypted yet."""
    need_cipher()
    home.prepare()
    lock = Lock(home)
    try:
        with disk_errors(home.folder):
            parts = 0
            if not data_of(home) and not marker_of(home).exists():
                _refuse_remains(home)
                refuse_lost_keys(home.folder)
                new_keys(home.folder, secret())  # there is nothing yet
                remove_memory_folder(home.folder)  # of one that was here before
            elif not _resumed(home, is_encrypted=True):
                _refuse_unfit(home)
                given = secret()
                parts = await _exchanged(home, lambda folder: new_keys(folder, given), progress)
            return await _done(home, parts, progress)
    finally:
        lock.release()


async def decrypt(home: Home, *, progress: Progress = silent) -> Encrypted:
    """The other way round."""
    lock = Lock(home)
    try:
        with disk_errors(home.folder):
            parts = 0
            if not marker_of(home).exists():
                refuse_lost_keys(home.folder)
            if not (home.is_encrypted or marker_of(home).exists() or any(home.folder.glob(f"{REPLACED}*"))):
                raise InvalidInput(f"{home.folder} is not encrypted: there is nothing to do")
            if not _resumed(home, is_encrypted=False):
                keys_of(home.folder)
                _refuse_unfit(home)
                parts = await _exchanged(home, lambda folder: None, progress)
            remove_memory_folder(home.folder)
            return await _done(home, parts, progress)
    finally:
        lock.release()


def change_secret(home: Home, secret: Callable[[], Secret]) -> None:
    """Only the wrapping changes, so that it is done at once. Backups of before still open with the old one."""
    lock = Lock(home)
    try:
        keys = keys_of(home.folder)
        if keys is None:
            raise InvalidInput(f"{home.folder} is not encrypted: run `offbook encrypt`")
        write_keys(home.folder, keys, secret())
    finally:
        lock.release()


# ── how ──


def _resumed(home: Home, *, is_encrypted: bool) -> bool:
    """Whether the folder is what it is to be: with the rest of an exchange that broke off."""
    if marker_of(home).exists():
        moving = read_marker(home)
        if not moving.aside.startswith(REPLACED):
            raise InvalidInput(
                f"a restore broke off half-way in {home.folder}: finish it with `offbook restore --resume`"
            )
        finish(home, moving)
    else:
        refuse_lost_keys(home.folder)
    if _has_log(home):
        for left in home.folder.glob(f"{UNPACKED}*"):
            Shredding().folder(left)
    return home.is_encrypted == is_encrypted


def _has_log(home: Home) -> bool:
    return home.database.exists() and home.database.stat().st_size > 0


def _refuse_remains(home: Home) -> None:
    """Without a log in its place, the only one there is may be in such a folder."""
    left = sorted(path.name for kind in (REPLACED, UNPACKED) for path in home.folder.glob(f"{kind}*"))
    if left and not _has_log(home):
        raise InvalidInput(
            f"there is no log in {home.folder}, and there may be one in {', '.join(left)}: put the files of it back in "
            "their place, or move it elsewhere, then run this again; nothing was changed"
        )


def _refuse_unfit(home: Home) -> None:
    _refuse_remains(home)
    if linked := [name for name in DATA if (home.folder / name).is_symlink()]:
        raise InvalidInput(
            f"{', '.join(linked)} in {home.folder} leads elsewhere by a symbolic link: move what it leads to into the "
            "data folder first"
        )
    if not home.database.exists():
        raise InvalidInput(f"there is no log in {home.folder}, and something of it is left: `offbook doctor` says more")
    refuse_lost(home.database)
    needed = ROOM_FOR_EACH * sum(path.stat().st_size for name in data_of(home) for path in files(home.folder / name))
    free = shutil.disk_usage(home.folder).free
    if free < needed:
        raise StoreFull(f"{home.folder} has {free:,} bytes free, a copy of it needs {int(needed):,}: make room")


async def _exchanged(home: Home, make_keys: Callable[[Path], Keys | None], progress: Progress) -> int:
    """Copied, compared and put in place; returns how many large parts there are."""
    SqliteStore(home.database)._close()  # brought to the newest version
    move_log_into(home.database)
    copy = Path(mkdtemp(prefix=UNPACKED, dir=home.folder))
    try:
        keys = make_keys(copy)
        with progress("copying", None):
            _copy_database(home.database, copy / DATABASE, keys)
        store = SqliteStore(copy / DATABASE, read_only=True)
        try:
            parts = await _copy_large_parts(home, copy, store, progress)
            with progress("comparing", None):
                await _compare(home, copy, store)
            manifest = await manifest_of(store, [], [])
        finally:
            await store.close()
        kept = [*data_of(home), *(name for name in DERIVED if (home.folder / name).exists())]
        exchange(home, copy, manifest, aside_name(REPLACED), kept)
        return parts
    finally:
        if not marker_of(home).exists():
            Shredding().folder(copy)


def _copy_database(source: Path, target: Path, keys: Keys | None) -> None:
    how = f"cipher={CIPHER}&key={raw_key(keys)}" if keys is not None else "key="
    with store_errors():
        connection = connect(source, flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI)
        try:
            connection.execute(TEMPORARY_FILES)
            connection.execute("VACUUM INTO ?", (f"file:{quote(str(target.absolute()))}?{how}",))
        except apsw.FullError:
            raise StoreFull(f"there is no room for a copy of {source}: make room") from None
        except apsw.Error as error:  # its own text may say the key
            kind = type(error).__name__
            what = f"{source} could not be copied ({kind}): nothing was changed; run `offbook doctor`"
            raise StoreError(what) from None
        finally:
            connection.close()
    target.chmod(0o600)
    with target.open("rb+") as file:
        os.fsync(file.fileno())


async def _copy_large_parts(home: Home, copy: Path, store: SqliteStore, progress: Progress) -> int:
    before, after = BlobFiles(home.blobs), BlobFiles(copy / BLOBS)
    number, unread = 0, list[str]()
    with progress("large parts", None) as advance:
        async for agent_id, digest in blob_references(store):
            try:
                data = await before.get(agent_id, digest)
            except StoreError as error:  # its file, or its key, may be whole elsewhere
                unread.append(f"of agent {agent_id}: {error.detail}")
                continue
            await after.put(agent_id, data)
            number += 1
            advance(1)
    if unread:
        more = f"; and {len(unread) - MOST_NAMED} more" if len(unread) > MOST_NAMED else ""
        raise StoreCorrupt(
            f"{len(unread)} large parts cannot be read, and would be lost: {'; '.join(unread[:MOST_NAMED])}{more}. "
            f"Nothing was changed: mend permissions, put `{BLOBS}` and `{KEYS_FOLDER}` back from a copy or a backup, "
            "or forget the messages that they belong to (`offbook forget`)"
        )
    return number


async def _compare(home: Home, copy: Path, store: SqliteStore) -> None:
    """Row for row as far as they are counted, and every chain to its head."""
    with store_errors():
        old, new = open_reader(home.database), open_reader(copy / DATABASE)
        try:
            with old, new:
                is_same = head_of(old) == head_of(new) and fingerprint(old) == fingerprint(new)
        finally:
            old.close()
            new.close()
    if not is_same:
        raise StoreCorrupt(f"the copy of {home.database} is not the same: nothing was changed; run `offbook doctor`")
    for agent_id in await store.agents():
        async for fault in verify(store, agent_id):
            raise StoreCorrupt(
                f"the log is not sound ({fault.what}): nothing was changed; `offbook audit --verify` tells all of it"
            )


def _refuse_other_log(home: Home) -> None:
    """A log that was begun meanwhile is not the one that was there before."""
    with store_errors(), open_reader(home.database) as connection:
        installation = head_of(connection).installation
    for folder in home.folder.glob(f"{REPLACED}*"):
        before = read_head(folder / DATABASE)
        if before is not None and before.installation != installation:
            raise InvalidInput(
                f"the log in {home.folder} is another one than that in {folder.name}: move one of them elsewhere, then "
                "run this again; nothing was overwritten"
            )


async def _done(home: Home, parts: int, progress: Progress) -> Encrypted:
    """What was there before goes only once the log that took its place was opened."""
    _refuse_remains(home)
    refuse_lost_log(home)
    store = SqliteStore(home.database)
    try:
        _refuse_other_log(home)
        messages = sum([(await store.counts(agent_id)).messages for agent_id in await store.agents()])
    finally:
        await store.close()
    with progress("overwriting", None) as advance:
        shredding = Shredding(advance)
        for folder in sorted(home.folder.glob(f"{REPLACED}*")):
            shredding.folder(folder)
        if home.is_encrypted:
            shred_copies(home, shredding)
    sync_folder(home.folder)
    return Encrypted(
        home=str(home.folder),
        is_encrypted=home.is_encrypted,
        messages=messages,
        large_parts=parts,
        overwritten=shredding.overwritten,
        only_unlinked=shredding.only_unlinked,
        still_plain=still_plain(home) if home.is_encrypted else [],
    )
