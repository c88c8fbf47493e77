"""The one step of a restore that must not stay half done: the old data out of the way, the new in its place.

`restore.json` in the data folder says what goes where. It is there before the first file moves and until the
last has, and no provider starts while it is: a log with another's large parts, or an empty one, is never served.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

import apsw
import msgspec

from offbook.backup.archive import BLOBS, DATABASE, Manifest, sync_folder
from offbook.errors import StoreError
from offbook.home import Home, write_private
from offbook.types import Value, now

DATA = (f"{DATABASE}-wal", f"{DATABASE}-shm", DATABASE, BLOBS)
ASIDE = "before-restore-"
"""The folder that takes what was there before."""
INCOMING = (BLOBS, DATABASE)
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
    _checkpoint(home.database)
    moving = Moving(
        manifest=msgspec.structs.replace(manifest, files=[]),
        unpacked=unpacked.name,
        incoming=[name for name in INCOMING if (unpacked / name).exists()],
        aside=f"{ASIDE}{now().astimezone():%Y%m%d-%H%M%S-%f}",
        kept=data_of(home),
    )
    for folder in [unpacked, *(path for path in unpacked.rglob("*") if path.is_dir())]:
        sync_folder(folder)
    write_private(marker_of(home), msgspec.json.format(msgspec.json.encode(moving)).decode() + "\n")
    sync_folder(home.folder)
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


def _checkpoint(database: Path) -> None:
    """Brings what is in the write-ahead log into the database: apart from it, a crash's last messages are lost."""
    if not database.exists():
        return
    try:
        connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.execute("PRAGMA schema_version")  # unread, SQLite does not know yet that there is such a log
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        finally:
            connection.close()
    except apsw.Error:
        return  # a damaged one is what a restore replaces; both files move, side by side
